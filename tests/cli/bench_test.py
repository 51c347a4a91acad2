"""quoka-bench: options, and reports that are valid and complete. What it measures is no criterion."""

import json
import os
import subprocess
import unittest

from harness import BAD_INPUT, IO_ERROR, USAGE, SweepTest

BENCH = os.environ["QUOKA_BENCH"]
PREFILL = ["prefill", "--history", 40, 100, "--budget", 32, "--chunk_size", 16, "--n_sel_queries", 4,
           "--q_heads", 4, "--head_dim", 16, "--repetitions", 2, "--warm_ups", 0]  # fmt: skip
STAGES = ["keep_queries", "unit_keys", "score", "top_k", "gather", "attend", "recompute"]


class BenchTest(SweepTest):
    tokens = 120

    def sweep(self, *words, **kwargs):
        command = [BENCH, *(str(word) for word in words)]
        return subprocess.run(command, cwd=self.folder, capture_output=True, text=True, **kwargs)

    def report(self, *words):
        report = json.loads(self.run_ok(*words, "--json").stdout)
        self.assertEqual(report["verb"], words[0])
        for name in ["cpu", "flags", "compiler", "command_line", "pinned_to"]:
            self.assertTrue(report["settings"][name], name)
        return report


class Options(BenchTest):
    def test_help_names_the_verbs_and_their_flags(self):
        text = self.run_ok("--help").stdout
        for verb in ["attention", "prefill", "sweep", "memory", "synthetic"]:
            self.assertIn(verb, text)
        self.assertIn("--n_sel_queries", self.run_ok("prefill", "--help").stdout)

    def test_bad_options_are_refused(self):
        for words, part in [
            ([], "no verb"),
            (["prefil"], "prefil"),
            (["prefill", "--budget", "0"], "0 is not a whole number"),
            (["prefill", "--history", "many"], "many is not a whole number"),
            (["prefill", "--kv_heads", "3"], "--kv_heads 3"),
            (["prefill", "--head_dim", "16", "32"], "--head_dim"),
            (["prefill", "--cpu", "1023"], "1023"),
            (["attention", "--budget", "4"], "--budget"),
            (["synthetic"], "--out"),
        ]:  # fmt: skip
            with self.subTest(words=words):
                self.refused(USAGE, words, part)

    def test_a_missing_capture_and_a_history_that_it_lacks_are_refused(self):
        self.refused(BAD_INPUT, ["prefill", "--capture", "none.h5"], "none.h5")
        self.refused(USAGE, ["prefill", "--capture", self.capture, "--history", 119], "history of 119")

    def test_an_output_that_cannot_be_written_is_an_io_error_after_the_table(self):
        result = self.sweep(*PREFILL, "--out", "none/out.h5")
        self.assertEqual(result.returncode, IO_ERROR)
        self.assertIn("none/out.h5", result.stderr)
        self.assertIn("history 100", result.stdout)  # what took long to measure is not lost


class Reports(BenchTest):
    def test_prefill_has_every_stage_with_times_in_order(self):
        report = self.report(*PREFILL)
        self.assertEqual([case["history"] for case in report["cases"]], [0, 40, 100])
        self.assertEqual(report["cases"][0]["speedup"], 1)  # no selection: the same numbers
        self.assertIsNone(report["cases"][0]["score"])
        for case in report["cases"][1:]:
            for name in [*STAGES, "dense", "cached", "recomputed"]:
                self.assertGreater(case[name + "_min"], 0, name)
                self.assertLessEqual(case[name + "_min"], case[name], name)
                self.assertLessEqual(case[name], case[name + "_max"], name)
            self.assertAlmostEqual(sum(case[name + "_share"] for name in STAGES[:-1]), 1)
        self.assertEqual(report["cases"][0]["prompt_speedup"], 1)
        # 2 heads, 4 slots and 16 channels to score; 4 heads, 16 rows and 32 channels to attend.
        score, attend, dense = 2 * 4 * 2 * 16 * 100, 2 * 4 * 16 * 32 * 48, 2 * 4 * 16 * 32 * 116
        self.assertAlmostEqual(report["cases"][2]["bound"], dense / (score + attend))
        self.assertEqual(set(report["facts"]), {"wins_from", "product_rate", "peak_rate", "read_rate"})

    def test_prefill_runs_on_a_capture(self):
        report = self.report("prefill", "--capture", self.capture, "--layer", 1, "--history", 100, *PREFILL[4:8],
                             "--repetitions", 1)  # fmt: skip
        self.assertIn("layer 1", report["settings"]["layer"])

    def test_attention_has_a_case_per_width_and_history(self):
        report = self.report("attention", "--history", 30, 60, "--head_dim", 8, 16, "--chunk_size", 8,
                             "--repetitions", 1, "--warm_ups", 0)  # fmt: skip
        self.assertEqual([(case["head_dim"], case["history"]) for case in report["cases"]],
                         [(8, 30), (8, 60), (16, 30), (16, 60)])  # fmt: skip
        for case in report["cases"]:  # one repetition: the median of ratios is the ratio
            self.assertAlmostEqual(case["share"], case["rate"] / case["product_rate"])

    def test_sweep_shares_add_up_to_one(self):
        report = self.report("sweep", "--tokens", 150, "--head_dim", 8, "--repetitions", 1, "--warm_ups", 0)
        self.assertEqual([case["n_configs"] for case in report["cases"]], [1, 20, 100, 100, 200, 5])
        shares = [report["facts"][name + "_share"] for name in ["dense", "selection", "sparse", "statistics"]]
        self.assertAlmostEqual(sum(shares), 1)

    def test_memory_names_peaks_and_the_exponent_and_leaves_no_capture(self):
        report = self.report("memory", "--tokens", 200, 400, "--head_dim", 8, "--budget", 50, "--folder", ".",
                             "--threads", 2)  # fmt: skip
        self.assertEqual([case["n_tokens"] for case in report["cases"]], [200, 400])
        for case in report["cases"]:
            self.assertGreater(case["peak"], 1)
        self.assertIn("exponent", report["facts"])
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_the_table_has_a_line_per_case_and_the_file_all_columns(self):
        text = self.run_ok(*PREFILL, "--out", "out.h5").stdout
        self.assertEqual(sum(line.startswith("history ") for line in text.splitlines()), 3)
        self.assertEqual(self.differences("out.h5", "out.h5"), "")

    def test_a_synthetic_capture_is_the_same_twice_and_can_be_measured(self):
        for name in ["one.h5", "two.h5"]:
            self.run_ok("synthetic", "--out", name, "--tokens", 100, "--head_dim", 8)
        self.assertEqual((self.folder / "one.h5").read_bytes(), (self.folder / "two.h5").read_bytes())
        self.report("sweep", "--capture", "one.h5", "--repetitions", 1, "--warm_ups", 0)


if __name__ == "__main__":
    unittest.main()
