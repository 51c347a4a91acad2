#!/usr/bin/env python3
"""Runs quoka-sweep on the configurations of a file of expected values and compares every number.

  check_expected.py --sweep build/release/apps/quoka-sweep --expected expected_layer18.json --captures data

The expected values come from a float64 implementation that shares nothing with this project. The
replay works in float32, where a near tie of two scores may keep another key: that, not rounding, is
what most of the tolerances allow for.
"""

import argparse
import collections
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import h5py
import numpy as np

# Tolerance of a mean: absolute, and relative to the expected value. Shares move by one key of a
# row's mass at most (5e-4); errors by that and by rounding; overlaps and needles by whole keys.
TOLERANCES = {
    "mass_recall": (5e-4, 0),
    "mass_recall_history": (5e-4, 0),
    "mass_recall_no_sink": (5e-4, 0),
    "oracle_ratio": (5e-4, 0),
    "out_cos": (5e-4, 0),
    "out_rel_l2": (1e-5, 5e-3),
    "out_max_abs": (1e-5, 5e-3),
    "topk_overlap": (0.03, 0),
    "needle_key_recall": (0.03, 0),
    "needle_mass_recall": (0.03, 0),
}
# Tails are single rows: one exchanged key shows undiluted there.
WIDENING = {"mean": 1, "p50": 1, "p99": 4, "worst": 20}

# The paper's values, which a configuration has where the file does not say otherwise.
DEFAULTS = {
    "selector": "quoka", "chunk_size": 128, "chunk_offset": 0, "budget": "1024", "n_sel_queries": 16,
    "query_rule": "lowest_cosine", "query_scope": "per_head", "query_mean": "raw", "score": "cosine",
    "pairing": "rank", "head_aggregation": "mean_first", "query_aggregation": "max",
    "candidates": "history", "keep_first": 0, "keep_recent": 0, "seed": 0,
}  # fmt: skip
CONSTANTS = ("min_history",)  # of a sweep, not of a configuration


def split(config):
    """The constants and the full parameters of a configuration, both hashable."""
    constants = tuple((name, config[name]) for name in CONSTANTS if name in config)
    parameters = {**DEFAULTS, **{name: v for name, v in config.items() if name not in CONSTANTS}}
    return constants, tuple(parameters.items())


def sweeps(members):
    """Grids that together hold all configurations, each with its members: one that varies values alone."""
    while members:
        base, left, taken = dict(members[0][0]), [], []
        axes = {name: [value] for name, value in base.items()}
        for member in members:
            changed = [(name, value) for name, value in member[0] if base[name] != value]
            (taken if len(changed) <= 1 else left).append(member)
            for name, value in changed if len(changed) == 1 else []:
                if value not in axes[name]:
                    axes[name].append(value)
        yield axes, taken
        members = left


def run_sweep(sweep, capture, layers, constants, axes, out):
    lines = [f"capture = {json.dumps(str(capture))}", f"layer = {json.dumps(sorted(layers))}",
             'grid = "one_at_a_time"', f"out = {json.dumps(str(out))}"]  # fmt: skip
    lines += [f"{name} = {json.dumps(values)}" for name, values in axes.items()]
    lines += [f"{name} = {value}" for name, value in constants]
    config = out.with_suffix(".toml")
    config.write_text("\n".join(lines) + "\n")
    subprocess.run([sweep, "run", str(config), "--quiet"], check=True, stdout=subprocess.DEVNULL)


def position(file, parameters):
    """The configuration's place along the config dimension; "" and NaN mean that a value cannot matter."""

    def same(name, wanted):
        column = file[name]
        if column.dtype.kind == "f":
            return np.isnan(column[:]) | (column[:] == float(wanted))
        return np.isin(column.asstr()[:], ["", str(wanted)])

    found = np.flatnonzero(np.all([same(name, value) for name, value in parameters], axis=0))
    if len(found) != 1:
        raise SystemExit(f"{len(found)} configurations of {file.filename} are {dict(parameters)}")
    return found[0]


def numbers(entry):
    """(head, metric, statistic or "", expected value) of one entry; null becomes NaN."""
    for head, metrics in enumerate(entry["q_heads"]):
        for metric, value in metrics.items():
            for statistic, number in (value if isinstance(value, dict) else {"": value}).items():
                yield head, metric, statistic, np.nan if number is None else number


def compare(entry, file, config, worst):
    """One line per number out of tolerance; worst[(metric, statistic)] is the largest share used."""
    layer = file["layer"][:].tolist().index(entry["layer"])
    for head, metric, statistic, expected in numbers(entry):
        name = f"{metric}_{statistic}" if statistic else metric
        actual = float(file[name][config, 0, layer, head])
        absolute, relative = TOLERANCES[metric]
        allowed = WIDENING.get(statistic, 1) * (absolute + relative * abs(expected))
        if statistic == "n_valid":
            allowed = 0
        if np.isnan(expected) or np.isnan(actual):
            good, share = np.isnan(expected) == np.isnan(actual), 0.0
        else:
            difference = abs(actual - expected)
            good, share = difference <= allowed, difference / allowed if allowed else difference
        worst[metric, statistic] = max(worst[metric, statistic], share)
        if not good:
            yield (f"layer {entry['layer']} head {head} {name}: {actual:.7g} instead of {expected:.7g} "
                   f"(allowed difference {allowed:.2g}) under {entry['config']}")  # fmt: skip


def check(options, folder):
    groups = collections.defaultdict(list)
    for entry in json.loads(options.expected.read_text())["results"]:
        constants, parameters = split(entry["config"])
        groups[entry["capture"], constants].append((parameters, entry))
    worst, failures, compared = collections.Counter(), [], 0
    for number, ((capture, constants), members) in enumerate(groups.items()):
        for part, (axes, taken) in enumerate(sweeps(members)):
            out = folder / f"sweep_{number}_{part}.h5"
            layers = {entry["layer"] for _, entry in taken}
            run_sweep(options.sweep, (options.captures / capture).resolve(), layers, constants, axes, out)
            with h5py.File(out) as file:
                for parameters, entry in taken:
                    failures += compare(entry, file, position(file, parameters), worst)
                    compared += sum(1 for _ in numbers(entry))
    return worst, failures, compared


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--sweep", required=True, help="the program quoka-sweep")
    parser.add_argument("--expected", type=Path, required=True)
    parser.add_argument("--captures", type=Path, required=True, help="folder of the capture files")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        worst, failures, compared = check(options, Path(folder))
    print("largest share of the tolerance that was used (n_valid: largest difference):")
    for (metric, statistic), share in sorted(worst.items()):
        print(f"  {metric + ('_' + statistic if statistic else ''):30} {share:.3f}")
    for failure in failures[:30]:
        print(failure)
    print(f"{compared} numbers compared, {len(failures)} out of tolerance")
    sys.exit(1 if failures or compared == 0 else 0)


if __name__ == "__main__":
    main()
