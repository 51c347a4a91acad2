"""Captures of the real model classes against an independent float64 attention. Needs scripts/
requirements-capture.txt; QUOKA_CAPTURE, if set, verifies every capture too."""

import shutil
import subprocess

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed (scripts/requirements-capture.txt)")

import h5py  # noqa: E402

import tiny_models  # noqa: E402
from capture_reference import errors, layer_reference, text  # noqa: E402
from capture_support import EMBEDDED, TOKENS, captured, make, rounding  # noqa: E402
from quoka_capture import prompts  # noqa: E402
from quoka_capture.recorder import Recorder, installed, reference, run  # noqa: E402

# What must be found in a layer of each model, so that nothing is left out on both sides of a comparison.
# (layer, attribute, value)
EXPECTED = {
    "llama": [(0, "softmax_scale", 8**-0.5), (0, "sliding_window", 0), (0, "n_kv_heads", 2)],
    "mistral (window)": [(0, "sliding_window", 48), (3, "sliding_window", 48)],
    "qwen2 (window)": [(1, "sliding_window", 0), (2, "sliding_window", 48)],
    "qwen3": [(0, "qk_norm", "per_head"), (0, "k_head_dim", 24)],
    "gemma2": [(0, "sliding_window", 48), (1, "sliding_window", 0), (1, "softcap_applied", 1),
               (1, "logit_softcap", 2.0), (0, "softmax_scale", 30**-0.5)],
    "gemma3": [(0, "sliding_window", 48), (1, "sliding_window", 0), (0, "softcap_applied", 0),
               (0, "qk_norm", "per_head")],
    "gpt_oss": [(0, "has_sinks", 1), (1, "has_sinks", 1), (0, "sliding_window", 48), (1, "sliding_window", 0)],
    "smollm3": [(2, "position_kind", "rope"), (3, "position_kind", "nope")],
    "cohere2": [(0, "sliding_window", 48), (0, "position_kind", "rope"), (3, "sliding_window", 0),
                (3, "position_kind", "nope")],
    "llama4": [(0, "attention_chunk", 64), (3, "attention_chunk", 0), (0, "position_kind", "rope"),
               (3, "position_kind", "nope"), (0, "qk_norm", "l2")],
    "deepseek_v3": [(0, "k_head_dim", 24), (0, "v_head_dim", 12), (0, "position_kind", "mla")],
    "granite": [(0, "softmax_scale", 0.4)],
    "phi3 (window)": [(0, "sliding_window", 48)],
    "olmo2": [(0, "qk_norm", "full_width")],
    "bloom": [(0, "alibi", 1), (0, "alibi_scaled", 0), (0, "position_kind", "alibi")],
    "mpt": [(0, "alibi", 1), (0, "alibi_scaled", 0)],
    "mpt (12 heads, clipped)": [(0, "n_q_heads", 12), (0, "softmax_scale", 0.2)],
    "falcon (multi query)": [(0, "n_kv_heads", 1), (0, "alibi", 0)],
    "falcon (new architecture)": [(0, "n_kv_heads", 2), (0, "n_q_heads", 8)],
    "falcon (alibi)": [(0, "alibi", 1), (0, "alibi_scaled", 1)],
}


@pytest.mark.parametrize("name", tiny_models.MODELS)
def test_a_capture_holds_what_the_model_computed(name, tmp_path):
    model = make(name)
    with h5py.File(captured(tmp_path, model, storage="float32")) as file:
        assert len(file["layers"]) == model.config.num_hidden_layers
        for group in file["layers"].values():
            out_error, lse_error = errors(group)
            assert out_error < rounding(group)
            assert lse_error < rounding(group)
        for layer, attribute, value in EXPECTED.get(name, []):
            found = file[f"layers/{layer:03d}"].attrs[attribute]
            assert (text(found) if isinstance(value, str) else found) == pytest.approx(value), attribute
    # The whole model, longer than its windows and chunks, against its own attention.
    ids = torch.tensor(tiny_models.prompt_ids(TOKENS).astype("int64"))
    with reference(model):
        expected = run(model, ids, logits=True)
    with installed(model, Recorder()):
        logits = run(model, ids, logits=True)
    assert (logits - expected).abs().max() < 1e-3 * expected.std()


@pytest.mark.parametrize("name", ["gemma2", "gpt_oss", "llama4", "deepseek_v3"])
def test_a_bfloat16_model_is_stored_without_rounding(name, tmp_path):
    with h5py.File(captured(tmp_path, make(name, dtype=torch.bfloat16))) as file:
        assert text(file.attrs["storage_dtype"]) == text(file.attrs["compute_dtype"]) == "bfloat16"
        for group in file["layers"].values():
            out_error, lse_error = errors(group)
            assert out_error < 2.0**-8 + rounding(group)  # half a unit in the last place of 8 bits, and float32
            assert lse_error < rounding(group)


def test_out_is_computed_from_the_rounded_tensors(tmp_path):
    with h5py.File(captured(tmp_path, make("llama"), storage="float16")) as file:
        for group in file["layers"].values():
            out_error, lse_error = errors(group)
            assert out_error < 2.0**-11 + rounding(group)
            assert lse_error < rounding(group)


def test_bfloat16_is_read_as_numbers_and_keeps_its_bits(tmp_path):
    exact = h5py.File(captured(tmp_path, make("llama"), storage="float32", layers=[1], overwrite=True))
    path = captured(tmp_path, make("llama"), storage="bfloat16", layers=[1], overwrite=True)
    wanted = torch.tensor(exact["layers/001/k"][:]).bfloat16()
    with h5py.File(path) as file:
        k = file["layers/001/k"]
        raw = np.empty(k.shape, np.uint16)
        k.id.read(h5py.h5s.ALL, h5py.h5s.ALL, raw, mtype=k.id.get_type())
        assert (raw == wanted.view(torch.int16).numpy().view(np.uint16)).all()
        assert (k[:] == wanted.float().numpy()).all()
        assert k.fletcher32 and k.chunks == (1, TOKENS, 8)
        assert k.id.get_type().get_fields() == (15, 7, 8, 0, 7)
    if shutil.which("h5dump"):
        shown = subprocess.run(["h5dump", "-d", "/layers/001/k", "-s", "0,0,0", "-c", "1,1,1", str(path)],
                               capture_output=True, text=True, check=True).stdout
        assert f"{wanted[0, 0, 0].item():.4g}"[:5] in shown


def test_the_file_follows_the_format(tmp_path):
    """The same objects, types and kinds of attributes as in the capture that comes with the sources."""
    with h5py.File(captured(tmp_path, make("llama"), layers=[2])) as mine, h5py.File(EMBEDDED) as theirs:
        for name, value in theirs.attrs.items():
            assert type(mine.attrs[name]) is type(value), name
        group, other = mine["layers/002"], theirs["layers/018"]
        for name, value in other.attrs.items():
            assert type(group.attrs[name]) is type(value), name
            assert not h5py.check_string_dtype(group.attrs.get_id(name).dtype) or (
                h5py.check_string_dtype(group.attrs.get_id(name).dtype).length), name
        for name, dataset in other.items():
            assert group[name].dtype == dataset.dtype
            assert group[name].fletcher32 == dataset.fletcher32
        assert group["lse"].dtype == np.float32
        assert mine["tokens/ids"].dtype == np.int32
        ids = tiny_models.prompt_ids(TOKENS)
        assert (mine["tokens/ids"][:] == ids).all()
        assert (mine["tokens/positions"][:] == np.arange(TOKENS)).all()
        assert list(mine["layers"]) == ["002"]
        assert text(mine.attrs["prompt_sha256"]) == prompts.sha256(" ".join(map(str, ids)).encode())
        assert "meta/prompt_text" not in mine


def test_some_kv_heads_are_those_of_the_whole_capture(tmp_path):
    whole = h5py.File(captured(tmp_path, make("gpt_oss"), storage="float32"))
    arrays = {name: data[:] for name, data in whole["layers/000"].items()}
    with h5py.File(captured(tmp_path, make("gpt_oss"), storage="float32", kv_heads=[1], overwrite=True)) as file:
        group = file["layers/000"]
        assert (group.attrs["n_q_heads"], group.attrs["n_kv_heads"]) == (4, 1)
        for name in ("k", "v"):
            assert (group[name][:] == arrays[name][1:]).all()
        for name in ("q", "sinks", "out", "lse"):
            assert (group[name][:] == arrays[name][4:]).all()
        assert max(errors(group)) < rounding(group)


def test_a_window_that_is_off_by_one_would_be_seen(tmp_path):
    """The reference of these tests is sensitive to what it checks."""
    path = captured(tmp_path, make("mistral (window)"), storage="float32")
    with h5py.File(path, "r+") as file:
        group = file["layers/000"]
        group.attrs["sliding_window"] = np.int64(47)
        assert errors(group)[0] > 1e-3
        assert layer_reference(group)[1].shape == (8, TOKENS)
