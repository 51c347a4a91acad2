"""The capture file: one part file per layer, each a whole capture of that layer, put together at the end."""

from __future__ import annotations

import glob
import hashlib
import os
import shutil
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Dict, List, Optional

import h5py
import numpy as np
import torch

from .errors import Refused, UsageError, WriteError, require
from .layers import Layer
from .storage import item_size, rounded, write_tensor

LIBVER = ("v108", "v108")  # superblock 2: metadata with checksums
MEANINGS = "haystack needle question instruction answer"


@dataclass
class Annotation:
    """Tokens [start, end) are of this kind; a question and its needles share a group."""

    start: int
    end: int
    kind: int
    group: int
    label: str


@dataclass
class Header:
    """Everything of a capture that is not a layer."""

    texts: Dict[str, str]  # root attributes
    n_model_layers: int
    ids: np.ndarray  # int32 [T]
    offsets: Optional[np.ndarray] = None  # int64 [T, 2]
    annotations: List[Annotation] = field(default_factory=list)
    config_json: str = ""
    prompt_text: Optional[str] = None


@dataclass
class Tensors:
    """One layer in its storage type; out and lse are computed from the stored q, k and v."""

    q: torch.Tensor
    k: torch.Tensor
    v: torch.Tensor
    out: torch.Tensor
    lse: torch.Tensor


def layer_bytes(layer: Layer, kv_heads: int, n_tokens: int, storage: str) -> int:
    """Size of one stored layer, without the few kilobytes of HDF5's own data."""
    q_heads = layer.n_q_heads // layer.n_kv_heads * kv_heads
    numbers = (q_heads + kv_heads) * (layer.k_dim + layer.v_dim)
    return n_tokens * (numbers * item_size(storage) + 4 * q_heads)


def set_text(holder, name: str, value: str):
    """A fixed-length string attribute."""
    data = value.encode()
    ascii_only = len(data) == len(value)
    kind = h5py.string_dtype("ascii" if ascii_only else "utf-8", max(1, len(data)))
    holder.attrs.create(name, np.array(data, dtype=kind), dtype=kind)


def to_storage(x: torch.Tensor, storage: str, layer: int, name: str) -> torch.Tensor:
    stored = rounded(x, storage)
    if not bool(torch.isfinite(stored).all()):
        require(bool(torch.isfinite(x).all()), Refused, f"layer {layer}: {name} holds NaN or infinity")
        raise Refused(f"layer {layer}: {name} reaches {float(x.abs().max()):.4g}, which {storage} cannot hold;"
                      " use --dtype bfloat16 or float32")
    return stored


def write_layer(file: h5py.File, layer: Layer, tensors: Tensors):
    group = file.create_group(f"layers/{layer.index:03d}")
    for name in ("q", "k", "v", "out"):
        write_tensor(group, name, getattr(tensors, name))
    group.create_dataset("lse", data=tensors.lse.cpu().numpy().astype(np.float32),
                         chunks=(1, min(tensors.lse.shape[1], 65536)), fletcher32=True)
    softmax = layer.softmax
    if softmax.sinks is not None:
        group.create_dataset("sinks", data=softmax.sinks.cpu().numpy().astype(np.float32))
    if softmax.slopes is not None:
        group.create_dataset("alibi_slopes", data=softmax.slopes.cpu().numpy().astype(np.float32))
    integers = {
        "layer_index": layer.index, "n_q_heads": tensors.q.shape[0], "n_kv_heads": tensors.k.shape[0],
        "k_head_dim": layer.k_dim, "v_head_dim": layer.v_dim, "q_offset": 0, "sliding_window": softmax.window,
        "attention_chunk": softmax.chunk, "kv_shared_from": layer.kv_shared_from, "v_equals_k_prefix": 0,
    }
    flags = {
        "causal": True, "softcap_applied": softmax.softcap > 0, "has_sinks": softmax.sinks is not None,
        "alibi": softmax.slopes is not None, "alibi_scaled": softmax.slopes_scaled and softmax.slopes is not None,
    }
    for name, value in integers.items():
        group.attrs[name] = np.int64(value)
    for name, value in flags.items():
        group.attrs[name] = np.uint8(value)
    group.attrs["softmax_scale"] = np.float64(softmax.scale)
    group.attrs["logit_softcap"] = np.float64(layer.configured_softcap)
    set_text(group, "position_kind", layer.position_kind)
    set_text(group, "qk_norm", layer.qk_norm)
    set_text(group, "out_kind", "fp32_from_stored")
    if layer.rope_json:
        set_text(group, "rope_json", layer.rope_json)


def write_header(file: h5py.File, header: Header):
    for name, value in header.texts.items():
        set_text(file, name, value)
    file.attrs["format_version"] = np.uint32(1)
    file.attrs["num_hidden_layers"] = np.int64(header.n_model_layers)
    file["tokens/ids"] = header.ids.astype(np.int32)
    file["tokens/positions"] = np.arange(len(header.ids), dtype=np.int32)
    if header.offsets is not None:
        file["tokens/offsets"] = header.offsets.astype(np.int64)
    for name, text in (("config_json", header.config_json), ("prompt_text", header.prompt_text)):
        if text:
            file[f"meta/{name}"] = np.frombuffer(text.encode(), dtype=np.uint8)
    if header.annotations:
        write_annotations(file.create_group("annotations"), header.annotations)


def write_annotations(group: h5py.Group, annotations: List[Annotation]):
    for name, kind in (("start", np.int64), ("end", np.int64), ("kind", np.uint8), ("group", np.int32)):
        group[name] = np.array([getattr(annotation, name) for annotation in annotations], dtype=kind)
    labels = np.zeros((len(annotations), 64), dtype=np.uint8)
    for row, annotation in zip(labels, annotations):
        data = annotation.label.encode()[:64].decode(errors="ignore").encode()
        row[:len(data)] = np.frombuffer(data, dtype=np.uint8)
    group["label"] = labels
    group["kind"].attrs["flag_values"] = np.arange(5, dtype=np.uint8)
    set_text(group["kind"], "flag_meanings", MEANINGS)


@contextmanager
def writing(path: Path):
    """A new HDF5 file; whatever the library says when the disk is full becomes one error."""
    try:
        with h5py.File(path, "w", libver=LIBVER) as file:
            yield file
    except (OSError, RuntimeError) as error:
        raise WriteError(f"{path} cannot be written ({error})") from error


class Parts:
    """A folder beside the output that holds the finished layers. It is gone after the `with` block."""

    def __init__(self, out: Path, header: Header, overwrite: bool):
        self.out, self.header, self.overwrite = out, header, overwrite

    def __enter__(self):
        check_output(self.out, self.overwrite)
        self.folder = Path(tempfile.mkdtemp(prefix=f".{self.out.name}.parts-", dir=self.out.parent))
        self.files: List[Path] = []
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.folder, ignore_errors=True)

    def add(self, layer: Layer, tensors: Tensors):
        part = self.folder / f"layer_{layer.index:03d}.h5"
        unfinished = part.with_suffix(".tmp")
        with writing(unfinished) as file:
            write_header(file, self.header)
            write_layer(file, layer, tensors)
        os.replace(unfinished, part)
        self.files.append(part)

    def assemble(self):
        """Writes the capture under its final name, which did not exist (or was not complete) before."""
        whole = self.folder / "whole.tmp"
        with writing(whole) as file:
            write_header(file, self.header)
            layers = file.create_group("layers")
            for part in sorted(self.files):
                with h5py.File(part) as source:
                    (name,) = source["layers"]
                    source.copy(f"layers/{name}", layers)  # copies chunks as they are
        sync(whole)
        check_output(self.out, self.overwrite)
        os.replace(whole, self.out)
        sync(self.out.parent)


def left_over(out: Path) -> List[Path]:
    """Parts of captures of this name that were killed, or that run now."""
    return sorted(out.parent.glob(f".{glob.escape(out.name)}.parts-*"))


def check_output(out: Path, overwrite: bool):
    require(out.parent.is_dir(), UsageError, f"the folder {out.parent} does not exist; make it first")
    require(not out.is_dir(), UsageError, f"{out} is a folder (--out names a file)")
    require(overwrite or not out.exists(), UsageError, f"{out} exists; use --overwrite to replace it")


def sync(path: Path):
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
