"""One capture: check, estimate, record layer by layer, put together."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Callable, List, Optional

import torch
import transformers

from . import VERSION
from .attention import attention
from .errors import Refused, UsageError, require
from .layers import Layer
from .preflight import Report, check
from .prompts import Prompt
from .recorder import NAME, Recorder, installed, run
from .storage import TYPES
from .writer import Header, Parts, Tensors, layer_bytes, left_over, sha256, to_storage


@dataclass
class Options:
    """What to store, and where."""

    out: Path
    layers: Optional[List[int]] = None  # None: all that have attention
    kv_heads: Optional[List[int]] = None  # KV groups; None: all
    storage: Optional[str] = None  # None: the model's type if it has 16 bits, else float16
    max_bytes: int = 8 << 30
    overwrite: bool = False
    keep_prompt_text: bool = False


@dataclass
class Identity:
    """Names for the root attributes."""

    model_id: str = "unknown"
    model_revision: str = "unknown"
    tokenizer_revision: str = "unknown"


def capture(model, prompt: Prompt, identity: Identity, options: Options,
            say: Callable[[str], None] = lambda text: None) -> Report:
    """Writes options.out, or raises and leaves nothing under that name. Returns the check on the short prompt."""
    storage = options.storage or default_storage(model)
    ids = torch.as_tensor(prompt.ids.astype("int64"), device=next(model.parameters()).device)
    require(ids.ndim == 1 and len(ids), Refused, f"token ids have the shape {list(ids.shape)}"
            " (a capture holds one sequence, without a batch axis or padding)")
    report = check(model, ids)
    say(f"check on {min(len(ids), 64)} tokens: attention within {report.layer_error:.1e} of eager,"
        f" logits within {report.logit_error:.1e} standard deviations")
    chosen = choose_layers(report, options)
    size = estimate(chosen, options, len(ids), storage)
    say(f"{len(chosen)} layers of {len(ids)} tokens in {storage}: {in_units(size)}")
    header = make_header(model, prompt, identity, options, storage)
    for folder in left_over(options.out):
        say(f"note: {folder} is of a capture that was killed (delete it) or still runs; each layer in it is complete")
    with Parts(options.out, header, options.overwrite) as parts:
        check_space(size, options.out)
        keep = keeper(parts, options.kv_heads, storage, len(chosen), say)
        recorder = Recorder(keep, {layer.index for layer in chosen})
        with installed(model, recorder):
            run(model, ids)
        missing = sorted(recorder.wanted - recorder.layers.keys())
        require(not missing, Refused, f"layers {missing} took part in the short check but not in the long run")
        parts.assemble()
    say(f"{options.out}: {in_units(options.out.stat().st_size)}")
    return report


def default_storage(model) -> str:
    dtype = next(model.parameters()).dtype
    return next((name for name, kind in TYPES.items() if kind == dtype and kind.itemsize == 2), "float16")


def choose_layers(report: Report, options: Options) -> List[Layer]:
    have = report.layers
    wanted = sorted(have) if options.layers is None else sorted(set(options.layers))
    missing = [index for index in wanted if index not in have]
    require(not missing, UsageError, f"layers {missing} have no attention to capture; the model has {sorted(have)}")
    for index in wanted:
        for head in options.kv_heads or []:
            require(0 <= head < have[index].n_kv_heads, UsageError,
                    f"KV head {head} is not in layer {index} (it has {have[index].n_kv_heads})")
    require(options.kv_heads is None or len(set(options.kv_heads)) == len(options.kv_heads) > 0, UsageError,
            "--heads repeats a KV head, or names none")
    return [have[index] for index in wanted]


def estimate(layers: List[Layer], options: Options, n_tokens: int, storage: str) -> int:
    """Bytes of the file; refuses more than options.max_bytes."""
    size = sum(layer_bytes(layer, len(options.kv_heads or range(layer.n_kv_heads)), n_tokens, storage)
               for layer in layers)
    require(size <= options.max_bytes, UsageError,
            f"the capture needs {in_units(size)} and --max-bytes allows {in_units(options.max_bytes)};"
            " name fewer --layers or --heads, or raise --max-bytes")
    return size


def check_space(size: int, out: Path):
    free = shutil.disk_usage(out.parent).free
    if free < 2 * size:
        raise OSError(f"{in_units(free)} are free in {out.parent} and the capture needs {in_units(2 * size)}"
                      " (its parts and the file are there at the same time)")


def keeper(parts: Parts, kv_heads: Optional[List[int]], storage: str, n_layers: int, say) -> Callable:
    """The function that stores one layer: rounds, computes out and lse from what is stored, writes a part."""

    def keep(layer: Layer, q, k, v, out, lse):
        if kv_heads is not None:
            layer, q, k, v, out, lse = select(layer, kv_heads, q, k, v, out, lse)
        stored = [to_storage(x, storage, layer.index, name) for name, x in (("q", q), ("k", k), ("v", v))]
        if any(not torch.equal(x.to(y.dtype), y) for x, y in zip(stored, (q, k, v))):
            out, lse = attention(*stored, layer.softmax)
        parts.add(layer, Tensors(*stored, to_storage(out, storage, layer.index, "out"), lse))
        say(f"layer {layer.index}: {len(parts.files)} of {n_layers}")

    return keep


def select(layer: Layer, kv_heads: List[int], q, k, v, out, lse):
    """Some KV heads with their query heads."""
    group = layer.n_q_heads // layer.n_kv_heads
    kv = torch.tensor(sorted(kv_heads), device=q.device)
    heads = (kv[:, None] * group + torch.arange(group, device=q.device)).flatten()
    softmax = layer.softmax
    pick = lambda x: None if x is None else x[heads.to(x.device)]  # noqa: E731
    softmax = replace(softmax, sinks=pick(softmax.sinks), slopes=pick(softmax.slopes))
    return replace(layer, softmax=softmax), q[heads], k[kv], v[kv], out[heads], lse[heads]


def make_header(model, prompt: Prompt, identity: Identity, options: Options, storage: str) -> Header:
    config = model.config
    token_hash = sha256(prompt.ids.astype("<i4").tobytes())
    label = "\n".join([identity.model_id, identity.model_revision, token_hash, storage])
    texts = {
        "format": "qkv-capture", "stage": "post_norm_post_rope_pre_repeat_kv",
        "created_utc": datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "creator": f"capture_hf {VERSION}", "model_id": identity.model_id,
        "model_revision": identity.model_revision, "model_type": str(config.model_type),
        "tokenizer_revision": identity.tokenizer_revision,
        "compute_dtype": str(next(model.parameters()).dtype).replace("torch.", ""), "storage_dtype": storage,
        "attn_implementation": NAME, "transformers_version": transformers.__version__,
        "torch_version": torch.__version__, "device": str(next(model.parameters()).device),
        "prompt_sha256": sha256(prompt.text.encode()), "token_ids_sha256": token_hash,
        "capture_id": sha256(label.encode())[:16],
    }
    if options.kv_heads is not None:
        texts["kv_heads_of_model"] = " ".join(map(str, sorted(options.kv_heads)))
    return Header(texts, int(config.get_text_config().num_hidden_layers), prompt.ids, prompt.offsets,
                  prompt.annotations, config_json(config),
                  prompt.text if options.keep_prompt_text else None)


def config_json(config) -> str:
    """The model's configuration, without the folder that it was read from."""
    values = config.to_dict()
    values.pop("_name_or_path", None)
    return json.dumps(values, sort_keys=True, default=str)


def in_units(size: float) -> str:
    for unit in ("B", "kB", "MB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.3g} GB"
