"""What the tests of the programs share: a folder with captures, running quoka-sweep, comparing results."""

import os
import re
import resource
import subprocess
import tempfile
import unittest
from pathlib import Path

SWEEP = os.environ["QUOKA_SWEEP"]
MAKE_CAPTURE = os.environ["QUOKA_MAKE_CAPTURE"]
H5DIFF = os.environ["QUOKA_H5DIFF"]

DONE, USAGE, BAD_INPUT, FAILED, IO_ERROR, INTERRUPTED = 0, 2, 3, 4, 74, 75


def limit_file_size(n_bytes):
    """For preexec_fn: stands for a full disk."""
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, n_bytes))


def unit_lines(stderr):
    """How many configurations each finished unit computed, from the log."""
    return [int(n) for n in re.findall(r"unit \d+/\d+: .*: (\d+) configurations", stderr)]


class SweepTest(unittest.TestCase):
    """Every test gets an empty folder as the current directory; captures are made once per class."""

    layers = 3
    tokens = 200

    @classmethod
    def setUpClass(cls):
        cls.shared = tempfile.TemporaryDirectory(prefix="quoka-cli-")
        cls.addClassCleanup(cls.shared.cleanup)
        cls.capture = cls.make_capture("small.h5", cls.layers, cls.tokens)

    @classmethod
    def make_capture(cls, name, layers, tokens, *nan_layer):
        path = Path(cls.shared.name) / name
        command = [MAKE_CAPTURE, path, layers, tokens, *nan_layer]
        subprocess.run([str(word) for word in command], check=True)
        return path

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="quoka-cli-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def sweep(self, *words, **kwargs):
        command = [SWEEP, *(str(word) for word in words)]
        return subprocess.run(command, cwd=self.folder, capture_output=True, text=True, **kwargs)

    def grid(self, out="out.h5", capture=None):
        """A sweep of n_grid configurations per layer."""
        return [
            "run", "--capture", capture or self.capture, "--out", out, "--chunk_size", 32, "--budget", 8, 16,
            "--selector", "quoka", "oracle", "--n_sel_queries", 4, "--score", "cosine", "dot",
        ]  # fmt: skip

    n_grid = 6  # quoka: 2 budgets x 2 scores; oracle: 2 budgets

    def run_ok(self, *words, **kwargs):
        result = self.sweep(*words, **kwargs)
        self.assertEqual(result.returncode, DONE, result.stderr)
        return result

    def refused(self, code, words, *parts):
        """The command ends with the code, says all parts on stderr, and leaves the folder empty."""
        before = sorted(self.folder.rglob("*"))
        result = self.sweep(*words)
        self.assertEqual(result.returncode, code, result.stderr)
        self.assertEqual(result.stdout, "")
        for part in parts:
            self.assertIn(part, result.stderr)
        self.assertEqual(sorted(self.folder.rglob("*")), before)
        return result

    def differences(self, first, second):
        """What h5diff finds outside /provenance."""
        result = subprocess.run(
            [H5DIFF, "-v", "--exclude-path=/provenance", first, second],
            cwd=self.folder, capture_output=True, text=True,
        )  # fmt: skip
        self.assertLessEqual(result.returncode, 1, result.stderr)
        same = result.returncode == 0 and "not comparable" not in result.stdout
        return "" if same else result.stdout

    def assert_same_results(self, first, second):
        found = self.differences(first, second)
        self.assertEqual(found, "", f"{first} and {second} differ:\n{found[-2000:]}")
