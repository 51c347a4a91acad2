#!/usr/bin/env bash
# From a fresh clone to a results file and its figures, on the capture that comes with the sources.
# Run it again at any time: it builds and computes only what is missing.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

./scripts/setup.sh
cmake --preset release
cmake --build --preset release
build/release/apps/quoka-sweep run configs/quickstart.toml
.venv/bin/python scripts/plot_results.py results/quickstart.h5 --out results/quickstart

cat <<END

results   $PWD/results/quickstart.h5
figures   $PWD/results/quickstart/
read it   .venv/bin/python -c 'import xarray; print(xarray.open_dataset("results/quickstart.h5"))'
END
