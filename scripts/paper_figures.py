"""Figures of one study (see paper_series): values, paired differences, differences by layer.

The unit is the prompt: a value is a mean over the layers and heads of a prompt, a point the mean over prompts, a
bar the 95 % bootstrap interval of that mean (quoka_paper/prompts_statistics.py).
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.ticker import MaxNLocator

from figure_style import (GREY, WIDTHS, NothingToPlot, arrow, finish, reference_style, set_error_scale, set_key_ticks,
                          style)
from quoka_paper.prompts_statistics import (MIN_PROMPTS, RESAMPLES, difference, interval, per_prompt,
                                            per_prompt_and_layer)

PANELS = {
    "out_rel_l2_mean": ("output error", "relative L2 error, mean over rows"),
    "out_rel_l2_p99": ("tail of the output error", "relative L2 error, 99th percentile"),
    "mass_recall_no_sink_mean": ("attention mass kept", "mass recall without sinks"),
    "needle_key_recall": ("needle kept", "needle key recall"),
}
BAR = {"elinewidth": 0.8, "capsize": 0}


def holds_values(ds, study, name):
    return name in ds and bool(ds[name].isel(config=study.configs()).notnull().any())


def panels_of(ds, study):
    names = [name for name in PANELS if holds_values(ds, study, name)]
    if not names:
        raise NothingToPlot("no configuration of the study has an active row")
    return names


def grid(n_panels, columns, height, **shared):
    """Panels in one row at two columns of a page, in two rows at one column; named (a), (b), ..."""
    n_rows = 1 if columns == 2 else -(-n_panels // 2)
    n_columns = -(-n_panels // n_rows)
    width = WIDTHS[columns] if n_panels > 1 else WIDTHS[1]
    fig, axes = plt.subplots(n_rows, n_columns, figsize=(width, height * n_rows), squeeze=False, **shared)
    for spare in axes.flat[n_panels:]:
        spare.remove()
    return fig, list(axes.flat[:n_panels])


def name_panel(axes, place, words):
    axes.set_title(f"({'abcdefgh'[place]}) {words}", loc="left")


def styled(study):
    """(series, style, label) of everything that is drawn, references first, so that they lie below."""
    one_each = {series.label: series for series in reversed(study.references)}  # where by value: the base's
    for label, series in sorted(one_each.items()):
        yield series, reference_style(label), label
    for place, series in enumerate(study.series):
        base = " (base)" if place == 0 and len(study.series) > 1 else ""
        yield series, style(place), series.label + base


def estimate(ds, point, name):
    return interval(per_prompt(ds, name, point.configs))


def bars(intervals):
    """Lengths below and above the means, as matplotlib wants them; none where there is no interval."""
    return np.nan_to_num([[i.mean - i.low for i in intervals], [i.high - i.mean for i in intervals]])


def draw_by_budget(axes, ds, study, name):
    drawn = list(styled(study))
    for place, (series, look, label) in enumerate(drawn):
        found = [estimate(ds, point, name) for point in series.points]
        dodge = 1 + 0.02 * (place - len(drawn) / 2)  # so that intervals do not cover each other
        for percent, fill in ((False, "full"), (True, "none")):
            chosen = [i for i, point in enumerate(series.points) if point.budget.endswith("%") == percent]
            if chosen:
                keys = np.array([series.points[i].keys for i in chosen]) * dodge
                axes.errorbar(keys, [found[i].mean for i in chosen], bars([found[i] for i in chosen]), **look, **BAR,
                              markersize=4, fillstyle=fill, label=label if chosen[0] == 0 else "_")
    set_key_ticks(axes, [point.keys for series in study.series for point in series.points])
    axes.set_xlabel("keys kept per chunk and KV head")


def rows_of(study):
    """What the lines of a figure of values are, from top to bottom: one per value, then references by themselves."""
    apart = [series for series in study.references if not series.value]
    return study.series + sorted(apart, key=lambda series: series.label)


def draw_by_value(axes, ds, study, name):
    looks = {series.label: look for series, look, _ in styled(study)}
    for y, series in enumerate(rows_of(study)):
        (point,) = series.points
        found = estimate(ds, point, name)
        is_reference = series in study.references
        look = reference_style(series.label) if is_reference else looks[series.label]
        axes.errorbar(found.mean, y, xerr=bars([found]), **{**look, "linestyle": ""}, **BAR, markersize=4.5)
        if is_reference:
            axes.axvline(found.mean, color=GREY, linewidth=0.6, linestyle=look["linestyle"], zorder=0)
        else:
            for other in (s for s in study.references if s.value == series.value):
                mean = estimate(ds, other.points[0], name)
                axes.errorbar(mean.mean, y + 0.2, xerr=bars([mean]), **{**reference_style(other.label), "linestyle": ""},
                              **BAR, markersize=4.5, label=other.label if y == 0 else "_")
    axes.set_ylim(len(rows_of(study)) - 0.5, -0.5)
    axes.set_yticks(range(len(rows_of(study))), [series.label for series in rows_of(study)])
    axes.grid(axis="y", alpha=0.2, linewidth=0.5)


def values(ds, study, columns):
    """Error, tail, mass and needle recall: against the budget if it varies, else one line per value."""
    names = panels_of(ds, study)
    by_budget = len(study.budgets) > 1
    height = 1.75 if by_budget else 0.17 * len(rows_of(study)) + 0.7
    fig, all_axes = grid(len(names), columns, height, sharey=False if by_budget else True)
    for place, (axes, name) in enumerate(zip(all_axes, names)):
        title, label = PANELS[name]
        (draw_by_budget if by_budget else draw_by_value)(axes, ds, study, name)
        name_panel(axes, place, title)
        (axes.set_ylabel if by_budget else axes.set_xlabel)(label + "\n" + arrow(ds[name].attrs["better"]).strip())
        means = np.array([estimate(ds, point, name).mean for s in study.series + study.references for point in s.points])
        if by_budget and ds[name].attrs["better"] == "lower":
            set_error_scale("y", axes, means)
    handles, labels = all_axes[0].get_legend_handles_labels()
    return finish(fig, notes(ds, study, names), (handles, labels), study.parameter if by_budget else None)


def differences_to_base(ds, study, name, budget):
    """(style, label, interval) of each series and reference minus the base, at one budget."""
    base = study.series[0].at(budget)
    for series, look, label in styled(study):
        point = series.at(budget)
        if base and point and series is not study.series[0]:
            yield look, label, difference(per_prompt(ds, name, point.configs), per_prompt(ds, name, base.configs))


def both_sides(ds, study, columns):
    """Average error against needle recall, each minus the base's: what one number alone would hide."""
    if ds.sizes["capture"] < 2:
        raise NothingToPlot("one prompt: differences need several")
    if len(study.series) < 2:
        raise NothingToPlot("one value: nothing to compare")
    names = panels_of(ds, study)
    x_name, y_name = "out_rel_l2_mean", names[-1]
    if len(names) < 3:
        raise NothingToPlot("neither needles nor attention mass to set against the error")
    budgets = study.budgets[-4:]
    fig, all_axes = grid(len(budgets), columns, 2.0, sharex=True, sharey=True)
    for place, (axes, budget) in enumerate(zip(all_axes, budgets)):
        for (look, label, x), (_, _, y) in zip(differences_to_base(ds, study, x_name, budget),
                                               differences_to_base(ds, study, y_name, budget)):
            axes.errorbar(x.mean, y.mean, bars([y]), bars([x]), **{**look, "linestyle": ""}, **BAR, markersize=4.5,
                          label=label)
        axes.axhline(0, color="0.7", linewidth=0.6, zorder=0)
        axes.axvline(0, color="0.7", linewidth=0.6, zorder=0)
        axes.plot(0, 0, **{**style(0), "linestyle": ""}, markersize=4.5, label=f"{study.series[0].label} (base)")
        axes.xaxis.set_major_locator(MaxNLocator(4))
        name_panel(axes, place, f"budget {budget}")
        axes.annotate("better on both", (0.03, 0.97), xycoords="axes fraction", va="top", color=GREY, fontsize=7)
        axes.set_xlabel("difference of the error" + arrow("lower"))
    title = PANELS[y_name][1]
    all_axes[0].set_ylabel(f"difference of the\n{title}" + arrow("higher"))
    note = f"error: {PANELS[x_name][1]}; differences from the base are paired over prompts"
    return finish(fig, [note, *notes(ds, study, [x_name, y_name])], all_axes[0].get_legend_handles_labels(),
                  study.parameter)


def by_layer(ds, study, columns):
    """Differences from the base in each layer, at the base's budget."""
    if ds.sizes["layer"] < 2:
        raise NothingToPlot("one layer")
    if len(study.series) < 2:
        raise NothingToPlot("one value: nothing to compare")
    names = [name for name in panels_of(ds, study) if not name.endswith("p99")]
    budget = study.series[0].points[0].budget
    base = study.series[0].at(budget)
    fig, all_axes = grid(len(names), columns, 1.9)
    drawn = [entry for entry in styled(study) if entry[0] is not study.series[0] and entry[0].at(budget)]
    for place, (axes, name) in enumerate(zip(all_axes, names)):
        base_values = per_prompt_and_layer(ds, name, base.configs)
        for order, (series, look, label) in enumerate(drawn):
            other = per_prompt_and_layer(ds, name, series.at(budget).configs)
            found = [difference(other[:, i], base_values[:, i]) for i in range(ds.sizes["layer"])]
            x = np.arange(ds.sizes["layer"]) + 0.6 * ((order + 0.5) / len(drawn) - 0.5)
            axes.errorbar(x, [f.mean for f in found], bars(found), **{**look, "linestyle": ""}, **BAR, markersize=3.5,
                          label=label)
        axes.axhline(0, color="0.7", linewidth=0.6, zorder=0)
        axes.set_xticks(range(ds.sizes["layer"]), [str(layer) for layer in ds["layer"].values])
        axes.set_xlabel("layer")
        axes.set_ylabel(f"difference of the\n{PANELS[name][1]}" + arrow(ds[name].attrs["better"]))
        name_panel(axes, place, PANELS[name][0])
    note = f"differences from {study.parameter}={study.series[0].value}, paired over prompts, budget {budget}"
    return finish(fig, [note, *notes(ds, study, names)], all_axes[0].get_legend_handles_labels(), study.parameter)


def notes(ds, study, names):
    """What the panels do not say: n, interval, what is fixed, rows, floor."""
    numbers = {name: max(interval(per_prompt(ds, name, point.configs)).n for series in study.series
                         for point in series.points) for name in names}
    n = max(numbers.values())
    with_needle = numbers.get("needle_key_recall")
    prompts = f"n = {n} prompt{'s' if n > 1 else ''}"
    prompts += f", {with_needle} with needles" if with_needle is not None else ", none with needles"
    layers = [str(layer) for layer in ds["layer"].values]
    layers = ", ".join(layers if len(layers) < 13 else [*layers[:3], "...", layers[-1]])
    enough = n >= MIN_PROMPTS
    bar = (f"bars: 95 % percentile bootstrap interval over prompts ({RESAMPLES:,} resamples)"
           if enough else f"no intervals: fewer than {MIN_PROMPTS} prompts")
    if enough and with_needle is not None and with_needle < MIN_PROMPTS:
        bar += f"; needle recall has none (fewer than {MIN_PROMPTS} prompts)"
    fixed = [f"{name}={value}" for name, value in study.base.items() if value and name not in (
        study.parameter, "seed", "budget")]
    if len(study.budgets) == 1:
        fixed.append(f"budget={study.budgets[0]}")
    floor = float(ds["floor_out_rel_l2"].mean())
    return [
        f"means over {prompts}, layers {layers}, {ds.sizes['q_head']} query heads; {bar}",
        f"everywhere {', '.join(fixed)}",
        f"numeric floor of the error {floor:.1e}" if np.isfinite(floor) else "",
        references_note(study),
        rows_note(ds, study),
    ]


def references_note(study):
    by_value = [series for series in study.references if series.value]
    if not by_value or len(study.budgets) == 1:
        return ""
    return f"oracle and random: at {study.parameter}={study.series[0].value}"


def rows_note(ds, study):
    rows = ds["n_rows_active"].isel(config=study.configs()).sum(["capture", "layer", "q_head"]).values
    if len(set(rows)) == 1:
        return ""
    return ("the active rows differ between these configurations, so their means are not over the same rows "
            "(for budgets: set min_history to one more than the largest)")
