"""The figures of scripts/plot_paper.py of a results file over three captures, made by the real programs."""

import os
import re
import subprocess

import numpy as np
import pytest
import xarray as xr

import figure_style
import paper_figures
import plot_paper
from conftest import ROOT, check_text, sweep
from paper_series import studies
from quoka_paper.prompts_statistics import difference, interval, per_prompt, per_prompt_and_layer

PANELS = ["out_rel_l2_mean", "out_rel_l2_p99", "mass_recall_no_sink_mean", "needle_key_recall"]


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """Each KV head of the embedded capture as a capture of its own: three "prompts" with different values."""
    folder = tmp_path_factory.mktemp("plot_paper")
    captures = [folder / f"part{head}.h5" for head in range(3)]
    for head, capture in enumerate(captures):
        subprocess.run([os.environ["QUOKA_CAPTURE"], "cut", ROOT / "data/smollm2-135m_needles_2k.h5", "--out", capture,
                        "--kv-heads", str(head)], check=True, capture_output=True)
    (folder / "config.toml").write_text(f"""
capture = {[str(capture) for capture in captures]}
layer = [18, 24]
selector = ["quoka", "oracle", "random"]
budget = [128, 256]
chunk_size = [128, 96]
query_rule = ["lowest_cosine", "stride", "random"]
seed = [0, 1]
min_history = 257
""")
    sweep("run", folder / "config.toml", "--out", folder / "small.h5", "--quiet")
    return folder / "small.h5"


@pytest.fixture(scope="module")
def ds(path):
    with xr.open_dataset(path) as opened:
        yield opened.load()


def study_named(ds, parameter):
    return next(study for study in studies(ds) if study.parameter == parameter)


def configs_with(ds, **values):
    """Positions of the configurations with these texts, found without the code under test."""
    rows = zip(*(ds[name].values.astype(str) for name in values))
    return [i for i, row in enumerate(rows) if list(row) == list(values.values())]


def words_of(figure):
    return figure.get_supxlabel().replace("\n", " ")


def lines_of(axes):
    """{label: (x, y, [interval ends])} of what errorbar drew."""
    found = {}
    for container in axes.containers:
        line, _, bars = container
        found[container.get_label()] = (*np.asarray(line.get_data(), float), [bar.get_segments() for bar in bars])
    return found


def test_a_study_holds_everything_else_at_the_base(ds):
    found = {study.parameter: study for study in studies(ds)}
    assert list(found) == ["chunk_size", "query_rule", "combinations"]
    rules = {series.label: [point.configs for point in series.points] for series in found["query_rule"].series}
    usual = {"selector": "quoka", "chunk_size": "128.0"}
    assert rules == {rule: [configs_with(ds, **usual, budget=budget, query_rule=rule) for budget in ("128", "256")]
                     for rule in ("lowest_cosine", "stride", "random")}
    assert len(found["query_rule"].series[2].points[0].configs) == 2  # both seeds are one point
    references = {series.label: series.points[0].configs for series in found["query_rule"].references}
    assert references == {name: configs_with(ds, selector=name, budget="128", chunk_size="128.0")
                          for name in ("oracle", "random")}


def test_every_configuration_is_in_a_figure(ds):
    drawn = {config for study in studies(ds) for config in study.configs()}
    assert drawn == set(range(ds.sizes["config"]))
    combined = study_named(ds, "combinations")
    assert [series.label for series in combined.series] == [
        "base", "chunk_size=96, query_rule=stride", "chunk_size=96, query_rule=random"]


def test_references_that_the_parameter_changes_are_drawn_at_their_value(ds):
    found = study_named(ds, "chunk_size")
    assert {(series.label, series.value) for series in found.references} == {
        (name, size) for name in ("oracle", "random") for size in ("128", "96")}


def test_points_are_means_over_prompts_with_their_intervals(ds):
    figure = paper_figures.values(ds, study_named(ds, "query_rule"), 2)
    for axes, name in zip(figure.axes, PANELS):
        drawn = lines_of(axes)
        assert set(drawn) == {"lowest_cosine (base)", "stride", "random", "oracle (reference)", "random (reference)"}
        for rule, label in (("lowest_cosine", "lowest_cosine (base)"), ("stride", "stride"), ("random", "random")):
            configs = [configs_with(ds, selector="quoka", chunk_size="128.0", budget=budget, query_rule=rule)
                       for budget in ("128", "256")]
            wanted = [interval(per_prompt(ds, name, one)) for one in configs]
            _, y, (segments,) = drawn[label]
            np.testing.assert_array_equal(y, [found.mean for found in wanted])
            np.testing.assert_allclose([segment[:, 1] for segment in segments],
                                       [(found.low, found.high) for found in wanted], rtol=1e-12)
    assert "n = 3 prompts (3 with needles), layers 18, 24, 3 query heads each" in words_of(figure)
    assert "chunk_size=128" in words_of(figure) and "numeric floor of the error" in words_of(figure)


def test_differences_show_both_sides_paired_over_prompts(ds):
    figure = paper_figures.both_sides(ds, study_named(ds, "query_rule"), 2)
    for axes, budget in zip(figure.axes, ("128", "256")):
        base, stride = (configs_with(ds, selector="quoka", chunk_size="128.0", budget=budget, query_rule=rule)
                        for rule in ("lowest_cosine", "stride"))
        x, y, _ = lines_of(axes)["stride"]
        wanted = [difference(per_prompt(ds, name, stride), per_prompt(ds, name, base)).mean for name in
                  ("out_rel_l2_mean", "needle_key_recall")]
        assert [x.item(), y.item()] == wanted
        x, y, _ = lines_of(axes)["lowest_cosine (base)"]
        assert [x.item(), y.item()] == [0, 0]
    assert "paired over prompts" in words_of(figure)


def test_layers_have_their_own_differences(ds):
    figure = paper_figures.by_layer(ds, study_named(ds, "query_rule"), 2)
    base, stride = (configs_with(ds, selector="quoka", chunk_size="128.0", budget="128", query_rule=rule)
                    for rule in ("lowest_cosine", "stride"))
    for axes, name in zip(figure.axes, (PANELS[0], *PANELS[2:])):
        values = per_prompt_and_layer(ds, name, stride) - per_prompt_and_layer(ds, name, base)
        np.testing.assert_allclose(lines_of(axes)["stride"][1], values.mean(0), rtol=1e-12)


def test_what_is_far_off_is_named_and_everything_else_is_inside(ds):
    study = study_named(ds, "query_rule")
    figure = paper_figures.values(ds, study, 2)
    error = figure.axes[0]
    low, high = error.get_ylim()
    for label, (_, y, _) in lines_of(error).items():
        assert label == "random (reference)" or (low < y.min() and y.max() < high)
    assert lines_of(error)["random (reference)"][1].max() > high
    assert re.fullmatch(r"random at [\d.]+ to [\d.]+ ↑", error.get_title(loc="right"))


def test_one_value_per_line_where_the_budget_does_not_vary(ds):
    one = ds.isel(config=np.flatnonzero(ds.budget.values == "256"))
    figure = paper_figures.values(one, study_named(one, "chunk_size"), 2)
    assert [text.get_text() for text in figure.axes[0].get_yticklabels()] == ["128", "96"]
    configs = configs_with(one, selector="quoka", chunk_size="96.0", query_rule="lowest_cosine")
    xs = [line[0].item() for line in (c[0].get_data() for c in figure.axes[3].containers)]
    assert per_prompt(one, "needle_key_recall", configs).mean() == pytest.approx(xs[3], rel=1e-12)
    assert {"oracle (reference)", "random (reference)"} == {text.get_text() for text in figure.legends[0].get_texts()}


def test_one_prompt_has_no_interval_and_no_paired_difference(ds):
    one = ds.isel(capture=[0])
    study = study_named(one, "query_rule")
    figure = paper_figures.values(one, study, 2)
    assert "n = 1 prompt (1 with needles)" in words_of(figure)
    assert "no intervals: fewer than 3 prompts" in words_of(figure)
    with pytest.raises(figure_style.NothingToPlot, match="one prompt"):
        paper_figures.both_sides(one, study, 2)


def test_prompts_without_needles_are_said(ds):
    without = ds.assign(needle_key_recall=ds["needle_key_recall"] * np.nan)
    study = study_named(without, "query_rule")
    figure = paper_figures.values(without, study, 2)
    assert len(figure.axes) == 3 and "(none with needles)" in words_of(figure)
    assert "mass recall" in paper_figures.both_sides(without, study, 2).axes[0].get_ylabel()


def test_rows_that_differ_are_said(ds):
    study = study_named(ds, "query_rule")
    assert "active rows differ" not in words_of(paper_figures.values(ds, study, 2))
    uneven = ds.assign(n_rows_active=ds["n_rows_active"] + ds["budget_keys"])
    assert "active rows differ" in words_of(paper_figures.values(uneven, study, 2))


def test_budgets_alone_are_a_study(ds):
    chosen = ds.isel(config=np.flatnonzero((ds.chunk_size.values == 128) & np.isin(
        ds.query_rule.values, ["lowest_cosine", ""])))
    (study,) = studies(chosen)
    assert study.parameter == "budget" and [series.label for series in study.series] == ["quoka"]
    assert len(lines_of(paper_figures.values(chosen, study, 2).axes[0])) == 3
    with pytest.raises(figure_style.NothingToPlot, match="nothing to compare"):
        paper_figures.both_sides(chosen, study, 2)


@pytest.mark.parametrize("lost", ["random", "quoka"])
def test_missing_values_leave_the_others(ds, lost):
    """A selector without values (quoka: the base, at one budget) leaves gaps, not errors."""
    keep = (ds.selector != lost) | ((ds.budget == "256") & (lost == "quoka"))
    holes = ds.assign({name: ds[name].where(keep) for name in PANELS})
    study = study_named(holes, "query_rule")
    drawn = lines_of(paper_figures.values(holes, study, 2).axes[0])
    label = {"random": "random (reference)", "quoka": "stride"}[lost]
    assert np.isnan(drawn[label][1]).tolist() == [True, lost == "random"]
    assert np.isfinite(drawn["oracle (reference)"][1]).all()
    for draw in (paper_figures.both_sides, paper_figures.by_layer):
        draw(holes, study, 2).canvas.draw()


@pytest.mark.parametrize("columns", [1, 2])
@pytest.mark.parametrize("draw", [paper_figures.values, paper_figures.both_sides, paper_figures.by_layer])
def test_text_is_large_enough_and_inside_the_figure(ds, draw, columns):
    for study in studies(ds):
        check_text(draw(ds, study, columns))


def test_no_two_lines_share_colour_and_marker():
    looks = [figure_style.style(place) for place in range(40)]
    assert len({(look["color"], look["marker"]) for look in looks}) == 40


def test_the_script_writes_the_named_files_and_the_same_bytes_again(path, tmp_path, capsys):
    for folder, formats in (("first", ["pdf", "png", "svg"]), ("second", ["svg", "png"])):
        assert plot_paper.main([str(path), "--out", str(tmp_path / folder), "--formats", *formats]) == 0
    stems = ["small_combinations", *(f"small_{parameter}{ending}" for parameter in ("chunk_size", "query_rule")
                                     for ending in ("", "_difference", "_layers"))]
    first, second = ({file.name: file.read_bytes() for file in (tmp_path / folder).iterdir()}
                     for folder in ("first", "second"))
    assert set(first) == {f"{stem}.{suffix}" for stem in stems for suffix in ("svg", "png", "pdf")}
    assert second == {name: content for name, content in first.items() if not name.endswith(".pdf")}
    assert not any(b"/CreationDate" in content for content in first.values())
    assert len(capsys.readouterr().out.splitlines()) == len(first) + len(second)


def test_svg_text_stays_text(path, tmp_path):
    (tmp_path / "small_query_rule.svg").write_text("an older picture")
    assert plot_paper.main([str(path), "--out", str(tmp_path), "--formats", "svg"]) == 0
    words = " ".join(re.findall(r"<text[^>]*>([^<]+)</text>", (tmp_path / "small_query_rule.svg").read_text()))
    for wanted in ("n = 3 prompts", "bootstrap interval", "keys kept per chunk and KV head",
                   "relative L2 error ↓ better", "needle key recall ↑ better", "lowest_cosine (base)",
                   "oracle (reference)"):
        assert wanted in words


def test_a_layer_can_be_chosen(path, tmp_path, capsys):
    assert plot_paper.main([str(path), "--out", str(tmp_path), "--formats", "svg", "--layer", "24"]) == 0
    assert "small_query_rule_layers: left out (one layer)" in capsys.readouterr().out
    assert "layer 24" in (tmp_path / "small_query_rule.svg").read_text()


def test_what_cannot_be_done_is_refused(path, tmp_path, capsys):
    (tmp_path / "text.h5").write_text("no HDF5")
    (tmp_path / "taken").write_text("a file, not a folder")
    for arguments, code, message in (
        ([path, "--layer", "3"], 2, "layer 3 is not in the file (it has 18, 24)"),
        ([tmp_path / "text.h5"], 3, "text.h5 cannot be opened as HDF5"),
        ([path, "--out", tmp_path / "taken"], 74, "a figure cannot be written"),
    ):
        assert plot_paper.main([str(word) for word in ["--out", tmp_path / "figs", *arguments]]) == code
        assert message in capsys.readouterr().err
    assert not (tmp_path / "figs").exists()
    with pytest.raises(SystemExit) as stopped:
        plot_paper.main([str(path), "--formats", "gif"])
    assert stopped.value.code == 2
