"""A results file as its readers see it: xarray with both engines, pandas, h5py, the netCDF tools."""

import shutil
import subprocess

import h5py
import numpy as np
import pytest
import xarray as xr

from conftest import sweep

N_CONFIGS = 6  # two budgets times (two query rules of quoka, and the oracle)
PARAMETERS = [
    "selector", "chunk_size", "chunk_offset", "budget", "n_sel_queries", "query_rule", "query_scope",
    "query_mean", "score", "pairing", "head_aggregation", "query_aggregation", "candidates",
    "keep_first", "keep_recent", "seed",
]  # fmt: skip
METRIC_DIMS = ("config", "capture", "layer", "q_head")


@pytest.fixture(scope="module")
def ds(results_path):
    with xr.open_dataset(results_path) as opened:
        yield opened.load()


def metrics(dataset):
    return [name for name in dataset.data_vars if dataset[name].dims == METRIC_DIMS]


def test_sizes_and_labels(ds):
    assert dict(ds.sizes) == {"config": N_CONFIGS, "capture": 1, "layer": 2, "q_head": 9}
    assert ds["capture"].values.tolist() == ["smollm2-135m_needles_2k"]
    assert ds["layer"].values.tolist() == [18, 24]
    assert ds["capture_verified"].values.tolist() == ["passed"]  # the note beside the embedded capture
    assert ds["q_head"].values.tolist() == list(range(9))
    assert all(len(label) == 10 and int(label, 16) >= 0 for label in ds["config"].values)


@pytest.mark.parametrize("engine", ["h5netcdf", "netcdf4"])
def test_opens_with_no_options_in_both_engines(results_path, ds, engine):
    with xr.open_dataset(results_path, engine=engine) as other:
        assert set(other.variables) == set(ds.variables)
        for name in ds.variables:
            np.testing.assert_array_equal(other[name].values, ds[name].values, err_msg=name)
            assert name in other.coords or name not in ds.coords


def test_parameters_are_coordinates_of_every_metric(ds):
    assert len(metrics(ds)) > 70
    for name in metrics(ds):
        assert ds[name].dtype == np.float32
        for parameter in [*PARAMETERS, "budget_keys", "budget_percent", "layer_kind"]:
            assert parameter in ds[name].coords, f"{name} lacks {parameter}"


def test_folded_parameters_are_empty_or_nan(ds):
    oracle = ds.where(ds.selector == "oracle", drop=True)
    assert set(oracle.query_rule.values) == {""}
    assert np.isnan(oracle.n_sel_queries.values).all()
    assert np.isnan(ds.seed.values).all()
    assert sorted(ds.budget_keys.values.tolist()) == [128, 128, 128, 256, 256, 256]
    assert np.isnan(ds.budget_percent.values).all()


def test_to_dataframe_is_the_tidy_table(ds):
    table = ds.to_dataframe().reset_index()
    assert len(table) == N_CONFIGS * 2 * 9
    assert set(PARAMETERS) <= set(table.columns)
    assert not table.duplicated(list(METRIC_DIMS)).any()
    row = table[(table.config == ds.config.values[3]) & (table.layer == 24) & (table.q_head == 5)]
    value = ds["out_rel_l2_p99"].sel(config=ds.config.values[3], layer=24, q_head=5).item()
    assert row["out_rel_l2_p99"].item() == value


def test_sel_and_groupby_work(ds):
    one = ds["mass_recall_mean"].sel(layer=18, q_head=2, capture="smollm2-135m_needles_2k")
    assert one.dims == ("config",)
    by_rule = ds["out_rel_l2_mean"].groupby("query_rule").mean()
    for rule in ["lowest_cosine", "stride", ""]:
        own = ds["out_rel_l2_mean"].values[ds.query_rule.values == rule]
        np.testing.assert_allclose(by_rule.sel(query_rule=rule).mean().item(), own.mean(), rtol=1e-5)
    assert set(ds.groupby("layer_kind").mean().layer_kind.values) == {"full"}


def test_every_metric_says_what_it_is(ds):
    for name in metrics(ds):
        attributes = ds[name].attrs
        assert attributes["long_name"] and attributes["units"] == "1", name
        assert attributes["better"] in ("higher", "lower", "neither"), name
        if not name.startswith("n_") and not name.endswith("n_valid"):
            assert attributes["comment"], name
    assert ds["sink_mass"].dims == ("capture", "layer", "q_head")
    assert ds.attrs["format"] == "quoka-results" and int(ds.attrs["format_version"]) == 1
    assert ds.attrs["Conventions"] == "CF-1.8"


def test_h5py_reads_the_same_numbers(results_path, ds):
    with h5py.File(results_path) as file:
        for name in metrics(ds):
            np.testing.assert_array_equal(file[name][...], ds[name].values, err_msg=name)
        assert file["selector"].asstr()[...].tolist() == ds.selector.values.tolist()


def test_every_dataset_obeys_the_netcdf_rules(results_path):
    """No type that netCDF drops or crashes on; a dimension scale on every axis."""
    seen = []

    def visit(name, item):
        if not isinstance(item, h5py.Dataset):
            return
        seen.append(name)
        string = h5py.check_string_dtype(item.dtype)
        assert string is None or string.length is None, f"{name} is a fixed-length string"
        assert string is not None or item.dtype.kind in "fiu", f"{name} has type {item.dtype}"
        assert all(len(axis) == 1 or item.is_scale for axis in item.dims), f"{name} lacks a scale"

    with h5py.File(results_path) as file:
        file.visititems(visit)
    assert len(seen) > 100


@pytest.mark.parametrize("command", [["ncdump", "-h"], ["h5dump", "-H"]])
def test_command_line_tools_print_the_header(results_path, command):
    assert shutil.which(command[0]), f"{command[0]} is not installed (scripts/setup.sh installs it)"
    done = subprocess.run([*command, results_path], capture_output=True, text=True, check=True)
    assert "out_rel_l2_mean" in done.stdout and "provenance" in done.stdout


def test_chunk_means_make_up_the_cell_mean(results_path, ds):
    """Rows are averaged, not chunks: the cell's mean is the mean of its chunks' weighted by rows."""
    with xr.open_dataset(results_path, group="by_chunk") as chunks:
        active = chunks["state"] == 0
        rows = (chunks["chunk_end"] - chunks["chunk_begin"]).where(active)
        np.testing.assert_array_equal(rows.sum("chunk"), ds["n_rows_active"])
        for metric in ["mass_recall", "out_rel_l2", "kl"]:
            mean = (chunks[f"{metric}_mean"] * rows).sum("chunk") / rows.sum("chunk")
            # Both are float32 roundings of float64 means.
            np.testing.assert_allclose(mean, ds[f"{metric}_mean"], rtol=1e-5, err_msg=metric)


def test_selections_hold_the_kept_keys(results_path, ds):
    with xr.open_dataset(results_path, group="selections") as kept:
        assert kept.sizes["selection"] > 0
        np.testing.assert_array_equal(kept["offset"][1:], np.cumsum(kept["count"])[:-1])
        assert int(kept["count"].sum()) == kept.sizes["key"]
        keys = kept["key_indices"].values
        for i in range(kept.sizes["selection"]):
            entry = kept.isel(selection=i)
            own = keys[int(entry["offset"]) : int(entry["offset"] + entry["count"])]
            assert (np.diff(own) > 0).all() and own[0] >= 0 and own[-1] < int(entry["chunk_begin"])
            assert len(own) == ds.budget_keys.values[int(entry["config_index"])]


def test_provenance_opens_and_names_the_capture(results_path):
    with xr.open_dataset(results_path, group="provenance") as provenance:
        assert provenance["version"].item() and provenance["commit"].item()
        assert provenance["capture_path"].values[0].endswith("smollm2-135m_needles_2k.h5")
        attributes = provenance.attrs
        assert attributes["units_total"] == attributes["units_done"] == 2
        assert attributes["units_failed"] == 0


def test_p36_a_long_configuration_is_kept_and_printed(results_path):
    with h5py.File(results_path) as file:
        stored = file["provenance/config_text"].asstr()[()]
    assert len(stored) > 65536 and "11999" in stored
    assert sweep("config", results_path).strip() == stored.strip()
