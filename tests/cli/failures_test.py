"""A unit that fails is recorded, the rest goes on, and the exit code tells."""

import csv
import io
import os
import unittest

from harness import FAILED, SweepTest, unit_lines


class Failures(SweepTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.broken = cls.make_capture("broken.h5", cls.layers, cls.tokens, 1)

    def run_broken(self, *more):
        result = self.sweep(*self.grid(capture=self.broken), *more)
        self.assertEqual(result.returncode, FAILED, result.stderr)
        return result

    def test_a_nan_fails_its_unit_with_its_place_and_the_rest_goes_on(self):
        result = self.run_broken()
        self.assertEqual(unit_lines(result.stderr), [self.n_grid] * (self.layers - 1))
        for part in ["no results for broken layer 1", "broken.h5", "layer 1, q, head 2", "token 5", "1 units failed"]:
            self.assertIn(part, result.stderr)
        self.assertIn("recall", result.stdout)
        self.assertEqual(os.listdir(self.folder), ["out.h5"])

    def test_P39_failed_cells_are_empty_and_the_others_as_without_the_failure(self):
        self.run_broken()
        text = self.run_ok("export", "out.h5", "--columns", "n_rows", "kl_mean", "kl_n_valid").stdout
        rows = list(csv.DictReader(io.StringIO(text)))
        self.assertEqual(len(rows), self.n_grid * self.layers * 4)  # missing cells are visible
        self.assertEqual({row["n_rows"] for row in rows if row["layer"] == "1"}, {""})
        self.assertNotIn("", {row["n_rows"] for row in rows if row["layer"] != "1"})
        self.run_ok(*self.grid("good.h5"))
        good = self.run_ok("export", "good.h5", "--columns", "n_rows", "kl_mean", "kl_n_valid").stdout
        values = [
            {key: value for key, value in row.items() if key != "capture"}
            for row in csv.DictReader(io.StringIO(good)) if row["layer"] != "1"
        ]  # fmt: skip
        rows = [{key: value for key, value in row.items() if key != "capture"} for row in rows if row["layer"] != "1"]
        self.assertEqual(rows, values)

    def test_a_complete_output_with_failures_says_so(self):
        self.run_broken()
        again = self.run_broken()
        self.assertIn("complete already", again.stderr)
        self.assertIn("no results for broken layer 1", again.stderr)
        self.assertIn("--retry-failed", again.stderr)
        self.assertEqual(unit_lines(again.stderr), [])

    def test_retry_failed_computes_failed_units_again(self):
        self.run_broken()
        again = self.run_broken("--retry-failed")
        self.assertIn("unit 1/1: broken layer 1: failed", again.stderr)
        self.assertNotIn("complete already", again.stderr)

    def test_fail_fast_stops_at_the_first_failure_and_the_rest_can_follow(self):
        first = self.run_broken("--fail-fast")
        self.assertEqual(len(unit_lines(first.stderr)), 1)
        self.assertFalse((self.folder / "out.h5").exists())
        self.assertEqual(len(list(self.folder.rglob("*.fail.json"))), 1)
        rest = self.run_broken()
        self.assertEqual(len(unit_lines(rest.stderr)), 1)  # layer 2; layer 1 is known to fail
        self.assertTrue((self.folder / "out.h5").exists())
        self.assertFalse((self.folder / "out.h5.parts").exists())

    def test_a_larger_grid_keeps_the_failure_and_tries_the_new_cells(self):
        self.run_broken()
        larger = self.run_broken("--keep_first", 0, 1)
        self.assertEqual(unit_lines(larger.stderr), [4] * (self.layers - 1))
        self.assertIn("1 units failed", larger.stderr)


if __name__ == "__main__":
    unittest.main()
