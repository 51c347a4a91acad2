"""Captures with flipped bytes and cut ends: quoka-capture must survive them and never pass wrong numbers.

CTest damages a few hundred files. By hand, with the variables that tests/cli/CMakeLists.txt sets:
  python3 damage_test.py COUNT [SEED]
Needs h5repack (hdf5-tools) to make the old and the contiguous layout.
"""

import os
import random
import re
import resource
import subprocess
import sys
import tempfile
import unittest
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

CAPTURE = os.environ["QUOKA_CAPTURE"]
MAKE_FAULT = os.environ["QUOKA_MAKE_FAULT"]
EMBEDDED = Path(os.environ["QUOKA_DATA"]) / "smollm2-135m_needles_2k.h5"
H5REPACK = os.environ.get("QUOKA_H5REPACK", "h5repack")
SANITIZED = "QUOKA_SANITIZED" in os.environ

# Name of the base: arguments of h5repack. Versions 0 and 1 are "earliest" and "v18".
BASES = {
    "old chunked": ["--low=0", "--high=1"],
    "new chunked": ["--low=1", "--high=1"],
    "old contiguous": ["--low=0", "--high=1", "-f", "NONE", "-l", "CONTI"],
    "new contiguous": ["--low=1", "--high=1", "-f", "NONE", "-l", "CONTI"],
}
GOOD_CODES = {0, 3, 4}  # passed, bad file, a layer failed
PARENT_MEMORY = 3 << 30
HANG_SECONDS = 60


def run(*words):
    limit = None if SANITIZED else lambda: resource.setrlimit(resource.RLIMIT_AS, (PARENT_MEMORY,) * 2)
    command = [CAPTURE, *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, preexec_fn=limit, timeout=HANG_SECONDS)


def tensor_lines(path):
    result = run("checksum", path)
    return result.stdout.splitlines()[1:] if result.returncode == 0 else None


def damaged(data, rng):
    """A copy with 1 to 8 changed bytes, or (one in six) without its end."""
    if rng.randrange(6) == 0:
        return data[: rng.randrange(1, len(data))]
    copy = bytearray(data)
    n_changed = rng.choice([1, 1, 2, 4, 8])
    if rng.randrange(2):  # most of a file is tensors; half of the files are damaged where structure is
        places = [rng.choice(rng.choice([range(4096), range(len(data) - 4096, len(data))])) for _ in range(n_changed)]
    else:
        places = [rng.randrange(len(data)) for _ in range(n_changed)]
    for place in places:
        copy[place] ^= rng.randrange(1, 256)
    return bytes(copy)


class Damage:
    def __init__(self, folder):
        self.folder = Path(folder)
        whole, source = self.folder / "whole.h5", self.folder / "base.h5"
        subprocess.run([MAKE_FAULT, EMBEDDED, whole, "right"], check=True)
        cut = ["--tokens", ":48", "--kv-heads", "0"]
        subprocess.run([CAPTURE, "cut", whole, "--out", source, *cut], check=True)
        self.data, self.tensors = {}, {}
        for name, options in BASES.items():
            path = self.folder / f"{name}.h5"
            subprocess.run([H5REPACK, *options, source, path], check=True)
            assert run("verify", "--no-record", path).returncode == 0, name
            self.data[name] = path.read_bytes()
            self.tensors[name] = tensor_lines(path)

    def check(self, number, seed):
        """(base, what happened, problem or None) for one damaged file."""
        rng = random.Random(seed * 1_000_003 + number)
        name = list(BASES)[number % len(BASES)]
        path = self.folder / f"damaged{number}.h5"
        path.write_bytes(damaged(self.data[name], rng))
        outcome, problem = "", None
        try:
            for words in [["inspect"], ["verify", "--no-record", "--threads", "1"]]:
                result = run(*words, "--timeout", "5", path)
                outcome = f"exit {result.returncode}"
                if re.search("crashes|hangs", result.stderr):
                    outcome += " (the child was stopped)"
                if result.returncode not in GOOD_CODES:
                    problem = f"{words[0]} ended with {result.returncode}: {result.stderr[-300:]}"
                    break
            passed = problem is None and result.returncode == 0
            if passed and "chunked" in name and tensor_lines(path) != self.tensors[name]:
                problem = "passed although a tensor changed"
        except subprocess.TimeoutExpired as error:
            outcome, problem = "hang", str(error)
        if problem is None:
            path.unlink()
        return name, outcome, problem and f"{path}: {problem}"

    def check_many(self, count, seed):
        with ThreadPoolExecutor(2) as pool:
            results = list(pool.map(lambda number: self.check(number, seed), range(count)))
        outcomes = Counter((name, outcome) for name, outcome, _ in results)
        return outcomes, [problem for _, _, problem in results if problem]


class DamageTest(unittest.TestCase):
    def test_damaged_captures_neither_stop_the_program_nor_pass_with_other_numbers(self):
        with tempfile.TemporaryDirectory(prefix="quoka-damage-") as folder:
            _, problems = Damage(folder).check_many(count=240, seed=1)
        self.assertEqual(problems, [])


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="quoka-damage-") as work:
        counts, found = Damage(work).check_many(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1)
        for (base, outcome), n in sorted(counts.items()):
            print(f"{base:15} {outcome:40} {n}")
        print(f"{sum(counts.values())} files, {len(found)} problems", *found, sep="\n")
        sys.exit(bool(found))
