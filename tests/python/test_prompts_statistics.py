"""Means per prompt and their intervals, against loops and against answers known beforehand."""

import math
import random
import statistics

import numpy as np
import pytest
import xarray as xr

from conftest import ROOT  # noqa: F401 - puts scripts/ on the path
from quoka_paper.prompts_statistics import Interval, difference, interval, per_prompt, per_prompt_and_layer, positions

ERROR = "out_rel_l2_mean"


@pytest.fixture(scope="module")
def ds():
    """4 configurations, 5 prompts, 3 layers, 4 heads; prompt 3 has no value, prompt 1 lacks a layer."""
    values = np.random.default_rng(5).uniform(0.1, 0.9, (4, 5, 3, 4)).astype(np.float32)
    values[:, 3] = np.nan
    values[:, 1, 2] = np.nan
    values[0, 0, 0, 1] = np.nan
    coordinates = {
        "selector": ("config", ["quoka", "quoka", "random", "random"]),
        "budget": ("config", ["256", "12.5%", "256", "256"]),
        "n_sel_queries": ("config", [16.0, 16.0, np.nan, np.nan]),
        "seed": ("config", [np.nan, np.nan, 0.0, 1.0]),
    }
    return xr.Dataset({ERROR: (("config", "capture", "layer", "q_head"), values)}, coordinates)


def by_hand(values):
    """fsum over a nested list without NaN: shares no code with the module."""
    kept = [float(value) for value in np.ravel(values) if not math.isnan(value)]
    return math.fsum(kept) / len(kept) if kept else math.nan


def test_a_prompt_is_the_mean_of_its_layers_and_heads(ds):
    values = ds[ERROR].values[0]
    wanted = [by_hand(values[capture]) for capture in range(5)]
    np.testing.assert_allclose(per_prompt(ds, ERROR, 0), wanted, rtol=1e-14)
    assert np.isnan(wanted).tolist() == [False, False, False, True, False]


def test_layers_are_kept_apart_where_asked(ds):
    values = ds[ERROR].values[0]
    wanted = [[by_hand(values[capture, layer]) for layer in range(3)] for capture in range(5)]
    found = per_prompt_and_layer(ds, ERROR, 0)
    np.testing.assert_allclose(found, wanted, rtol=1e-14)
    assert np.isnan(found[1, 2]) and np.isnan(found[3]).all() and np.isfinite(found[0]).all()


def test_the_order_of_dimensions_does_not_matter(ds):
    turned = ds.transpose("q_head", "layer", "capture", "config")
    np.testing.assert_array_equal(per_prompt(turned, ERROR, 1), per_prompt(ds, ERROR, 1))


def test_values_of_parameters_name_a_configuration(ds):
    assert positions(ds, {"selector": "quoka", "budget": 256}) == [0]
    assert positions(ds, {"budget": "12.5%", "n_sel_queries": 16}) == [1]


def test_draws_of_a_random_choice_are_averaged(ds):
    both = per_prompt(ds, ERROR, {"selector": "random"})
    wanted = [by_hand(ds[ERROR].values[2:, capture]) for capture in range(5)]
    np.testing.assert_allclose(both, wanted, rtol=1e-14)


@pytest.mark.parametrize(
    ("selection", "message"),
    [
        ({"selector": "quoka"}, "selector=quoka names 2 configurations .they differ in budget."),
        ({"selector": "oracle"}, "no configuration has selector=oracle"),
        ({"rule": "x"}, "rule is not a parameter"),
    ],
)
def test_selections_that_name_no_or_several_configurations_are_refused(ds, selection, message):
    with pytest.raises(ValueError, match=message):
        per_prompt(ds, ERROR, selection)


def test_the_interval_is_that_of_an_independent_bootstrap():
    values = [0.3, 0.1, 0.45, 0.2, 0.05, 0.38, 0.27, 0.9]
    draw = random.Random(11)
    means = sorted(statistics.fmean(draw.choices(values, k=8)) for _ in range(200_000))
    found = interval(values)
    assert found.mean == pytest.approx(statistics.fmean(values), rel=1e-14) and found.n == 8
    # Standard error of a 2.5 % quantile from 10,000 draws: sqrt(.025 * .975 / 10,000) / density < 0.003 here
    # (the density of the means at the quantile is above 0.6); four of them.
    assert found.low == pytest.approx(means[5_000], abs=0.012)
    assert found.high == pytest.approx(means[195_000], abs=0.012)


def test_differences_are_paired():
    """Prompts that differ a lot, and a difference of exactly 0.25 on each: the interval has no width."""
    base = np.array([0.5, 8.0, 1.0, 64.0])
    assert difference(base + 0.25, base) == Interval(0.25, 0.25, 0.25, 4)


def test_the_mean_of_two_values_is_drawn_as_the_binomial_says():
    """Half zeros, half ones: a mean is binomial(20, 1/2) / 20, whose 2.5 % and 97.5 % quantiles are 6 and 14."""
    found = interval(np.tile([0.0, 1.0], 10))
    assert (found.low, found.high) == (0.3, 0.7)


def test_prompts_without_a_value_do_not_count():
    a = np.array([1.0, np.nan, 3.0, 4.0, 5.0])
    b = np.array([0.0, 1.0, np.nan, 0.0, 0.0])
    assert difference(a, b) == interval([1.0, 4.0, 5.0])
    assert difference(a, b).n == 3 and difference(a, b).mean == pytest.approx(10 / 3, rel=1e-14)


@pytest.mark.parametrize(("values", "mean"), [([0.5], 0.5), ([0.5, 1.5], 1.0), ([], math.nan), ([math.nan], math.nan)])
def test_too_few_prompts_have_no_interval(values, mean):
    found = interval(values)
    np.testing.assert_equal(tuple(found), (mean, math.nan, math.nan, len([v for v in values if v == v])))
    assert "too few for an interval" in str(found) and found.side == 0


def test_the_seed_decides_the_draws():
    values = np.random.default_rng(0).normal(size=12)
    assert interval(values) == interval(values) == interval(values, seed=0)
    assert interval(values, seed=1) != interval(values)


def test_the_side_of_an_interval():
    assert [Interval(1, *ends, 9).side for ends in [(0.1, 2), (-2, -0.1), (-1, 1), (0, 1)]] == [1, -1, 0, 0]


def test_prompts_must_be_the_same():
    with pytest.raises(ValueError, match="not of the same prompts"):
        difference([1.0, 2.0], [1.0, 2.0, 3.0])
