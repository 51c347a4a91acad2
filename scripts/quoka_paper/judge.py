"""A claim, its evidence from files, and its verdict."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Callable, Dict, List, Optional

import xarray as xr

from . import geometry_evidence as geometry
from .claims import NOT_SUPPORTED, NOT_TESTABLE, SUPPORTED, Claim, verdict
from .evidence import Difference, budgets, context_budget, differences, exceptions, value_row, votes, without_budget
from .prompts_statistics import MIN_PROMPTS


@dataclass
class Judged:
    claim: Claim
    verdict: str
    sides: Dict[str, str] = field(default_factory=dict)  # verdict of the average and the needle side alone
    tally: Dict[str, str] = field(default_factory=dict)  # their votes
    reason: str = ""
    values: Dict[str, Dict[str, float]] = field(default_factory=dict)  # by row
    budget: str = ""  # of the values
    lines: List[List[Difference]] = field(default_factory=list)  # by comparison
    exceptions: List[Dict[str, List[int]]] = field(default_factory=list)  # by comparison: metric, layers
    measured: List[geometry.Measured] = field(default_factory=list)
    theorem: Optional[Dict[str, float]] = None


def tally(cast: List[Optional[int]]) -> str:
    return ", ".join(f"{cast.count(vote)} {mark}" for vote, mark in ((1, "+"), (-1, "-"), (0, "o"))
                     if cast.count(vote)) or "-"


def judge(claim: Claim, results: Callable[[str], xr.Dataset], files: Dict[str, List[xr.Dataset]]) -> Judged:
    """`results(name)` is the open results file of a configuration; `files` the geometry files by scope."""
    found = Judged(claim, NOT_TESTABLE, reason=claim.reason)
    if claim.config:
        ds = results(claim.config)
        add_values(found, ds)
        found.lines = [lines for comparison in claim.comparisons if (lines := differences(ds, claim.rule, comparison))]
        found.exceptions = [exceptions(ds, lines[0]) for lines in found.lines]
    if "theorem" in claim.geometry:
        found.theorem = geometry.theorem(files)
        broken = found.theorem["paper_bound_violations"] + found.theorem["spherical_bound_violations"]
        found.verdict = NOT_SUPPORTED if broken else SUPPORTED
        return found
    found.measured = [geometry.measure(test, scope, files[scope]) for name in claim.geometry
                      for test in [geometry.TESTS[name]] for scope in test.scopes]
    if not claim.reason:
        decide(found)
    return found


def decide(found: Judged):
    cast = {side: [vote for lines in found.lines for vote in votes(lines, needle) if vote is not None]
            for side, needle in (("average", False), ("needle", True))}
    cast["average"] += [one.cell.vote for one in found.measured if one.cell.vote is not None]
    found.verdict = verdict(found.claim.rule, cast["average"] + cast["needle"])
    found.sides = {side: verdict(found.claim.rule, part) if part else "-" for side, part in cast.items()}
    found.tally = {side: tally(part) for side, part in cast.items()}
    if found.verdict == NOT_TESTABLE:
        found.reason = f"fewer than {MIN_PROMPTS} prompts have a value, so there is no interval"


def add_values(found: Judged, ds: xr.Dataset):
    """The rows that the file has (a reduced grid lacks some), at the context budget where the row leaves it open."""
    shown = set()
    for label, selection in found.claim.rows.items():
        there = without_budget(selection)
        known = budgets(ds, there)
        if not known or ("budget" in selection and str(selection["budget"]) not in known):
            continue
        full = {"budget": context_budget(ds, there), **selection}
        shown.add(str(full["budget"]))
        found.values[label] = value_row(ds, full)
    found.budget = shown.pop() if len(shown) == 1 else ""
