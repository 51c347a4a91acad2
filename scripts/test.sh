#!/usr/bin/env bash
# Installs what the tests need, builds everything with warnings as errors, and runs every test. The
# exit code is ctest's, and its summary is the last thing printed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

./scripts/setup.sh --test
exec cmake --workflow --preset dev
