"""Between the model and the file: the attention function that transformers calls, one layer at a time."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import Callable, Dict, List, Optional

import torch
from transformers import AttentionInterface, PreTrainedModel
from transformers.masking_utils import AttentionMaskInterface

from . import old_style
from .attention import attention
from .errors import Refused, require
from .layers import Layer, check_heads, describe_layer
from .masks import LazyMask, check_mask, lazy_mask

NAME = "qkv_capture"  # "flash", "sdpa", "/" and "|" in a name would have a meaning of their own


class AllDone(Exception):
    """Every wanted layer was recorded; the rest of the forward pass is not needed."""


class Recorder:
    """Computes each layer's attention and hands its tensors to `keep` (layer, q, k, v without batch axis).

    Without `keep` it only checks: heads, masks, and its output against the class's own eager function.
    """

    def __init__(self, keep: Optional[Callable] = None, wanted: Optional[set] = None):
        self.keep = keep
        self.wanted = wanted
        self.layers: Dict[int, Layer] = {}
        self.eager_errors: Dict[int, float] = {}
        self.shared: Dict[str, int] = {}

    def attend(self, module, query, key, value, attention_mask=None, **arguments):
        """The attention function of transformers' interface: returns [1, T, Hq, Dv], None."""
        layer = describe_layer(module, query, key, value, arguments)
        require(layer.index not in self.layers, Refused,
                f"layer {layer.index} computes attention more than once in one forward pass"
                " (version 1 holds one attention per layer)")
        layer.kv_shared_from = self.find_shared(module, layer.index)
        check_mask(attention_mask, layer.softmax, query.shape[2], layer.index)
        self.layers[layer.index] = layer
        q, k, v = query[0], key[0], value[0]
        out, lse = attention(q, k, v, layer.softmax)
        if self.keep is None:
            check_heads(layer, key, value)
            self.compare_with_eager(layer, (module, query, key, value, attention_mask), arguments, out)
        elif layer.index in self.wanted:
            self.keep(layer, q, k, v, out, lse)
            if self.wanted <= self.layers.keys():
                raise AllDone
        return out.transpose(0, 1)[None].to(query.dtype).contiguous(), None

    def find_shared(self, module, index: int) -> int:
        """-1, or the layer whose keys and values this one uses (Gemma 3n: the last of its kind that has some)."""
        kind = str(getattr(module, "layer_type", ""))
        if getattr(module, "is_kv_shared_layer", False):
            require(kind in self.shared, Refused, f"layer {index} uses the keys of another layer, and which one"
                    " is not known")
            return self.shared[kind]
        self.shared[kind] = index
        return -1

    def compare_with_eager(self, layer, call, arguments, out):
        """Records the largest difference from the class's own eager attention, relative to its largest value."""
        module, query, key, value, mask = call
        eager = getattr(sys.modules[type(module).__module__], "eager_attention_forward", None)
        if eager is None or not isinstance(mask, LazyMask):
            return
        theirs = eager(module, query, key, value, mask.dense(), **arguments)[0][0].transpose(0, 1).float()
        error = (theirs - out).abs().max() / theirs.abs().max().clamp_min(1e-30)
        self.eager_errors[layer.index] = float(error)


def configs_of(model) -> List:
    """The config of the model and of every model inside, each once."""
    configs = {id(module.config): module.config for module in model.modules()
               if isinstance(module, PreTrainedModel)}
    return list(configs.values())


@contextmanager
def installed(model, recorder: Recorder):
    """While inside, the model's attention is the recorder's."""
    AttentionInterface.register(NAME, recorder.attend)
    AttentionMaskInterface.register(NAME, lazy_mask)
    configs = configs_of(model)
    before = [config._attn_implementation_internal for config in configs]
    patched = old_style.patch(model, recorder.attend)
    try:
        for config in configs:
            config._attn_implementation_internal = NAME
        yield recorder
    finally:
        old_style.restore(patched)
        for config, implementation in zip(configs, before):
            config._attn_implementation_internal = implementation


@contextmanager
def reference(model):
    """While inside, the model's attention is the one that captures are compared with."""
    configs = configs_of(model)
    before = [config._attn_implementation_internal for config in configs]
    try:
        for config in configs:
            config._attn_implementation_internal = old_style.reference_implementation(model)
        yield
    finally:
        for config, implementation in zip(configs, before):
            config._attn_implementation_internal = implementation


@torch.no_grad()
def run(model, ids: torch.Tensor, logits: bool = False):
    """One forward pass over ids [T]; without logits only the part below the head."""
    body = model if logits else getattr(model, "base_model", model)
    try:
        result = body(input_ids=ids[None], use_cache=False)
    except AllDone:
        return None
    return result.logits[0].float() if logits else None
