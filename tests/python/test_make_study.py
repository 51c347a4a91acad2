"""scripts/make_study.py on a tiny model: what it makes, keeps, and refuses."""

import json

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed (scripts/requirements-capture.txt)")

import h5py  # noqa: E402

import make_study  # noqa: E402
from capture_support import make, verified  # noqa: E402
from quoka_capture.errors import Refused  # noqa: E402
from quoka_paper import study_prompts  # noqa: E402

NAMES = ["needles_00", "text_narrative", "code_python", "text_legal", "code_cpp"]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A folder with a model of 4 layers and a tokenizer that knows no word."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    path = tmp_path_factory.mktemp("model")
    make("llama", settings={"num_hidden_layers": 4}).save_pretrained(path)
    tokenizer = Tokenizer(models.WordLevel({"[UNK]": 0}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="[UNK]").save_pretrained(path)
    return path


def run(model, out, *more):
    return make_study.main(["--model", str(model), "--tokens", "1536", "--prompts", "1", "--threads", "1", "--out",
                            str(out), *more])


@pytest.fixture(scope="module")
def study(model, tmp_path_factory):
    out = tmp_path_factory.mktemp("study")
    assert run(model, out) == 0
    return out


def test_it_captures_every_prompt_in_every_third_layer(study, model):
    assert sorted(path.stem for path in study.glob("*.h5")) == sorted(NAMES)
    for name in NAMES:
        with h5py.File(verified(study / f"{name}.h5")) as file:
            assert list(file["layers"]) == ["000", "003"]
            assert 1500 < len(file["tokens/ids"]) <= 1536
            kinds = list(file["annotations/kind"][:]) if "annotations/kind" in file else []
            assert kinds.count(1) == (4 if name == "needles_00" else 0)  # needles


def test_it_says_first_what_it_costs_and_makes_only_what_is_missing(study, model, capsys):
    (study / "code_cpp.h5").unlink()
    before = {path: path.stat().st_mtime_ns for path in study.glob("*.h5")}
    assert run(model, study) == 0
    said = capsys.readouterr().err
    assert "4 of 5 captures are there" in said
    assert said.index("1 captures of ") < said.index("code_cpp: ")
    assert {path: path.stat().st_mtime_ns for path in before} == before and (study / "code_cpp.h5").exists()


@pytest.mark.parametrize("arguments,match", [
    (["--tokens", "1600"], "have tokens 1536 and not 1600"), (["--layers", "all"], "have layers every-third and not all"),
    (["--tokens", "100"], "too short"), (["--prompts", "0"], "not positive"), (["--plain", "5"], "not in 0 to 4")])
def test_another_study_is_not_mixed_in_and_bad_options_are_refused(arguments, match, study, model, capsys):
    assert run(model, study, *arguments) == 2
    assert match in capsys.readouterr().err


def test_the_folder_says_what_it_holds(study, model):
    assert run(model, study, "--plain", "1") == 0  # the other captures stay
    manifest = json.loads((study / "study.json").read_text())
    assert [prompt["name"] for prompt in manifest["prompts"]] == NAMES
    assert manifest["model"] == model.name and manifest["model_revision"].startswith("sha256:")


def test_a_text_with_other_content_is_refused(tmp_path):
    changed = study_prompts.StudyPrompt("text_legal", "text", 0, "pandas", study_prompts.PLAIN[2].file, "0" * 64)
    with pytest.raises(Refused, match="SHA-256 .* and not 0000"):
        study_prompts.source(changed)
