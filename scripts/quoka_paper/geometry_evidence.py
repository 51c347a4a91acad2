"""Tests of the paper's geometry figures and of its theorem on geometry files, one file per capture and chunk size.

A test is one number per prompt and layer, with the sign that the paper claims. It votes like a difference: the interval
over prompts lies above 0 (for), below 0 (against), or holds it.
"""

from __future__ import annotations

from typing import Callable, Dict, List, NamedTuple

import numpy as np
import xarray as xr

from quoka_capture.errors import Refused, require

from .claims import Better, Cell, vote_of
from .evidence import opposite, over_layers
from .prompts_statistics import interval

SCOPES = {"chunk": "mean query of a chunk of 128", "whole": "mean query of the prompt"}


class GeometryTest(NamedTuple):
    """`value(ds)` is one number per layer; above 0 is what the paper says."""

    label: str
    value: Callable[[xr.Dataset], np.ndarray]
    scopes: tuple = ("chunk", "whole")


class Measured(NamedTuple):
    label: str
    scope: str
    cell: Cell
    lowest: float  # of single layers, mean over prompts
    highest: float
    exceptions: List[int]


def check_captures(results: xr.Dataset, files: List[xr.Dataset]):
    """Geometry files are kept from run to run; those of other captures of the same name are refused."""
    hashes = dict(zip(results["capture"].values, results["capture_sha256"].values))
    for ds in files:
        name, sha256 = str(ds["capture"].item()), str(ds["capture_sha256"].item())
        require(hashes.get(name) == sha256, Refused, f"the geometry file of {name} is of another capture (SHA-256"
                f" {sha256}) than the sweeps ({hashes.get(name)}); delete the folder geometry, or use another --out")


def heads(ds: xr.Dataset, name: str) -> np.ndarray:
    """[layer]: the mean over heads."""
    axis = "q_head" if "q_head" in ds[name].dims else "kv_head"
    return ds[name].mean(axis).values


def classes(name: str, low_minus_high: int, **select) -> Callable:
    """The lowest eighth by similarity to the mean query minus the highest (times 1 or -1)."""

    def value(ds: xr.Dataset) -> np.ndarray:
        by_class = ds[name].sel(select).mean("q_head")
        return low_minus_high * (by_class.isel(similarity_class=0) - by_class.isel(similarity_class=-1)).values

    return value


def strongest_head_in_first_layer(ds: xr.Dataset) -> np.ndarray:
    """The largest correlation of a head of the first layer, above the paper's; NaN in other layers."""
    found = np.full(ds.sizes["layer"], np.nan)
    found[0] = np.nanmax(ds["similarity_attention_pearson"].isel(layer=0).values) - PAPER_CORRELATION
    return found


PAPER_CORRELATION = 0.737

TESTS: Dict[str, GeometryTest] = {
    "spread": GeometryTest("low-similarity queries spread over more keys: effective share of keys, lowest minus highest"
                           " eighth",
                   classes("class_effective_share", 1)),
    "shared_group": GeometryTest("high-similarity queries share a small group of keys: attention of the class on its 10"
                                 " % best liked keys, highest minus lowest"
                                 " eighth", classes("class_top_share", -1, top_percent=10)),
    "nearer_keys": GeometryTest("queries far from the mean query are nearer to the keys: Spearman's correlation of S"
                                " and cos(q, mean key)", lambda ds: heads(ds, "similarity_key_spearman")),
    "chunk_correlation": GeometryTest("correlation of S and ln of the largest attention, inside chunks",
                              lambda ds: ds["chunk_attention_log_pearson"].mean(["chunk", "q_head"]).values,
                                      ("chunk",)),
    "correlation": GeometryTest("correlation of S and the largest attention (Pearson), over the prompt",
                        lambda ds: heads(ds, "similarity_attention_pearson")),
    "log_correlation": GeometryTest("correlation of S and ln of the largest attention (Pearson), over the prompt",
                            lambda ds: heads(ds, "similarity_attention_log_pearson")),
    "strength": GeometryTest(f"the strongest head of the first layer minus {PAPER_CORRELATION}",
                             strongest_head_in_first_layer),
    "tails": GeometryTest("excess kurtosis over queries minus over heads",
                          lambda ds: heads(ds, "score_kurtosis_over_queries") - heads(ds, "score_kurtosis_over_heads")),
    "upper_tail": GeometryTest("skewness over queries (above 0: the long tail is on the side of the maximum)",
                       lambda ds: heads(ds, "score_skewness_over_queries")),
}


def measure(test: GeometryTest, scope: str, files: List[xr.Dataset]) -> Measured:
    by_layer = np.array([test.value(ds) for ds in files])
    found = interval(over_layers(by_layer))
    layers = opposite(by_layer, files[0]["layer"].values, found.mean)
    with_value = by_layer[:, np.isfinite(by_layer).any(0)].mean(0)
    return Measured(test.label, SCOPES[scope], Cell(found, vote_of(Better(), 1, found)), float(with_value.min()),
                    float(with_value.max()), layers)


def theorem(files: Dict[str, List[xr.Dataset]]) -> Dict[str, float]:
    """Sums and extremes over all files, layers and heads."""
    every = [ds for group in files.values() for ds in group]
    found = {name: float(sum(ds[name].sum() for ds in every)) for name in (
        "theorem_n_triples", "paper_bound_violations", "spherical_bound_violations")}
    found["layers_with_violations"] = sum(
        int(((ds["paper_bound_violations"].sum("q_head") + ds["spherical_bound_violations"].sum("q_head")) > 0).sum())
        for ds in every)
    for scope, group in files.items():
        for name in ("theorem_applies_share", "theorem_key_negative_share", "paper_bound_slack_mean",
                     "spherical_bound_slack_mean"):
            found[f"{name}_{scope}"] = float(np.mean([ds[name].mean() for ds in group]))
    return found
