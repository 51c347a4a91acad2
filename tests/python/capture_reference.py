"""An independent float64 attention, one row at a time, from the stored tensors and attributes of a capture."""

from __future__ import annotations

import h5py
import numpy as np


def text(value) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def numbers(dataset: h5py.Dataset) -> np.ndarray:
    return dataset[:].astype(np.float64)  # h5py reads the 16-bit types as numbers


def layer_reference(group: h5py.Group):
    """out [Hq, T, Dv] and lse [Hq, T] of one layer group."""
    q, k, v = (numbers(group[name]) for name in ("q", "k", "v"))
    a = dict(group.attrs)
    repeat = int(a["n_q_heads"]) // int(a["n_kv_heads"])
    out = np.empty((q.shape[0], q.shape[1], v.shape[2]))
    lse = np.empty(q.shape[:2])
    for head in range(q.shape[0]):
        kv = head // repeat
        for row in range(q.shape[1]):
            i = row + int(a["q_offset"])
            begin = 0
            if a["sliding_window"] > 0:
                begin = max(begin, i + 1 - int(a["sliding_window"]))
            if a["attention_chunk"] > 0:
                begin = max(begin, i - i % int(a["attention_chunk"]))
            keys = np.arange(begin, i + 1)
            logits = float(a["softmax_scale"]) * (k[kv, keys] @ q[head, row])
            if a["softcap_applied"]:
                cap = float(a["logit_softcap"])
                logits = cap * np.tanh(logits / cap)
            if a["alibi"]:
                slope = float(group["alibi_slopes"][head])
                logits = logits - slope * (i - keys) * (float(a["softmax_scale"]) if a["alibi_scaled"] else 1.0)
            everything = np.append(logits, group["sinks"][head]) if a["has_sinks"] else logits
            top = everything.max()
            lse[head, row] = top + np.log(np.exp(everything - top).sum())
            out[head, row] = np.exp(logits - lse[head, row]) @ v[kv, keys]
    return out, lse


def errors(group: h5py.Group):
    """Largest relative error of a row of out (2-norm), and largest error of lse over max(1, |lse|)."""
    out, lse = layer_reference(group)
    difference = np.linalg.norm(numbers(group["out"]) - out, axis=2) / np.linalg.norm(out, axis=2)
    return float(difference.max()), float((np.abs(group["lse"][:] - lse) / np.maximum(1, np.abs(lse))).max())
