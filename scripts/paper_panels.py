"""Parts of the figures of a study: panels, styles, axes that leave far references outside and say so, notes."""

import matplotlib.pyplot as plt
import numpy as np

from figure_style import GREY, NOTE_SIZE, WIDTHS, NothingToPlot, arrow, reference_style, style
from quoka_paper.prompts_statistics import MIN_PROMPTS, RESAMPLES, interval, per_prompt
from result_families import rows_note

# Metric: title, axis, and what exactly is drawn.
PANELS = {
    "out_rel_l2_mean": ("output error", "relative L2 error", "mean over rows"),
    "out_rel_l2_p99": ("error tail", "relative L2 error, p99", "99th percentile of rows"),
    "mass_recall_no_sink_mean": ("mass kept", "mass recall", "share outside the sinks, mean over rows"),
    "needle_key_recall": ("needle kept", "needle key recall", "share of a needle's keys that are kept"),
}
BAR = {"elinewidth": 0.8, "capsize": 0}
FAR = 1.4  # a reference that would make an axis longer by more than this factor is named at its edge instead


def panels_of(ds, study):
    """The metrics that hold a value in this study."""
    configs = [config for series in study.series for point in series.points for config in point.configs]
    names = [name for name in PANELS if name in ds and bool(ds[name].isel(config=configs).notnull().any())]
    if not names:
        raise NothingToPlot("no configuration of the study has an active row")
    return names


def grid(n_rows, n_columns, n_panels, columns, height, **shared):
    fig, axes = plt.subplots(n_rows, n_columns, figsize=(WIDTHS[columns], height * n_rows), squeeze=False, **shared)
    for spare in axes.flat[n_panels:]:
        spare.remove()
    return fig, fig.axes


def axis_label(ds, name, separator=" "):
    return PANELS[name][1] + separator + arrow(ds[name].attrs["better"])


def styled(study):
    """(series, style, label) of everything that is drawn; the base first, references last."""
    for place, series in enumerate(study.series):
        base = " (base)" if place == 0 and len(study.series) > 1 else ""
        yield series, {**style(place), "zorder": 3}, series.label + base
    base_value = study.series[0].value
    for series in study.references_of(base_value):
        yield series, {**reference_style(series.label), "zorder": 2}, f"{series.label} (reference)"


def estimate(ds, point, name):
    return interval(per_prompt(ds, name, point.configs))


def bars(intervals):
    """Lengths below and above the means, as matplotlib wants them; none where there is no interval."""
    return np.nan_to_num([[i.mean - i.low for i in intervals], [i.high - i.mean for i in intervals]])


def ends(intervals):
    """Everything of these intervals that an axis must show."""
    return np.array([value for i in intervals for value in i[:3] if np.isfinite(value)])


def fit(axes, axis_name, inside, references):
    """Sets the limits of an axis; returns the references {label: values} that are left outside.

    inside: values that are always shown: those of all series and of the oracle.
    """
    scale = getattr(axes, f"{axis_name}axis").get_transform()
    to, back = scale.transform, scale.inverted().transform
    low, high = to(np.array([np.min(inside), np.max(inside)]))
    size = high - low
    outside = {}
    for label, values in references.items():
        if not len(values):
            continue
        furthest = to(np.array([np.min(values), np.max(values)]))
        if size > 0 and max(high, furthest[1]) - min(low, furthest[0]) > FAR * size:
            outside[label] = values
        else:
            low, high = min(low, furthest[0]), max(high, furthest[1])
    pad = 0.07 * (high - low) or 0.05 * abs(high) or 0.05
    getattr(axes, f"set_{axis_name}lim")(back(np.array([low - pad, high + pad])))
    return outside


def say_outside(axes, words):
    """In the line of the title, where no data are: where references are that the panel does not show."""
    axes.set_title("; ".join(words), loc="right", color=GREY, fontsize=NOTE_SIZE)


def name_outside(axes, outside):
    """Says where references above or below the panel are."""
    low, high = axes.get_ylim()
    say_outside(axes, [f"{label} at {span(values)} {'↑' * bool(np.max(values) > high)}"
                       f"{'↓' * bool(np.min(values) < low)}" for label, values in outside.items()])


def always_shown(study, series):
    return series in study.series or series.label == "oracle"


def span(values):
    low, high = (f"{value:.2g}" for value in (np.min(values), np.max(values)))
    return low if low == high else f"{low} to {high}"


def notes(ds, study, names, budget=None):
    """What the panels do not say: what is drawn, n, interval, what is fixed, rows, floor."""
    return [
        "; ".join(f"{PANELS[name][0]}: {PANELS[name][2]}" for name in names),
        counts_note(ds, study),
        fixed_note(ds, study, budget),
        references_note(study),
        rows_note(ds.isel(config=study.configs())),
    ]


def n_prompts(ds, study, name):
    points = [point for series in study.series for point in series.points]
    return max(estimate(ds, point, name).n for point in points) if name in ds else 0


def counts_note(ds, study):
    n, with_needles = (n_prompts(ds, study, name) for name in ("out_rel_l2_mean", "needle_key_recall"))
    words = f"means over n = {n} prompt{'s' if n > 1 else ''} ({with_needles or 'none'} with needles)"
    layers = [str(layer) for layer in ds["layer"].values]
    layers = ", ".join(layers if len(layers) < 13 else [*layers[:3], "...", layers[-1]])
    words += f", layer{'s' if ds.sizes['layer'] > 1 else ''} {layers}, {ds.sizes['q_head']} query heads each; "
    if n < MIN_PROMPTS:
        return words + f"no intervals: fewer than {MIN_PROMPTS} prompts"
    words += f"bars: 95 % bootstrap interval over prompts ({RESAMPLES:,} resamples)"
    return words + (f", none for needles: fewer than {MIN_PROMPTS} prompts" if 0 < with_needles < MIN_PROMPTS else "")


def fixed_note(ds, study, budget):
    """The values of the base that the figure does not show: those that vary in the file, and the usual ones."""
    def varies(name):
        return len({str(value) for value in ds[name].values} - {"", "nan"}) > 1

    usual = ("selector", "chunk_size", "n_sel_queries", "query_rule", "score")
    fixed = [f"{name}={value}" for name, value in study.base.items()
             if value and name not in (study.parameter, "seed", "budget") and (name in usual or varies(name))]
    fixed += [f"budget={budget}"] if budget else []
    floor = float(ds["floor_out_rel_l2"].mean())
    return f"at {', '.join(fixed)}; numeric floor of the error {floor:.1e}"


def references_note(study):
    if study.parameter == "combinations":
        return "oracle and random: at the base"
    by_value = {series.value for series in study.references if series.value}
    without = [series.value for series in study.series if series.value not in by_value]
    if not by_value or not without:
        return ""
    return f"oracle and random were not measured at {study.parameter} {', '.join(dict.fromkeys(without))}"
