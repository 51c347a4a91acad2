"""quoka-geometry: options, outputs, failures. The numbers are checked in tests/unit/study and tests/python."""

import os
import signal
import subprocess
import unittest

from harness import BAD_INPUT, FAILED, INTERRUPTED, IO_ERROR, USAGE, SweepTest, limit_file_size

GEOMETRY = os.environ["QUOKA_GEOMETRY"]


class GeometryTest(SweepTest):
    layers = 2
    tokens = 150

    def sweep(self, *words, **kwargs):
        command = [GEOMETRY, *(str(word) for word in words)]
        return subprocess.run(command, cwd=self.folder, capture_output=True, text=True, **kwargs)

    def words(self, *more, out="out.h5", capture=None):
        return ["run", capture or self.capture, "--out", out, "--chunk_size", 32, "--budget", 8, *more]


class Options(GeometryTest):
    def test_help_names_flags_and_exit_codes(self):
        self.assertIn("75 interrupted", self.run_ok("--help").stdout)
        text = self.run_ok("run", "--help").stdout
        for word in ["CAPTURE", "--layer", "--chunk_size", "whole", "--samples", "--seed", "--threads", "--out"]:
            self.assertIn(word, text)

    def test_version_has_commit_and_compiler(self):
        self.assertRegex(self.run_ok("--version").stdout, r"^quoka-geometry \d+\.\d+\.\d+ \(commit \S+, .+\)")

    def test_bad_options_are_refused(self):
        for words, part in [
            ([], "no verb"),
            (["walk"], "walk"),
            (["run", "--out", "out.h5"], "CAPTURE"),
            (["run", self.capture], "--out"),
            (self.words("--sample", 3), "--sample"),
            (self.words("--samples", 0), "--samples 0 is not a whole number of 1 or more"),
            (self.words("--samples", "1e3"), "--samples 1e3"),
            (self.words("--seed", -1), "--seed -1"),
            (self.words("--threads", 0), "--threads 0"),
            (self.words("--sink_size", "four"), "--sink_size four"),
            (self.words("--layer", "first"), "--layer first"),
            (self.words("--layer", 7), "layer 7"),
            (["run", self.capture, "--out", "out.h5", "--chunk_size", "half"], "--chunk_size half"),
            (["run", self.capture, "--out", "out.h5", "--budget", "0"], "--budget"),
        ]:
            with self.subTest(words=words):
                self.refused(USAGE, words, part)

    def test_a_missing_or_foreign_capture_is_a_bad_input(self):
        self.refused(BAD_INPUT, self.words(capture="none.h5"), "none.h5")
        (self.folder / "text.h5").write_text("no HDF5")
        self.refused(BAD_INPUT, self.words(capture="text.h5"), "text.h5")


class Output(GeometryTest):
    def test_a_line_per_layer_is_printed_and_only_the_file_is_left(self):
        result = self.run_ok(*self.words())
        lines = result.stdout.splitlines()
        self.assertEqual([line.split()[0] for line in lines[1:3]], ["0", "1"])
        self.assertEqual(os.listdir(self.folder), ["out.h5"])

    def test_quiet_prints_nothing(self):
        result = self.run_ok(*self.words("--quiet"))
        self.assertEqual(result.stdout + result.stderr, "")

    def test_threads_and_runs_give_the_same_datasets(self):
        self.run_ok(*self.words("--threads", 1))
        self.run_ok(*self.words("--threads", 3, out="threads.h5"))
        self.assert_same_results("out.h5", "threads.h5")
        self.run_ok(*self.words("--seed", 1, "--samples", 20, out="seed.h5"))
        self.assertNotEqual(self.differences("out.h5", "seed.h5"), "")

    def test_chosen_layers_are_those_of_the_whole_capture(self):
        self.assertEqual(len(self.run_ok(*self.words("--layer", 1)).stdout.splitlines()),
                         len(self.run_ok(*self.words(out="all.h5")).stdout.splitlines()) - 1)  # fmt: skip

    def test_an_output_is_replaced_only_on_request_and_only_if_it_is_of_this_kind(self):
        self.run_ok(*self.words())
        self.refused(USAGE, self.words(), "out.h5 exists", "--overwrite")
        self.run_ok(*self.words("--overwrite"))
        twin = self.folder / "twin.h5"
        twin.write_bytes(self.capture.read_bytes())
        self.refused(USAGE, self.words("--overwrite", out=twin, capture=twin), "not a geometry file")
        self.assertEqual(twin.read_bytes(), self.capture.read_bytes())

    def test_an_output_that_cannot_be_written_is_an_io_error(self):
        self.refused(IO_ERROR, self.words("--quiet", out="none/out.h5"), "none/out.h5")
        result = self.sweep(*self.words(), preexec_fn=limit_file_size(20000))
        self.assertEqual(result.returncode, IO_ERROR, result.stderr)
        self.assertEqual(os.listdir(self.folder), [])


class Failures(GeometryTest):
    def test_a_nan_fails_its_layer_with_its_place_and_the_rest_is_as_without(self):
        broken = self.make_capture("broken.h5", self.layers, self.tokens, 1)
        result = self.sweep(*self.words(capture=broken))
        self.assertEqual(result.returncode, FAILED, result.stderr)
        for part in ["no values for broken layer 1", "q, head 2", "token 5"]:
            self.assertIn(part, result.stderr)
        good = self.run_ok(*self.words(out="good.h5")).stdout.splitlines()
        lines = result.stdout.splitlines()
        self.assertEqual(lines[1], good[1])
        self.assertIn("nan", lines[2])

    def test_a_stop_leaves_nothing_and_the_same_command_runs_again(self):
        large = self.make_capture("large.h5", 12, 900)
        command = [str(word) for word in [GEOMETRY, *self.words(capture=large)]]
        with subprocess.Popen(command, cwd=self.folder, stderr=subprocess.PIPE, text=True) as process:
            self.assertIn("layer 0", process.stderr.readline())
            process.send_signal(signal.SIGTERM)
            _, errors = process.communicate()
        self.assertEqual(process.returncode, INTERRUPTED, errors)
        self.assertIn("run the same command", errors)
        self.assertEqual(os.listdir(self.folder), [])
        self.run_ok(*self.words(capture=large))


if __name__ == "__main__":
    unittest.main()
