#!/usr/bin/env python3
"""Checks the embedded capture against its committed profile, and that a wrong capture does not pass.

  check_profile.py --sweep build/release/apps/quoka-sweep --check build/release/apps/quoka-check --root .

The second sweep replays the same tensors with half the softmax scale, as a capture would be whose
scale was read from the wrong place. Attention is flatter then, so the same budget keeps less of it.
"""

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import h5py

DONE, FAILED = 0, 4
CAPTURE = "data/smollm2-135m_needles_2k.h5"
CONFIG = "configs/regression/embedded.toml"
PROFILE = "configs/regression/embedded_profile.json"


def run_sweep(options, capture, out):
    command = [options.sweep, "run", CONFIG, "--capture", str(capture), "--out", str(out), "--quiet"]
    subprocess.run(command, cwd=options.root, check=True)


def check(options, results):
    command = [options.check, "check", str(results), PROFILE]
    done = subprocess.run(command, cwd=options.root, capture_output=True, text=True, check=False)
    print(done.stdout, done.stderr, sep="")
    return done


def expect(condition, message):
    if not condition:
        sys.exit(message)


def check_embedded(options, folder):
    out = folder / "embedded.h5"
    run_sweep(options, CAPTURE, out)
    done = check(options, out)
    expect(done.returncode == DONE, f"the embedded capture left its profile (exit code {done.returncode})")
    expect("captures: those of the profile" in done.stdout, "the profile names another capture")


def check_half_scale(options, folder):
    capture, out = folder / "half_scale.h5", folder / "half_out.h5"
    shutil.copy(options.root / CAPTURE, capture)
    with h5py.File(capture, "r+") as file:
        for layer in file["layers"].values():
            layer.attrs["softmax_scale"] = layer.attrs["softmax_scale"] / 2
    run_sweep(options, capture, out)
    done = check(options, out)
    expect(done.returncode == FAILED, f"half the scale ended with {done.returncode}, not {FAILED}")
    expect("NOT those of the profile" in done.stdout, "the other capture is not named")
    for metric in ["mass_recall_no_sink_mean", "out_rel_l2_mean"]:
        expect(re.search(rf"^worse +\w+ +{metric} ", done.stdout, re.MULTILINE), f"{metric} is not named as worse")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--sweep", required=True, help="the program quoka-sweep")
    parser.add_argument("--check", required=True, help="the program quoka-check")
    parser.add_argument("--root", type=Path, required=True, help="folder of the sources")
    options = parser.parse_args()
    options.sweep, options.check = (str(Path(program).resolve()) for program in (options.sweep, options.check))
    with tempfile.TemporaryDirectory() as folder:
        check_embedded(options, Path(folder))
        check_half_scale(options, Path(folder))


if __name__ == "__main__":
    main()
