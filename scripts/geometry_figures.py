"""Figures of a geometry file, one function each: an open xarray dataset in, a matplotlib figure out.

Those of one head take the dataset of that head (ds.sel(layer=..., q_head=...) with its kv_head).
A figure that the file cannot give raises NothingToPlot with the reason.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import LogNorm

from result_figures import COLOURS, NothingToPlot, finish

LOW, HIGH, KEY = COLOURS[1], COLOURS[0], "0.6"  # vermilion, blue: told apart with any colour vision


def head_of(ds, layer, q_head):
    """Everything of one query head and its KV head."""
    sizes = ds.sel(layer=layer)
    group_size = int(sizes["n_q_heads"]) // int(sizes["n_kv_heads"])
    return sizes.sel(q_head=q_head, kv_head=q_head // group_size)


def scope(ds):
    """What a mean query is the mean of."""
    size = int(ds.attrs["chunk_size"])
    return "the whole prompt" if size == 0 else f"its chunk of {size} queries"


def source(ds):
    head = f"; layer {int(ds['layer'])}, query head {int(ds['q_head'])}" if ds["layer"].ndim == 0 else ""
    return f"{str(ds['capture'].values)}{head}; mean query over {scope(ds)}"


def sinks_note(ds):
    return f"attention on the first {int(ds.attrs['sink_size'])} positions is left out"


def marks_note(ds):
    return f"kept: by {int(ds.attrs['n_sel_queries'])} queries per chunk and budget {ds.attrs['budget']}"


def sampled(ds):
    return f"n = {ds.sizes['query']} of {int(ds['n_tokens'])} queries"


def attention_by_similarity(ds):
    """Figure 2a: where the queries of each similarity class look."""
    share = ds["class_key_share"].values
    if not np.nansum(share) > 0:
        raise NothingToPlot("no attention outside the sinks in this head")
    fig, (image, lines) = plt.subplots(1, 2, figsize=(10, 4.2), width_ratios=[1.5, 1], layout="constrained")
    edges = np.append(ds["key_bin"].values, int(ds["n_keys"]))
    n_classes = share.shape[0]
    top = np.nanmax(share)
    drawn = image.pcolormesh(edges, np.arange(n_classes + 1), np.clip(share, top * 1e-3, None),
                             cmap="cividis", norm=LogNorm(top * 1e-3, top))
    image.set_yticks(np.arange(n_classes) + 0.5, [f"{c:.2f}" for c in ds["class_similarity"].values])
    image.set_xlabel("key position (tokens)")
    image.set_ylabel("mean cosine with the mean query, by class")
    fig.colorbar(drawn, ax=image, label="mean attention on a range of keys")
    for place, colour, name in ((0, LOW, "lowest"), (n_classes - 1, HIGH, "highest")):
        spread = float(ds["class_effective_share"].values[place])
        lines.plot(ds["top_percent"], 100 * ds["class_top_share"].values[place], color=colour,
                   marker="os"[place > 0], label=f"{name} eighth; a query spreads over {100 * spread:.0f} %")
    lines.plot([1, 50], [1, 50], color="0.5", linestyle=":", label="even attention")
    lines.set_xlabel("best liked keys (%)")
    lines.set_ylabel("share of the class's attention (%)")
    lines.set_ylim(0, 100)
    lines.legend(fontsize="small", frameon=False, loc="lower right")
    n_low, n_high = ds["class_n_queries"].values[[0, -1]]
    return finish(fig, [source(ds), f"n = {n_low:.0f} queries in the lowest and {n_high:.0f} in the highest "
                        f"class; {sinks_note(ds)}"])


def components(ds):
    """Figure 2b: queries and keys on their joint principal components, and each alone."""
    panels = [("joint", "queries and keys"), ("query", "queries alone"), ("key", "keys alone")]
    fig, axes = plt.subplots(1, 3, figsize=(13, 4.4), layout="constrained")
    similarity = ds["query_similarity"].values
    kept = ds["query_kept"].values == 1
    kept_share = ds["key_kept_share"].values
    for panel, (of, title) in zip(axes, panels):
        if of != "query":
            keys = ds["joint_key_coordinates" if of == "joint" else "key_coordinates"].values
            chosen = kept_share > 0.5
            panel.scatter(keys[:, 0], keys[:, 1], s=6, color=KEY, marker="s", linewidths=0,
                          label="key", rasterized=True)
            panel.scatter(keys[chosen, 0], keys[chosen, 1], s=10, color="black", marker="x", linewidths=0.7,
                          label="key that most of its selections kept", rasterized=True)
        if of != "key":
            queries = ds["joint_query_coordinates" if of == "joint" else "query_coordinates"].values
            drawn = panel.scatter(queries[:, 0], queries[:, 1], s=8, c=similarity, cmap="cividis",
                                  vmin=np.quantile(similarity, 0.02), vmax=similarity.max(),
                                  label="query", rasterized=True)
            panel.scatter(queries[kept, 0], queries[kept, 1], s=22, facecolors="none", edgecolors=LOW,
                          linewidths=0.8, label="query that its chunk kept", rasterized=True)
        share = 100 * ds[f"{of}_pca_share"].values
        flags = ["*" if near else "" for near in ds[f"{of}_pca_near_equal"].values]
        panel.set_xlabel(f"component 1{flags[0]} ({share[0]:.0f} % of the variance)")
        panel.set_ylabel(f"component 2{flags[1]} ({share[1]:.0f} %)")
        panel.set_title(title)
    fig.colorbar(drawn, ax=axes[1], label="cosine with the mean query", extend="min")
    handles, labels = axes[0].get_legend_handles_labels()
    axes[2].legend(handles, labels, fontsize="small", frameon=True)
    return finish(fig, [source(ds), f"{sampled(ds)}, {ds.sizes['key']} of {int(ds['n_keys'])} keys; "
                        f"{marks_note(ds)}; *: variance within 1 % of a neighbour's, direction arbitrary"])


def similarity_against_attention(ds):
    """Figure 2c: S = -cos(query, mean query) against the largest attention outside the sinks."""
    s = -ds["query_similarity"].values
    log_attention = ds["query_log_max_attention"].values
    defined = np.isfinite(log_attention)
    if not defined.any():
        raise NothingToPlot("no query sees a key outside the sinks")
    fig, axes = plt.subplots(figsize=(6.4, 4.6), layout="constrained")
    for kept, colour, marker, name in ((0, HIGH, "o", "query"), (1, LOW, "^", "query that its chunk kept")):
        chosen = defined & (ds["query_kept"].values == kept)
        axes.scatter(s[chosen], np.exp(log_attention[chosen]), s=10, alpha=0.6, color=colour, marker=marker,
                     linewidths=0, label=name, rasterized=True)
    axes.set_yscale("log")
    axes.set_xlabel("S = -cos(query, mean query)")
    axes.set_ylabel("largest attention of a query (log axis)")
    axes.legend(fontsize="small", frameon=False)
    axes.set_title(
        f"Pearson {float(ds['similarity_attention_log_pearson']):.2f} (log), "
        f"{float(ds['similarity_attention_pearson']):.2f} (raw); "
        f"Spearman {float(ds['similarity_attention_spearman']):.2f}", fontsize="medium")
    return finish(fig, [source(ds), f"drawn: {sampled(ds)}; correlations over all "
                        f"{int(ds['similarity_attention_n'])} queries; {sinks_note(ds)}"])


def score_tails(ds):
    """Figure 3: deviations of scores from their mean over the kept queries and over the heads."""
    fig, axes = plt.subplots(figsize=(6.8, 4.6), layout="constrained")
    width = 0.02
    centres = width * (ds["deviation_bin"].values - ds.sizes["deviation_bin"] // 2)
    drawn = 0
    for over, colour, marker in (("queries", LOW, "o"), ("heads", HIGH, "s")):
        density = ds[f"score_deviation_over_{over}"].values / width
        spread = float(ds[f"score_spread_over_{over}"])
        if not spread > 0:
            continue
        drawn += 1
        kurtosis = float(ds[f"score_kurtosis_over_{over}"])
        axes.plot(centres, np.where(density > 0, density, np.nan), color=colour, marker=marker, markersize=3,
                  label=f"over {over}: excess kurtosis {kurtosis:.2f}, n = {ds[f'score_n_over_{over}']:.0f}")
        normal = np.exp(-0.5 * (centres / spread) ** 2) / (spread * np.sqrt(2 * np.pi))
        axes.plot(centres, np.where(normal > 1e-4, normal, np.nan), color=colour, linestyle=":",
                  label="normal distribution as wide")
    if not drawn:
        raise NothingToPlot("no chunk has scores to compare (a history, and two queries or heads)")
    axes.set_yscale("log")
    axes.set_xlabel("cosine score minus its mean")
    axes.set_ylabel("density (log axis)")
    axes.legend(fontsize="small", frameon=False)
    return finish(fig, [source(ds), f"scores of the {int(ds.attrs['n_sel_queries'])} kept queries of each chunk "
                        "on sampled candidate keys, before any aggregation"])


def correlation_map(ds):
    """Figure 2c for every layer and head: one cell each."""
    values = ds["similarity_attention_log_pearson"].values
    if not np.isfinite(values).any():
        raise NothingToPlot("no correlation is defined in this file")
    size = (max(5, 0.45 * values.shape[1] + 3), max(2.6, 0.3 * values.shape[0] + 1.6))
    fig, axes = plt.subplots(figsize=size, layout="constrained")
    drawn = axes.imshow(values, cmap="RdBu_r", vmin=-1, vmax=1, aspect="auto")
    axes.set_yticks(range(values.shape[0]), ds["layer"].values)
    axes.set_xlabel("query head")
    axes.set_ylabel("layer")
    fig.colorbar(drawn, ax=axes, label="Pearson's correlation")
    n = ds["similarity_attention_n"]
    return finish(fig, [f"S against ln(largest attention); {source(ds)}; n = {int(n.min())} to {int(n.max())} queries per cell; {sinks_note(ds)}; "
                        f"mean {np.nanmean(values):.2f}, largest {np.nanmax(values):.2f}"])
