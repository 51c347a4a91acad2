"""Numbers of results files: values of configurations, differences with votes, layers that go the other way.

A selection {parameter: value} leaves the budget open; `budgets` lists what it can be.
"""

from __future__ import annotations

from pathlib import Path
from typing import Dict, List, NamedTuple, Optional

import numpy as np
import xarray as xr

from quoka_capture.errors import Refused, UsageError, require

from .claims import METRICS, Cell, Comparison, Within, vote_of
from .prompts_statistics import difference, interval, mean_of_defined, per_prompt_and_layer, positions, text

ALL_BUDGETS = "all"
VARIABLES = {key: metric.variable for key, metric in METRICS.items()}


class Difference(NamedTuple):
    """One line of a table of differences."""

    label: str
    budget: str  # ALL_BUDGETS: each prompt's mean over the budgets
    cells: Dict[str, Cell]
    arrays: Dict[str, tuple]  # metric: claimed and other, [capture, layer] each


def open_results(path: Path, made_by: str = "quoka-sweep", kind: str = "quoka-results") -> xr.Dataset:
    require(path.is_file(), UsageError, f"{path} does not exist ({made_by} writes it); run the step again")
    try:
        ds = xr.load_dataset(path)
    except (OSError, ValueError) as error:
        raise Refused(f"{path} cannot be opened ({error}); delete it and run the step again") from error
    require(ds.attrs.get("format") == kind, Refused, f"{path} has the format {ds.attrs.get('format')!r} and not"
            f" {kind!r}; delete it and run the step again")
    return ds


def budgets(ds: xr.Dataset, selection: dict) -> List[str]:
    """The budgets that configurations with these values have, as written, numbers before percentages."""
    if "budget" in selection:
        return [text(selection["budget"])]
    found = np.ones(ds.sizes["config"], bool)
    for name, wanted in selection.items():
        found &= [text(value) == text(wanted) for value in ds[name].values]
    there = {text(value) for value in ds["budget"].values[found]}
    return sorted(there, key=lambda budget: (budget.endswith("%"), float(budget.rstrip("%"))))


def values(ds: xr.Dataset, selection: dict, names: Dict[str, str]) -> Dict[str, np.ndarray]:
    """{key: [capture, layer]} of these variables, means over heads (and over seeds)."""
    try:
        where = positions(ds, selection)
    except ValueError as error:
        raise Refused(f"the results file does not fit the claim ({error}); delete it and run the sweep again") \
            from error
    return {key: per_prompt_and_layer(ds, name, where) for key, name in names.items()}


def over_layers(by_layer: np.ndarray) -> np.ndarray:
    """[capture]: the mean over the layers that have a value."""
    return mean_of_defined(by_layer, (1,))


def context_budget(ds: xr.Dataset, selection: dict) -> str:
    """The budget at which tables of values are printed: the largest number of at most an eighth of the prompt (the
    paper's 1024 keys of 8k tokens), or the smallest there is."""
    numbers = [budget for budget in budgets(ds, selection) if not budget.endswith("%")]
    if not numbers:
        return budgets(ds, selection)[0]
    longest = float(np.nanmax(ds["n_tokens"].values))
    return next((budget for budget in reversed(numbers) if float(budget) <= longest / 8), numbers[0])


def value_row(ds: xr.Dataset, selection: dict) -> Dict[str, float]:
    """Means over prompts of each metric, of the numeric floor and of the share of the oracle's mass."""
    names = {**VARIABLES, "oracle_ratio": "oracle_ratio", "floor": "floor_out_rel_l2"}
    found = values(ds, selection, names)
    return {key: float(mean_of_defined(over_layers(array), (0,))) for key, array in found.items()}


def without_budget(selection: dict) -> dict:
    return {name: value for name, value in selection.items() if name != "budget"}


def pairs(ds: xr.Dataset, comparison: Comparison) -> Dict[str, tuple]:
    """{label: (claimed, other)} as complete selections, for budgets that the file has on both sides."""
    claimed, other = comparison.claimed, comparison.other
    known = [set(budgets(ds, without_budget(side))) for side in (claimed, other)]
    if "budget" in claimed:
        wanted = {text(claimed["budget"]): text(other["budget"])}
    elif comparison.budget_shift:
        wanted = {budget: text(int(budget) + comparison.budget_shift) for budget in budgets(ds, claimed)}
    else:
        wanted = {budget: budget for budget in budgets(ds, claimed)}
    return {budget: ({**claimed, "budget": budget}, {**other, "budget": partner})
            for budget, partner in wanted.items() if budget in known[0] and partner in known[1]}


def cell(rule, key: str, a: np.ndarray, b: np.ndarray, votes: bool) -> Cell:
    """The difference of two arrays over prompts, and its vote."""
    if isinstance(rule, Within):
        both = np.isfinite(a) & np.isfinite(b)
        scale = b[both].mean() if both.any() else np.nan
        found = difference(a / scale, b / scale)
    else:
        found = difference(a, b)
    return Cell(found, vote_of(rule, METRICS[key].sign, found) if votes and key in rule.metrics else None)


def differences(ds: xr.Dataset, rule, comparison: Comparison) -> List[Difference]:
    """The line over all budgets first, then one line per budget; nothing if a reduced grid lacks a side."""
    arrays: Dict[str, Dict[str, tuple]] = {}
    for budget, (claimed, other) in pairs(ds, comparison).items():
        a, b = values(ds, claimed, VARIABLES), values(ds, other, VARIABLES)
        arrays[budget] = {key: (a[key], b[key]) for key in METRICS}
    if len(arrays) > 1:
        mean = {key: tuple(np.mean([by_metric[key][side] for by_metric in arrays.values()], 0) for side in (0, 1))
                for key in METRICS}
        arrays = {ALL_BUDGETS: mean, **arrays}
    return [line(rule, comparison, budget, by_metric) for budget, by_metric in arrays.items()]


def by_layer(ds: xr.Dataset, metric: str, selection: dict) -> Dict[int, float]:
    """{layer: mean over heads and prompts}."""
    means = mean_of_defined(values(ds, selection, {metric: metric})[metric], (0,))
    return {int(layer): float(mean) for layer, mean in zip(ds["layer"].values, means)}


def line(rule, comparison: Comparison, budget: str, arrays: Dict[str, tuple]) -> Difference:
    cells = {key: cell(rule, key, over_layers(a), over_layers(b), comparison.votes) for key, (a, b) in arrays.items()}
    return Difference(comparison.label, budget, cells, arrays)


def exceptions(ds: xr.Dataset, found: Difference) -> Dict[str, List[int]]:
    """{metric: layers whose own interval excludes 0 on the side opposite to the average}."""
    layers = {key: opposite(a - b, ds["layer"].values, found.cells[key].interval.mean)
              for key, (a, b) in found.arrays.items()}
    return {key: some for key, some in layers.items() if some}


def opposite(by_layer: np.ndarray, layers: np.ndarray, average: float) -> List[int]:
    """Layers (columns of `by_layer`, one row per prompt) whose interval excludes 0 on the other side than `average`."""
    return [int(layer) for i, layer in enumerate(layers) if interval(by_layer[:, i]).side * average < 0]


def votes(lines: List[Difference], needle: Optional[bool] = None) -> List[Optional[int]]:
    """Of one comparison's first line; needle True or False: of that side only."""
    return [found.vote for key, found in lines[0].cells.items()
            if needle is None or METRICS[key].needle == needle] if lines else []
