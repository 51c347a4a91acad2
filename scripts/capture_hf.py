#!/usr/bin/env python3
"""Captures the attention inputs of a Hugging Face causal model on a prompt (docs/capture-format.md).

  capture_hf.py --model HuggingFaceTB/SmolLM2-135M-Instruct --needles 4 --tokens 4096 --out smollm2.h5
  capture_hf.py --model ./folder --gguf-file model.gguf --prompt prompt.json --layers 0 18 24 --out my.h5

The model runs once over the whole prompt, on one sequence without padding or cache. Before that, 64 tokens of
the prompt must give what the model's own eager attention gives. What version 1 of the format cannot
express is refused. Needs the packages of scripts/requirements-capture.txt.
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import sys
import time
import traceback
from pathlib import Path

from quoka_capture.errors import CaptureError, Interrupted, UsageError, require

IO_ERROR = 74


def parse_arguments(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_model_options(parser.add_argument_group("model"))
    add_prompt_options(parser.add_argument_group("prompt (exactly one of the first three)"))
    group = parser.add_argument_group("what to store")
    group.add_argument("--layers", nargs="+", default=["all"], metavar="N", help="indices, ranges such as 0-5, or all")
    group.add_argument("--heads", nargs="+", metavar="N", help="KV heads (each with its query heads); default all")
    group.add_argument("--dtype", choices=["float16", "bfloat16", "float32"],
                       help="type of the stored tensors (default: the model's if it has 16 bits, else float16)")
    group.add_argument("--max-bytes", type=byte_count, default=byte_count("8G"), metavar="SIZE",
                       help="refuse a larger capture, for example 500M or 20G (default 8G)")
    group.add_argument("--keep-prompt-text", action="store_true", help="store the prompt's text in the file")
    group.add_argument("--out", type=Path, required=True, help="the capture to write")
    group.add_argument("--overwrite", action="store_true", help="replace --out if it exists")
    group.add_argument("--quiet", action="store_true", help="print errors only")
    return parser.parse_args(arguments)


def add_model_options(group):
    group.add_argument("--model", required=True, metavar="MODEL", help="folder or hub id")
    group.add_argument("--gguf-file", metavar="NAME", help="GGUF file in it (its weights are dequantised)")
    group.add_argument("--revision", help="commit or tag of the hub")
    group.add_argument("--model-id", metavar="TEXT", help="name to store (default: the hub id or the name of the folder)")
    group.add_argument("--model-revision", metavar="TEXT",
                       help="revision to store (default: the hub's commit, or the SHA-256 of a folder's weights)")
    group.add_argument("--compute-dtype", choices=["float32", "bfloat16", "float16", "auto"], default="float32",
                       help="type that the model runs in; auto is its checkpoint's (default float32)")
    group.add_argument("--device", default="cpu", help="torch device (default cpu)")
    group.add_argument("--threads", type=int, metavar="N", help="CPU threads")


def add_prompt_options(group):
    group.add_argument("--prompt", type=Path, metavar="FILE", help="JSON of make_prompt.py, or a text file")
    group.add_argument("--prompt-from-capture", type=Path, metavar="FILE",
                       help="the prompt and annotations of a capture that holds its text")
    group.add_argument("--needles", type=int, metavar="N", help="make a prompt with N needles (0: plain text)")
    group.add_argument("--tokens", type=int, metavar="N", help="length of the made prompt, at most")
    group.add_argument("--text", type=Path, nargs="+", metavar="FILE",
                       help="haystack of the made prompt (default: data/genesis.txt.gz)")
    group.add_argument("--seed", type=int, default=0, metavar="N", help="of the made prompt")
    group.add_argument("--template", choices=["auto", "chat", "none"], default="auto",
                       help="chat template: auto uses it for made prompts with questions (and JSON that asks for it)")


def byte_count(text: str) -> int:
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([kMGT]?)B?", text)
    if not match or float(match.group(1)) <= 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a size such as 500M or 20G")
    return int(float(match.group(1)) * 1000 ** " kMGT".index(match.group(2) or " "))


def index_list(words, name):
    """None for all."""
    if not words or words == ["all"]:
        return None
    found = []
    for word in words:
        match = re.fullmatch(r"(\d+)(?:-(\d+))?", word)
        require(match, UsageError, f"{name} {word} is not an index, a range such as 0-5, or all")
        first, last = int(match.group(1)), int(match.group(2) or match.group(1))
        require(first <= last, UsageError, f"{name} {word} is an empty range")
        found.extend(range(first, last + 1))
    return found


def check_prompt_options(options):
    given = [name for name in ("prompt", "prompt_from_capture", "needles") if getattr(options, name) is not None]
    require(len(given) == 1, UsageError, "exactly one of --prompt, --prompt-from-capture and --needles is needed"
            f" ({len(given)} were given)")
    made = options.needles is not None
    require(not made or options.tokens is not None, UsageError, "--needles needs --tokens, the length of the prompt")
    require(made or (options.tokens is None and options.text is None), UsageError,
            "--tokens and --text belong to --needles (other prompts are used as they are)")


def read_prompt(options, tokenizer):
    from quoka_capture import prompts

    if options.prompt_from_capture:
        return prompts.from_capture(tokenizer, options.prompt_from_capture)
    if options.prompt:
        made = prompts.read_prompt_file(options.prompt)
    else:
        import make_prompt

        settings = make_prompt.Settings(needles=options.needles, tokens=options.tokens, seed=options.seed,
                                        chat=False if options.template == "none" else None)
        made = make_prompt.make(settings, options.text or [make_prompt.GENESIS], tokenizer)
    if options.template != "auto":
        made["chat"] = options.template == "chat"
    return prompts.from_generated(tokenizer, made)


def reporter(quiet):
    """Prints progress; on a terminal the lines of single layers replace each other."""
    state = {"open": False, "start": time.monotonic()}

    def say(text):
        progress = re.fullmatch(r"layer \d+: (\d+) of (\d+)", text)
        if quiet:
            return
        if progress:
            done, total = map(int, progress.groups())
            left = (time.monotonic() - state["start"]) / done * (total - done)
            filled = 30 * done // total
            text = f"[{'#' * filled}{'.' * (30 - filled)}] {text}, about {left:.0f} s left"
        else:
            state["start"] = time.monotonic()
        inline = bool(progress) and sys.stderr.isatty()
        print(("\r" if inline else "\n" * state["open"]) + text, end="" if inline else "\n", file=sys.stderr,
              flush=True)
        state["open"] = inline

    return say


def run(options):
    check_prompt_options(options)
    layers, heads = index_list(options.layers, "--layers"), index_list(options.heads, "--heads")
    import torch

    from quoka_capture import loading
    from quoka_capture.capture import Identity, Options, capture
    from quoka_capture.writer import check_output

    check_output(options.out, options.overwrite)
    if options.threads:
        torch.set_num_threads(options.threads)
    say = reporter(options.quiet)
    source = loading.Source(options.model, options.gguf_file, options.revision, options.compute_dtype, options.device)
    prompt = read_prompt(options, loading.load_tokenizer(source))
    model = loading.load_model(source)
    revision = options.model_revision or loading.revision_of(source, model)
    longest = getattr(model.config.get_text_config(), "max_position_embeddings", None)
    if isinstance(longest, int) and len(prompt.ids) > longest:
        say(f"note: {len(prompt.ids)} tokens are more than the {longest} that the model was made for")
    name = options.model_id or (Path(options.model).resolve().name if Path(options.model).is_dir() else options.model)
    capture(model, prompt, Identity(name, revision, revision), Options(
        options.out, layers, heads, options.dtype, options.max_bytes, options.overwrite, options.keep_prompt_text),
        say)


def guarded(run_program, options, after="nothing was written, the same command starts again") -> int:
    """Runs it with these options; faults become a message and the exit code. `after`: what an interruption leaves."""

    def interrupt(number, _):
        raise Interrupted(f"interrupted by {signal.Signals(number).name}; {after}")

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, interrupt)
    try:
        run_program(options)
    except CaptureError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    except OSError as error:
        print(f"error: {error}", file=sys.stderr)
        return IO_ERROR
    except ImportError as error:
        print(f"error: {error}; install scripts/requirements-capture.txt", file=sys.stderr)
        return UsageError.exit_code
    except Exception:
        traceback.print_exc()
        return 1
    return 0


def main(arguments=None) -> int:
    return guarded(run, parse_arguments(arguments))


def end(code: int):
    """Leaves the program with this exit code."""
    if code == IO_ERROR:
        os._exit(code)  # after a failed write, HDF5 may crash while Python ends
    sys.exit(code)


if __name__ == "__main__":
    end(main())
