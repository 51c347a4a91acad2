"""scripts/reproduce_paper.py --quick as a user runs it: a verdict for every claim, figures, and the numbers of the files."""

import re
import subprocess
import sys

import numpy as np
import pytest
import xarray as xr

from conftest import ROOT
from quoka_paper.claims import METRICS, MIXED, NOT_SUPPORTED, NOT_TESTABLE, SUPPORTED
from quoka_paper.prompts_statistics import text
from reproduce_paper import CLAIMS

PROGRAM = ROOT / "scripts/reproduce_paper.py"


def reproduce(*arguments):
    return subprocess.run([sys.executable, str(PROGRAM), *map(str, arguments)], capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    folder = tmp_path_factory.mktemp("paper")
    done = reproduce("--quick", "--out", folder / "out", "--publish", folder / "docs")
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "out"


@pytest.fixture(scope="module")
def report(out):
    return (out / "report.md").read_text()


def section(report, claim):
    found = re.search(rf'<a id="{claim.key.replace("_", "-")}"></a>(.*?)(?=<a id=|\n## Layers)', report, re.DOTALL)
    assert found, f"{claim.key} has no section"
    return found.group(1)


def test_every_claim_has_one_of_the_four_verdicts_in_the_summary_and_in_its_section(report):
    summary = report.split("## How a verdict is reached")[0]
    for claim in CLAIMS:
        row = next(line for line in summary.splitlines() if f"(#{claim.key.replace('_', '-')})" in line)
        verdict = re.findall(r"\*\*(.+?)\*\*", row)[-1]
        assert verdict in (SUPPORTED, NOT_SUPPORTED, MIXED, NOT_TESTABLE)
        assert f": {verdict}\n" in section(report, claim)


def test_the_query_rule_is_shown_from_both_sides_before_anything_else_in_detail(report):
    both = report.index("## The query rule, both sides")
    assert report.index("## What holds") < both < report.index("## How a verdict is reached")
    head = report[both:].split("\n| ")[1]
    assert all(metric.label in head for metric in METRICS.values())


def test_figures_exist_and_every_claim_with_numbers_has_its_own(out, report):
    shown = re.findall(r"\]\((figures/[^)]+)\)", report)
    assert all((out / figure).stat().st_size > 1000 for figure in shown)
    for claim in CLAIMS:
        for parameter in claim.figures:
            stem = f"{claim.config or 'smollm2-135m_needles_2k'}_{parameter}.png"
            assert f"figures/{stem}" in shown, f"{claim.key} lacks its figure"


def rows_of(part):
    """{first cell: other cells} of the table of values."""
    table = part[part.index("| configuration |"):].split("\n\n")[0].splitlines()[2:]
    return {cells[0]: cells[1:] for cells in ([cell.strip() for cell in line.strip("|").split("|")] for line in table)}


@pytest.mark.parametrize("claim", [claim for claim in CLAIMS if claim.rows], ids=lambda claim: claim.key)
def test_the_values_of_the_report_are_those_of_the_files(claim, out, report):
    part = section(report, claim)
    with xr.open_dataset(out / f"{claim.config}.h5") as ds:
        ds.load()
    at = re.search(r"\.toml` with (\d+) keys", part)
    for label, cells in rows_of(part).items():
        wanted = {**({"budget": at.group(1)} if at else {}), **claim.rows[label]}
        of_row = np.all([[text(value) == text(wanted[name]) for value in ds[name].values] for name in wanted], 0)
        assert of_row.any()
        for cell, metric in zip(cells, METRICS.values()):
            value = np.nanmean(ds[metric.variable].values[of_row].astype(float))
            assert cell == f"{value:.3f}", (label, metric.key)


def test_the_differences_of_the_report_are_those_of_the_files(out, report):
    claim = next(claim for claim in CLAIMS if claim.key == "table_9")
    line = next(line for line in section(report, claim).splitlines() if line.startswith("| cosine instead of dot | all |"))
    with xr.open_dataset(out / "score.h5") as ds:
        quoka = ds.isel(config=ds.selector.values == "quoka")
        means = quoka["out_rel_l2_mean"].groupby("score").mean(...)
        wanted = float(means.sel(score="cosine") - means.sel(score="dot"))
    assert line.split("|")[3].strip() == f"{wanted:+.3f} (n = 1)"


def test_the_published_page_shows_its_figures_and_the_html_page_opens(out, report):
    docs = out.parent / "docs"
    published = (docs / "paper-claims.md").read_text()
    assert published == report.replace("](figures/", "](images/paper/")
    figures = set(re.findall(r"\]\((images/paper/[^)]+)\)", published))
    assert {str(path.relative_to(docs)) for path in docs.glob("images/paper/*")} == figures
    html = (out / "report.html").read_text()
    assert html.count("<table>") >= len(rows_of(report)) and "figures/query_rule_query_rule.png" in html


def test_the_same_command_computes_nothing_twice(out, report):
    before = {path: path.stat().st_mtime_ns for path in out.rglob("*.h5")}
    done = reproduce("--quick", "--out", out)
    assert done.returncode == 0, done.stderr
    assert {path: path.stat().st_mtime_ns for path in out.rglob("*.h5")} == before
    assert (out / "report.md").read_text() == report


@pytest.mark.parametrize("arguments,code,match", [
    (["--study", "/nonexistent"], 2, "/nonexistent is not a folder; see scripts/make_study.sh"),
    (["--study", "."], 2, "there is no capture"), (["--quick", "--study", "."], 2, "not allowed with"),
    (["--gguf-file", "x.gguf"], 2, "--gguf-file names a file in the folder --model")])
def test_what_cannot_be_done_ends_with_its_code(arguments, code, match, tmp_path):
    done = subprocess.run([sys.executable, str(PROGRAM), *arguments], cwd=tmp_path, capture_output=True, text=True,
                          check=False)
    assert done.returncode == code and match in done.stderr


def test_a_step_that_fails_ends_with_the_code_of_its_program(tmp_path):
    (tmp_path / "broken.h5").write_text("no capture")
    done = reproduce("--study", tmp_path, "--out", tmp_path / "out")
    assert done.returncode == 3 and "quoka-capture ended with 3" in done.stderr
