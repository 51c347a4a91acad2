"""The file of quoka-bench as a reader sees it, and its figure. What was measured is no criterion."""

import os
import subprocess
import sys
from pathlib import Path

import netCDF4
import numpy as np
import pytest
import xarray as xr

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))

import plot_bench  # noqa: E402

STAGES = ["keep_queries", "unit_keys", "score", "top_k", "gather", "attend", "recompute"]


def bench(*arguments):
    command = [os.environ["QUOKA_BENCH"], *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    out = tmp_path_factory.mktemp("bench") / "prefill.h5"
    bench("prefill", "--history", 100, 200, "--budget", 32, "--chunk_size", 16, "--head_dim", 16,
          "--repetitions", 3, "--warm_ups", 0, "--out", out)  # fmt: skip
    return out


def test_xarray_opens_it_as_a_table(path):
    with xr.open_dataset(path) as ds:
        assert ds.attrs["format"] == "quoka-bench"
        assert ds["case"].values.tolist() == ["history 0", "history 100", "history 200"]
        table = ds.to_dataframe()
        assert np.isnan(table.loc["history 0", "score"])  # nothing to select from
        for name in STAGES:
            assert table.loc["history 200", f"{name}_min"] > 0
            assert table.loc["history 200", f"{name}_bound"] > 0
        for name in ds.data_vars:
            assert ds[name].attrs["long_name"] and ds[name].attrs["units"], name
        assert ds.attrs["product_rate"] > 0


def test_netcdf_opens_it(path):
    with netCDF4.Dataset(path) as file:
        assert file.dimensions["case"].size == 3
        assert file["dense"].units == "ms"


def test_the_figure_shows_every_stage_and_the_bound(path, tmp_path):
    plot_bench.main([str(path), "--out", str(tmp_path / "new" / "prefill.png")])
    assert (tmp_path / "new" / "prefill.png").stat().st_size > 10_000
    left, right = plot_bench.figure(plot_bench.open_prefill(path)).axes
    assert [text.get_text() for text in left.get_legend().get_texts()] == [x for x, _ in plot_bench.STAGES.values()]
    assert [text.get_text() for text in left.get_xticklabels()] == ["0.0976562k", "0.195312k"]
    assert "bound by operations" in [text.get_text() for text in right.get_legend().get_texts()]


@pytest.mark.parametrize("arguments", [["attention", "--history", 8, "--head_dim", 8], ["prefill", "--history", 8]])
def test_a_file_without_selection_is_refused(arguments, tmp_path):
    out = tmp_path / "other.h5"
    bench(*arguments, "--chunk_size", 8, "--repetitions", 1, "--warm_ups", 0, "--out", out)
    with pytest.raises(SystemExit, match="other.h5"):
        plot_bench.main([str(out)])
