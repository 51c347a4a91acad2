"""Classes whose attention does not use the attention interface: their forward is replaced while capturing.

Each replacement repeats the class's own lines around the softmax and calls `attend`, the recorder's
function, in its place. The check on a short prompt compares the logits with the class's own forward.
"""

from __future__ import annotations

import sys
import types
from typing import Callable

import torch

from .errors import Refused, require


def slopes_of(bias: torch.Tensor, layer: int) -> torch.Tensor:
    """[Hq] float32 ALiBi slopes of bias [Hq, S]; refuses a bias that is not slope * j + constant."""
    bias = bias.detach().double()
    n_keys = bias.shape[1]
    if n_keys < 2:
        return torch.zeros(bias.shape[0])
    slopes = (bias[:, -1] - bias[:, 0]) / (n_keys - 1)
    exact = bias[:, :1] + slopes[:, None] * torch.arange(n_keys, device=bias.device)
    error = float(((bias - exact).abs() / bias.abs().amax().clamp_min(1e-30)).max())
    require(error < 1e-6, Refused,
            f"layer {layer}: the ALiBi bias of {n_keys} tokens is not a slope times the distance (it was rounded"
            " to 16 bits, and version 1 stores slopes); use --compute-dtype float32, or for Falcon at most 256"
            " tokens")
    return slopes.float()


def heads_first(x: torch.Tensor) -> torch.Tensor:
    """[1, T, H, D] to [1, H, T, D]."""
    return x.transpose(1, 2)


def bloom(module, attend):
    def forward(self, hidden_states, residual, alibi, attention_mask, layer_past=None, use_cache=False,
                output_attentions=False, **_):
        q, k, v = self._reshape(self.query_key_value(hidden_states))
        out, _ = attend(self, q, k, v, attention_mask, scaling=self.inv_norm_factor,
                        alibi_slopes=slopes_of(alibi[:, 0], self.layer_idx))
        return self.dense(out.flatten(2)) + residual, None

    return forward


def mpt(module, attend):
    def forward(self, hidden_states, position_bias, past_key_values=None, attention_mask=None, **_):
        mixed = self.Wqkv(hidden_states)
        if self.clip_qkv:
            mixed = mixed.clamp(min=-self.clip_qkv, max=self.clip_qkv)
        n_tokens = mixed.shape[1]
        q, k, v = (heads_first(x.unflatten(2, (self.n_heads, self.head_dim))) for x in mixed.chunk(3, dim=2))
        slopes = None
        if position_bias is not None:
            require(n_tokens <= position_bias.shape[2], Refused,
                    f"{n_tokens} tokens are more than the {position_bias.shape[2]} that this MPT model was made for")
            slopes = slopes_of(position_bias[:, 0, -n_tokens:], self.layer_idx)
        out, _ = attend(self, q, k, v, attention_mask, scaling=self.softmax_scale, alibi_slopes=slopes)
        return self.out_proj(out.flatten(2)), None

    return forward


def falcon(module, attend):
    rotate = sys.modules[type(module).__module__].apply_rotary_pos_emb

    def forward(self, hidden_states, alibi, attention_mask, position_ids=None, layer_past=None, use_cache=False,
                output_attentions=False, position_embeddings=None, **_):
        q, k, v = (heads_first(x) for x in self._split_heads(self.query_key_value(hidden_states)))
        if self.new_decoder_architecture:  # keys arrive repeated, in blocks
            group = self.num_heads // self.num_kv_heads
            k, v = k[:, ::group], v[:, ::group]
        slopes = None
        if alibi is None:
            q, k = rotate(q, k, *position_embeddings)
        else:
            slopes = slopes_of(alibi[:, 0], self.layer_idx)
        out, _ = attend(self, q, k, v, attention_mask, scaling=self.inv_norm_factor, alibi_slopes=slopes,
                        alibi_scaled=True)
        return self.dense(out.flatten(2)), None

    return forward


ADAPTERS = {"BloomAttention": bloom, "MptAttention": mpt, "FalconAttention": falcon}


def patch(model, attend: Callable) -> list:
    """Replaces the forward of every old-style attention module; returns the modules, for `restore`."""
    patched = []
    for module in model.modules():
        adapter = ADAPTERS.get(type(module).__name__)
        if adapter is not None:
            module.forward = types.MethodType(adapter(module, attend), module)
            patched.append(module)
    return patched


def restore(patched: list):
    for module in patched:
        del module.forward


def reference_implementation(model) -> str:
    """What to compare with. Falcon's eager attention adds its ALiBi bias twice; its sdpa is right."""
    return "sdpa" if model.config.model_type == "falcon" else "eager"
