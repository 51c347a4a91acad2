#!/usr/bin/env python3
"""Compares this toolkit with PyTorch on the same machine in the same run, and prints ratios.

  bench_pytorch.py attention --bench build/release/apps/quoka-bench
  bench_pytorch.py sweep --sweep build/release/apps/quoka-sweep --capture data/smollm2-135m_needles_2k.h5 --layer 18

`attention`: one chunk of queries behind a history, by scaled_dot_product_attention (the fastest of
several ways to ask for it) and by quoka-bench attention, in turn, on one thread.
`sweep`: 5 budgets x 20 settings on one layer, each configuration evaluated on its own in PyTorch, and
by quoka-sweep; also the largest difference between the numbers of the two.

Needs torch, h5py and numpy (scripts/requirements-capture.txt).
"""

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import h5py
import numpy as np
import torch
import torch.nn.functional as F

SETTINGS = {
    "n_sel_queries": [4, 8, 16, 32, 64],
    "score": ["cosine", "dot"],
    "query_aggregation": ["max", "mean"],
}
METRICS = ["mass_recall", "kl", "out_rel_l2", "out_cos", "out_max_abs"]
QUANTILES = {"p01": 0.01, "p05": 0.05, "p50": 0.50, "p95": 0.95, "p99": 0.99}


def timed(task):
    begin = time.perf_counter()
    result = task()
    return time.perf_counter() - begin, result


def run(command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{command[0]} ended with {done.returncode}: {done.stderr}")
    return done.stdout


# ---------------------------------------------------------------------------------- attention


def attention_variants(q_heads, kv_heads, chunk, history, head_dim):
    """Ways to ask PyTorch for the attention of a chunk behind a history: name -> task."""
    n_keys, group = history + chunk, q_heads // kv_heads
    q = torch.randn(1, q_heads, chunk, head_dim)
    k, v = (torch.randn(1, kv_heads, n_keys, head_dim) for _ in range(2))
    visible = torch.ones(chunk, n_keys, dtype=torch.bool).tril(diagonal=history)
    added = torch.zeros(chunk, n_keys).masked_fill(~visible, -math.inf)
    wide_k, wide_v = (x.repeat_interleave(group, dim=1) for x in (k, v))
    # The heads of a group as further rows of its KV head: no copy of the keys.
    rows = q.reshape(1, kv_heads, group * chunk, head_dim)
    row_mask = added.repeat(group, 1)
    variants = {
        "expanded heads, bool mask": lambda: F.scaled_dot_product_attention(q, wide_k, wide_v, visible),
        "expanded heads, float mask": lambda: F.scaled_dot_product_attention(q, wide_k, wide_v, added),
        "enable_gqa": lambda: F.scaled_dot_product_attention(q, k, v, added, enable_gqa=True),
        "heads stacked as rows": lambda: F.scaled_dot_product_attention(rows, k, v, row_mask),
    }
    expected = variants["expanded heads, bool mask"]()
    for name, task in variants.items():
        assert torch.allclose(task().reshape(expected.shape), expected, atol=1e-4), name
    return variants


def attention(arguments):
    torch.set_num_threads(1)
    print(f"PyTorch {torch.__version__}, 1 thread, chunk {arguments.chunk_size}, "
          f"heads {arguments.q_heads}:{arguments.kv_heads}, {arguments.rounds} rounds in turn")
    print("head_dim history  quoka [ms]  torch [ms]  torch/quoka  fastest of PyTorch")
    for head_dim in arguments.head_dim:
        for history in arguments.history:
            compare_attention(arguments, head_dim, history)


def compare_attention(arguments, head_dim, history):
    variants = attention_variants(arguments.q_heads, arguments.kv_heads, arguments.chunk_size, history, head_dim)
    ours, theirs = [], {name: [] for name in variants}
    for _ in range(arguments.rounds):
        report = json.loads(run([
            arguments.bench, "attention", "--json", "--history", history, "--head_dim", head_dim,
            "--chunk_size", arguments.chunk_size, "--q_heads", arguments.q_heads,
            "--kv_heads", arguments.kv_heads, "--repetitions", arguments.repetitions,
        ]))  # fmt: skip
        ours.append(report["cases"][0]["dense"] / 1e3)
        for name, task in variants.items():
            task()
            samples = [timed(task)[0] for _ in range(arguments.repetitions)]
            theirs[name].append(statistics.median(samples))
    best = min(theirs, key=lambda name: statistics.median(theirs[name]))
    ratios = [torch_time / our_time for torch_time, our_time in zip(theirs[best], ours)]
    print(f"{head_dim:8} {history:7}  {1e3 * statistics.median(ours):10.2f}  "
          f"{1e3 * statistics.median(theirs[best]):10.2f}  {statistics.median(ratios):11.2f}  {best}")


# -------------------------------------------------------------------------------------- sweep


class Layer:
    """q, k, v of one layer and its dense attention, computed once."""

    def __init__(self, path, layer_idx):
        with h5py.File(path) as file:
            group = file[f"layers/{layer_idx:03d}"]
            self.q, self.k, self.v = (torch.from_numpy(group[name][:].astype(np.float32)) for name in "qkv")
            self.scale = float(group.attrs["softmax_scale"])
            rules = ["q_offset", "sliding_window", "attention_chunk", "softcap_applied", "has_sinks", "alibi"]
            if any(group.attrs[name] for name in rules):
                sys.exit(f"{path} layer {layer_idx} is not a plain causal layer from position 0; use another")
        self.n_q, self.n_tokens, _ = self.q.shape
        self.group = self.n_q // self.k.shape[0]
        self.wide_k = self.k.repeat_interleave(self.group, dim=0)
        self.wide_v = self.v.repeat_interleave(self.group, dim=0)
        logits = self.scale * self.q @ self.wide_k.transpose(1, 2)
        hidden = torch.ones(self.n_tokens, self.n_tokens, dtype=torch.bool).triu(diagonal=1)
        self.probs = torch.softmax(logits.masked_fill_(hidden, -math.inf), dim=-1)
        self.out = self.probs @ self.wide_v
        self.unit_k = F.normalize(self.k, dim=-1)


def kept_keys(layer, begin, end, config):
    """[KV heads, budget] history keys: the paper's method, step by step."""
    q = layer.q[:, begin:end]
    n = config["n_sel_queries"]
    if n < end - begin:
        similarity = F.cosine_similarity(q, q.mean(dim=1, keepdim=True), dim=-1)
        rows = similarity.sort(dim=1, stable=True).indices[:, :n]
        q = q.gather(1, rows.unsqueeze(-1).expand(-1, -1, q.shape[-1]))
    if config["score"] == "cosine":
        q = F.normalize(q, dim=-1)
    slots = q.unflatten(0, (-1, layer.group)).mean(dim=1)
    keys = layer.unit_k if config["score"] == "cosine" else layer.k
    scores = slots @ keys[:, :begin].transpose(1, 2)
    scores = scores.amax(dim=1) if config["query_aggregation"] == "max" else scores.mean(dim=1)
    return scores.topk(config["budget"], dim=-1).indices


def evaluate(layer, config, chunk_size):
    """Statistics of every metric per query head of one configuration."""
    rows = {name: [] for name in METRICS}
    for begin in range(0, layer.n_tokens, chunk_size):
        end = min(begin + chunk_size, layer.n_tokens)
        if begin <= config["budget"]:
            continue  # no more candidates than the budget: exact
        mask = torch.zeros(layer.k.shape[0], end, dtype=torch.bool)
        mask[:, begin:] = True
        mask.scatter_(1, kept_keys(layer, begin, end, config), True)
        kept = layer.probs[:, begin:end, :end] * mask.repeat_interleave(layer.group, dim=0).unsqueeze(1)
        mass = kept.sum(dim=-1)
        out = kept @ layer.wide_v[:, :end] / mass.unsqueeze(-1)
        dense = layer.out[:, begin:end]
        rows["mass_recall"].append(mass)
        rows["kl"].append(-mass.log())
        rows["out_rel_l2"].append((out - dense).norm(dim=-1) / dense.norm(dim=-1))
        rows["out_cos"].append(F.cosine_similarity(out, dense, dim=-1))
        rows["out_max_abs"].append((out - dense).abs().amax(dim=-1))
    result = {}
    for name, parts in rows.items():
        values = torch.cat(parts, dim=1)
        result[f"{name}_mean"] = values.double().mean(dim=1)
        quantiles = torch.quantile(values, torch.tensor(list(QUANTILES.values())), dim=1)
        result |= {f"{name}_{label}": quantiles[i] for i, label in enumerate(QUANTILES)}
    return result


def configurations(budgets, n_settings):
    settings = [
        {"n_sel_queries": n, "score": score, "query_aggregation": aggregation}
        for n in SETTINGS["n_sel_queries"]
        for score in SETTINGS["score"]
        for aggregation in SETTINGS["query_aggregation"]
    ]
    return [{**setting, "budget": budget} for setting in settings[:n_settings] for budget in budgets]


def quoka_sweep(arguments, folder):
    out = Path(folder) / "sweep.h5"
    command = [arguments.sweep, "run", "--quiet", "--out", out, "--capture", arguments.capture, "--layer",
               arguments.layer, "--threads", arguments.threads, "--chunk_size", arguments.chunk_size,
               "--budget", *arguments.budget]  # fmt: skip
    for name, values in SETTINGS.items():
        command += [f"--{name}", *values]
    seconds, _ = timed(lambda: run(command))
    return seconds, out


def largest_differences(results, ours):
    """Per metric the largest and the mean difference over configurations, heads and statistics."""
    with h5py.File(ours) as file:
        parameter = {name: file[name].asstr()[:] if file[name].dtype.kind == "O" else file[name][:]
                     for name in ["budget", *SETTINGS]}  # fmt: skip
        table = {name: file[name][:, 0, 0] for name in results[0][1]}
    worst = {name: (0.0, 0.0) for name in METRICS}
    for name in METRICS:
        differences = []
        for config, values in results:
            row = np.flatnonzero(np.all([[as_text(x) == as_text(config[p]) for x in parameter[p]] for p in parameter], 0))
            assert len(row) == 1, config
            for column in values:
                if column.startswith(name + "_"):
                    differences.append(np.abs(table[column][row[0]] - values[column].numpy()))
        worst[name] = (np.max(differences), np.mean(differences))
    return worst


def as_text(value):
    return value if isinstance(value, str) else f"{float(value):g}"


def sweep(arguments):
    torch.set_num_threads(arguments.threads)
    configs = configurations(arguments.budget, arguments.settings)
    n_whole = len(arguments.budget) * 20
    ours, theirs = [], []
    with tempfile.TemporaryDirectory() as folder:
        for i in range(arguments.rounds):
            seconds, out = quoka_sweep(arguments, tempfile.mkdtemp(dir=folder))
            ours.append(seconds)
            dense_seconds, layer = timed(lambda: Layer(arguments.capture, arguments.layer))
            seconds, results = timed(lambda: [(c, evaluate(layer, c, arguments.chunk_size)) for c in configs])
            theirs.append(dense_seconds + seconds * n_whole / len(configs))
            print(f"round {i}: quoka-sweep {ours[-1]:.2f} s, PyTorch {theirs[-1]:.2f} s"
                  + (f" (from {len(configs)} of {n_whole} configurations)" if len(configs) < n_whole else ""))
        differences = largest_differences(results, out)
    ratios = [torch_time / our_time for torch_time, our_time in zip(theirs, ours)]
    print(f"{n_whole} configurations on one layer of {layer.n_tokens} tokens, {arguments.threads} threads, "
          f"PyTorch {torch.__version__}")
    print(f"PyTorch/quoka-sweep: {statistics.median(ratios):.2f} (median of {len(ratios)})")
    for name, (largest, mean) in differences.items():
        print(f"{name}: largest difference {largest:.2e}, mean {mean:.2e}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    verb = verbs.add_parser("attention")
    verb.add_argument("--bench", type=Path, required=True, help="the program quoka-bench")
    verb.add_argument("--history", type=int, nargs="+", default=[4096, 16384, 32768])
    verb.add_argument("--head_dim", type=int, nargs="+", default=[64, 128])
    verb.add_argument("--q_heads", type=int, default=8)
    verb.add_argument("--kv_heads", type=int, default=2)
    verb.add_argument("--repetitions", type=int, default=5)
    verb.set_defaults(task=attention)
    verb = verbs.add_parser("sweep")
    verb.add_argument("--sweep", type=Path, required=True, help="the program quoka-sweep")
    verb.add_argument("--capture", type=Path, required=True)
    verb.add_argument("--layer", type=int, required=True)
    verb.add_argument("--budget", type=int, nargs="+", default=[64, 128, 256, 512, 1024])
    verb.add_argument("--settings", type=int, default=20,
                      help="evaluate only the first N of 20 settings in PyTorch and scale its time")
    verb.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    verb.set_defaults(task=sweep)
    for verb in verbs.choices.values():
        verb.add_argument("--chunk_size", type=int, default=128)
        verb.add_argument("--rounds", type=int, default=3, help="how often the two take turns")
    arguments = parser.parse_args()
    arguments.task(arguments)


if __name__ == "__main__":
    main()
