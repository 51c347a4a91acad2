"""Prompts to tokens: chat template, offsets, and annotations from characters to tokens."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import List, Optional

import h5py
import numpy as np

from .errors import Refused, UsageError, require
from .writer import Annotation, sha256

FORMAT = "quoka-prompt"
KINDS = {"haystack": 0, "needle": 1, "question": 2, "instruction": 3, "answer": 4}


@dataclass
class Prompt:
    """The exact text that was tokenized, its tokens, and what they are."""

    text: str
    ids: np.ndarray  # int32 [T]
    offsets: Optional[np.ndarray] = None  # int64 [T, 2], characters
    annotations: List[Annotation] = field(default_factory=list)


@dataclass
class Span:
    """Characters [start, end) of the final text."""

    start: int
    end: int
    kind: int
    group: int
    label: str


def tokenize(tokenizer, text: str, special_tokens: bool) -> Prompt:
    require(text, Refused, "the prompt is empty")
    encoded = tokenizer(text, add_special_tokens=special_tokens, return_offsets_mapping=tokenizer.is_fast,
                        verbose=False)
    offsets = np.array(encoded["offset_mapping"], dtype=np.int64) if tokenizer.is_fast else None
    return Prompt(text, np.array(encoded["input_ids"], dtype=np.int32), offsets)


def annotate(prompt: Prompt, spans: List[Span]) -> List[Annotation]:
    """The tokens that hold at least one character of each span."""
    require(not spans or prompt.offsets is not None, Refused,
            "this tokenizer gives no character offsets (annotations need a fast tokenizer)")
    annotations = []
    for span in spans:
        inside = ((prompt.offsets[:, 0] < span.end) & (prompt.offsets[:, 1] > span.start)
                  & (prompt.offsets[:, 1] > prompt.offsets[:, 0])).nonzero()[0]
        require(len(inside), Refused, f"no token holds the {list(KINDS)[span.kind]} {span.label!r}")
        annotations.append(Annotation(int(inside[0]), int(inside[-1]) + 1, span.kind, span.group, span.label))
    return annotations


def from_text(tokenizer, text: str, chat: bool = False) -> Prompt:
    return from_generated(tokenizer, {"text": text, "chat": chat})


def from_generated(tokenizer, made: dict) -> Prompt:
    """A prompt of make_prompt.py: its text goes through the chat template if it asks for that and there is one."""
    text, prefix = made["text"], made.get("answer_prefix", "")
    templated = bool(made.get("chat")) and bool(getattr(tokenizer, "chat_template", None))
    rendered, begin = text, 0
    if templated:
        rendered = tokenizer.apply_chat_template([{"role": "user", "content": text}], tokenize=False,
                                                 add_generation_prompt=True)
        begin = rendered.find(text)
        require(rendered.count(text) == 1, Refused, "the chat template does not contain the prompt's text exactly"
                " once (annotations would be wrong); use --template none")
    elif prefix:
        rendered += "\n"
    starts = {"text": begin, "answer_prefix": len(rendered)}
    prompt = tokenize(tokenizer, rendered + prefix, special_tokens=not templated)
    spans = [Span(starts[span["part"]] + span["start"], starts[span["part"]] + span["end"], KINDS[span["kind"]],
                  int(span["group"]), str(span["label"])) for span in made.get("spans", [])]
    prompt.annotations = annotate(prompt, spans)
    return prompt


def read_prompt_file(path: Path) -> dict:
    """JSON of make_prompt.py, or any text file."""
    require(path.is_file(), UsageError, f"the prompt {path} does not exist")
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise Refused(f"{path} is not UTF-8 text ({error})") from error
    if path.suffix != ".json":
        return {"text": text, "chat": False}
    try:
        made = json.loads(text)
        require(made["format"] == FORMAT and made["version"] == 1, Refused,
                f"{path} is not a prompt of version 1 by make_prompt.py")
        require(isinstance(made["text"], str), Refused, f"{path}: text is not a string")
        for span in made.get("spans", []):
            part = made[span["part"]]
            require(span["kind"] in KINDS and 0 <= span["start"] < span["end"] <= len(part), Refused,
                    f"{path}: the span {span} does not lie in its part")
    except (ValueError, KeyError, TypeError) as error:
        raise Refused(f"{path} is not a prompt of make_prompt.py ({type(error).__name__}: {error});"
                      " a plain text prompt must not be named .json") from error
    return made


def from_capture(tokenizer, path: Path) -> Prompt:
    """The prompt of another capture; its annotations too, through characters if the tokens differ."""
    require(path.is_file(), UsageError, f"the capture {path} does not exist")
    with h5py.File(path) as file:
        require("meta/prompt_text" in file, Refused,
                f"{path} does not hold its prompt (it was captured without --keep-prompt-text)")
        text = file["meta/prompt_text"][:].tobytes().decode()
        wanted = file.attrs["token_ids_sha256"]
        wanted = wanted.decode() if isinstance(wanted, bytes) else str(wanted)
        offsets = file["tokens/offsets"][:] if "tokens/offsets" in file else None
        annotations = read_annotations(file)
    prompt = tokenize(tokenizer, text, special_tokens=False)
    if sha256(prompt.ids.astype("<i4").tobytes()) != wanted:
        prompt = tokenize(tokenizer, text, special_tokens=True)
    if sha256(prompt.ids.astype("<i4").tobytes()) == wanted:
        prompt.annotations = annotations
        return prompt
    require(offsets is not None or not annotations, Refused, f"{path} has other tokens than this tokenizer and no"
            " /tokens/offsets (its annotations cannot be moved)")
    prompt.annotations = annotate(prompt, [
        Span(int(offsets[a.start, 0]), int(offsets[a.end - 1, 1]), a.kind, a.group, a.label) for a in annotations])
    return prompt


def read_annotations(file: h5py.File) -> List[Annotation]:
    if "annotations/start" not in file:
        return []
    group = file["annotations"]
    labels = group["label"][:] if "label" in group else np.zeros((len(group["start"]), 1), np.uint8)
    return [Annotation(int(start), int(end), int(kind), int(number), label.tobytes().rstrip(b"\0").decode())
            for start, end, kind, number, label in zip(group["start"][:], group["end"][:], group["kind"][:],
                                                       group["group"][:], labels)]
