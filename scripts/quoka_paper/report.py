"""The report: summary, both sides of the query rule, a section per claim, what is open, limits.

All numbers are from files.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Dict, List

import h5py
import xarray as xr

from . import report_tables as tables
from .claims import NOT_TESTABLE, RULE_TEXT
from .claims_open import OPEN_ITEMS
from .judge import Judged

FIGURES = ("", "_difference")


@dataclass
class Material:
    """What the report is made of."""

    judged: List[Judged]
    results: Dict[str, xr.Dataset]  # by configuration
    results_paths: Dict[str, Path]
    drawn: str  # capture whose geometry is drawn
    figures: Path  # folder
    link: str  # to that folder, from the report


def report(material: Material) -> str:
    parts = [heading(material), summary(material.judged), query_rule(material),
             "## How a verdict is reached\n\n" + RULE_TEXT]
    shown: set = set()
    for judged in material.judged:
        parts.append(section(material, judged, shown))
    parts += [layers(material), open_items(material.judged), LIMITS, files(material)]
    return "\n\n".join(parts) + "\n"


def heading(material: Material) -> str:
    ds = next(iter(material.results.values()))
    model = ", ".join(sorted(set(map(str, ds["capture_model_id"].values))))
    tokens = ds["n_tokens"].max("layer").values
    names = ", ".join(f"`{name}`" for name in ds["capture"].values)
    lengths = " to ".join(f"{length:.0f}" for length in sorted({tokens.min(), tokens.max()}))
    return (f"# The claims of the QUOKA paper on {model}\n\n"
            f"Prompts: {names}, of {lengths} tokens. Single layers, replayed as chunked prefill. Made by"
            " `scripts/reproduce_paper.sh`; every number is from the files named at the end. The paper is arXiv"
            " 2602.08722; its numbers are task scores of larger models, ours are attention errors, so sizes do not compare,"
            " only directions.")


def layers_text(ds: xr.Dataset) -> str:
    return ", ".join(map(str, ds["layer"].values))


def anchor(judged: Judged) -> str:
    return judged.claim.key.replace("_", "-")


def summary(judged: List[Judged]) -> str:
    rows = [[f"[{one.claim.source}](#{anchor(one)})", one.claim.text, one.claim.paper, one.tally.get("average", "-"),
             one.tally.get("needle", "-"), f"**{one.verdict}**" + (f": {one.reason}" if one.reason else "")]
            for one in judged]
    return ("## What holds\n\nVotes: + for the claim, - against it, o open (the interval holds 0 or the margin);"
            " average side: average error, tail, mass recall without sinks; needle side: needle key recall.\n\n"
            + tables.table(["where", "claim, in our words", "the paper's numbers", "average side", "needle side",
                            "verdict"], rows))


def query_rule(material: Material) -> str:
    """Both sides of the rule, near the top."""
    judged = next(one for one in material.judged if one.claim.key == "query_rule")
    sides = {side: judged.sides.get(side, "-") for side in ("average", "needle")}
    return ("## The query rule, both sides\n\n"
            f"The paper's rule keeps the queries least similar to the mean query. Average side: **{sides['average']}**"
            f" ({judged.tally.get('average', '-')}). Needle side: **{sides['needle']}**"
            f" ({judged.tally.get('needle', '-')}). Below: the paper's rule minus each other rule, all else equal. A"
            " negative error and a positive recall"
            f" speak for the paper's rule. {caption(judged)}\n\n" + tables.differences_table(judged)
            + figure(material, "query_rule", "query_rule"))


def caption(judged: Judged) -> str:
    averaged = tables.budgets_text(judged)
    return (f"Means over {tables.prompts_text(judged)} with 95 % intervals"
            + (f"; averaged over the budgets {averaged}." if "," in averaged else "."))


def figure(material: Material, config: str, parameter: str) -> str:
    found = [f"{config}_{parameter}{ending}" for ending in FIGURES]
    return "".join(f"\n\n![{name.replace('_', ' ')}]({material.link}/{name}.png)" for name in found
                   if (material.figures / f"{name}.png").exists())


def section(material: Material, judged: Judged, shown: set) -> str:
    claim = judged.claim
    parts = [f'<a id="{anchor(judged)}"></a>\n\n## {claim.source[0].upper()}{claim.source[1:]}: {judged.verdict}',
             f"Claim: {claim.text} The paper's numbers: {claim.paper}."]
    if judged.verdict == NOT_TESTABLE:
        parts.append(f"Not testable here: {judged.reason}.")
    if claim.note:
        parts.append(claim.note)
    if judged.values:
        at = f" with {judged.budget} keys" if judged.budget and not judged.budget.endswith("%") else ""
        parts.append(f"`configs/paper/{claim.config}.toml`{at}, means over prompts, heads and layers"
                     f" {layers_text(material.results[claim.config])}. The arithmetic's own error (`floor_out_rel_l2`)"
                     f" is at most {tables.floor_of(judged):.1e}.")
        parts.append(tables.values_table(judged))
    if judged.lines and claim.key != "query_rule":
        parts += [f"Differences, first minus second. {caption(judged)}", tables.differences_table(judged)]
    if judged.lines and claim.key == "query_rule":
        parts.append("The differences are [above](#the-query-rule-both-sides).")
    if judged.theorem:
        parts.append(tables.theorem_table(judged.theorem))
    if judged.measured:
        parts.append(tables.geometry_table(judged.measured))
    if exceptions := tables.exceptions_list(judged):
        parts.append(f"Layers that go the other way:\n\n{exceptions}")
    parts.append(figures(material, judged, shown))
    return "\n\n".join(part for part in parts if part)


def figures(material: Material, judged: Judged, shown: set) -> str:
    """Each figure once, in the first section that it belongs to."""
    names = [name for parameter in judged.claim.figures for name in
             ([f"{judged.claim.config}_{parameter}{ending}" for ending in FIGURES] if judged.claim.config
              else [f"{material.drawn}_{parameter}"])]
    if judged.claim.key == "query_rule":
        return ""
    new = [name for name in names if name not in shown and (material.figures / f"{name}.png").exists()]
    shown.update(new)
    return "\n\n".join(f"![{name.replace('_', ' ')}]({material.link}/{name}.png)" for name in new)


def layers(material: Material) -> str:
    return "## Layers\n\n" + tables.layers_table(material.results["budget"])


def open_items(judged: List[Judged]) -> str:
    by_key = {one.claim.key: one for one in judged}
    rows = [[item.question, ", ".join(f"[{by_key[key].claim.source}](#{anchor(by_key[key])}): {by_key[key].verdict}"
                                      for key in item.claims) or "-", item.remark or "-"] for item in OPEN_ITEMS]
    return "## What reviewers asked, and what is not settled\n\n" + tables.table(
        ["question", "answered by", "remark"], rows)


LIMITS = """\
## Limits

- Each layer is replayed on the inputs of the exact model. In a model that runs sparse attention, errors reach the next
  layers, so the errors here are too small for a whole model.
- No task score, no time. Needle key recall counts kept positions in all layers and heads, also those that never
  retrieve.
- One model, a few prompts, one haystack. An interval says how much the mean would vary over prompts like these, not
  over models.
- The prompts are short beside the paper's 4k to 32k tokens, so a budget is a larger share of them."""


def files(material: Material) -> str:
    rows = []
    for name, path in material.results_paths.items():
        with h5py.File(path) as file:
            made = {key: file[f"provenance/{key}"][()].decode() for key in ("version", "commit")}
            failed = int(file["provenance"].attrs["units_failed"])
        rows.append([f"`{path.name}`", f"`configs/paper/{name}.toml`", f"{made['version']}, {made['commit']}",
                     str(material.results[name].sizes["config"]), str(failed)])
    columns = ["results", "configuration", "made by quoka-sweep", "configurations", "failed units"]
    return ("## Files\n\n" + tables.table(columns, rows) + "\n\nGeometry: `geometry/<capture>.h5` (mean query of a"
            " chunk of 128) and `geometry/<capture>_whole.h5` (of the prompt), for every capture.")
