"""Exact attention in float32, in blocks of query rows, with everything that shapes the softmax explicit."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Optional, Tuple

import torch

BLOCK_BYTES = 32 << 20  # logits of one block of rows


@dataclass(frozen=True)
class Softmax:
    """What a layer does between q.k and the probabilities; 0 or None means that it does not."""

    scale: float
    window: int = 0  # key j is visible to query i if 0 <= i - j < window
    chunk: int = 0  # and if i // chunk == j // chunk
    softcap: float = 0.0
    sinks: Optional[torch.Tensor] = None  # [Hq] logits that join the denominator only
    slopes: Optional[torch.Tensor] = None  # [Hq] ALiBi: slope * (j - i) is added to the logit
    slopes_scaled: bool = False  # the ALiBi bias is multiplied by the scale too

    def of_heads(self, begin: int, end: int) -> "Softmax":
        """The same for query heads [begin, end) only."""
        return replace(self, sinks=None if self.sinks is None else self.sinks[begin:end],
                       slopes=None if self.slopes is None else self.slopes[begin:end])


def visible(rows: torch.Tensor, keys: torch.Tensor, softmax: Softmax) -> torch.Tensor:
    """[rows, keys] bool: may the query at this position see the key at that one?"""
    distance = rows[:, None] - keys[None, :]
    seen = distance >= 0
    if softmax.window:
        seen &= distance < softmax.window
    if softmax.chunk:
        seen &= rows[:, None] // softmax.chunk == keys[None, :] // softmax.chunk
    return seen


def first_visible(row: int, softmax: Softmax) -> int:
    first = max(0, row - softmax.window + 1) if softmax.window else 0
    return max(first, row // softmax.chunk * softmax.chunk) if softmax.chunk else first


def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor,
              softmax: Softmax) -> Tuple[torch.Tensor, torch.Tensor]:
    """Causal attention of q [Hq,T,Dk], k [Hkv,T,Dk], v [Hkv,T,Dv]: out [Hq,T,Dv] and lse [Hq,T], float32.

    Query head h reads KV head h // (Hq / Hkv). lse is the log of the sum of exp(logit), sink included.
    """
    n_heads, n_tokens, _ = q.shape
    group = n_heads // k.shape[0]
    out = torch.empty(n_heads, n_tokens, v.shape[2], dtype=torch.float32, device=q.device)
    lse = torch.empty(n_heads, n_tokens, dtype=torch.float32, device=q.device)
    n_rows = max(1, min(n_tokens, BLOCK_BYTES // (4 * group * n_tokens)))
    for kv_head in range(k.shape[0]):
        heads = slice(kv_head * group, (kv_head + 1) * group)
        part = softmax.of_heads(heads.start, heads.stop)
        keys, values = k[kv_head].float(), v[kv_head].float()
        for begin in range(0, n_tokens, n_rows):
            end = min(begin + n_rows, n_tokens)
            first = first_visible(begin, softmax)
            queries = q[heads, begin:end].float()
            out[heads, begin:end], lse[heads, begin:end] = _block(
                queries, keys[first:end], values[first:end], (begin, first), part)
    return out, lse


def _block(q, k, v, positions, softmax):
    """Rows from positions[0] of the query heads of one KV head, against the keys from positions[1]."""
    group, n_rows, width = q.shape
    rows = torch.arange(positions[0], positions[0] + n_rows, device=q.device)
    keys = torch.arange(positions[1], positions[1] + k.shape[0], device=q.device)
    logits = (q.reshape(group * n_rows, width) @ k.T).view(group, n_rows, -1).mul_(softmax.scale)
    if softmax.softcap:
        logits.div_(softmax.softcap).tanh_().mul_(softmax.softcap)
    if softmax.slopes is not None:
        factor = softmax.scale if softmax.slopes_scaled else 1.0
        slopes = softmax.slopes.to(q.device, torch.float32) * factor
        logits += slopes[:, None, None] * (keys[None, :] - rows[:, None])
    logits.masked_fill_(~visible(rows, keys, softmax), -torch.inf)
    highest = logits.amax(-1, keepdim=True)  # a row always sees itself, so this is finite
    if softmax.sinks is not None:
        sinks = softmax.sinks.to(q.device, torch.float32)[:, None, None]
        highest = torch.maximum(highest, sinks)
    weights = logits.sub_(highest).exp_()
    total = weights.sum(-1, keepdim=True)
    if softmax.sinks is not None:
        total = total + (sinks - highest).exp()
    out = (weights.view(group * n_rows, -1) @ v).view(group, n_rows, -1) / total
    return out, (highest + total.log())[..., 0]
