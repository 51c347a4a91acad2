#!/usr/bin/env python3
"""Draws figures for publication of results files and geometry files, as PNG and SVG.

  plot_paper.py results/mine.h5 --out figures
  plot_paper.py results/geometry.h5 --layer 24 --head 3 --formats svg pdf

Of a results file, for each parameter P that varies: <file>_P (error, tail, mass and needle recall),
<file>_P_difference (error against needle recall, both minus the base's, over several prompts) and
<file>_P_layers. The base is the file's first configuration; parameters other than P are held at it, and what
changes several at once is in <file>_combinations.
Of a geometry file: the paper's figures 2a, 2b, 2c and 3, and its theorem. Samples are those of one head: as asked
for, else the one whose correlation in figure 2c is the median of all.
"""

import sys
from pathlib import Path

import geometry_figures
import paper_figures
from figure_files import Refused, add_output_arguments, answer, choose, draw_all, open_file, parser_of
from paper_series import studies


def parse_arguments(arguments):
    parser = parser_of(__doc__)
    parser.add_argument("files", type=Path, nargs="+", metavar="FILE", help="written by quoka-sweep or quoka-geometry")
    add_output_arguments(parser, ["png", "svg"])
    parser.add_argument("--columns", type=int, choices=(1, 2), default=2,
                        help="width in columns of a printed page: 1 is 3.5 inches, 2 is 7.2 (default)")
    parser.add_argument("--layer", type=int, help="results: only this layer; geometry: layer of the head drawn")
    parser.add_argument("--head", type=int, help="the same for the query head")
    return parser.parse_args(arguments)


def results_drawings(path, ds, options):
    """{stem: function that draws} of a results file."""
    layer, head = ([] if one is None else [one] for one in (options.layer, options.head))
    ds = choose(choose(ds, "layer", layer), "q_head", head)
    figures = {}
    for study in studies(ds):
        kinds = {"": paper_figures.values}
        if study.parameter != "combinations":
            kinds |= {"_difference": paper_figures.both_sides, "_layers": paper_figures.by_layer}
        for ending, draw in kinds.items():
            figures[f"{path.stem}_{study.parameter}{ending}"] = lambda draw=draw, study=study: draw(
                ds, study, options.columns)
    return figures


def geometry_drawings(path, ds, options):
    """{stem: function that draws} of a geometry file."""
    for dimension, wanted in (("layer", options.layer), ("q_head", options.head)):
        choose(ds, dimension, [] if wanted is None else [wanted])
    head = geometry_figures.typical_head(ds, options.layer, options.head)
    if head is None:
        raise Refused(f"{path}: no head that was asked for has values (the layer failed, or it has fewer heads)")
    print(f"{path}: layer {head[0]}, query head {head[1]}")
    return {f"{path.stem}_{name}": lambda draw=draw: draw(ds, *head, options.columns)
            for name, draw in geometry_figures.FIGURES.items()}


def run(options):
    for path in options.files:
        ds = open_file(path, "quoka-results", "quoka-geometry")
        of = geometry_drawings if ds.attrs["format"] == "quoka-geometry" else results_drawings
        draw_all(of(path, ds, options), options.out or path.with_suffix(""), options.formats)


def main(arguments=None):
    return answer(run, parse_arguments(arguments))


if __name__ == "__main__":
    sys.exit(main())
