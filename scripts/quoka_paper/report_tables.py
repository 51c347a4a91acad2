"""Markdown tables of the report."""

from __future__ import annotations

from typing import Dict, List, Sequence

import numpy as np

from .claims import METRICS, Cell, Within
from .evidence import ALL_BUDGETS, Difference, by_layer, context_budget
from .geometry_evidence import Measured
from .judge import Judged

MARKS = {1: "+", -1: "-", 0: "o", None: ""}
VALUE_COLUMNS = {**{key: metric.label for key, metric in METRICS.items()}, "oracle_ratio": "share of the oracle's mass"}


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return "\n".join("| " + " | ".join(row) + " |" for row in (head, ["---"] * len(head), *rows))


def number(value: float) -> str:
    return "-" if not np.isfinite(value) else f"{value:.3f}"


def signed(value: float, percent: bool) -> str:
    return f"{100 * value:+.1f} %" if percent else f"{value:+.3f}"


def difference_text(cell: Cell, percent: bool) -> str:
    """+0.012 [+0.010, +0.014] +"""
    found = cell.interval
    if found.n == 0:
        return "-"
    if not np.isfinite(found.low):
        return f"{signed(found.mean, percent)} (n = {found.n})"
    ends = f"[{signed(found.low, percent)}, {signed(found.high, percent)}]"
    return f"{signed(found.mean, percent)} {ends} {MARKS[cell.vote]}".rstrip()


def values_table(judged: Judged) -> str:
    rows = [[label, *(number(row[key]) for key in VALUE_COLUMNS)] for label, row in judged.values.items()]
    return table(["configuration", *VALUE_COLUMNS.values()], rows)


def floor_of(judged: Judged) -> float:
    floors = [row["floor"] for row in judged.values.values() if np.isfinite(row["floor"])]
    return max(floors, default=np.nan)


def lines_of(judged: Judged) -> List[Difference]:
    """The first line of every comparison, and the single budgets where the claim asks for them."""
    return [line for lines in judged.lines for line in (lines if judged.claim.by_budget else lines[:1])]


def differences_table(judged: Judged) -> str:
    lines, percent = lines_of(judged), isinstance(judged.claim.rule, Within)
    with_budget = judged.claim.by_budget
    rows = [[line.label, *([line.budget] if with_budget else []),
             *(difference_text(line.cells[key], percent) for key in METRICS)] for line in lines]
    return table(["comparison", *(["budget"] if with_budget else []), *(metric.label for metric in METRICS.values())],
                 rows)


def budgets_text(judged: Judged) -> str:
    """What the differences are averaged over."""
    found = {line.budget for lines in judged.lines for line in lines if line.budget != ALL_BUDGETS}
    ordered = sorted(found, key=lambda budget: (budget.endswith("%"), float(budget.rstrip("%"))))
    return ", ".join(ordered)


def prompts_text(judged: Judged) -> str:
    found = {key: {line.cells[key].interval.n for lines in judged.lines for line in lines[:1]} for key in METRICS}
    counts = {key: f"{min(n)} to {max(n)}" if len(n) > 1 else str(*n) for key, n in found.items() if n}
    return f"{counts['error']} prompts ({counts['needle']} for needle key recall)"


def exceptions_list(judged: Judged) -> str:
    """Layers whose own interval excludes 0 on the other side, for differences that vote."""
    items = [f"- {lines[0].label}, {METRICS[key].label}: {', '.join(map(str, layers))}"
             for lines, exceptions in zip(judged.lines, judged.exceptions)
             for key, layers in exceptions.items() if lines[0].cells[key].vote is not None]
    items += [f"- {one.label} ({one.scope}): {', '.join(map(str, one.exceptions))}"
              for one in judged.measured if one.exceptions]
    return "\n".join(items)


def geometry_table(measured: List[Measured]) -> str:
    rows = [[one.label, one.scope, difference_text(one.cell, False), number(one.lowest), number(one.highest)]
            for one in measured]
    return table(["claimed to be above 0", "mean query of", "mean over prompts", "lowest layer", "highest layer"], rows)


def theorem_table(found: Dict[str, float]) -> str:
    rows = [["triples (q, k, mean query)", f"{found['theorem_n_triples']:,.0f}"],
            ["violations of the paper's bound beyond 1e-6", f"{found['paper_bound_violations']:.0f}"],
            ["violations of the spherical bound beyond 1e-6", f"{found['spherical_bound_violations']:.0f}"],
            ["layers (of all files) with a violation", f"{found['layers_with_violations']:.0f}"]]
    names = {"theorem_applies_share": "share of triples where a < 0 < b", "theorem_key_negative_share": "share with"
        " a < 0",
             "paper_bound_slack_mean": "paper's bound minus the cosine, mean",
             "spherical_bound_slack_mean": "spherical bound minus the cosine, mean"}
    scopes = {"chunk": "mean query of a chunk", "whole": "mean query of the prompt"}
    rows += [[f"{text}, {words}", number(found[f"{name}_{scope}"])] for name, text in names.items()
             for scope, words in scopes.items()]
    return table(["", "all files, layers and heads"], rows)


def layers_table(ds) -> str:
    """Error and recalls by layer at the context budget of budget.toml, quoka beside oracle and random."""
    budget = context_budget(ds, {"selector": "quoka"})
    columns = {f"{selector}, {metric.label}": by_layer(ds, metric.variable, {"selector": selector, "budget": budget})
               for metric in METRICS.values() if metric.key != "tail" for selector in ("quoka", "oracle", "random")}
    rows = [[str(layer), *(number(column[layer]) for column in columns.values())] for layer in ds["layer"].values]
    return f"With {budget} keys:\n\n" + table(["layer", *columns], rows)
