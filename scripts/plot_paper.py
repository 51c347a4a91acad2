#!/usr/bin/env python3
"""Draws figures for publication of results files and geometry files, as PNG and SVG.

  plot_paper.py results/mine.h5 --out figures
  plot_paper.py results/geometry.h5 --layer 24 --head 3 --formats svg pdf

Of a results file, for each parameter P that varies: <file>_P (error, tail, mass and needle recall),
<file>_P_difference (error against needle recall, both minus the base's, over several prompts) and
<file>_P_layers. The base is the file's first configuration; parameters other than P are held at it, and what
changes several at once is in <file>_combinations.
Of a geometry file: the paper's figures 2a, 2b, 2c and 3, its theorem, and a map of all heads.
"""

import sys
from pathlib import Path

import paper_figures
from figure_files import BadFile, Refused, add_output_arguments, answer, choose, draw_all, open_file, parser_of
from paper_series import studies


def parse_arguments(arguments):
    parser = parser_of(__doc__)
    parser.add_argument("files", type=Path, nargs="+", metavar="FILE", help="written by quoka-sweep or quoka-geometry")
    add_output_arguments(parser, ["png", "svg"])
    parser.add_argument("--columns", type=int, choices=(1, 2), default=2, help="columns of the page to fill (default: 2)")
    parser.add_argument("--layer", type=int, help="results: only this layer; geometry: layer of the head drawn")
    parser.add_argument("--head", type=int, help="the same for the query head")
    return parser.parse_args(arguments)


def results_figures(path, ds, options):
    """{stem: function that draws} of a results file."""
    layer, head = ([] if one is None else [one] for one in (options.layer, options.head))
    ds = choose(choose(ds, "layer", layer), "q_head", head)
    figures = {}
    for study in studies(ds):
        stem = f"{path.stem}_{study.parameter}"
        for ending, draw in (("", paper_figures.values), ("_difference", paper_figures.both_sides),
                             ("_layers", paper_figures.by_layer)):
            figures[stem + ending] = lambda draw=draw, study=study: draw(ds, study, options.columns)
    return figures


def run(options):
    for path in options.files:
        ds = open_file(path, "quoka-results")
        draw_all(results_figures(path, ds, options), options.out or path.with_suffix(""), options.formats)


def main(arguments=None):
    return answer(run, parse_arguments(arguments))


if __name__ == "__main__":
    sys.exit(main())
