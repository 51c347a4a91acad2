"""What a layer's attributes are: from its attention module, its config and the arguments that it hands over."""

from __future__ import annotations

import json
from dataclasses import dataclass

import torch

from .attention import Softmax
from .errors import Refused, require

# Arguments that do not change the result of attention.
HARMLESS = {
    "position_ids", "cache_position", "past_key_values", "past_key_value", "use_cache", "output_attentions",
    "output_hidden_states", "output_router_logits", "return_dict", "position_embeddings", "logits_to_keep",
    "labels", "num_items_in_batch", "padding_mask",
}


@dataclass
class Layer:
    """One attention call, without its tensors. Sizes are those that arrived."""

    index: int
    n_q_heads: int
    n_kv_heads: int
    k_dim: int
    v_dim: int
    softmax: Softmax
    configured_softcap: float
    position_kind: str
    qk_norm: str
    kv_shared_from: int = -1
    rope_json: str = ""


def softmax_of(module, q, arguments) -> Softmax:
    """Everything that shapes the softmax; refuses arguments that it does not know."""
    arguments = dict(arguments)
    where = f"layer {module.layer_idx} ({type(module).__name__})"
    require(not module.training and not arguments.pop("dropout", 0.0), Refused,
            f"{where} uses dropout (a capture is made in evaluation mode); call model.eval()")
    require(arguments.pop("is_causal", None) is not False and getattr(module, "is_causal", True), Refused,
            f"{where} is not causal (captures with causal = 0 cannot be replayed)")
    scale = arguments.pop("scaling", None)
    window = arguments.pop("sliding_window", None)
    softcap = arguments.pop("softcap", None)
    unknown = sorted(name for name, value in arguments.items()
                     if name not in HARMLESS | {"s_aux", "sinks", "alibi_slopes", "alibi_scaled"}
                     and value is not None and value is not False)
    require(not unknown, Refused, f"{where} hands over {', '.join(unknown)} to its attention (this script"
            " does not know whether that changes the result, and version 1 may not express it)")
    return Softmax(
        scale=float(q.shape[-1] ** -0.5 if scale is None else scale), window=int(window or 0),
        chunk=attention_chunk(module), softcap=float(softcap or 0.0), sinks=sinks_of(module, arguments, where),
        slopes=arguments.get("alibi_slopes"), slopes_scaled=bool(arguments.get("alibi_scaled")))


def sinks_of(module, arguments, where):
    given = [arguments[name] for name in ("s_aux", "sinks") if arguments.get(name) is not None]
    require(len(given) < 2, Refused, f"{where} hands over s_aux and sinks (only one of them can be the sinks)")
    own = getattr(module, "sinks", None)
    require(own is None or given, Refused,
            f"{where} has sinks but does not hand them over (they would silently be left out)")
    return given[0].detach().float().flatten() if given else None


def attention_chunk(module) -> int:
    """Llama 4 says it in its config only, by the kind of each layer."""
    kinds = getattr(getattr(module, "config", None), "layer_types", None)
    if not kinds or module.layer_idx >= len(kinds) or kinds[module.layer_idx] != "chunked_attention":
        return 0
    return int(module.config.attention_chunk_size)


def describe_layer(module, q, k, v, arguments) -> Layer:
    """q [1,Hq,T,Dk], k [1,Hkv,S,Dk], v [1,Hkv,S,Dv] as they reach the attention function."""
    config = getattr(module, "config", None)
    check_shapes(module, q, k, v)
    softmax = softmax_of(module, q, arguments)
    configured = softmax.softcap or getattr(config, "attn_logit_softcapping", None) or 0.0
    return Layer(
        index=int(module.layer_idx), n_q_heads=q.shape[1], n_kv_heads=k.shape[1], k_dim=q.shape[3],
        v_dim=v.shape[3], softmax=softmax, configured_softcap=float(configured),
        position_kind=position_kind(module, config, softmax), qk_norm=qk_norm(module, q.shape),
        rope_json=rope_json(module, config))


def check_shapes(module, q, k, v):
    where = f"layer {module.layer_idx} ({type(module).__name__})"
    shapes = f"q {list(q.shape)}, k {list(k.shape)}, v {list(v.shape)}"
    require(q.ndim == k.ndim == v.ndim == 4, Refused, f"{where} hands over {shapes} (4 dimensions are needed)")
    require(q.shape[0] == 1, Refused, f"{where} hands over a batch of {q.shape[0]} (a capture holds one sequence)")
    require(q.shape[2] == k.shape[2] == v.shape[2], Refused,
            f"{where} has {q.shape[2]} queries, {k.shape[2]} keys and {v.shape[2]} values (a cache, padding or"
            " cross attention; the whole prompt must pass in one forward call)")
    require(k.shape[1] == v.shape[1] and q.shape[1] % k.shape[1] == 0 and q.shape[3] == k.shape[3], Refused,
            f"{where} hands over {shapes} (KV heads must be as many in k as in v and divide the query heads,"
            " and q and k must be equally wide)")


def check_heads(layer: Layer, k, v):
    """Refuses KV heads that arrive repeated, and heads padded with zeros: they would look like more heads."""
    for first in range(layer.n_kv_heads):
        for second in range(first + 1, layer.n_kv_heads):
            require(not (torch.equal(k[0, first], k[0, second]) and torch.equal(v[0, first], v[0, second])),
                    Refused, f"layer {layer.index}: KV heads {first} and {second} are equal (this class"
                    " repeats its KV heads before attention, and version 1 stores them once)")
    require(layer.k_dim == 1 or bool((k[..., -1] != 0).any()), Refused,
            f"layer {layer.index}: the last channel of k is zero everywhere (this class pads its heads)")


def position_kind(module, config, softmax: Softmax) -> str:
    if softmax.slopes is not None:
        return "alibi"
    if hasattr(module, "kv_lora_rank") or getattr(config, "kv_lora_rank", None):
        return "mla"
    if not rotates(module, config):
        return "nope"
    partial = rope_parameters(module, config).get("partial_rotary_factor",
                                                  getattr(config, "partial_rotary_factor", None))
    return "rope_partial" if partial is not None and partial < 1 else "rope"


# Classes that rotate some layers only and have no use_rope.
ROTATES_IF = {
    "Cohere2": lambda module: module.sliding_window is not None,
    "Exaone4": lambda module: module.sliding_window is None or module.is_sliding,
    "ExaoneMoe": lambda module: module.sliding_window is None or module.is_sliding,
    "Afmoe": lambda module: module.is_local_attention,
}


def rotates(module, config) -> bool:
    if hasattr(module, "use_rope"):  # SmolLM3, Llama 4
        return bool(module.use_rope)
    for prefix, rule in ROTATES_IF.items():
        if type(module).__name__.startswith(prefix):
            return rule(module)
    return bool(rope_parameters(module, config)) or getattr(config, "rope_theta", None) is not None


def rope_parameters(module, config) -> dict:
    """Of this layer: some configs hold one set per kind of layer."""
    parameters = getattr(config, "rope_parameters", None) or {}
    kinds = getattr(config, "layer_types", None) or []
    if module.layer_idx < len(kinds) and isinstance(parameters.get(kinds[module.layer_idx]), dict):
        return parameters[kinds[module.layer_idx]]
    return dict(parameters)


def rope_json(module, config) -> str:
    parameters = rope_parameters(module, config)
    return json.dumps(parameters, sort_keys=True, default=str)[:4096] if parameters else ""


def qk_norm(module, q_shape) -> str:
    """For information only: the norm is already applied."""
    norm = next((getattr(module, name) for name in ("q_norm", "q_layernorm", "query_layernorm", "qk_norm")
                 if isinstance(getattr(module, name, None), torch.nn.Module)), None)
    if norm is None:
        return "none"
    weight = getattr(norm, "weight", None)
    if weight is None:
        return "l2"
    return "full_width" if weight.ndim == 1 and weight.numel() == q_shape[1] * q_shape[3] != q_shape[3] \
        else "per_head"
