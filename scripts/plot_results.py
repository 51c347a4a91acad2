#!/usr/bin/env python3
"""Draws the figures of a results file: error and recall by budget, a layer by head map, needles.

  plot_results.py results/quickstart.h5 --out results/quickstart
"""

import sys
from pathlib import Path

import result_figures as figures
from figure_files import Refused, add_output_arguments, answer, choose, draw_all, open_file, parser_of
from result_families import only, parameter_table


def parse_arguments(arguments):
    parser = parser_of(__doc__)
    parser.add_argument("results", type=Path, help="file written by quoka-sweep")
    add_output_arguments(parser, ["png"])
    parser.add_argument("--config", metavar="ID", help="configuration of the layer by head map\n"
                        "(first characters of its label in the file suffice; default: the file's first)")
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME=VALUE[,VALUE]",
                        help="only configurations with these values, for example budget=128,256\n"
                        "(those to which the parameter cannot matter stay)")
    parser.add_argument("--layers", type=int, nargs="+", metavar="N", help="only these layers")
    parser.add_argument("--captures", nargs="+", metavar="NAME", help="only these captures")
    return parser.parse_args(arguments)


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
    ds = open_file(options.results, "quoka-results")
    ds = choose(choose(ds, "layer", options.layers), "capture", options.captures)
    ds = choose_configs(ds, options.only)
    config = config_position(ds, options.config)
    draw_all({
        "error_by_budget": lambda: figures.error_and_recall_by_budget(ds),
        "layer_head_map": lambda: figures.layer_head_map(ds, config),
        "needles": lambda: figures.needles_against_error(ds),
    }, options.out or options.results.with_suffix(""), options.formats)


def main(arguments=None):
    return answer(run, parse_arguments(arguments))


if __name__ == "__main__":
    sys.exit(main())
