"""A geometry file of the embedded capture, made by the real program: its numbers, computed again here in float64
from the capture, its readers, and the figures of scripts/plot_paper.py."""

import os
import subprocess

import h5py
import matplotlib
import numpy as np
import pytest
import xarray as xr

import geometry_figures as figures
import plot_paper
from conftest import ROOT, check_text

CAPTURE = ROOT / "data" / "smollm2-135m_needles_2k.h5"
CHUNK, SINKS, HEAD, KV_HEAD = 128, 4, 3, 1


def geometry(folder, *arguments):
    out = folder / "geometry.h5"
    command = [os.environ["QUOKA_GEOMETRY"], "run", CAPTURE, "--out", out, "--budget", 256, *arguments]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command} ended with {done.returncode}:\n{done.stderr}"
    return out


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return geometry(tmp_path_factory.mktemp("geometry"), "--layer", 0, 24, "--samples", 2016)


@pytest.fixture(scope="module")
def ds(path):
    with xr.open_dataset(path) as opened:
        yield opened.load()


@pytest.fixture(scope="module")
def one(ds):
    return figures.head_of(ds, 24, HEAD)


@pytest.fixture(scope="module")
def tensors():
    """q and k of the head in float64, and its softmax scale."""
    with h5py.File(CAPTURE) as file:
        layer = file["layers/024"]
        q = layer["q"][HEAD].astype(np.float64)
        k = layer["k"][KV_HEAD].astype(np.float64)
        return q, k, float(layer.attrs["softmax_scale"])


@pytest.fixture(scope="module")
def similarity(tensors):
    q = tensors[0]
    result = np.empty(len(q))
    for begin in range(0, len(q), CHUNK):
        rows = q[begin : begin + CHUNK]
        mean = rows.mean(axis=0)
        result[begin : begin + CHUNK] = rows @ mean / np.linalg.norm(rows, axis=1) / np.linalg.norm(mean)
    return result


@pytest.fixture(scope="module")
def probs(tensors):
    q, k, scale = tensors
    logits = scale * q @ k.T
    logits[np.triu_indices(len(q), 1)] = -np.inf
    logits -= logits.max(axis=1, keepdims=True)
    return np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)


@pytest.fixture(autouse=True)
def close_figures():
    yield
    matplotlib.pyplot.close("all")


@pytest.mark.parametrize("engine", ["h5netcdf", "netcdf4"])
def test_opens_with_no_options_in_both_engines(path, ds, engine):
    with xr.open_dataset(path, engine=engine) as other:
        assert set(other.variables) == set(ds.variables)
        for name in ds.variables:
            np.testing.assert_array_equal(other[name].values, ds[name].values, err_msg=name)


def test_every_variable_has_text_and_values(ds):
    for name in ds.data_vars:
        if "layer" in ds[name].dims and ds[name].dtype.kind == "f":
            assert ds[name].attrs["long_name"] and ds[name].attrs["units"] == "1", name
            assert bool(ds[name].notnull().any()), name
            assert "layer_kind" in ds[name].coords, name
    assert ds["layer"].values.tolist() == [0, 24]
    with xr.open_dataset(ds.encoding["source"], group="provenance") as provenance:
        assert "chunk_size = 128" in str(provenance["config_text"].values)
        assert provenance.attrs["units_done"] == provenance.attrs["units_total"] == 2


def test_every_variable_is_on_the_page(ds):
    page = (ROOT / "docs" / "geometry.md").read_text()
    for name in [*ds.variables, *ds.attrs]:
        stem = name
        for prefix in ("joint_pca_", "query_pca_", "key_pca_"):
            stem = stem.replace(prefix, "*_pca_")
        for suffix in ("_over_queries", "_over_heads"):
            stem = stem.replace(suffix, "_over_*")
        for prefix in ("paper_bound_", "spherical_bound_"):
            stem = stem.replace(prefix, "*_bound_")
        assert f"`{name}`" in page or f"`{stem}`" in page, name


def test_similarity_and_kept_queries(one, similarity):
    # Samples are stored as float32.
    np.testing.assert_allclose(one["query_similarity"], similarity, atol=1e-6)
    kept = np.zeros(len(similarity))
    for begin in range(0, len(similarity), CHUNK):
        order = np.argsort(similarity[begin : begin + CHUNK], kind="stable")
        kept[begin + order[:16]] = 1
    np.testing.assert_array_equal(one["query_kept"], kept)


def test_figure_2c_numbers(one, similarity, probs):
    largest = probs[SINKS:, SINKS:].max(axis=1)
    # Logits are float32 of size up to 30: relative error of a probability about 1e-5.
    np.testing.assert_allclose(one["query_log_max_attention"][SINKS:], np.log(largest), atol=1e-4)
    assert np.isnan(one["query_log_max_attention"][:SINKS]).all()
    for name, y in (("similarity_attention_pearson", largest), ("similarity_attention_log_pearson", np.log(largest))):
        np.testing.assert_allclose(one[name], np.corrcoef(-similarity[SINKS:], y)[0, 1], atol=1e-5)


def test_figure_2b_as_a_number(one, tensors, similarity):
    q, k, _ = tensors
    to_keys = q @ k.mean(axis=0) / np.linalg.norm(q, axis=1)
    ranks = [np.argsort(np.argsort(values)) for values in (-similarity, to_keys)]
    np.testing.assert_allclose(one["similarity_key_spearman"], np.corrcoef(ranks)[0, 1], atol=1e-9)


def test_class_attention(one, similarity, probs):
    lowest = np.concatenate([
        begin + np.argsort(similarity[begin : begin + CHUNK], kind="stable")[: len(similarity[begin : begin + CHUNK]) // 8]
        for begin in range(0, len(similarity), CHUNK)
    ])  # fmt: skip
    assert one["class_n_queries"][0] == len(lowest)
    np.testing.assert_allclose(one["class_sink_share"][0], probs[lowest, :SINKS].sum(axis=1).mean(), rtol=1e-4)
    edges = [*one["key_bin"].values, probs.shape[1]]
    on_keys = probs[lowest].mean(axis=0)
    on_keys[:SINKS] = 0
    bins = [on_keys[a:b].sum() for a, b in zip(edges, edges[1:])]
    np.testing.assert_allclose(one["class_key_share"][0], bins, rtol=1e-3, atol=1e-7)


@pytest.mark.parametrize("of", ["joint", "query", "key"])
def test_principal_components(one, tensors, of):
    q, k, _ = tensors
    rows = {"joint": np.concatenate([q, k]), "query": q, "key": k}[of]
    centred = rows - rows.mean(axis=0)
    _, singular, basis = np.linalg.svd(centred, full_matrices=False)
    variance = singular**2 / (len(rows) - 1)
    np.testing.assert_allclose(one[f"{of}_pca_variance"], variance[:4], rtol=1e-9)
    np.testing.assert_allclose(one[f"{of}_pca_share"], variance[:4] / variance.sum(), rtol=1e-9)
    for i in range(4):
        direction = basis[i] * np.sign(basis[i][np.argmax(np.abs(basis[i]))])
        if one[f"{of}_pca_near_equal"][i] == 0:
            np.testing.assert_allclose(one[f"{of}_pca_basis"][i], direction, atol=1e-8)
    name = {"joint": "joint_query_coordinates", "query": "query_coordinates", "key": "key_coordinates"}[of]
    wanted = centred[: len(q)] @ one[f"{of}_pca_basis"].values.T
    np.testing.assert_allclose(one[name], wanted, atol=1e-4)  # stored as float32, size up to 40


def test_theorem_holds_on_every_pair(ds, one, tensors, similarity):
    q, k, _ = tensors
    assert int(one["theorem_n_triples"]) == 2016 * 2017 // 2
    assert int(ds["paper_bound_violations"].sum()) == int(ds["spherical_bound_violations"].sum()) == 0
    unit_q = q / np.linalg.norm(q, axis=1, keepdims=True)
    unit_k = k / np.linalg.norm(k, axis=1, keepdims=True)
    beta = unit_q @ unit_k.T
    means = np.stack([q[begin : begin + CHUNK].mean(axis=0) for begin in range(0, len(q), CHUNK)])
    means /= np.linalg.norm(means, axis=1, keepdims=True)
    alpha = (means @ unit_k.T)[np.arange(len(q)) // CHUNK]
    seen = np.tril(np.ones_like(beta, dtype=bool))
    applies = (alpha < 0) & (beta > 0) & seen
    np.testing.assert_allclose(one["theorem_applies_share"], applies.sum() / seen.sum(), rtol=1e-9)
    slack = 1 + alpha * beta - alpha**2 / 2 - beta**2 / 2 - similarity[:, None]
    np.testing.assert_allclose(one["paper_bound_slack_mean"], slack[seen].mean(), rtol=1e-9)
    np.testing.assert_allclose(one["paper_bound_slack_min"], slack[seen].min(), rtol=1e-6)
    np.testing.assert_allclose(one["paper_bound_slack_applies"], slack[applies].mean(), rtol=1e-9)


def test_score_tails(one, tensors, similarity):
    q, k, _ = tensors
    unit_k = k / np.linalg.norm(k, axis=1, keepdims=True)
    unit_q = q / np.linalg.norm(q, axis=1, keepdims=True)
    deviations = []
    for begin in range(CHUNK, len(q), CHUNK):
        order = np.argsort(similarity[begin : begin + CHUNK], kind="stable")
        scores = unit_q[begin + order[:16]] @ unit_k[:begin].T
        deviations.append((scores - scores.mean(axis=0)).ravel())
    d = np.concatenate(deviations)
    assert int(one["score_n_over_queries"]) == len(d)
    # Unit rows are float32: relative error 1e-7 of each score, of which thousands average.
    np.testing.assert_allclose(one["score_spread_over_queries"], d.std(), rtol=1e-5)
    np.testing.assert_allclose(one["score_kurtosis_over_queries"], (d**4).mean() / d.var() ** 2 - 3, atol=1e-4)


def test_the_whole_prompt_has_one_mean_query(tmp_path, tensors):
    with xr.open_dataset(geometry(tmp_path, "--layer", 24, "--chunk_size", "whole")) as ds:
        one = figures.head_of(ds, 24, HEAD).load()
    q = tensors[0]
    mean = q.mean(axis=0)
    rows = q[one["query"].values]
    wanted = rows @ mean / np.linalg.norm(rows, axis=1) / np.linalg.norm(mean)
    np.testing.assert_allclose(one["query_similarity"], wanted, atol=1e-6)
    assert one.sizes["query"] == one.sizes["key"] == 1024 and ds.sizes["chunk"] == 1
    assert set(np.unique(one["key_kept_share"])) == {0, 1}
    assert "the whole prompt" in figures.source(ds, one)


def words_of(figure):
    return figure.get_supxlabel().replace("\n", " ")


def legend_of(figure):
    return [text.get_text() for text in figure.legends[0].get_texts()]


def test_figures_show_the_values_of_the_file(ds, one):
    image, lines = figures.attention_classes(ds, 24, HEAD, 2).axes[:2]
    assert image.collections[0].get_array().shape == (8, 64)
    np.testing.assert_array_equal(lines.get_lines()[0].get_ydata(), 100 * one["class_top_share"][0])

    scatter = figures.similarity_attention(ds, 24, HEAD, 2)
    points = np.concatenate([drawn.get_offsets() for drawn in scatter.axes[0].collections])
    assert len(points) == 2016 - SINKS
    assert np.isclose(points[:, 0].max(), -one["query_similarity"][SINKS:].min())
    assert f"Pearson {float(one['similarity_attention_log_pearson']):.2f} (log)" in words_of(scatter)
    assert "all 2,012 queries" in words_of(scatter)
    heads = scatter.axes[1].get_lines()[1].get_ydata()
    np.testing.assert_array_equal(heads, ds["similarity_attention_log_pearson"].values.ravel())

    keys, chosen, queries, kept = figures.components(ds, 24, HEAD, 2).axes[0].collections
    np.testing.assert_array_equal(keys.get_offsets(), one["joint_key_coordinates"][:, :2])
    assert len(queries.get_offsets()) == 2016 and len(kept.get_offsets()) == 16 * 16
    assert len(chosen.get_offsets()) == int((one["key_kept_share"] > 0.5).sum())

    tails = figures.tails(ds, 24, HEAD, 2)
    assert any(f"kurtosis {float(one['score_kurtosis_over_queries']):.2f}" in label for label in legend_of(tails))

    theorem = figures.theorem(ds, 24, HEAD, 2)
    means = {line.get_label(): line.get_ydata() for line in theorem.axes[1].get_lines()}
    np.testing.assert_allclose(means["paper's bound, smallest of all pairs"],
                               ds["paper_bound_slack_min"].mean("q_head"), rtol=1e-12)
    assert "violations: 0 of the paper's bound" in words_of(theorem)


@pytest.mark.parametrize("columns", [1, 2])
@pytest.mark.parametrize("draw", figures.FIGURES.values())
def test_text_is_large_enough_and_inside_the_figure(ds, draw, columns):
    check_text(draw(ds, 24, HEAD, columns))
    matplotlib.pyplot.close("all")


def test_nothing_to_plot_is_said(ds):
    without = ds.assign(query_log_max_attention=ds["query_log_max_attention"] * np.nan)
    with pytest.raises(figures.NothingToPlot):
        figures.similarity_attention(without, 24, HEAD, 2)
    flat = ds.assign({name: ds[name] * 0 for name in ("score_spread_over_queries", "score_spread_over_heads")})
    with pytest.raises(figures.NothingToPlot):
        figures.tails(flat, 24, HEAD, 2)


def test_the_default_head_has_the_median_correlation(ds):
    values = ds["similarity_attention_log_pearson"]
    layer, head = figures.typical_head(ds, None, None)
    assert (values < values.sel(layer=layer, q_head=head)).sum() == (values.size - 1) // 2
    assert figures.typical_head(ds, 0, 5) == (0, 5)
    assert figures.typical_head(ds, 0, None)[0] == 0


def test_the_script_writes_every_figure(path, tmp_path, capsys):
    assert plot_paper.main([str(path), "--out", str(tmp_path), "--layer", "24", "--columns", "1"]) == 0
    stems = ["similarity_attention", "attention_classes", "components", "tails", "theorem"]
    names = {file.name for file in tmp_path.iterdir()}
    assert names == {f"geometry_{stem}.{suffix}" for stem in stems for suffix in ("png", "svg")}
    assert matplotlib.image.imread(tmp_path / "geometry_components.png").std() > 0.01  # not blank
    assert "layer 24, query head" in capsys.readouterr().out


def test_what_is_not_in_the_file_is_refused(path, tmp_path, capsys):
    for arguments, code, message in (
        ([path, "--layer", 3], 2, "layer 3 is not in the file (it has 0, 24)"),
        ([path, "--head", 9], 2, "q_head 9 is not in the file"),
        ([tmp_path / "none.h5"], 3, "does not exist"),
        ([CAPTURE], 3, "has format qkv-capture; wanted is quoka-results (written by quoka-sweep run) or quoka-geom"),
    ):
        assert plot_paper.main([str(word) for word in [*arguments, "--out", tmp_path / "figs"]]) == code
        assert message in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
