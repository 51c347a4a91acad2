"""make_prompt.py: what is planted is where the spans say, in characters and in tokens."""

import json

import pytest

import make_prompt
from make_prompt import GENESIS, Settings, make
from quoka_capture.errors import Refused, UsageError


def spans(made, kind):
    return [(span["group"], span["label"], made[span["part"]][span["start"]:span["end"]])
            for span in made["spans"] if span["kind"] == kind]


def test_needles_questions_and_distractors_are_where_the_spans_say():
    made = make(Settings(needles=5, questions=2, distractors=3, characters=9000, seed=4), [GENESIS])
    assert 8500 < len(made["text"]) + len(made["answer_prefix"]) <= 9000
    needles = spans(made, "needle")
    assert sorted(group for group, _, _ in needles) == [0, 1, 2, 3, 4]
    for _, word, sentence in needles:
        assert sentence.startswith(f"One of the special magic numbers for {word} is: ") and sentence.endswith(".")
        assert made["text"].count(sentence) == 1
    words = {group: word for group, word, _ in needles}
    assert spans(made, "question") == [
        (group, words[group], f"What is the special magic number for {words[group]} mentioned in the text?")
        for group in (0, 1)]
    assert [text[:30] for _, _, text in spans(made, "haystack")] == ["One of the special magic lette"] * 3
    assert [text for _, _, text in spans(made, "instruction")] == [make_prompt.INTRODUCTION, make_prompt.ORDER[2]]
    assert made["answer_prefix"] == ""
    assert made["seed"] == 4 and made["settings"]["distractors"] == 3


def test_one_question_has_an_answer_to_be_continued():
    made = make(Settings(characters=3000), [GENESIS])
    (_, word, _), (_, _, prefix) = spans(made, "question")
    assert prefix == made["answer_prefix"] == f"The special magic number for {word} mentioned in the text is"


def test_the_same_seed_gives_the_same_prompt_and_another_does_not():
    first, again, other = (make(Settings(characters=5000, seed=seed), [GENESIS]) for seed in (1, 1, 2))
    assert json.dumps(first) == json.dumps(again)
    assert first["text"] != other["text"]


def test_needles_lie_at_their_depths():
    made = make(Settings(needles=3, depths=[1.0, 0.0, 0.5], characters=20000), [GENESIS])
    begin = {span["group"]: span["start"] / len(made["text"]) for span in made["spans"] if span["kind"] == "needle"}
    assert begin[1] < 0.02 and 0.45 < begin[2] < 0.55 and begin[0] > 0.95


def test_the_haystack_is_not_changed():
    made = make(Settings(needles=2, characters=4000), [GENESIS])
    planted = {text for _, _, text in spans(made, "needle") + spans(made, "instruction")}
    lines = [line for line in made["text"].splitlines()[:-1] if line not in planted]
    assert lines == make_prompt.read_text(GENESIS).splitlines()[:len(lines)]


def test_sentences_are_not_cut_when_lines_are_wrapped(tmp_path):
    path = tmp_path / "wrapped.txt"
    path.write_text("This sentence goes on\nto a second line. " * 200)
    made = make(Settings(needles=2, characters=3000, split="sentences"), [path])
    planted = {text for _, _, text in spans(made, "needle") + spans(made, "instruction")}
    lines = [line for line in made["text"].splitlines()[:-1] if line not in planted]
    assert set(lines) == {"This sentence goes on to a second line."}


def test_text_and_code_without_needles_are_kept_as_they_are(tmp_path):
    code = "def f(x):\n\n    return x  # two\n" * 100
    (tmp_path / "code.py").write_text(code)
    made = make(Settings(needles=0, characters=1000), [tmp_path / "code.py"])
    assert (made["text"], made["spans"], made["chat"]) == (code[:1000], [], False)


@pytest.mark.parametrize("settings,kind,match", [
    ({"needles": 2, "questions": 3, "characters": 3000}, UsageError, "--questions 3 is not in 0 to 2"),
    ({"needles": 99, "characters": 3000}, UsageError, "--needles 99"),
    ({"needles": 2, "depths": [0.5], "characters": 3000}, UsageError, "1 depths were given for 2"),
    ({"needles": 1, "depths": [1.5], "characters": 3000}, UsageError, "between 0 and 1"),
    ({"characters": 50}, UsageError, "50 characters are too few"),
    ({"characters": 10**6}, Refused, "the text gives a prompt of"),
    ({"tokens": 100}, UsageError, "--tokens needs --tokenizer"),
    ({}, UsageError, "exactly one of --tokens and --characters"),
    ({"needles": 0, "distractors": 1, "characters": 100}, UsageError, "--distractors"),
])
def test_what_cannot_be_made_is_refused(settings, kind, match):
    with pytest.raises(kind, match=match):
        make(Settings(**settings), [GENESIS])


def test_the_program_writes_json_and_says_what_is_wrong(tmp_path, capsys):
    out = tmp_path / "prompt.json"
    assert make_prompt.main(["--characters", "3000", "--seed", "5", "--out", str(out)]) == 0
    assert json.loads(out.read_text()) == make(Settings(characters=3000, seed=5), [GENESIS])
    assert make_prompt.main(["--characters", "3000", "--text", "/nonexistent", "--out", str(out)]) == 2
    assert capsys.readouterr().err == "error: the text /nonexistent does not exist\n"
    (tmp_path / "binary").write_bytes(b"\xff\xfe\xff")
    assert make_prompt.main(["--characters", "30", "--text", str(tmp_path / "binary"), "--out", str(out)]) == 3


# With tokenizers: these need the packages of capture_hf.py.

CHATML = ("{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] | trim }}<|im_end|>\n{% endfor %}"
          "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}")


@pytest.fixture(scope="module")
def tokenizer():
    """Byte-level tokens, as in most current models; merges are learned from the haystack."""
    pytest.importorskip("transformers", reason="transformers is not installed (scripts/requirements-capture.txt)")
    from tokenizers import ByteLevelBPETokenizer
    from transformers import PreTrainedTokenizerFast

    trained = ByteLevelBPETokenizer()
    trained.train_from_iterator([make_prompt.read_text(GENESIS)[:60000]], vocab_size=1500,
                                special_tokens=["<s>", "<|im_start|>", "<|im_end|>"], show_progress=False)
    fast = PreTrainedTokenizerFast(tokenizer_object=trained._tokenizer, bos_token="<s>")
    fast.chat_template = CHATML
    return fast


@pytest.mark.parametrize("chat", [True, False])
def test_annotations_are_the_tokens_of_their_text(tokenizer, chat):
    from quoka_capture.prompts import KINDS, from_generated

    made = make(Settings(needles=3, questions=1, tokens=1500), [GENESIS], tokenizer)
    made["chat"] = chat
    prompt = from_generated(tokenizer, made)
    assert len(prompt.annotations) == len(made["spans"]) == 3 + 2 + 2
    for annotation, span in zip(prompt.annotations, made["spans"]):
        wanted = made[span["part"]][span["start"]:span["end"]]
        assert tokenizer.decode(prompt.ids[annotation.start:annotation.end]).strip() == wanted
        assert annotation.kind == KINDS[span["kind"]] and annotation.group == span["group"]
    assert prompt.text.startswith("<|im_start|>user\n") == chat
    assert prompt.text.endswith(made["answer_prefix"])


def test_the_length_in_tokens_is_met_after_the_chat_template(tokenizer):
    from quoka_capture.prompts import from_generated

    for wanted in (600, 2048):
        made = make(Settings(needles=4, tokens=wanted), [GENESIS], tokenizer)
        assert wanted - 90 < len(from_generated(tokenizer, made).ids) <= wanted  # a verse has at most 90 tokens
    plain = make(Settings(needles=0, tokens=777), [GENESIS], tokenizer)
    assert len(from_generated(tokenizer, plain).ids) == 777


def test_a_template_that_changes_the_text_is_refused(tokenizer):
    from quoka_capture.prompts import from_generated

    with pytest.raises(Refused, match="does not contain the prompt's text"):
        from_generated(tokenizer, {"text": " text with spaces around ", "chat": True})


def test_a_prompt_file_is_checked(tmp_path):
    pytest.importorskip("torch", reason="torch is not installed (scripts/requirements-capture.txt)")
    from quoka_capture.prompts import read_prompt_file

    path = tmp_path / "p.json"
    make_prompt.main(["--characters", "3000", "--out", str(path)])
    made = read_prompt_file(path)
    made["spans"][0]["end"] = 10**6
    for broken in (json.dumps(made), "{", "[]", '{"format": "other"}'):
        path.write_text(broken)
        with pytest.raises(Refused):
            read_prompt_file(path)
