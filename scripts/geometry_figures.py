"""Figures of a geometry file after the paper's figures 2a, 2b, 2c and 3 and its theorem, one function each.

Each takes the open file, the layer and the query head whose samples it draws, and the columns of a page to fill.
A figure that the file cannot give raises NothingToPlot with the reason.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import LogNorm
from matplotlib.ticker import MaxNLocator

from figure_style import COLOURS, GREY, WIDTHS, NothingToPlot, finish, name_panels
from quoka_paper.prompts_statistics import mean_of_defined

LOW, HIGH, KEY = COLOURS[1], COLOURS[0], "0.6"  # vermilion, blue: told apart with any colour vision


def head_of(ds, layer, q_head):
    """Everything of one query head and its KV head."""
    sizes = ds.sel(layer=layer)
    group_size = int(sizes["n_q_heads"]) // int(sizes["n_kv_heads"])
    return sizes.sel(q_head=q_head, kv_head=q_head // group_size)


def typical_head(ds, layer, head):
    """(layer, head) to draw: as asked for, else the one with the median correlation among what is left.

    None if no head that was asked for has a correlation.
    """
    left = ds["similarity_attention_log_pearson"]
    left = left.sel(layer=[layer]) if layer is not None else left
    left = left.sel(q_head=[head]) if head is not None else left
    values = left.values.ravel()
    defined = np.flatnonzero(np.isfinite(values))
    if not len(defined):
        return None
    ranked = defined[np.argsort(values[defined], kind="stable")]
    row, column = divmod(int(ranked[(len(ranked) - 1) // 2]), left.sizes["q_head"])
    return int(left["layer"][row]), int(left["q_head"][column])


def panels(n, columns, height):
    """n panels beside each other, or below each other in one column."""
    shape = (1, n) if columns == 2 else (n, 1)
    fig, axes = plt.subplots(*shape, figsize=(WIDTHS[columns], height * shape[0]))
    return fig, list(np.atleast_1d(axes))


def source(ds, one=None):
    """Where the data are from, and what a mean query is the mean of."""
    head = f", layer {int(one['layer'])}, query head {int(one['q_head'])}" if one is not None else ""
    size = int(ds.attrs["chunk_size"])
    scope = "the whole prompt" if size == 0 else f"its chunk of {size} queries"
    return f"{str(ds['capture'].values)} (1 prompt){head}; mean query of {scope}"


def all_heads(ds):
    return f"{ds.sizes['layer']} layers, {ds.sizes['q_head']} query heads each"


def sinks_note(ds):
    return f"attention on the first {int(ds.attrs['sink_size'])} positions is left out"


def sampled(one):
    return f"n = {one.sizes['query']:,} of {int(one['n_tokens']):,} queries"


def kept_note(ds):
    return f"kept: by {int(ds.attrs['n_sel_queries'])} queries per chunk and budget {ds.attrs['budget']}"


def dots_by_layer(axes, ds, name, colour, marker, label, shift=0.0, scale=1):
    """One dot per head at each layer, and a line through the means."""
    values = scale * ds[name].values
    n_layers, n_heads = values.shape
    spread = 0.25 * ((np.arange(n_heads) + 0.5) / n_heads - 0.5)
    x = np.arange(n_layers)[:, None] + shift
    axes.plot((x + spread).ravel(), values.ravel(), marker, color=colour, markersize=2.5, alpha=0.5)
    axes.plot(x[:, 0], mean_of_defined(values, (1,)), color=colour, marker=marker, markersize=5, label=label)
    axes.set_xticks(range(n_layers), [str(layer) for layer in ds["layer"].values])
    axes.set_xlim(-0.5, n_layers - 0.5)
    axes.set_xlabel("layer")


def similarity_attention(ds, layer, head, columns):
    """Figure 2c: S = -cos(query, mean query) against the largest attention outside the sinks; correlations."""
    one = head_of(ds, layer, head)
    log_attention = one["query_log_max_attention"].values
    defined = np.isfinite(log_attention)
    if not defined.any():
        raise NothingToPlot("no query sees a key outside the sinks")
    fig, (scatter, everywhere) = panels(2, columns, 2.3)
    for kept, colour, marker, name in ((0, HIGH, "o", "query"), (1, LOW, "^", "query that its chunk kept")):
        chosen = defined & (one["query_kept"].values == kept)
        scatter.scatter(-one["query_similarity"].values[chosen], np.exp(log_attention[chosen]), s=6, alpha=0.6,
                        color=colour, marker=marker, linewidths=0, label=name, rasterized=True)
    scatter.set_yscale("log")
    scatter.set_xlabel("S = -cos(query, mean query)")
    scatter.set_ylabel("largest attention of a query")
    everywhere.axhline(0, color="0.7", linewidth=0.6)
    dots_by_layer(everywhere, ds, "similarity_attention_log_pearson", HIGH, "o", "Pearson (log attention)", -0.15)
    dots_by_layer(everywhere, ds, "similarity_attention_spearman", LOW, "s", "Spearman", 0.15)
    everywhere.set_ylabel("correlation with S")
    everywhere.set_ylim(-1, 1)
    name_panels([scatter, everywhere], [f"layer {layer}, head {head}", "every head (small) and their mean"])
    (h1, l1), (h2, l2) = scatter.get_legend_handles_labels(), everywhere.get_legend_handles_labels()
    log, raw, rank = (float(one[f"similarity_attention_{kind}"]) for kind in ("log_pearson", "pearson", "spearman"))
    return finish(fig, [
        f"(a) {source(ds, one)}; {sampled(one)}; Pearson {log:.2f} (log), {raw:.2f} (raw), Spearman {rank:.2f} over "
        f"all {int(one['similarity_attention_n']):,} queries; {sinks_note(ds)}",
        f"(b) {all_heads(ds)}; n = {counts(ds['similarity_attention_n'])} queries per head",
    ], (h1 + h2, l1 + l2))


def counts(data):
    low, high = int(data.min()), int(data.max())
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def attention_classes(ds, layer, head, columns):
    """Figure 2a: where the queries of each similarity class look."""
    one = head_of(ds, layer, head)
    share = one["class_key_share"].values
    if not np.nansum(share) > 0:
        raise NothingToPlot("no attention outside the sinks in this head")
    fig, (image, lines) = panels(2, columns, 2.3)
    edges = np.append(one["key_bin"].values, int(one["n_keys"]))
    n_classes, top = share.shape[0], np.nanmax(share)
    drawn = image.pcolormesh(edges, np.arange(n_classes + 1), np.clip(share, top * 1e-3, None), cmap="cividis",
                             norm=LogNorm(top * 1e-3, top), rasterized=True)
    image.set_yticks(np.arange(n_classes) + 0.5, [f"{c:.2f}" for c in one["class_similarity"].values])
    image.set_xlabel("key position (tokens)")
    image.set_ylabel("cos(query, mean query), class mean")
    fig.colorbar(drawn, ax=image, label="mean attention on a range")
    for place, colour, name in ((0, LOW, "lowest"), (n_classes - 1, HIGH, "highest")):
        spread = 100 * float(one["class_effective_share"].values[place])
        lines.plot(one["top_percent"], 100 * one["class_top_share"].values[place], color=colour, markersize=4,
                   marker="os"[place > 0], label=f"{name} eighth (a query spreads over {spread:.0f} % of its keys)")
    lines.plot([1, 50], [1, 50], color=GREY, linestyle=":", label="even attention")
    lines.set_xlabel("most attended keys (%)")
    lines.set_ylabel("share of the class's attention (%)")
    lines.set_ylim(0, 100)
    name_panels([image, lines], ["where each class looks", "how concentrated"])
    n_low, n_high = one["class_n_queries"].values[[0, -1]]
    return finish(fig, [f"{source(ds, one)}; n = {n_low:.0f} queries in the lowest and {n_high:.0f} in the highest of "
                        f"{n_classes} classes; {sinks_note(ds)}"], lines.get_legend_handles_labels())


def components(ds, layer, head, columns):
    """Figure 2b: queries and keys on their joint principal components, and each alone."""
    one = head_of(ds, layer, head)
    titles = {"joint": "queries and keys", "query": "queries alone", "key": "keys alone"}
    fig, three = panels(3, columns, 2.2)
    similarity = one["query_similarity"].values
    kept = one["query_kept"].values == 1
    chosen = one["key_kept_share"].values > 0.5
    for panel, of in zip(three, titles):
        if of != "query":
            keys = one["joint_key_coordinates" if of == "joint" else "key_coordinates"].values
            panel.scatter(keys[:, 0], keys[:, 1], s=3, color=KEY, marker="s", linewidths=0, label="key",
                          rasterized=True)
            panel.scatter(keys[chosen, 0], keys[chosen, 1], s=6, color="black", marker="x", linewidths=0.5,
                          label="key that most of its selections kept", rasterized=True)
        if of != "key":
            queries = one["joint_query_coordinates" if of == "joint" else "query_coordinates"].values
            drawn = panel.scatter(queries[:, 0], queries[:, 1], s=4, c=similarity, cmap="cividis", linewidths=0,
                                  vmin=np.quantile(similarity, 0.02), vmax=similarity.max(), label="query",
                                  rasterized=True)
            panel.scatter(queries[kept, 0], queries[kept, 1], s=11, facecolors="none", edgecolors=LOW,
                          linewidths=0.6, label="query that its chunk kept", rasterized=True)
        share = 100 * one[f"{of}_pca_share"].values
        flags = ["*" if near else "" for near in one[f"{of}_pca_near_equal"].values]
        panel.set_xlabel(f"component 1{flags[0]} ({share[0]:.0f} % of variance)")
        panel.set_ylabel(f"component 2{flags[1]} ({share[1]:.0f} %)")
        panel.xaxis.set_major_locator(MaxNLocator(5))
    fig.colorbar(drawn, ax=three[1], label="cos(query, mean query)", extend="min")
    name_panels(three, titles.values())
    flagged = any(one[f"{of}_pca_near_equal"].values[:2].any() for of in titles)
    return finish(fig, [f"{source(ds, one)}; {sampled(one)}, {one.sizes['key']:,} of {int(one['n_keys']):,} keys; "
                        f"{kept_note(ds)}",
                        "*: variance within 1 % of a neighbour's, direction arbitrary" if flagged else ""],
                  three[0].get_legend_handles_labels())


def tails(ds, layer, head, columns):
    """Figure 3: deviations of scores from their mean over the kept queries and over the heads; excess kurtosis."""
    one = head_of(ds, layer, head)
    if not any(float(one[f"score_spread_over_{over}"]) > 0 for over in ("queries", "heads")):
        raise NothingToPlot("no chunk has scores to compare (a history, and two queries or heads)")
    fig, (density, everywhere) = panels(2, columns, 2.3)
    width = 0.02
    centres = width * (one["deviation_bin"].values - one.sizes["deviation_bin"] // 2)
    for over, colour, marker, shift in (("queries", LOW, "o", -0.15), ("heads", HIGH, "s", 0.15)):
        spread = float(one[f"score_spread_over_{over}"])
        if not spread > 0:
            continue
        found = one[f"score_deviation_over_{over}"].values / width
        kurtosis = float(one[f"score_kurtosis_over_{over}"])
        density.plot(centres, np.where(found > 0, found, np.nan), color=colour, marker=marker, markersize=2.5,
                     linewidth=0.6, label=f"over {over} (excess kurtosis {kurtosis:.2f})")
        normal = np.exp(-0.5 * (centres / spread) ** 2) / (spread * np.sqrt(2 * np.pi))
        density.plot(centres, np.where(normal > 1e-4, normal, np.nan), color=colour, linestyle=":",
                     label="normal distribution of that width")
        dots_by_layer(everywhere, ds, f"score_kurtosis_over_{over}", colour, marker, None, shift)
    density.set_yscale("log")
    density.set_xlabel("cosine score minus its mean")
    density.set_ylabel("density")
    everywhere.axhline(0, color="0.7", linewidth=0.6)
    everywhere.set_ylabel("excess kurtosis (0: normal)")
    name_panels([density, everywhere], [f"layer {layer}, head {head}", "every head (small) and their mean"])
    n = ", ".join(f"{one[f'score_n_over_{over}']:,.0f} over {over}" for over in ("queries", "heads"))
    return finish(fig, [f"{source(ds, one)}; n = {n}: scores of the {int(ds.attrs['n_sel_queries'])} kept queries of "
                        "each chunk on sampled candidate keys, before any aggregation; the outermost bins take what is "
                        "beyond",
                        f"(b) {all_heads(ds)}; over heads: one value per KV head"], density.get_legend_handles_labels())


def theorem(ds, layer, head, columns):
    """Theorem 1: how often its condition holds, and how far the bounds are from what they bound."""
    if not np.isfinite(ds["paper_bound_slack_mean"].values).any():
        raise NothingToPlot("no pair of a query and a key was measured")
    fig, (share, slack) = panels(2, columns, 2.1)
    dots_by_layer(share, ds, "theorem_applies_share", COLOURS[2], "D", None, scale=100)
    share.set_yscale("log")
    share.set_ylabel("pairs that fulfil the condition (%)")
    slack.axhline(0, color="0.7", linewidth=0.6)
    dots_by_layer(slack, ds, "paper_bound_slack_applies", HIGH, "o", "paper's bound, mean where it applies", -0.25)
    dots_by_layer(slack, ds, "paper_bound_slack_min", LOW, "s", "paper's bound, smallest of all pairs")
    dots_by_layer(slack, ds, "spherical_bound_slack_min", "black", "^", "spherical bound, smallest of all pairs", 0.25)
    slack.set_ylabel("bound - cos(query, mean query)")
    name_panels([share, slack], ["how often it applies", "how tight it is (below 0: violated)"])
    never = int((ds["theorem_applies_share"] == 0).sum())
    violations = [int(ds[f"{bound}_bound_violations"].sum()) for bound in ("paper", "spherical")]
    return finish(fig, [f"{source(ds)}; {all_heads(ds)} (small) and their mean; n = {counts(ds['theorem_n_triples'])} "
                        "pairs of a query and a key that it sees per head; violations: "
                        f"{violations[0]} of the paper's bound, {violations[1]} of the spherical one",
                        f"{never} heads have no pair that fulfils the condition and are not in (a)" if never else "",
                        ], slack.get_legend_handles_labels())


FIGURES = {
    "similarity_attention": similarity_attention,
    "attention_classes": attention_classes,
    "components": components,
    "tails": tails,
    "theorem": theorem,
}
