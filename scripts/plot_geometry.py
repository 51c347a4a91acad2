#!/usr/bin/env python3
"""Draws the figures of a geometry file, after the paper's figures 2a, 2b, 2c and 3, for one head.

  plot_geometry.py results/geometry.h5 --layer 0 --head 8 --out results/geometry
"""

import argparse
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt  # noqa: E402
import numpy as np  # noqa: E402
import xarray as xr  # noqa: E402

import geometry_figures as figures  # noqa: E402


class Refused(Exception):
    """What the user asked for cannot be done; the message says why."""


def parse_arguments(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("geometry", type=Path, help="file written by quoka-geometry")
    parser.add_argument("--out", type=Path,
                        help="folder of the figures (default: the file's name without .h5)")
    parser.add_argument("--layer", type=int, help="layer of the head that is drawn")
    parser.add_argument("--head", type=int, help="query head that is drawn\n"
                        "(default: the one with the median correlation of figure 2c)")
    parser.add_argument("--vector", action="store_true", help="also write SVG and PDF")
    return parser.parse_args(arguments)


def open_geometry(path):
    if not path.is_file():
        raise Refused(f"{path} does not exist (quoka-geometry run writes it)")
    try:
        ds = xr.open_dataset(path)
    except (OSError, ValueError) as error:
        raise Refused(f"{path} cannot be opened as a geometry file ({error})") from error
    if ds.attrs.get("format") != "quoka-geometry":
        raise Refused(f"{path} is not a geometry file (its attribute format is not quoka-geometry)")
    if int(ds.attrs["format_version"]) != 1:
        raise Refused(f"{path} has format version {ds.attrs['format_version']} (this script knows 1)")
    return ds


def choose_head(ds, layer, head):
    """(layer, head) to draw: as asked for, else the one with the median correlation among what is left."""
    for name, wanted, label in (("layer", layer, "layer"), ("head", head, "q_head")):
        have = ds[label].values.tolist()
        if wanted is not None and wanted not in have:
            raise Refused(f"{name} {wanted} is not in the file (it has {', '.join(map(str, have))})")
    left = ds["similarity_attention_log_pearson"]
    left = left.sel(layer=[layer]) if layer is not None else left
    left = left.sel(q_head=[head]) if head is not None else left
    values = left.values.ravel()
    defined = np.flatnonzero(np.isfinite(values))
    if not len(defined):
        raise Refused("no head that was asked for has values (the layer failed, or it has fewer heads)")
    ranked = defined[np.argsort(values[defined], kind="stable")]
    row, column = divmod(int(ranked[(len(ranked) - 1) // 2]), left.sizes["q_head"])
    return int(left["layer"][row]), int(left["q_head"][column])


def run(options):
    ds = open_geometry(options.geometry)
    layer, head = choose_head(ds, options.layer, options.head)
    one = figures.head_of(ds, layer, head)
    out = options.out or options.geometry.with_suffix("")
    out.mkdir(parents=True, exist_ok=True)
    for name, draw, data in (
        ("attention_by_similarity", figures.attention_by_similarity, one),
        ("components", figures.components, one),
        ("similarity_against_attention", figures.similarity_against_attention, one),
        ("score_tails", figures.score_tails, one),
        ("correlation_map", figures.correlation_map, ds),
    ):
        try:
            figure = draw(data)
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
