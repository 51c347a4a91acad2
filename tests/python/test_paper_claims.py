"""Verdicts on made-up differences, the table of claims against its configurations, and what files can lack."""

import ast
import re

import numpy as np
import pytest
import xarray as xr

from conftest import ROOT, sweep
from quoka_capture.errors import Refused, UsageError
from quoka_paper import evidence, geometry_evidence, page
from quoka_paper.claims import METRICS, MIXED, NOT_SUPPORTED, NOT_TESTABLE, SUPPORTED, Better, Within, verdict, vote_of
from quoka_paper.judge import judge
from quoka_paper.prompts_statistics import Interval, difference
from reproduce_paper import CLAIMS, QUICK

CONFIGS = {path.stem: path for path in (ROOT / "configs/paper").glob("*.toml")}
WITH_CONFIG = [claim for claim in CLAIMS if claim.config]


@pytest.mark.parametrize("low,high,sign,vote", [
    (0.1, 0.2, 1, 1), (0.1, 0.2, -1, -1), (-0.2, -0.1, -1, 1), (-0.2, -0.1, 1, -1), (-0.1, 0.2, 1, 0), (0.0, 0.2, 1, 0)])
def test_a_difference_votes_by_the_side_of_its_interval(low, high, sign, vote):
    assert vote_of(Better(), sign, Interval((low + high) / 2, low, high, 8)) == vote


@pytest.mark.parametrize("low,high,sign,two_sided,vote", [
    (-0.02, 0.5, 1, False, 1), (-0.02, 0.5, 1, True, 0), (-0.2, -0.1, 1, False, -1), (-0.04, -0.02, 1, False, 0),
    (-0.5, 0.02, -1, False, 1), (0.1, 0.2, -1, False, -1), (-0.02, 0.02, -1, True, 1), (-0.5, -0.1, -1, True, -1)])
def test_a_margin_counts_losses_and_both_directions_where_asked(low, high, sign, two_sided, vote):
    rule = Within(0.03, ("error",), two_sided)
    assert vote_of(rule, sign, Interval((low + high) / 2, low, high, 8)) == vote


def test_too_few_prompts_do_not_vote():
    assert vote_of(Better(), 1, difference([0.5, 0.6], [0.1, 0.1])) is None


@pytest.mark.parametrize("votes,better,within", [
    ([1, 0], SUPPORTED, MIXED), ([1, 1, None], SUPPORTED, SUPPORTED), ([1, -1], MIXED, MIXED),
    ([-1, 0], NOT_SUPPORTED, NOT_SUPPORTED), ([0, 0], NOT_SUPPORTED, MIXED), ([None], NOT_TESTABLE, NOT_TESTABLE)])
def test_verdicts_follow_from_votes(votes, better, within):
    assert verdict(Better(), votes) == better
    assert verdict(Within(0.03, ("error",)), votes) == within


def made_up(better_by):
    """A file of 6 prompts, 2 layers, 2 heads, one budget: `max` has an error that is lower by better_by, by layer."""
    noise = np.random.default_rng(0).normal(0, 0.001, (2, 6, 2, 2))
    arrays = {metric.variable: 0.5 + noise for metric in METRICS.values()}
    arrays["out_rel_l2_mean"] = noise + np.array([0.5, 0.5])[:, None, None, None]
    arrays["out_rel_l2_mean"][0] -= np.asarray(better_by)[:, None]
    arrays.update(oracle_ratio=0.5 + noise, floor_out_rel_l2=1e-7 + 0 * noise)
    axes = ("config", "capture", "layer", "q_head")
    texts = {"selector": ["quoka", "quoka"], "budget": ["256", "256"], "query_aggregation": ["max", "mean"]}
    return xr.Dataset({name: (axes, array) for name, array in arrays.items()} | {"n_tokens": 4096.0},
                      {name: ("config", values) for name, values in texts.items()} | {"layer": [3, 7]})


def table_10():
    return next(claim for claim in CLAIMS if claim.key == "table_10")


def test_a_claim_is_judged_by_its_file_and_names_the_layer_that_goes_the_other_way():
    found = judge(table_10(), lambda name: made_up([0.2, -0.05]), {})
    cell = found.lines[0][0].cells["error"]
    assert cell.vote == 1 and cell.interval.mean == pytest.approx(-0.075, abs=0.002) and cell.interval.n == 6
    assert found.exceptions == [{"error": [7]}]
    assert (found.verdict, found.sides["needle"]) == (SUPPORTED, NOT_SUPPORTED)
    assert found.values["max (the paper)"]["error"] == pytest.approx(0.425, abs=0.002)


def test_the_same_claim_fails_where_the_numbers_say_so():
    assert judge(table_10(), lambda name: made_up([-0.2, -0.2]), {}).verdict == NOT_SUPPORTED


def test_a_budget_shift_pairs_each_budget_with_the_larger_one():
    ds = xr.Dataset(coords={"selector": ("config", ["quoka"] * 4), "budget": ("config", ["128", "256", "128", "384"]),
                            "candidates": ("config", ["history", "history", "cache", "cache"])})
    comparison = next(claim for claim in CLAIMS if claim.key == "candidates").comparisons[0]
    pairs = evidence.pairs(ds, comparison)
    assert {budget: other["budget"] for budget, (_, other) in pairs.items()} == {"256": "384"}


def test_every_claim_has_its_configuration_and_every_configuration_a_claim():
    assert {claim.config for claim in WITH_CONFIG} == set(CONFIGS)
    assert len({claim.key for claim in CLAIMS}) == len(CLAIMS)
    assert set(QUICK) <= set(CONFIGS)
    for claim in CLAIMS:
        assert claim.reason or claim.comparisons or claim.geometry, f"{claim.key} has neither evidence nor a reason"
        assert set(claim.geometry) <= {"theorem", *geometry_evidence.TESTS}


@pytest.mark.parametrize("name", sorted(CONFIGS))
def test_each_configuration_has_ceiling_and_floor_and_counts_the_same_rows(name):
    # Strings, numbers and lists of TOML are Python's too, and Python 3.10 has no reader for TOML.
    config = {key: ast.literal_eval(value) for key, value in re.findall(
        r"^(\w+) = (\[[^]]*\]|.+)$", CONFIGS[name].read_text(), re.MULTILINE)}
    assert {"quoka", "oracle", "random"} <= set(config["selector"])
    assert config["out"] == f"results/paper/{name}.h5"
    sizes = [budget for budget in config["budget"] if isinstance(budget, int)]
    assert config["min_history"] > max(sizes, default=0)
    assert all(config["min_history"] % size == 0 for size in config.get("chunk_size", [1]))


@pytest.fixture(scope="module")
def short_capture(tmp_path_factory):
    """The capture that the program of capture-format.md writes: too short for these sweeps, so they cost nothing."""
    folder = tmp_path_factory.mktemp("short")
    (block,) = re.findall(r"```python\n(.*?)```", (ROOT / "docs/capture-format.md").read_text(), re.DOTALL)
    exec(compile(block.replace("my_capture.h5", str(folder / "my_capture.h5")), "capture-format.md", "exec"), {})
    return folder / "my_capture.h5"


@pytest.mark.parametrize("name", sorted(CONFIGS))
def test_the_file_of_each_configuration_holds_what_its_claims_compare(name, short_capture, tmp_path):
    out = tmp_path / f"{name}.h5"
    sweep("run", CONFIGS[name], "--capture", short_capture, "--out", out, "--quiet")
    ds = evidence.open_results(out)
    for claim in (claim for claim in WITH_CONFIG if claim.config == name):
        found = judge(claim, lambda _: ds, {})
        assert list(found.values) == list(claim.rows)
        assert len(found.lines) == len(claim.comparisons)
        assert found.verdict == NOT_TESTABLE  # nothing to measure in a prompt this short


def test_a_missing_or_foreign_file_is_named(tmp_path):
    with pytest.raises(UsageError, match="gone.h5 does not exist .*run the step again"):
        evidence.open_results(tmp_path / "gone.h5")
    (tmp_path / "text.h5").write_text("no HDF5")
    with pytest.raises(Refused, match="text.h5 cannot be opened"):
        evidence.open_results(tmp_path / "text.h5")


def test_a_file_without_the_claimed_configuration_is_refused():
    with pytest.raises(Refused, match="does not fit the claim .*query_aggregation"):
        evidence.values(made_up([0, 0]), {"query_aggregation": "median"}, evidence.VARIABLES)


def test_geometry_counts_prompts_and_names_layers():
    values = np.random.default_rng(1).normal([0.4, -0.1], 0.01, (5, 2))
    files = [xr.Dataset({"similarity_key_spearman": (("layer", "q_head"), np.stack([row, row], 1))}, {"layer": [0, 9]})
             for row in values]
    found = geometry_evidence.measure(geometry_evidence.TESTS["nearer_keys"], "chunk", files)
    assert found.cell.vote == 1 and found.cell.interval.mean == pytest.approx(values.mean())
    assert found.exceptions == [9] and found.lowest == pytest.approx(values[:, 1].mean())


def test_geometry_of_another_capture_is_refused():
    results = xr.Dataset({"capture_sha256": ("capture", ["aa"])}, {"capture": ["needles_00"]})
    own, other = (xr.Dataset({"capture": "needles_00", "capture_sha256": sha}) for sha in ("aa", "bb"))
    geometry_evidence.check_captures(results, [own])
    with pytest.raises(Refused, match="needles_00 is of another capture .SHA-256 bb. than the sweeps .aa."):
        geometry_evidence.check_captures(results, [own, other])


def test_the_page_has_tables_and_anchors():
    text = page.page("# Title & more\n\n## The query rule, both sides\n\n| a | b |\n| --- | --- |\n| 1 | 2 |\n")
    assert "<title>Title &amp; more</title>" in text and "<td>2</td>" in text
    assert 'id="the-query-rule-both-sides"' in text
