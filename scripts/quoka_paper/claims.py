"""What a claim is, and how its verdict follows from intervals. The rule is printed in every report.

Every comparison is a difference of one metric between two configurations, paired over prompts, with a 95 % bootstrap
interval. It votes for the claim if the whole interval lies on the claimed side, against it if the whole
interval lies on the other side, and not at all if the interval holds 0.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Dict, Iterable, List, Optional, Tuple

from .prompts_statistics import MIN_PROMPTS, Interval

SUPPORTED, NOT_SUPPORTED, MIXED, NOT_TESTABLE = "supported", "not supported", "mixed", "not testable here"


@dataclass(frozen=True)
class Metric:
    """A column of the results file."""

    key: str
    variable: str
    label: str
    sign: int  # 1: higher is better
    needle: bool = False  # of the needle side


METRICS = {metric.key: metric for metric in (
    Metric("error", "out_rel_l2_mean", "average error", -1),
    Metric("tail", "out_rel_l2_p99", "error, 99th percentile", -1),
    Metric("mass", "mass_recall_no_sink_mean", "mass recall without sinks", 1),
    Metric("needle", "needle_key_recall", "needle key recall", 1, True),
)}


@dataclass(frozen=True)
class Comparison:
    """Two configurations: the one that the claim favours, and the other. Without a budget, every one that both have."""

    label: str
    claimed: Dict[str, object]
    other: Dict[str, object]
    votes: bool = True
    budget_shift: int = 0  # the other has this many keys more


@dataclass(frozen=True)
class Better:
    """Each metric of the claimed configuration is better."""

    metrics: Tuple[str, ...] = tuple(METRICS)


@dataclass(frozen=True)
class Within:
    """The claimed configuration loses at most `margin` of the other's mean; with two_sided, gains no more either."""

    margin: float
    metrics: Tuple[str, ...]
    two_sided: bool = False


@dataclass(frozen=True)
class Claim:
    """One row of the report. `rows` are the configurations whose values are printed."""

    key: str
    source: str  # where in the paper
    text: str
    paper: str  # its numbers; "reported" where one secondary source has them
    config: Optional[str] = None  # configs/paper/<config>.toml
    rows: Dict[str, dict] = field(default_factory=dict)
    comparisons: Tuple[Comparison, ...] = ()
    rule: object = Better()
    reason: str = ""  # why it is not testable; then there is no vote
    note: str = ""
    geometry: Tuple[str, ...] = ()  # names of tests of geometry_evidence
    figures: Tuple[str, ...] = ()  # of plot_paper.py: what follows the file's name
    by_budget: bool = False  # print the differences of each budget too


@dataclass(frozen=True)
class Cell:
    """One difference. vote: 1 for, -1 against, 0 open; None where it does not vote or cannot (too few prompts)."""

    interval: Interval
    vote: Optional[int]


def vote_of(rule, sign: int, interval: Interval) -> Optional[int]:
    """`interval` is claimed minus other; for Within it is a share of the other's mean."""
    if interval.n < MIN_PROMPTS:
        return None
    if isinstance(rule, Better):
        return sign * interval.side
    low, high = interval.low, interval.high
    if sign > 0:  # a loss is a negative difference
        low, high = -high, -low
    if rule.two_sided:
        inside = -rule.margin <= low and high <= rule.margin
        return 1 if inside else -1 if low > rule.margin or high < -rule.margin else 0
    return 1 if high <= rule.margin else -1 if low > rule.margin else 0


def verdict(rule, votes: Iterable[Optional[int]]) -> str:
    """Better: one vote for and none against. Within: every vote for. Both: mixed if there are votes for and against."""
    cast: List[int] = [vote for vote in votes if vote is not None]
    if not cast:
        return NOT_TESTABLE
    wins, losses = cast.count(1), cast.count(-1)
    if isinstance(rule, Within):
        return SUPPORTED if wins == len(cast) else NOT_SUPPORTED if losses and not wins else MIXED
    return MIXED if wins and losses else SUPPORTED if wins else NOT_SUPPORTED


RULE_TEXT = f"""\
The rule was written before the first study was swept, and the program applies it:

- The unit is the prompt. A value of a prompt is the mean over its layers and heads. A difference of two configurations
  is paired over prompts; its interval is the 95 % percentile bootstrap of 10,000 resamples of the prompts (seed 0).
  Where budgets are an axis, each prompt's value is first averaged over the budgets.
- A comparison has up to four differences: average error (`out_rel_l2_mean`), tail (`out_rel_l2_p99`), mass recall
  without sinks (`mass_recall_no_sink_mean`) and needle key recall (`needle_key_recall`). The first three are the
  *average side*, the last is the *needle side*, which only needle prompts have.
- *Better* claims ("A selects better keys than B"): a difference votes for (+) if its whole interval lies on the claimed
  side, against (-) if all of it lies on the other side, and not (o) if it holds 0. Supported: at least one vote for,
  none against. Mixed: votes for and against. Not supported: no vote for.
- *Within* claims ("A costs at most x %", "stable"): the difference is divided by the mean of B. A vote for: the whole
  interval within the margin; against: all of it beyond. Supported: every vote is for. Not supported: votes against and
  none for. Else mixed.
- Not testable here: what needs a task score or a clock, or fewer than {MIN_PROMPTS} prompts have a value.
- A layer is named as an exception if its own interval excludes 0 on the side opposite to the average over layers.
- Intervals are not corrected for their number: of a hundred differences that are 0, about five would vote."""
