#!/usr/bin/env python3
"""Draws the figures of a results file: error and recall by budget, a layer by head map, needles.

  plot_results.py results/quickstart.h5 --out results/quickstart
"""

import argparse
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt  # noqa: E402
import xarray as xr  # noqa: E402

import result_figures as figures  # noqa: E402
from result_families import only, parameter_table  # noqa: E402


class Refused(Exception):
    """What the user asked for cannot be done; the message says why."""


def parse_arguments(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("results", type=Path, help="file written by quoka-sweep")
    parser.add_argument("--out", type=Path,
                        help="folder of the figures (default: the file's name without .h5)")
    parser.add_argument("--vector", action="store_true", help="also write SVG and PDF")
    parser.add_argument("--config", metavar="ID", help="configuration of the layer by head map\n"
                        "(first characters of its label in the file suffice; default: the file's first)")
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME=VALUE[,VALUE]",
                        help="only configurations with these values, for example budget=128,256\n"
                        "(those to which the parameter cannot matter stay)")
    parser.add_argument("--layers", type=int, nargs="+", metavar="N", help="only these layers")
    parser.add_argument("--captures", nargs="+", metavar="NAME", help="only these captures")
    return parser.parse_args(arguments)


def open_results(path):
    if not path.is_file():
        raise Refused(f"{path} does not exist (quoka-sweep run writes it)")
    try:
        ds = xr.open_dataset(path)
    except (OSError, ValueError) as error:
        raise Refused(f"{path} cannot be opened as a results file ({error})") from error
    if ds.attrs.get("format") != "quoka-results":
        raise Refused(f"{path} is not a results file (its attribute format is not quoka-results)")
    if int(ds.attrs["format_version"]) != 1:
        raise Refused(f"{path} has format version {ds.attrs['format_version']} (this script knows 1)")
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


def choose_configs(ds, conditions):
    """The configurations that fulfil every condition "name=value,value"."""
    have = parameter_table(ds)
    wanted = {}
    for condition in conditions:
        name, _, values = condition.partition("=")
        if name not in have[0]:
            raise Refused(f"{name} is not a parameter (known are {', '.join(have[0])})")
        wanted[name] = values.split(",")
        for value in wanted[name]:
            if value not in (row[name] for row in have):
                raise Refused(f"no configuration has {name}={value} (the file has "
                              f"{', '.join(dict.fromkeys(row[name] for row in have if row[name]))})")
    chosen = only(ds, wanted)
    if chosen.sizes["config"] == 0:
        raise Refused(f"no configuration fulfils {' '.join(conditions)} at once")
    return chosen


def config_position(ds, wanted):
    ids = ds["config"].values.tolist()
    matches = [i for i, label in enumerate(ids) if label.startswith(wanted or ids[0])]
    if len(matches) != 1:
        raise Refused(f"config {wanted} names {len(matches)} configurations (one is needed); the file "
                      f"has {', '.join(ids[:8])}{', ...' if len(ids) > 8 else ''}")
    return matches[0]


def run(options):
    ds = open_results(options.results)
    ds = choose(choose(ds, "layer", options.layers), "capture", options.captures)
    ds = choose_configs(ds, options.only)
    config = config_position(ds, options.config)
    out = options.out or options.results.with_suffix("")
    out.mkdir(parents=True, exist_ok=True)
    for name, draw in {
        "error_by_budget": figures.error_and_recall_by_budget,
        "layer_head_map": lambda data: figures.layer_head_map(data, config),
        "needles": figures.needles_against_error,
    }.items():
        try:
            figure = draw(ds)
        except figures.NothingToPlot as reason:
            print(f"{name}: left out ({reason})")
            continue
        for suffix in ("png", "svg", "pdf") if options.vector else ("png",):
            figure.savefig(out / f"{name}.{suffix}", dpi=150)
            print(out / f"{name}.{suffix}")
        plt.close(figure)


def main(arguments=None):
    options = parse_arguments(arguments)
    try:
        run(options)
    except Refused as reason:
        print(f"error: {reason}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
