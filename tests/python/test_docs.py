"""The programs printed in the documentation run as they stand."""

import re
import shutil
import subprocess
import sys

import h5py
import xarray as xr

from conftest import ROOT, sweep


def python_blocks(page):
    return re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)


def test_the_program_in_the_capture_page_writes_a_capture_that_the_sweep_reads(tmp_path):
    (block,) = python_blocks("docs/capture-format.md")
    subprocess.run([sys.executable, "-c", block], cwd=tmp_path, check=True)
    out = tmp_path / "mine.h5"
    sweep("run", "--capture", tmp_path / "my_capture.h5", "--budget", "128", "--out", out, "--quiet")
    with xr.open_dataset(out) as ds, h5py.File(tmp_path / "my_capture.h5") as capture:
        assert ds["n_rows"].values.max() == capture["layers/000/q"].shape[1]
        assert ds["softmax_scale"].item() == capture["layers/000"].attrs["softmax_scale"]


def test_the_programs_that_read_results_run(results_path):
    for page in ["README.md", "docs/results-format.md"]:
        block = python_blocks(page)[0]
        code = block.replace("results/quickstart.h5", str(results_path))
        assert code != block
        subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)


def test_the_program_that_joins_the_files_of_an_array_gives_one_data_set(results_path, tmp_path):
    _, block = python_blocks("README.md")
    (tmp_path / "results").mkdir()
    for name in ["a.h5", "b.h5"]:
        shutil.copy(results_path, tmp_path / "results" / name)
    show = "; error = ds['out_rel_l2_mean']; print(dict(error.sizes), error.groupby('budget').mean(...).values)"
    printed = subprocess.run([sys.executable, "-c", block.rstrip() + show], cwd=tmp_path, check=True, text=True,
                             stdout=subprocess.PIPE).stdout
    with xr.open_dataset(results_path) as ds:
        error = ds["out_rel_l2_mean"]
        sizes = {**error.sizes, "capture": 2 * error.sizes["capture"]}
        assert printed == f"{sizes} {error.groupby('budget').mean(...).values}\n"
