#!/usr/bin/env python3
"""Draws what `quoka-bench prefill --out FILE` measured: the stages of sparse prefill, and the speedup.

  plot_bench.py prefill.h5 --out prefill.png
"""

import argparse
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt  # noqa: E402
import xarray as xr  # noqa: E402
from matplotlib.ticker import FuncFormatter, NullLocator  # noqa: E402

# Stage -> label and colour; Okabe and Ito's palette, told apart with any colour vision.
STAGES = {
    "attend": ("attend", "#0072B2"),
    "score": ("score", "#E69F00"),
    "top_k": ("top-k", "#009E73"),
    "gather": ("gather", "#CC79A7"),
    "keep_queries": ("keep queries", "#56B4E9"),
    "unit_keys": ("unit keys", "#000000"),
}
HATCHES = ["", "//", "..", "\\\\", "xx", ""]


def open_prefill(path):
    try:
        ds = xr.open_dataset(path)
    except (OSError, ValueError) as error:
        sys.exit(f"{path} cannot be opened ({error})")
    if ds.attrs.get("format") != "quoka-bench" or ds.attrs.get("verb") != "prefill":
        sys.exit(f"{path} was not written by quoka-bench prefill")
    if "attend" not in ds:
        sys.exit(f"{path} has no history above the budget: nothing was selected")
    return ds.dropna("case", subset=["attend"])


def thousands(tokens, _=None):
    return f"{tokens / 1024:g}k"


def draw_stages(axes, ds):
    """Stacked bars: what each stage takes of the chunk's time, with the total above."""
    places = range(ds.sizes["case"])
    bottom = 0 * ds["attend"].values
    for (name, (label, colour)), hatch in zip(STAGES.items(), HATCHES):
        share = ds[f"{name}_share"].values
        axes.bar(places, share, bottom=bottom, label=label, color=colour, hatch=hatch, edgecolor="white", width=0.8)
        bottom = bottom + share
    for place, total in zip(places, ds["cached"].values):
        axes.annotate(f"{total:.3g} ms", (place, 1.02), ha="center", fontsize="x-small")
    axes.set_xticks(list(places), [thousands(history) for history in ds["history"].values])
    axes.set_ylim(0, 1.08)
    axes.set_xlabel("history [tokens]")
    axes.set_ylabel("share of the chunk's time")
    axes.legend(fontsize="small", loc="lower left", framealpha=0.9)


def draw_speedup(axes, ds):
    """Speedup over dense against the history, with the bound by operations."""
    history = ds["history"].values
    lines = {
        "bound by operations": ("bound", "--", "0.4", None),
        "unit keys kept": ("speedup", "-", "#0072B2", "o"),
        "unit keys made again": ("speedup_recomputed", "-", "#D55E00", "s"),
        "whole prompt, unit keys kept": ("prompt_speedup", ":", "#009E73", "^"),
    }
    for label, (name, line, colour, marker) in lines.items():
        axes.plot(history, ds[name].values, line, color=colour, marker=marker, label=label)
    axes.axhline(1, color="0.7", linewidth=0.8)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log", base=2)
    axes.xaxis.set_major_formatter(FuncFormatter(thousands))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel("history [tokens]")
    axes.set_ylabel("speedup over dense attention")
    axes.legend(fontsize="small")
    axes.grid(alpha=0.3)


def figure(ds):
    fig, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
    draw_stages(left, ds)
    draw_speedup(right, ds)
    fig.supxlabel(f"{ds.attrs['cpu']}, one thread; heads {ds.attrs['heads']}; {ds.attrs['selection']}; "
                  f"{ds.attrs['layer']}", fontsize="small", color="0.3", x=0.01, ha="left")
    return fig


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("measurements", type=Path, help="file written by quoka-bench prefill --out")
    parser.add_argument("--out", type=Path, help="figure to write (default: beside the file, .png)")
    arguments = parser.parse_args(arguments)
    out = arguments.out or arguments.measurements.with_suffix(".png")
    out.parent.mkdir(parents=True, exist_ok=True)
    figure(open_prefill(arguments.measurements)).savefig(out, dpi=150)
    print(f"wrote {out}")


if __name__ == "__main__":
    main()
