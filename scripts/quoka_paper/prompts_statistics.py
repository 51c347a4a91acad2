"""Means per prompt, and bootstrap intervals over prompts, of a results file that is open in xarray.

The prompt is the unit: heads and layers of one prompt are not independent, so they are averaged first and
only the prompts are resampled.

  paper = per_prompt(ds, "out_rel_l2_mean", {"selector": "quoka", "budget": 256, "query_rule": "lowest_cosine"})
  stride = per_prompt(ds, "out_rel_l2_mean", {"selector": "quoka", "budget": 256, "query_rule": "stride"})
  difference(stride, paper)     # Interval(mean=..., low=..., high=..., n=...), paired over prompts
"""

from typing import NamedTuple

import numpy as np

RESAMPLES = 10_000
LEVEL = 95  # percent
MIN_PROMPTS = 3  # with fewer, resampling says nothing about other prompts


class Interval(NamedTuple):
    """A mean over prompts and its percentile bootstrap interval; low and high are NaN below MIN_PROMPTS prompts."""

    mean: float
    low: float
    high: float
    n: int

    @property
    def side(self) -> int:
        """1 or -1 if the interval lies above or below 0, else 0 (also where there is no interval)."""
        return int(self.low > 0) - int(self.high < 0)

    def __str__(self) -> str:
        if self.n < MIN_PROMPTS:
            return f"{self.mean:.3g} (n = {self.n}, too few for an interval)"
        return f"{self.mean:.3g} [{self.low:.3g}, {self.high:.3g}] (n = {self.n})"


def text(value) -> str:
    """A parameter as one writes it: 16 for 16.0, "" for NaN (it cannot matter there)."""
    if isinstance(value, (float, np.floating)):
        return "" if np.isnan(value) else f"{value:.15g}"
    return str(value)


def positions(ds, selection) -> list[int]:
    """Where along `config` the selection is: a position, positions, or values {parameter: value}.

    Values must name one configuration; only draws of the same random choice (another seed) may be several.
    """
    if not isinstance(selection, dict):
        return [int(i) for i in np.atleast_1d(selection)]
    found = np.ones(ds.sizes["config"], bool)
    for name, wanted in selection.items():
        if name not in ds.coords or ds[name].dims != ("config",):
            raise ValueError(f"{name} is not a parameter of the file")
        found &= [text(value) == text(wanted) for value in ds[name].values]
    words = ", ".join(f"{name}={text(value)}" for name, value in selection.items())
    if not found.any():
        raise ValueError(f"no configuration has {words}")
    same = [name for name in ds.coords if ds[name].dims == ("config",) and name not in ("config", "seed")]
    differing = [name for name in same if len({text(value) for value in ds[name].values[found]}) > 1]
    if differing:
        raise ValueError(f"{words} names {found.sum()} configurations (they differ in {', '.join(differing)})")
    return np.flatnonzero(found).tolist()


def mean_of_defined(values: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    """The mean over what is not NaN; NaN where nothing is."""
    defined = np.isfinite(values)
    count = defined.sum(axes)
    total = np.where(defined, values, 0).sum(axes)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def per_prompt_and_layer(ds, metric: str, selection) -> np.ndarray:
    """[capture, layer]: the mean over query heads (and over seeds, if the selection has several)."""
    values = ds[metric].transpose("config", "capture", "layer", "q_head").values[positions(ds, selection)]
    return mean_of_defined(values.astype(np.float64), (0, 3))


def per_prompt(ds, metric: str, selection) -> np.ndarray:
    """[capture]: the mean over layers and query heads; NaN where a capture has no value (no needles, say)."""
    values = ds[metric].transpose("config", "capture", "layer", "q_head").values[positions(ds, selection)]
    return mean_of_defined(values.astype(np.float64), (0, 2, 3))


def interval(values, seed: int = 0) -> Interval:
    """The mean over prompts with its 95 % percentile bootstrap interval; prompts without a value are left out."""
    values = np.asarray(values, np.float64)
    values = values[np.isfinite(values)]
    n = len(values)
    if n < MIN_PROMPTS:
        return Interval(float(values.mean()) if n else np.nan, np.nan, np.nan, n)
    means = values[np.random.default_rng(seed).integers(0, n, (RESAMPLES, n))].mean(1)
    tail = (100 - LEVEL) / 2
    low, high = np.percentile(means, [tail, 100 - tail])
    return Interval(float(values.mean()), float(low), float(high), n)


def difference(a, b, seed: int = 0) -> Interval:
    """a minus b, paired: prompts are resampled, not values. n counts the prompts that have both."""
    a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
    if a.shape != b.shape:
        raise ValueError(f"{a.shape} and {b.shape} values are not of the same prompts")
    return interval(a - b, seed)
