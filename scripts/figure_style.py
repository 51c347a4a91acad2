"""How all figures look: palette, sizes, axes, legends and the notes below a figure.

Figures are drawn at the size at which they are printed, so no text is smaller than 7 points on paper.
"""

import textwrap

import matplotlib
import numpy as np
from matplotlib.ticker import FixedLocator, LogLocator, NullFormatter, NullLocator

matplotlib.use("Agg")
matplotlib.rcParams.update({
    "font.family": "sans-serif", "font.size": 7.5, "axes.titlesize": 8, "axes.labelsize": 7.5,
    "xtick.labelsize": 7, "ytick.labelsize": 7, "legend.fontsize": 7, "legend.frameon": False,
    "axes.linewidth": 0.6, "xtick.major.width": 0.6, "ytick.major.width": 0.6, "lines.linewidth": 1.1,
    "axes.spines.top": False, "axes.spines.right": False, "axes.axisbelow": True,
    "figure.constrained_layout.use": True, "savefig.dpi": 200,
    # Text stays text in vector files; names of elements do not depend on the run.
    "svg.fonttype": "none", "svg.hashsalt": "quoka-sweep", "pdf.fonttype": 42,
})

# Okabe and Ito's palette without yellow: distinguishable with any colour vision, on white paper.
COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000"]
MARKERS = ["o", "s", "^", "D", "v", "P", "X", "<", ">"]
DASHES = ["-", "--", "-.", ":"]
GREY = "0.45"
NOTE_SIZE = 7
WIDTHS = {1: 3.5, 2: 7.2}  # inches: one and two columns of a printed page


class NothingToPlot(Exception):
    """The file does not hold what the figure shows."""


def arrow(better):
    """The direction that is better, for an axis label."""
    return {"lower": "\N{DOWNWARDS ARROW} better", "higher": "\N{UPWARDS ARROW} better"}.get(better, "")


def style(place, n_coloured=len(COLOURS)):
    """Colour, marker and dashes of the line at this place: two of them always differ in more than colour."""
    return {
        "color": COLOURS[place % n_coloured],
        "marker": MARKERS[place % len(MARKERS)],
        "linestyle": DASHES[(place // n_coloured + place) % len(DASHES)],
    }


def reference_style(name):
    """Oracle and random are grey: the bounds of a figure."""
    return {"color": GREY, "marker": "*" if name == "oracle" else "x", "linestyle": (0, (4, 1.5))}


def n_characters(width, size=NOTE_SIZE):
    """Characters of a proportional font that fit in a line of so many inches."""
    return int(width * 72 / (0.56 * size))


def finish(fig, notes, legend=None, title=None):
    """Legend (handles, labels) above the panels, notes below; the figure grows by what they need."""
    width, height = fig.get_size_inches()
    if legend and legend[0]:
        longest = max(len(label) for label in legend[1])
        n_columns = max(1, min(len(legend[1]), n_characters(width) // (longest + 7)))
        fig.legend(*legend, loc="outside upper center", ncols=n_columns, title=title)
        height += 0.15 * (-(-len(legend[1]) // n_columns) + bool(title))
    lines = [line for note in notes if note for line in textwrap.wrap(note, n_characters(width))]
    fig.supxlabel("\n".join(lines), fontsize=NOTE_SIZE, color="0.25", x=0.01, ha="left")
    fig.set_size_inches(width, height + 0.125 * len(lines))
    return fig


def name_panels(panels, titles):
    for panel, letter, title in zip(panels, "abcdefgh", titles):
        panel.set_title(f"({letter}) {title}", loc="left")


def remark(axes, words, place, **how):
    """Grey words inside a panel, at a place in fractions of it; legible over lines."""
    how = {"xycoords": "axes fraction", "ha": "right", "va": "top" if place[1] > 0.5 else "bottom", **how}
    if words:
        box = {"boxstyle": "square,pad=0.1", "facecolor": "white", "edgecolor": "none", "alpha": 0.8}
        axes.annotate(words, place, color=GREY, fontsize=NOTE_SIZE, zorder=4, bbox=box, **how)


def set_error_scale(axis_name, axes, error):
    """Logarithmic where the errors span more than a factor of eight."""
    error = error[np.isfinite(error) & (error > 0)]
    if len(error) and error.max() > 8 * error.min():
        getattr(axes, f"set_{axis_name}scale")("log")
        axis = getattr(axes, f"{axis_name}axis")
        axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axis.set_major_formatter(lambda value, _: f"{value:g}")
        axis.set_minor_formatter(NullFormatter())


def set_difference_scale(axis_name, axes, differences):
    """Linear around 0 and logarithmic beyond where a few differences are far larger than most."""
    sizes = np.abs(differences[np.isfinite(differences) & (differences != 0)])
    if len(sizes) and sizes.max() > 20 * np.median(sizes):
        threshold = 10.0 ** np.ceil(np.log10(np.median(sizes)))
        getattr(axes, f"set_{axis_name}scale")("symlog", linthresh=threshold, linscale=1.5)
        axis = getattr(axes, f"{axis_name}axis")
        ticks = threshold * np.array([0.5, 1, 10, 100, 1000])  # farther apart than their labels are long
        axis.set_major_locator(FixedLocator([*-ticks, 0, *ticks]))
        axis.set_major_formatter(lambda value, _: f"{value:g}")
        axis.set_minor_locator(NullLocator())


def set_key_ticks(axes, kept):
    """Ticks at the numbers of keys that occur, none so close to the last one that they overlap."""
    ticks = []
    for tick in sorted({round(float(k)) for k in kept if np.isfinite(k) and k > 0}):
        if not ticks or tick > 1.3 * ticks[-1]:
            ticks.append(tick)
    axes.set_xscale("log", base=2)
    axes.set_xticks(ticks, [str(tick) for tick in ticks])
    axes.minorticks_off()
