"""Figures of a results file, one function each: an open xarray dataset in, a matplotlib figure out.

A figure that the file cannot give (no needles, nothing computed) raises NothingToPlot with the reason.
"""

import textwrap

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import LogNorm
from matplotlib.ticker import LogLocator, NullFormatter

from result_families import describe, families, reference_note

# Okabe and Ito's palette without yellow: distinguishable with any colour vision, on white paper.
COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000"]
MARKERS = ["o", "s", "^", "D", "v", "P", "X", "<", ">"]
MAX_FAMILIES = 14  # more are not told apart
OVER_CELLS = ["capture", "layer", "q_head"]


class NothingToPlot(Exception):
    """The file does not hold what the figure shows."""


def styles(drawn):
    """Colour, marker and line of each family; plain oracle and random are grey: the bounds of a figure."""
    result, n_coloured = [], 0
    for family in drawn:
        if family.label in ("oracle", "random"):
            marker = "*" if family.label == "oracle" else "x"
            result.append({"color": "0.45", "marker": marker, "linestyle": "--", "linewidth": 1.2})
            continue
        result.append(
            {
                "color": COLOURS[n_coloured % len(COLOURS)],
                "marker": MARKERS[n_coloured % len(MARKERS)],
                "linestyle": ["-", ":", "-."][n_coloured // len(COLOURS) % 3],
                "linewidth": 1.5,
            }
        )
        n_coloured += 1
    return result


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


def finish(fig, notes, legend_axes=None):
    """Legend at the right, notes under the figure."""
    width, height = fig.get_size_inches()
    if legend_axes:
        handles, labels = legend_axes.get_legend_handles_labels()
        wrapped = [textwrap.fill(label, 34) for label in labels]
        n_lines = sum(label.count("\n") + 1 for label in wrapped)
        fig.set_size_inches(width, max(height, 0.19 * n_lines + 0.3))
        fig.legend(handles, wrapped, loc="outside right upper", fontsize="small", frameon=False)
    words = "\n".join(textwrap.fill(note, int(13 * width)) for note in notes if note)
    fig.supxlabel(words, fontsize="small", color="0.3", x=0.01, ha="left")
    return fig


def rows_note(ds):
    per_config = ds["n_rows_active"].sum(OVER_CELLS).values
    if len(set(per_config)) == 1:
        return ""
    return (
        "the active rows differ between configurations: points are not means over the same rows "
        "(set min_history to one more than the largest budget)"
    )


def draw_floor(axes, ds):
    """A line at the numeric floor, or a remark at the lower edge when it lies far below the data."""
    floor = float(ds["floor_out_rel_l2"].mean())
    if not np.isfinite(floor):
        return
    bottom, top = axes.get_ylim()
    if floor > bottom:
        axes.axhline(floor, color="0.5", linestyle=":", linewidth=1)
        axes.annotate(f"numeric floor {floor:.1e}", (0.02, floor), xycoords=("axes fraction", "data"),
                      va="bottom", fontsize="small", color="0.4")
    else:
        axes.annotate(f"$\\downarrow$ numeric floor {floor:.1e}, below the axis", (0.02, 0.02),
                      xycoords="axes fraction", fontsize="small", color="0.4")
        axes.set_ylim(bottom, top)


def families_to_draw(ds):
    """At most MAX_FAMILIES families, those with fewest differences first; and a note on the others."""
    everyone = families(ds)
    chosen = sorted(everyone, key=lambda family: family.n_differences)[:MAX_FAMILIES]
    left_out = len(everyone) - len(chosen)
    note = f"{left_out} of {len(everyone)} families are left out; choose with --only" if left_out else ""
    return [family for family in everyone if family in chosen], note


def set_error_scale(axis_name, axes, error):
    """Logarithmic where the errors span more than a factor of eight."""
    error = error[np.isfinite(error) & (error > 0)]
    if len(error) and error.max() > 8 * error.min():
        getattr(axes, f"set_{axis_name}scale")("log")
        axis = getattr(axes, f"{axis_name}axis")
        axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axis.set_major_formatter(lambda value, _: f"{value:g}")
        axis.set_minor_formatter(NullFormatter())


def set_key_ticks(axes, kept):
    """Ticks at the numbers of keys that occur, none so close to the last one that they overlap."""
    ticks = []
    for tick in sorted({round(float(k)) for k in kept if np.isfinite(k) and k > 0}):
        if not ticks or tick > 1.15 * ticks[-1]:
            ticks.append(tick)
    axes.set_xscale("log", base=2)
    axes.set_xticks(ticks, [str(tick) for tick in ticks])
    axes.minorticks_off()
    axes.set_xlabel("keys kept per chunk and KV head")


def error_and_recall_by_budget(ds):
    """Error and recall against the number of keys kept, one line per family of configurations."""
    panels = {
        "out_rel_l2_mean": "relative error of the attention output (lower is better)",
        "mass_recall_no_sink_mean": "attention mass kept, sinks left out (higher is better)",
    }
    values = {name: computed(ds, name).stack(cell=OVER_CELLS) for name in panels}
    kept = ds["keys_kept"].mean(OVER_CELLS).values
    chosen, left_out = families_to_draw(ds)
    fig, both = plt.subplots(1, 2, figsize=(12, 5), layout="constrained")
    for axes, (name, title) in zip(both, panels.items()):
        for position, (family, style) in enumerate(zip(chosen, styles(chosen))):
            data = values[name].isel(config=family.configs)
            mean = data.mean("cell").values
            low, high = data.quantile([0.25, 0.75], "cell").values
            dodge = 1 + 0.012 * (position - len(chosen) / 2)  # so that intervals do not overlap
            x = kept[family.configs] * dodge
            axes.vlines(x, low, high, color=style["color"], linewidth=0.7, alpha=0.6)
            axes.plot(x, mean, label=family.label, markersize=5, **style)
        set_key_ticks(axes, kept[np.concatenate([family.configs for family in chosen])])
        axes.set_title(title, fontsize="medium")
        axes.set_ylabel(name)
        axes.grid(alpha=0.25)
    set_error_scale("y", both[0], values["out_rel_l2_mean"].mean("cell").values)
    draw_floor(both[0], ds)
    n = int(values["out_rel_l2_mean"].notnull().sum("cell").max())
    notes = [
        f"means and quartiles over heads and layers (n = {n} per point): {what_is_averaged(ds)}",
        reference_note(ds),
        left_out,
        rows_note(ds),
    ]
    return finish(fig, notes, both[0])


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
    size = (max(6.0, 1.5 + 0.55 * n_heads), 1.6 + n_captures * (1.0 + 0.35 * n_layers))
    fig, all_axes = plt.subplots(n_captures, 1, figsize=size, layout="constrained", squeeze=False)
    for axes, capture in zip(all_axes[:, 0], ds["capture"].values):
        block = positive.sel(capture=capture).transpose("layer", "q_head").values
        image = axes.imshow(block, norm=norm, cmap="cividis", aspect="auto")
        axes.set_xticks(range(n_heads)[:: 1 + n_heads // 24], ds["q_head"].values[:: 1 + n_heads // 24])
        axes.set_yticks(range(n_layers), ds["layer"].values)
        axes.set_xlabel("query head")
        axes.set_ylabel("layer")
        axes.set_title(str(capture), fontsize="medium")
        if block.size <= 120:
            for (i, j), value in np.ndenumerate(block):
                if np.isfinite(value):
                    colour = "black" if norm(value) > 0.5 else "white"
                    axes.text(j, i, f"{value:.2g}", ha="center", va="center", fontsize=7, color=colour)
    fig.colorbar(image, ax=list(all_axes[:, 0]), label="relative output error (out_rel_l2_mean)")
    n = int(data.notnull().sum())
    return finish(fig, [f"{describe(ds, config)}; n = {n} heads; blank: not in the capture, or exact"])


def needles_against_error(ds):
    """What retrieval feels against the average error, one point per configuration."""
    panels = {
        "needle_key_recall": "share of the needle's keys kept",
        "needle_mass_recall": "share of the attention to the needle kept",
    }
    values = {name: computed(ds, name).mean(OVER_CELLS).values for name in panels}
    error = computed(ds, "out_rel_l2_mean").mean(OVER_CELLS).values
    budgets = ds["budget"].values
    chosen, left_out = families_to_draw(ds)
    fig, both = plt.subplots(1, 2, figsize=(12, 5), layout="constrained")
    for axes, (name, title) in zip(both, panels.items()):
        for family, style in zip(chosen, styles(chosen)):
            x, y = error[family.configs], values[name][family.configs]
            axes.plot(x, y, label=family.label, markersize=6, alpha=0.85, **{**style, "linewidth": 0.6})
            for config, *point in zip(family.configs, x, y):
                if len(family.configs) > 1 and np.all(np.isfinite(point)):
                    axes.annotate(budgets[config], point, textcoords="offset points", xytext=(4, 3),
                                  fontsize=6, color=style["color"])
        set_error_scale("x", axes, error)
        axes.set_xlabel("out_rel_l2_mean: average error (lower is better)")
        axes.set_ylabel(name)
        axes.set_title(f"{title} (higher is better)", fontsize="medium")
        axes.grid(alpha=0.25)
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
    return finish(fig, notes, both[0])
