"""The prompts of a study set: needle prompts, two kinds of prose, two languages of code.

The plain texts are files of pinned packages (scripts/requirements*.txt), so every machine has the same ones; their
SHA-256 is checked.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import List, Optional

import make_prompt
from quoka_capture.errors import Refused, UsageError, require

NEEDLES = 4


@dataclass(frozen=True)
class StudyPrompt:
    """One prompt. `name` is also the name of its capture."""

    name: str
    kind: str  # needles, text or code
    seed: int = 0
    package: Optional[str] = None  # whose file it is; None: data/genesis.txt.gz
    file: str = ""
    sha256: str = ""


PLAIN = [
    StudyPrompt("text_narrative", "text"),
    StudyPrompt("code_python", "code", 0, "h5py", "h5py/_hl/dataset.py",
                "686da5307e116a0dd5b700e75020920abce4059ecc04ccdf0e5d894e8b4edd06"),
    StudyPrompt("text_legal", "text", 0, "pandas", "pandas-2.2.3.dist-info/LICENSE",
                "1dea2e80ed1cbd0233f84cee4486b29689f133babaccf4d295e51c43051f3216"),
    StudyPrompt("code_cpp", "code", 0, "torch", "torch/include/c10/util/SmallVector.h",
                "dcf869cce08f5eb0c1c2492dcac114230998fab552a9198e59d8805a31c8c8ef"),
]


def study_prompts(n_needle_prompts: int, n_plain: int = len(PLAIN)) -> List[StudyPrompt]:
    needles = [StudyPrompt(f"needles_{seed:02d}", "needles", seed) for seed in range(n_needle_prompts)]
    return needles + PLAIN[:n_plain]


def source(prompt: StudyPrompt) -> Path:
    """The file that a prompt's text comes from; refuses one with other content."""
    if prompt.package is None:
        return make_prompt.GENESIS
    try:
        path = Path(str(metadata.distribution(prompt.package).locate_file(prompt.file)))
    except metadata.PackageNotFoundError as error:
        raise UsageError(f"the package {prompt.package}, whose {prompt.file} is the text of {prompt.name}, is not"
                         " installed; run ./scripts/setup.sh --test") from error
    require(path.is_file(), UsageError, f"{path}, the text of {prompt.name}, does not exist (another version of"
            f" {prompt.package} is installed); install the pinned one with ./scripts/setup.sh --test")
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    require(found == prompt.sha256, Refused, f"{path}, the text of {prompt.name}, has the SHA-256 {found} and not"
            f" {prompt.sha256} (studies would not compare); install the pinned {prompt.package} again")
    return path


def make(prompt: StudyPrompt, n_tokens: int, tokenizer) -> dict:
    """The prompt as make_prompt.py makes it, at most n_tokens long."""
    needles = NEEDLES if prompt.kind == "needles" else 0
    settings = make_prompt.Settings(needles=needles, tokens=n_tokens, seed=prompt.seed)
    return make_prompt.make(settings, [source(prompt)], tokenizer)
