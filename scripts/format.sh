#!/usr/bin/env bash
# Formats every C++ file with clang-format 14, the version Debian 12 ships. With --check nothing is
# written and the exit code says whether something would be.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

clang_format=${CLANG_FORMAT:-clang-format-14}
if ! command -v "$clang_format" >/dev/null; then
  echo "$clang_format was not found (other versions format differently); set CLANG_FORMAT" >&2
  exit 1
fi
mode=(-i)
if [ "${1:-}" = --check ]; then mode=(--dry-run --Werror); fi
find src apps tests \( -name '*.hpp' -o -name '*.cpp' \) -print0 |
  xargs -0 --no-run-if-empty "$clang_format" --style=file "${mode[@]}"
