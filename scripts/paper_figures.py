"""Figures of one study (see paper_series): values, paired differences from the base, differences by layer.

The unit is the prompt: a value is a mean over the layers and heads of a prompt, a point the mean over prompts, a
bar the 95 % bootstrap interval of that mean (quoka_paper/prompts_statistics.py).
"""

import textwrap

import numpy as np

from figure_style import (GREY, NothingToPlot, arrow, finish, name_panels, reference_style, remark,
                          set_difference_scale, set_error_scale, set_key_ticks)
from paper_panels import (BAR, PANELS, always_shown, axis_label, bars, ends, estimate, fit, grid, n_prompts,
                          name_outside, notes, panels_of, say_outside, span, styled)
from quoka_paper.prompts_statistics import difference, per_prompt, per_prompt_and_layer

MAX_BUDGETS = 4  # panels of paired differences


def values(ds, study, columns):
    """Error, tail, mass and needle recall: against the budget if it varies, else one line per value."""
    names = panels_of(ds, study)
    if len(study.budgets) > 1 and study.parameter != "combinations":
        return values_by_budget(ds, study, names, columns)
    return values_by_value(ds, study, names, columns)


def values_by_budget(ds, study, names, columns):
    fig, panels = grid(*((-(-len(names) // 2), 2) if columns == 2 else (len(names), 1)), len(names), columns, 1.9)
    for axes, name in zip(panels, names):
        drawn = [(series, look, label, [estimate(ds, point, name) for point in series.points])
                 for series, look, label in styled(study)]
        for place, (series, look, label, found) in enumerate(drawn):
            dodge = 1 + 0.015 * (place - len(drawn) / 2)  # so that intervals do not cover each other
            for percent, fill in ((False, "full"), (True, "none")):
                chosen = [i for i, point in enumerate(series.points) if point.budget.endswith("%") == percent]
                if chosen:
                    suffix = ", budget in %" if percent and len(chosen) < len(found) else ""
                    axes.errorbar([series.points[i].keys * dodge for i in chosen], [found[i].mean for i in chosen],
                                  bars([found[i] for i in chosen]), **look, **BAR, markersize=4, fillstyle=fill,
                                  label=label + suffix)
        inside = np.concatenate([ends(found) for series, _, _, found in drawn if always_shown(study, series)])
        if ds[name].attrs["better"] == "lower":
            set_error_scale("y", axes, inside)
        outside = fit(axes, "y", inside, {series.label: ends(found) for series, _, _, found in drawn
                                          if not always_shown(study, series)})
        name_outside(axes, outside)
        set_key_ticks(axes, [point.keys for series in study.series for point in series.points])
        axes.set_xlabel("keys kept per chunk and KV head")
        axes.set_ylabel(axis_label(ds, name))
    name_panels(panels, [PANELS[name][0] for name in names])
    return finish(fig, notes(ds, study, names), panels[0].get_legend_handles_labels(), study.parameter)


def values_by_value(ds, study, names, columns):
    """One line per value; references below, or under the value at which they were measured."""
    budget = study.budgets[0]
    rows = study.series + [series for series in study.references if not series.value]
    labels = [textwrap.fill(series.label, 19 * columns, break_long_words=False) for series in rows]
    measured = any(series.value for series in study.references)
    row_height = 0.17 * (1 + max(label.count("\n") for label in labels)) + (0.2 if measured else 0)
    size = (1, len(names)) if columns == 2 else (-(-len(names) // 2), 2)
    fig, panels = grid(*size, len(names), columns, row_height * len(rows) + 0.75, sharey=True)
    for axes, name in zip(panels, names):
        draw_rows(axes, ds, study, rows, name, budget)
        axes.set_ylim(len(rows) - 0.2 if measured else len(rows) - 0.4, -0.6)
        axes.set_yticks(range(len(rows)), labels)
        axes.grid(axis="y", alpha=0.2, linewidth=0.5)
        axes.set_xlabel(axis_label(ds, name, "\n"))
    name_panels(panels, [PANELS[name][0] for name in names])
    handles = {label: handle for panel in panels for handle, label in zip(*panel.get_legend_handles_labels())}
    return finish(fig, notes(ds, study, names, budget), (list(handles.values()), list(handles)))


def draw_rows(axes, ds, study, rows, name, budget):
    """One metric of every row; a reference that is far off is a number at the edge."""
    looks = {id(series): look for series, look, _ in styled(study)}
    inside, references = [], {}
    for y, series in enumerate(rows):
        below = [s for s in study.references if s.value and s.value == series.value]
        for shift, drawn in zip((0, 0.27, 0.54), [series, *below]):
            point = drawn.at(budget)
            if not point:
                continue
            found = estimate(ds, point, name)
            is_reference = drawn in study.references
            look = reference_style(drawn.label) if is_reference else looks[id(drawn)]
            axes.errorbar(found.mean, y + shift, xerr=bars([found]), **{**look, "linestyle": ""}, **BAR, markersize=4,
                          label=f"{drawn.label} (reference)" if drawn in below else None)
            if always_shown(study, drawn):
                inside.extend(ends([found]))
            else:
                references[y + shift] = ends([found])
            if is_reference and drawn not in below:
                axes.axvline(found.mean, color=GREY, linewidth=0.6, linestyle=look["linestyle"], zorder=0)
    for y, found in fit(axes, "x", np.array(inside), references).items():
        right = np.mean(found) > np.mean(axes.get_xlim())
        remark(axes, f"{span(found)} →" if right else f"← {span(found)}", (0.99 if right else 0.01, y),
               xycoords=("axes fraction", "data"), ha="right" if right else "left", va="center")


def compared(ds, study):
    """Raises NothingToPlot if there is nothing to compare with the base."""
    if len(study.series) < 2:
        raise NothingToPlot("one value: nothing to compare")


def both_sides(ds, study, columns):
    """Average error against needle recall, each minus the base's: what one number alone would hide."""
    compared(ds, study)
    if ds.sizes["capture"] < 2:
        raise NothingToPlot("one prompt: differences need several")
    x_name, y_name = "out_rel_l2_mean", panels_of(ds, study)[-1]
    budgets = study.budgets[:MAX_BUDGETS]
    n_columns = min(columns, len(budgets))
    fig, panels = grid(-(-len(budgets) // n_columns), n_columns, len(budgets), n_columns, 2.2, sharex=True, sharey=True)
    inside, references = ([], []), {}
    for axes, budget in zip(panels, budgets):
        for series, look, label, found in pairs_of_differences(ds, study, (x_name, y_name), budget):
            axes.errorbar(found[0].mean, found[1].mean, bars(found[1:]), bars(found[:1]), **{**look, "linestyle": ""},
                          **BAR, markersize=4, label=label)
            if not always_shown(study, series):
                references.setdefault(series.label, {})[budget] = found
                continue
            for axis, one in zip(inside, found):
                axis.extend(ends([one]))
        axes.axhline(0, color="0.7", linewidth=0.6, zorder=0)
        axes.axvline(0, color="0.7", linewidth=0.6, zorder=0)
        remark(axes, "better on both", (0.02, 0.98), ha="left")
        axes.set_xlabel(f"error minus base {arrow('lower')}")
        axes.set_ylabel(f"{PANELS[y_name][1]}\nminus base {arrow('higher')}")
        axes.label_outer()
    if not inside[0] or not inside[1]:
        raise NothingToPlot("no prompt has both a value and the base's")
    set_difference_scale("x", panels[0], np.array(inside[0]))
    far = {label for place, axis in enumerate("xy") for label in fit(panels[0], axis, inside[place], {
        label: ends([found[place] for found in by_budget.values()]) for label, by_budget in references.items()})}
    low, high = panels[0].get_ylim()
    panels[0].set_ylim(low, high + 0.1 * (high - low))  # room for "better on both"
    for axes, budget in zip(panels, budgets):
        say_outside(axes, [f"{label} at ({found[0].mean:+.2g}, {found[1].mean:+.2g})" for label in sorted(far)
                           for at, found in references[label].items() if at == budget])
    name_panels(panels, [f"budget {budget}" for budget in budgets])
    n = [n_prompts(ds, study, name) for name in (x_name, y_name)]
    note = f"differences are paired over prompts: {n[0]} for the error, {n[1]} for the {PANELS[y_name][1]}"
    if len(study.budgets) > len(budgets):
        note += f"; budgets {', '.join(study.budgets[len(budgets):])} are left out"
    return finish(fig, [note, *notes(ds, study, [x_name, y_name])], panels[0].get_legend_handles_labels(),
                  study.parameter)


def pairs_of_differences(ds, study, names, budget):
    """(series, style, label, [interval per metric]) of everything that has a value at this budget, minus the base."""
    base = study.series[0].at(budget)
    for series, look, label in styled(study):
        point = series.at(budget)
        if base and point:
            yield series, look, label, [difference(per_prompt(ds, name, point.configs),
                                                   per_prompt(ds, name, base.configs)) for name in names]


def by_layer(ds, study, columns):
    """Differences from the base in each layer, at the base's first budget."""
    compared(ds, study)
    n_layers = ds.sizes["layer"]
    if n_layers < 2:
        raise NothingToPlot("one layer")
    names = [name for name in panels_of(ds, study) if not name.endswith("p99")]
    budget = study.budgets[0]
    base = study.series[0].at(budget)
    fig, panels = grid(len(names), 1, len(names), columns, 1.45, sharex=True)
    drawn = [entry for entry in styled(study) if entry[0] is not study.series[0] and entry[0].at(budget)]
    for axes, name in zip(panels, names):
        base_values = per_prompt_and_layer(ds, name, base.configs)
        inside, references = [0.0], {}
        for order, (series, look, label) in enumerate(drawn):
            other = per_prompt_and_layer(ds, name, series.at(budget).configs)
            found = [difference(other[:, i], base_values[:, i]) for i in range(n_layers)]
            x = np.arange(n_layers) + 0.8 * ((order + 0.5) / len(drawn) - 0.5)
            axes.errorbar(x, [f.mean for f in found], bars(found), **{**look, "linestyle": ""}, **BAR, markersize=3.5,
                          label=label)
            if always_shown(study, series):
                inside.extend(ends(found))
            else:
                references[series.label] = ends(found)
        set_difference_scale("y", axes, np.array(inside))
        name_outside(axes, fit(axes, "y", inside, references))
        axes.axhline(0, color="0.7", linewidth=0.6, zorder=0)
        for border in range(1, n_layers):
            axes.axvline(border - 0.5, color="0.9", linewidth=0.5, zorder=0)
        axes.set_xlim(-0.5, n_layers - 0.5)
        axes.set_xticks(range(n_layers), [str(layer) for layer in ds["layer"].values])
        axes.set_ylabel("minus base " + arrow(ds[name].attrs["better"]))
    panels[-1].set_xlabel("layer")
    name_panels(panels, [f"{PANELS[name][0]} ({PANELS[name][1]})" for name in names])
    note = f"differences from {study.series[0].label} (base), paired over prompts"
    return finish(fig, [note, *notes(ds, study, names, budget)], panels[0].get_legend_handles_labels(), study.parameter)
