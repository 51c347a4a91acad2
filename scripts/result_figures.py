"""Figures of a results file, one function each: an open xarray dataset in, a matplotlib figure out.

A figure that the file cannot give (no needles, nothing computed) raises NothingToPlot with the reason.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import LogNorm

from figure_style import (GREY, NOTE_SIZE, WIDTHS, NothingToPlot, arrow, finish, name_panels, reference_style, remark,
                          set_error_scale, set_key_ticks, style)
from result_families import OVER_CELLS, describe, families, reference_note, rows_note

MAX_FAMILIES = 14  # more are not told apart


def styles(drawn):
    """Colour, marker and line of each family; plain oracle and random are grey."""
    coloured = [family.label for family in drawn if family.label not in ("oracle", "random")]
    return [style(coloured.index(family.label)) if family.label in coloured else reference_style(family.label)
            for family in drawn]


def computed(ds, name):
    """The variable of that name, if it holds any number."""
    if name not in ds or not bool(ds[name].notnull().any()):
        raise NothingToPlot(f"{name} holds no value in this file")
    return ds[name]


def what_is_averaged(ds):
    """For example "SmolLM2_2k; layers 0, 18, 24; 9 heads; 1120 active rows"."""
    captures = ds["capture"].values
    layers = ", ".join(str(layer) for layer in ds["layer"].values[:12])
    if ds.sizes["layer"] > 12:
        layers += ", ..."
    rows = ds["n_rows_active"]
    low, high = int(rows.min()), int(rows.max())
    counted = f"{low}" if low == high else f"{low} to {high}"
    return (
        f"{captures[0] if len(captures) == 1 else f'{len(captures)} captures'}; layers {layers}; "
        f"{ds.sizes['q_head']} query heads; {counted} active rows per head"
    )


def draw_floor(axes, ds):
    """A line at the numeric floor, or a remark at the lower edge when it lies far below the data."""
    floor = float(ds["floor_out_rel_l2"].mean())
    if not np.isfinite(floor):
        return
    bottom, top = axes.get_ylim()
    if floor > bottom:
        axes.axhline(floor, color=GREY, linestyle=":", linewidth=0.8)
        remark(axes, f"numeric floor {floor:.1e}", (0.02, floor), ha="left", va="bottom",
               xycoords=("axes fraction", "data"))
    else:
        remark(axes, f"numeric floor {floor:.1e} \N{DOWNWARDS ARROW}", (0.02, 0.02), ha="left")
        axes.set_ylim(bottom, top)


def families_to_draw(ds):
    """At most MAX_FAMILIES families, those with fewest differences first; and a note on the others."""
    everyone = families(ds)
    chosen = sorted(everyone, key=lambda family: family.n_differences)[:MAX_FAMILIES]
    left_out = len(everyone) - len(chosen)
    note = f"{left_out} of {len(everyone)} families are left out; choose with --only" if left_out else ""
    return [family for family in everyone if family in chosen], note


def error_and_recall_by_budget(ds):
    """Error and recall against the number of keys kept, one line per family of configurations."""
    panels = {"out_rel_l2_mean": "output error", "mass_recall_no_sink_mean": "attention mass kept, sinks left out"}
    values = {name: computed(ds, name).stack(cell=OVER_CELLS) for name in panels}
    kept = ds["keys_kept"].mean(OVER_CELLS).values
    chosen, left_out = families_to_draw(ds)
    fig, both = plt.subplots(1, 2, figsize=(WIDTHS[2], 2.7))
    for axes, name in zip(both, panels):
        for position, (family, look) in enumerate(zip(chosen, styles(chosen))):
            data = values[name].isel(config=family.configs)
            mean = data.mean("cell").values
            low, high = data.quantile([0.25, 0.75], "cell").values
            dodge = 1 + 0.012 * (position - len(chosen) / 2)  # so that intervals do not overlap
            x = kept[family.configs] * dodge
            axes.vlines(x, low, high, color=look["color"], linewidth=0.6, alpha=0.6)
            axes.plot(x, mean, label=family.label, markersize=4, **look)
        set_key_ticks(axes, kept[np.concatenate([family.configs for family in chosen])])
        axes.set_xlabel("keys kept per chunk and KV head")
        axes.set_ylabel(f"{name} {arrow(ds[name].attrs['better'])}")
    name_panels(both, panels.values())
    set_error_scale("y", both[0], values["out_rel_l2_mean"].mean("cell").values)
    draw_floor(both[0], ds)
    n = int(values["out_rel_l2_mean"].notnull().sum("cell").max())
    notes = [
        f"means and quartiles over heads and layers (n = {n} per point): {what_is_averaged(ds)}",
        reference_note(ds),
        left_out,
        rows_note(ds),
    ]
    return finish(fig, notes, both[0].get_legend_handles_labels())


def layer_head_map(ds, config):
    """Error of one configuration (its position along ds.config) by layer and query head."""
    data = computed(ds.isel(config=[config]), "out_rel_l2_mean").isel(config=0)
    positive = data.where(data > 0)
    if not bool(positive.notnull().any()):
        raise NothingToPlot("every error of this configuration is 0")
    low, high = float(positive.min()), float(positive.max())
    norm = LogNorm(low, high if high > low else low * 1.01)
    n_captures = ds.sizes["capture"]
    n_layers, n_heads = ds.sizes["layer"], ds.sizes["q_head"]
    size = (max(WIDTHS[1], min(WIDTHS[2], 1.2 + 0.38 * n_heads)), 0.3 + n_captures * (0.6 + 0.2 * n_layers))
    fig, all_axes = plt.subplots(n_captures, 1, figsize=size, squeeze=False)
    for axes, capture in zip(all_axes[:, 0], ds["capture"].values):
        block = positive.sel(capture=capture).transpose("layer", "q_head").values
        image = axes.imshow(block, norm=norm, cmap="cividis", aspect="auto")
        axes.set_xticks(range(n_heads)[:: 1 + n_heads // 24], ds["q_head"].values[:: 1 + n_heads // 24])
        axes.set_yticks(range(n_layers), ds["layer"].values)
        axes.set_xlabel("query head")
        axes.set_ylabel("layer")
        axes.set_title(str(capture))
        if block.size <= 120:
            for (i, j), value in np.ndenumerate(block):
                if np.isfinite(value):
                    colour = "black" if norm(value) > 0.5 else "white"
                    axes.text(j, i, f"{value:.2g}", ha="center", va="center", fontsize=NOTE_SIZE, color=colour)
    fig.colorbar(image, ax=list(all_axes[:, 0]), label="relative L2 error")
    n = int(data.notnull().sum())
    return finish(fig, [f"{describe(ds, config)}; n = {n} heads; blank: not in the capture, or exact"])


def needles_against_error(ds):
    """What retrieval feels against the average error, one point per configuration."""
    panels = {"needle_key_recall": "needle's keys kept", "needle_mass_recall": "attention to the needle kept"}
    values = {name: computed(ds, name).mean(OVER_CELLS).values for name in panels}
    error = computed(ds, "out_rel_l2_mean").mean(OVER_CELLS).values
    budgets = ds["budget"].values
    chosen, left_out = families_to_draw(ds)
    fig, both = plt.subplots(1, 2, figsize=(WIDTHS[2], 2.9))
    for axes, name in zip(both, panels):
        for family, look in zip(chosen, styles(chosen)):
            x, y = error[family.configs], values[name][family.configs]
            axes.plot(x, y, label=family.label, markersize=4.5, linewidth=0.5, alpha=0.85, **look)
            for config, *point in zip(family.configs, x, y):
                if len(family.configs) > 1 and np.all(np.isfinite(point)):
                    axes.annotate(budgets[config], point, textcoords="offset points", xytext=(3, 2),
                                  fontsize=NOTE_SIZE, color=look["color"])
        set_error_scale("x", axes, error)
        axes.set_xlabel(f"out_rel_l2_mean {arrow('lower')}")
        axes.set_ylabel(f"{name} {arrow('higher')}")
    name_panels(both, panels.values())
    n = int(ds["needle_key_recall"].notnull().sum(OVER_CELLS).max())
    pairs = int(ds["needle_key_recall_n_valid"].max())
    noun = "pairs" if pairs > 1 else "pair"
    notes = [
        f"means over heads and layers (n = {n} per point, each over {pairs} (chunk, needle) {noun}): "
        f"{what_is_averaged(ds)}",
        "numbers beside points are budgets" if any(len(f.configs) > 1 for f in chosen) else "",
        reference_note(ds),
        left_out,
        rows_note(ds),
    ]
    return finish(fig, notes, both[0].get_legend_handles_labels())
