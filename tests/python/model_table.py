#!/usr/bin/env python3
"""Prints the table of docs/models.md: every class of tiny_models.py captured and compared with float64.

  python tests/python/model_table.py
"""

from __future__ import annotations

import sys
import tempfile
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))

import h5py  # noqa: E402
import torch  # noqa: E402
from transformers.utils import logging  # noqa: E402

import tiny_models  # noqa: E402
from capture_reference import errors, text  # noqa: E402
from quoka_capture.capture import Identity, Options, capture  # noqa: E402
from quoka_capture.errors import Refused  # noqa: E402
from quoka_capture.prompts import Prompt  # noqa: E402

TOKENS = 150


def features(layers) -> str:
    """What the softmax or the shapes of these layers have beyond plain causal attention."""
    found = []
    for group in layers:
        a = group.attrs
        found += [f"window {a['sliding_window']}"] * (a["sliding_window"] > 0)
        found += [f"attention chunk {a['attention_chunk']}"] * (a["attention_chunk"] > 0)
        found += [f"softcap {a['logit_softcap']:g}"] * bool(a["softcap_applied"])
        found += ["sinks"] * bool(a["has_sinks"])
        found += ["ALiBi (scaled)" if a["alibi_scaled"] else "ALiBi"] * bool(a["alibi"])
        found += [f"scale {a['softmax_scale']:.4g}"] * (abs(a["softmax_scale"] - a["k_head_dim"] ** -0.5) > 1e-6)
        found += [f"Dk {a['k_head_dim']}, Dv {a['v_head_dim']}"] * (a["k_head_dim"] != a["v_head_dim"])
        found += ["unrotated layers"] * (text(a["position_kind"]) == "nope")
        found += [text(a["position_kind"])] * (text(a["position_kind"]) in ("mla", "rope_partial"))
        found += [f"q/k norm {text(a['qk_norm'])}"] * (text(a["qk_norm"]) != "none")
        found += ["KV of another layer"] * (a["kv_shared_from"] >= 0)
    return "; ".join(dict.fromkeys(found)) or "-"


def row(name: str, model_type: str, settings: dict, folder: Path) -> str:
    out = folder / "capture.h5"
    model = tiny_models.make(model_type, settings)
    ids = tiny_models.prompt_ids(TOKENS)
    try:
        report = capture(model, Prompt(" ".join(map(str, ids)), ids), Identity(name),
                         Options(out, storage="float32", overwrite=True))
    except Refused as reason:
        return f"| {name} | {type(model).__name__} | refused: {reason} | | | |"
    with h5py.File(out) as file:
        layers = list(file["layers"].values())
        worst = [max(values) for values in zip(*map(errors, layers))]
        return (f"| {name} | {type(model).__name__} | {features(layers)} | {worst[0]:.1e} | {worst[1]:.1e} |"
                f" {report.logit_error:.1e} |")


def main():
    warnings.simplefilter("ignore")
    logging.set_verbosity_error()
    torch.set_num_threads(1)
    print("| model | class | beyond scale and causal order | `out` | `lse` | logits |")
    print("| --- | --- | --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as folder:
        for name, (model_type, settings) in {**tiny_models.MODELS, **tiny_models.MORE_MODELS}.items():
            print(row(name, model_type, settings, Path(folder)), flush=True)


if __name__ == "__main__":
    main()
