"""Model and tokenizer from a folder or the hub, and what identifies them."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Optional

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from .errors import Refused

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16, "auto": "auto"}
WEIGHTS = (".safetensors", ".bin", ".gguf", ".pt", ".pth")


@dataclass(frozen=True)
class Source:
    """Where a model comes from, as options say it."""

    model: str
    gguf_file: Optional[str] = None
    revision: Optional[str] = None
    compute_dtype: str = "float32"
    device: str = "cpu"


def options_of(source: Source) -> dict:
    options = {"gguf_file": source.gguf_file, "revision": source.revision}
    return {name: value for name, value in options.items() if value}


def load_tokenizer(source: Source):
    try:
        return AutoTokenizer.from_pretrained(source.model, **options_of(source))
    except (OSError, ValueError, KeyError, ImportError) as error:
        raise Refused(f"no tokenizer can be loaded from {source.model}: {first_line(error)}") from error


def load_model(source: Source):
    """In evaluation mode, with eager attention (the one that every class has)."""
    try:
        model = AutoModelForCausalLM.from_pretrained(
            source.model, dtype=DTYPES[source.compute_dtype], attn_implementation="eager", **options_of(source))
    except (OSError, ValueError, KeyError, ImportError) as error:
        raise Refused(f"no causal model can be loaded from {source.model}: {first_line(error)}") from error
    return model.to(source.device).eval()


def first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def revision_of(source: Source, model) -> str:
    """The commit of the hub; for a folder the SHA-256 of its weights. Never a branch."""
    commit = getattr(model.config, "_commit_hash", None)
    if commit:
        return str(commit)
    folder = Path(source.model)
    if not folder.is_dir():
        return "unknown"
    if folder.parent.name == "snapshots":  # a folder of the hub's cache is named by its commit
        return folder.name
    files = [folder / source.gguf_file] if source.gguf_file else sorted(
        path for path in folder.iterdir() if path.suffix in WEIGHTS)
    digest = hashlib.sha256()
    for path in files:
        digest.update(path.name.encode() + b"\0")
        with path.open("rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
    return f"sha256:{digest.hexdigest()}"
