"""What every program that draws figures does: open a file, draw, save each figure in one step, answer errors."""

import argparse
import os
import sys
from pathlib import Path

import h5py
import matplotlib
import xarray as xr

from figure_style import NothingToPlot

WRITERS = {"quoka-results": "quoka-sweep run", "quoka-geometry": "quoka-geometry run"}
FORMATS = ("png", "svg", "pdf")
# No time in a picture: the same file gives the same bytes.
TIMELESS = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": None}


class Refused(Exception):
    """What the user asked for cannot be done: the message says why, `code` is the exit code."""

    def __init__(self, message, code=2):
        super().__init__(message)
        self.code = code


class BadFile(Refused):
    def __init__(self, message):
        super().__init__(message, 3)


def add_output_arguments(parser, formats):
    parser.add_argument("--out", type=Path, help="folder of the figures (default: the file's name without .h5)")
    parser.add_argument("--formats", nargs="+", choices=FORMATS, default=formats, metavar="FORMAT",
                        help=f"of {', '.join(FORMATS)} (default: {' '.join(formats)})")


def parser_of(description):
    return argparse.ArgumentParser(description=description, formatter_class=argparse.RawTextHelpFormatter)


def open_file(path, *formats):
    """The dataset of a file whose root attribute `format` is one of these."""
    wanted = " or ".join(f"{name} (written by {WRITERS[name]})" for name in formats)
    if not path.is_file():
        raise BadFile(f"{path} does not exist (wanted is a file of format {wanted})")
    try:
        with h5py.File(path) as file:
            found = file.attrs.get("format", "")
            found = found.decode() if isinstance(found, bytes) else str(found)
    except OSError as error:
        raise BadFile(f"{path} cannot be opened as HDF5 ({error})") from error
    if found not in formats:
        raise BadFile(f"{path} has {f'format {found}' if found else 'no attribute format'}; wanted is {wanted}")
    try:
        ds = xr.open_dataset(path)
    except (OSError, ValueError) as error:
        raise BadFile(f"{path} cannot be read ({error})") from error
    if int(ds.attrs["format_version"]) != 1:
        raise BadFile(f"{path} has format version {ds.attrs['format_version']} (this program knows 1)")
    return ds


def choose(ds, dimension, wanted):
    """The dataset at these labels of a dimension only; all of it if none are given."""
    if not wanted:
        return ds
    have = ds[dimension].values.tolist()
    missing = [str(label) for label in wanted if label not in have]
    if missing:
        raise Refused(f"{dimension} {', '.join(missing)} is not in the file (it has "
                      f"{', '.join(str(label) for label in have)})")
    return ds.sel({dimension: wanted})


def save(figure, folder, stem, formats):
    """Writes <folder>/<stem>.<format> for each format, under a temporary name first, and prints the names."""
    folder.mkdir(parents=True, exist_ok=True)
    # Each drawing moves the panels a little until they are settled: settle them here, so that a picture does not
    # depend on which formats were written before it.
    for _ in range(2):
        figure.draw_without_rendering()
    figure.set_layout_engine("none")
    for suffix in formats:
        path = folder / f"{stem}.{suffix}"
        partial = path.with_name(f".{path.name}.{os.getpid()}")
        try:
            figure.savefig(partial, format=suffix, metadata=TIMELESS[suffix])
            os.replace(partial, path)
        finally:
            partial.unlink(missing_ok=True)
        print(path)
    matplotlib.pyplot.close(figure)


def draw_all(figures, folder, formats):
    """Saves {stem: function that draws}; says why a figure cannot be drawn and goes on."""
    for stem, draw in figures.items():
        try:
            figure = draw()
        except NothingToPlot as reason:
            print(f"{stem}: left out ({reason})")
            continue
        save(figure, folder, stem, formats)


def answer(run, options):
    """The exit code of run(options); what is refused goes to standard error."""
    try:
        run(options)
    except Refused as reason:
        print(f"error: {reason}", file=sys.stderr)
        return reason.code
    except OSError as error:
        print(f"error: a figure cannot be written ({error})", file=sys.stderr)
        return 74
    except KeyboardInterrupt:
        print("error: interrupted; the same command draws the figures again", file=sys.stderr)
        return 75
    return 0
