#!/usr/bin/env python3
"""Makes a long prompt from text files, with planted needles, as JSON for capture_hf.py --prompt.

  make_prompt.py --needles 4 --questions 2 --tokens 8192 --tokenizer MODEL --out prompt.json
  make_prompt.py --needles 3 --depths 0.1 0.5 0.9 --distractors 5 --characters 20000 --text a.txt b.txt --out p.json
  make_prompt.py --needles 0 --text src/*.py --characters 50000 --out code.json      (plain text or code)

A needle is "One of the special magic numbers for violet is: 4098086."; a question asks for the number. A
distractor has the form of a needle with letters instead of a number. The JSON holds the text, the
character spans of needles, questions and instructions, the seed and the settings, so that every
tokenizer can map it to its own tokens. The same seed, settings and files give the same prompt.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import re
import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Callable, List, Optional, Tuple

from quoka_capture.errors import CaptureError, Refused, UsageError, require

GENESIS = Path(__file__).resolve().parents[1] / "data/genesis.txt.gz"
WORDS = ("violet copper marble cedar amber walnut silver coral indigo granite maple crimson ivory bronze juniper"
         " topaz willow scarlet pewter saffron birch cobalt opal hazel velvet quartz olive ember slate poplar").split()
INTRODUCTION = ("Some special magic numbers are hidden within the following text. Memorize them. I will quiz you"
                " about the numbers afterwards.")
ORDER = {1: "Answer with the number only.", 2: "Answer with the numbers only, in the order of the questions."}


@dataclass
class Settings:
    """What to make. Exactly one of tokens and characters limits the length."""

    needles: int = 4
    questions: int = 1  # the first of the needles are asked for
    distractors: int = 0
    depths: Optional[List[float]] = None  # of the needles, 0 to 1; None: random
    tokens: Optional[int] = None
    characters: Optional[int] = None
    seed: int = 0
    split: str = "lines"  # or "sentences": where needles may be planted
    chat: Optional[bool] = None  # the chat template is to be applied; None: if there are needles


@dataclass
class Builder:
    """Text with the spans of what was appended."""

    text: str = ""
    spans: List[dict] = field(default_factory=list)

    def add(self, text: str, kind: Optional[str] = None, group: int = -1, label: str = ""):
        if kind:
            self.spans.append({"part": "text", "kind": kind, "group": group, "label": label,
                               "start": len(self.text), "end": len(self.text) + len(text)})
        self.text += text


def read_text(path: Path) -> str:
    require(path.is_file(), UsageError, f"the text {path} does not exist")
    data = path.read_bytes()
    try:
        return (gzip.decompress(data) if path.suffix == ".gz" else data).decode("utf-8")
    except (UnicodeDecodeError, gzip.BadGzipFile, EOFError) as error:
        raise Refused(f"{path} is not UTF-8 text ({error})") from error


def pieces(text: str, split: str) -> List[str]:
    """What the haystack is made of: no needle is planted inside a piece."""
    if split == "sentences":
        return re.split(r"(?<=[.!?])\s+", " ".join(text.split()))
    return [line.strip() for line in text.splitlines() if line.strip()]


def plant(settings: Settings, hay: List[str]) -> List[Tuple[str, str, int, str]]:
    """The haystack with its needles: (text, kind, group, label) in order. Random draws do not depend on len(hay)."""
    draw = random.Random(settings.seed)
    words = draw.sample(WORDS, settings.needles)
    numbers = draw.sample(range(1_000_000, 10_000_000), settings.needles)
    depths = settings.depths or [draw.random() for _ in words]
    planted = [(depth, f"One of the special magic numbers for {word} is: {number}.", "needle", group, word)
               for group, (word, number, depth) in enumerate(zip(words, numbers, depths))]
    for _ in range(settings.distractors):
        word, letters = draw.choice(WORDS), "".join(draw.choice("BCDFGHJKLMNPQRSTVWXZ") for _ in range(7))
        planted.append((draw.random(), f"One of the special magic letters for {word} is: {letters}.", "haystack", -1,
                        f"distractor {word}"))
    items = [(index + 0.5, piece, "", -1, "") for index, piece in enumerate(hay)]
    items += [(depth * len(hay), *rest) for depth, *rest in planted]
    return [item[1:] for item in sorted(items, key=lambda item: item[0])]


def with_needles(settings: Settings, hay: List[str]) -> dict:
    """The prompt with these pieces as its haystack."""
    builder = Builder()
    builder.add(INTRODUCTION, "instruction", -1, "introduction")
    items = plant(settings, hay)
    for text, kind, group, label in items:
        builder.add("\n")
        builder.add(text, kind, group, label)
    asked = sorted((group, label) for _, kind, group, label in items if kind == "needle")[:settings.questions]
    for group, word in asked:
        builder.add("\n")
        builder.add(f"What is the special magic number for {word} mentioned in the text?", "question", group, word)
    prefix, spans = "", builder.spans
    if asked:
        builder.add(" ")
        builder.add(ORDER[min(len(asked), 2)], "instruction", -1, "answer form")
    if len(asked) == 1:
        (group, word), = asked
        prefix = f"The special magic number for {word} mentioned in the text is"
        spans.append({"part": "answer_prefix", "kind": "question", "group": group, "label": word, "start": 0,
                      "end": len(prefix)})
    return {"text": builder.text, "answer_prefix": prefix, "spans": spans, "chat": settings.chat is not False}


def largest(fits: Callable[[int], bool], limit: int) -> int:
    """The largest n in [0, limit] that fits; fits(0) must hold, and fits is taken as monotone."""
    low, high = 0, limit
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle) else (low, middle - 1)
    return low


def length_of(settings: Settings, tokenizer) -> Callable[[dict], int]:
    if settings.tokens is None:
        return lambda made: len(made["text"]) + len(made["answer_prefix"])
    from quoka_capture.prompts import from_generated

    return lambda made: len(from_generated(tokenizer, {**made, "spans": []}).ids)


def make(settings: Settings, files: List[Path], tokenizer=None) -> dict:
    """The prompt as the JSON's dictionary."""
    check(settings, tokenizer)
    text = "\n".join(read_text(Path(path)) for path in files)
    wanted = settings.tokens or settings.characters
    unit = "tokens" if settings.tokens else "characters"
    length = length_of(settings, tokenizer)
    if settings.needles:
        hay = pieces(text, settings.split)
        build = lambda n: with_needles(settings, hay[:n])  # noqa: E731
        n_pieces = len(hay)
    else:
        build = lambda n: {"text": text[:n], "answer_prefix": "", "spans": [],  # noqa: E731
                           "chat": bool(settings.chat)}
        n_pieces = min(len(text), 16 * wanted)
    least = length(build(1))
    require(least <= wanted, UsageError, f"{wanted} {unit} are too few (needles and questions alone need {least})")
    have = length(build(n_pieces))
    require(have >= wanted, Refused, f"the text gives a prompt of {have} {unit} and {wanted} were asked for;"
            " name more or longer files with --text")
    made = build(largest(lambda n: n == 0 or length(build(n)) <= wanted, n_pieces))
    made.update(format="quoka-prompt", version=1, seed=settings.seed, settings=asdict(settings),
                files=[Path(path).name for path in files])
    return made


def check(settings: Settings, tokenizer):
    require((settings.tokens is None) != (settings.characters is None), UsageError,
            "exactly one of --tokens and --characters is needed")
    require((settings.tokens or settings.characters) > 0, UsageError, "the length is not positive")
    require(settings.tokens is None or tokenizer is not None, UsageError,
            "--tokens needs --tokenizer (tokens differ between models); or use --characters")
    require(0 <= settings.needles <= len(WORDS), UsageError,
            f"--needles {settings.needles} is not in 0 to {len(WORDS)} (each has its own word)")
    require(settings.needles == 0 or 0 <= settings.questions <= settings.needles, UsageError,
            f"--questions {settings.questions} is not in 0 to {settings.needles} (each asks for a needle)")
    require(settings.distractors >= 0 and (settings.needles or not settings.distractors), UsageError,
            "--distractors needs needles to distract from")
    depths = settings.depths
    require(not depths or len(depths) == settings.needles, UsageError,
            f"{len(depths or [])} depths were given for {settings.needles} needles")
    require(not depths or all(0 <= depth <= 1 for depth in depths), UsageError, "depths lie between 0 and 1")


def parse_arguments(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--text", type=Path, nargs="+", metavar="FILE", default=[GENESIS],
                        help="text files, plain or .gz (default: data/genesis.txt.gz)")
    parser.add_argument("--needles", type=int, default=4, metavar="N", help="default 4; 0: plain text or code")
    parser.add_argument("--questions", type=int, default=1, metavar="N", help="ask for the first N needles (default 1)")
    parser.add_argument("--distractors", type=int, default=0, metavar="N", help="sentences that look like needles")
    parser.add_argument("--depths", type=float, nargs="+", metavar="D",
                        help="where each needle lies, 0 (begin) to 1 (end); default random")
    parser.add_argument("--tokens", type=int, metavar="N", help="length of the whole prompt, at most")
    parser.add_argument("--characters", type=int, metavar="N", help="length in characters instead")
    parser.add_argument("--tokenizer", metavar="MODEL", help="folder or hub id that counts --tokens")
    parser.add_argument("--gguf-file", metavar="NAME", help="GGUF file of the tokenizer")
    parser.add_argument("--seed", type=int, default=0, metavar="N")
    parser.add_argument("--split", choices=["lines", "sentences"], default="lines",
                        help="needles go between lines or between sentences")
    parser.add_argument("--out", type=Path, required=True, help="JSON to write")
    return parser.parse_args(arguments)


def run(options):
    settings = Settings(**{name: getattr(options, name) for name in (
        "needles", "questions", "distractors", "depths", "tokens", "characters", "seed", "split")})
    tokenizer = None
    if options.tokenizer:
        from quoka_capture.loading import Source, load_tokenizer

        tokenizer = load_tokenizer(Source(options.tokenizer, options.gguf_file))
    made = make(settings, options.text, tokenizer)
    options.out.write_text(json.dumps(made, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def main(arguments=None):
    options = parse_arguments(arguments)
    try:
        run(options)
    except CaptureError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    except OSError as error:
        print(f"error: {error}", file=sys.stderr)
        return 74
    return 0


if __name__ == "__main__":
    sys.exit(main())
