"""A small results file made by the real program (QUOKA_SWEEP), shared by all tests of a session."""

import os
import subprocess
import sys
from pathlib import Path

import matplotlib.pyplot
import pytest
from matplotlib.text import Text

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

# The seeds are folded away (nothing here is random), so they cost nothing; they make the
# configuration text longer than the 64 KiB that an HDF5 attribute can hold.
CONFIG = f"""
capture = ["{ROOT}/data/smollm2-135m_needles_2k.h5"]
layer = [18, 24]
selector = ["quoka", "oracle"]
budget = [128, 256]
query_rule = ["lowest_cosine", "stride"]
seed = [{", ".join(str(seed) for seed in range(12000))}]
min_history = 257
by_chunk = true
selections = true
"""


@pytest.fixture(autouse=True)
def close_figures():
    yield
    matplotlib.pyplot.close("all")


def sweep(*arguments):
    """Runs quoka-sweep; fails the test, with its messages, unless it ends with 0."""
    command = [os.environ["QUOKA_SWEEP"], *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command} ended with {done.returncode}:\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="session")
def results_path(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sweep")
    (folder / "config.toml").write_text(CONFIG)
    out = folder / "small.h5"
    sweep("run", folder / "config.toml", "--out", out, "--quiet")
    return out


def check_text(figure):
    """No text below 7 points, none beyond the edge of the figure."""
    figure.canvas.draw()
    assert min(text.get_fontsize() for text in figure.findobj(Text)) >= 7
    for part in [*figure.axes, *figure.legends, figure._supxlabel]:
        box, whole = part.get_tightbbox(), figure.bbox
        # A pixel of rounding at the border.
        assert box.x0 > -1 and box.x1 < whole.x1 + 1 and box.y0 > -1 and box.y1 < whole.y1 + 1, part
