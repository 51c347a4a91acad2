"""The figures of scripts/plot_results.py, on a results file made by the real program."""

import matplotlib
import numpy as np
import pytest
import xarray as xr

import plot_results
import result_figures as figures
from result_families import families, reference_note

CELLS = ["capture", "layer", "q_head"]


@pytest.fixture(scope="module")
def ds(results_path):
    with xr.open_dataset(results_path) as opened:
        yield opened.load()


def legend_of(figure):
    return [entry.get_text().replace("\n", " ") for entry in figure.legends[0].get_texts()]


def words_of(figure):
    return figure.get_supxlabel().replace("\n", " ")


def test_families_differ_in_more_than_the_budget(ds):
    found = {family.label: family for family in families(ds)}
    assert set(found) == {"quoka", "quoka, query_rule=stride", "oracle"}
    for family in found.values():
        assert ds.budget_keys.values[family.configs].tolist() == [128, 256]
    assert reference_note(ds).endswith("quoka: query_rule=lowest_cosine")


def test_lines_show_the_means_of_the_file(ds):
    figure = figures.error_and_recall_by_budget(ds)
    for axes, name in zip(figure.axes, ["out_rel_l2_mean", "mass_recall_no_sink_mean"]):
        lines = {line.get_label(): line for line in axes.get_lines()}
        for family in families(ds):
            wanted = ds[name].isel(config=family.configs).mean(CELLS).values
            np.testing.assert_array_equal(lines[family.label].get_ydata(), wanted)
    assert set(legend_of(figure)) == {"quoka", "quoka, query_rule=stride", "oracle"}
    assert "n = 18 per point" in words_of(figure) and "layers 18, 24" in words_of(figure)
    assert any("numeric floor" in text.get_text() for text in figure.axes[0].texts)


def test_the_floor_is_a_line_where_the_axis_reaches_it(ds):
    floor = float(ds["out_rel_l2_mean"].mean())
    raised = ds.assign(floor_out_rel_l2=ds["floor_out_rel_l2"] * 0 + floor)
    axes = figures.error_and_recall_by_budget(raised).axes[0]
    # A mean of float32 values: relative rounding 6e-8 per term, 108 terms.
    assert any(np.allclose(line.get_ydata(), floor, rtol=1e-5) for line in axes.get_lines())


def test_rows_that_differ_are_said(ds):
    assert "active rows differ" not in words_of(figures.error_and_recall_by_budget(ds))
    uneven = ds.assign(n_rows_active=ds["n_rows_active"] + ds["budget_keys"])
    assert "active rows differ" in words_of(figures.error_and_recall_by_budget(uneven))


def test_the_map_shows_the_chosen_configuration(ds):
    figure = figures.layer_head_map(ds, 2)
    wanted = ds["out_rel_l2_mean"].isel(config=2, capture=0).values
    np.testing.assert_array_equal(figure.axes[0].images[0].get_array(), wanted)
    assert f"budget={ds.budget.values[2]}" in words_of(figure)


def test_needles_are_one_point_per_configuration(ds):
    figure = figures.needles_against_error(ds)
    for axes, name in zip(figure.axes, ["needle_key_recall", "needle_mass_recall"]):
        points = np.concatenate([line.get_xydata() for line in axes.get_lines()])
        wanted = np.stack([ds["out_rel_l2_mean"].mean(CELLS), ds[name].mean(CELLS)], axis=1)
        np.testing.assert_array_equal(np.sort(points, axis=0), np.sort(wanted, axis=0))


def test_a_file_without_needles_says_so(ds):
    without = ds.assign(needle_key_recall=ds["needle_key_recall"] * np.nan)
    with pytest.raises(figures.NothingToPlot, match="needle_key_recall holds no value"):
        figures.needles_against_error(without)


def test_a_single_budget_still_gives_points(ds):
    one = ds.isel(config=np.flatnonzero(ds.budget_keys.values == 256))
    assert len(legend_of(figures.error_and_recall_by_budget(one))) == 3


def test_the_families_with_fewest_differences_are_drawn_where_room_is_short(ds, monkeypatch):
    monkeypatch.setattr(figures, "MAX_FAMILIES", 2)
    figure = figures.error_and_recall_by_budget(ds)
    assert legend_of(figure) == ["quoka", "oracle"]
    assert "1 of 3 families are left out" in words_of(figure)


def test_wide_ranges_of_error_get_a_logarithmic_axis(ds):
    assert figures.needles_against_error(ds).axes[0].get_xscale() == "linear"
    wide = ds["out_rel_l2_mean"] * np.where(ds.selector == "oracle", 0.01, 1)[:, None, None, None]
    figure = figures.needles_against_error(ds.assign(out_rel_l2_mean=wide.astype("float32")))
    assert figure.axes[0].get_xscale() == "log"


def test_only_keeps_values_and_what_they_cannot_matter_to(ds):
    chosen = plot_results.choose_configs(ds, ["query_rule=stride", "budget=256"])
    assert chosen.selector.values.tolist() == ["quoka", "oracle"]
    assert set(chosen.budget.values) == {"256"}


def test_budgets_in_percent_are_a_family_of_their_own(ds):
    budgets = np.where(ds.budget.values == "128", "10%", ds.budget.values)
    mixed = ds.assign_coords(budget=("config", budgets))
    assert "quoka (budget in %)" in [family.label for family in families(mixed)]


def test_several_captures_have_a_panel_each(ds):
    other = ds.assign_coords(capture=["another"])
    both = xr.concat([ds, other], "capture", coords="minimal", compat="override")
    titles = [axes.get_title() for axes in figures.layer_head_map(both, 0).axes[:2]]
    assert titles == ["smollm2-135m_needles_2k", "another"]
    assert "2 captures" in words_of(figures.error_and_recall_by_budget(both))


def test_the_script_writes_every_figure(results_path, tmp_path, capsys):
    arguments = [str(results_path), "--out", str(tmp_path / "figs"), "--formats", "png", "svg", "pdf"]
    assert plot_results.main(arguments) == 0
    names = {path.name for path in (tmp_path / "figs").iterdir()}
    stems = ["error_by_budget", "layer_head_map", "needles"]
    assert names == {f"{stem}.{suffix}" for stem in stems for suffix in ("png", "svg", "pdf")}
    assert matplotlib.image.imread(tmp_path / "figs" / "needles.png").std() > 0.01  # not blank
    assert len(capsys.readouterr().out.splitlines()) == 9


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--layers", "3"], "layer 3 is not in the file (it has 18, 24)"),
        (["--captures", "x"], "capture x is not in the file"),
        (["--config", "zz"], "config zz names 0 configurations"),
        (["--only", "rule=stride"], "rule is not a parameter"),
        (["--only", "budget=64"], "no configuration has budget=64 (the file has 128, 256)"),
    ],
)
def test_names_that_are_not_in_the_file_are_refused(results_path, tmp_path, capsys, arguments, message):
    assert plot_results.main([str(results_path), "--out", str(tmp_path), *arguments]) == 2
    assert message in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_other_files_are_refused(tmp_path, capsys):
    xr.Dataset({"x": 1}).to_netcdf(tmp_path / "other.h5", engine="h5netcdf")
    (tmp_path / "text.h5").write_text("no HDF5")
    for name in ["other.h5", "text.h5", "missing.h5"]:
        assert plot_results.main([str(tmp_path / name)]) == 3
        assert f"{name}" in capsys.readouterr().err
