"""quoka-check as a user runs it: profiles, comparisons, reports, and each exit code."""

import json
import os
import subprocess
import unittest
import xml.etree.ElementTree as ElementTree

from harness import BAD_INPUT, DONE, FAILED, IO_ERROR, USAGE, SweepTest, limit_file_size

CHECK = os.environ["QUOKA_CHECK"]


class Check(SweepTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.other = cls.make_capture("other.h5", 4, 150)
        cls.broken = cls.make_capture("broken.h5", cls.layers, cls.tokens, 1)

    def check(self, *words, **kwargs):
        command = [CHECK, *(str(word) for word in words)]
        return subprocess.run(command, cwd=self.folder, capture_output=True, text=True, **kwargs)

    def check_ok(self, *words):
        result = self.check(*words)
        self.assertEqual(result.returncode, DONE, result.stderr + result.stdout)
        self.assertEqual(result.stderr, "")
        return result.stdout

    def refused(self, code, words, *parts):
        """Ends with the code, says all parts on stderr, and leaves the folder as it was."""
        before = {path: path.read_bytes() for path in self.folder.iterdir()}
        result = self.check(*words)
        self.assertEqual((result.returncode, result.stdout), (code, ""), result.stderr)
        for part in parts:
            self.assertIn(part, result.stderr)
        self.assertEqual({path: path.read_bytes() for path in self.folder.iterdir()}, before)

    def make_profile(self, *words):
        self.run_ok(*self.grid(), "--quiet")
        self.check_ok("profile", "out.h5", "--out", "p.json", *words)
        return json.loads((self.folder / "p.json").read_text())

    def edit_profile(self, edit):
        profile = json.loads((self.folder / "p.json").read_text())
        edit(profile)
        (self.folder / "p.json").write_text(json.dumps(profile))

    def test_results_pass_the_check_against_their_own_profile(self):
        profile = self.make_profile("--tolerance", *(f"{name}=0" for name in [
            "mass_recall_no_sink_mean", "out_rel_l2_mean", "out_rel_l2_p99", "oracle_ratio", "needle_key_recall",
            "needle_mass_recall", "floor_out_rel_l2"]))  # fmt: skip
        n_rows = 7 * 3 * self.n_grid  # metrics, thirds, configurations
        self.assertEqual(len(profile["rows"]), n_rows)
        self.assertEqual({row["tolerance"] for row in profile["rows"]}, {0})
        text = self.check_ok("check", "out.h5", "p.json")
        self.assertIn("captures: those of the profile", text)
        self.assertTrue(text.endswith(f"passed: 0 of {n_rows} rows failed\n"), text)

    def test_a_profile_holds_the_numbers_of_the_results(self):
        rows = self.make_profile("--group", "layer", "--metric", "out_rel_l2_mean")["rows"]
        table = self.run_ok("export", "out.h5", "--columns", "out_rel_l2_mean").stdout.splitlines()
        names = table[0].split(",")
        lines = [dict(zip(names, line.split(","))) for line in table[1:]]
        self.assertEqual(len(rows), self.layers * self.n_grid)
        for row in rows:
            heads = [float(line["out_rel_l2_mean"]) for line in lines
                     if line["config"] == row["config"] and f"layer {line['layer']}" == row["group"]]  # fmt: skip
            self.assertEqual(len(heads), 4)
            # Seven digits are kept.
            self.assertAlmostEqual(row["expected"] / (sum(heads) / 4), 1, delta=1e-6)

    def test_equal_results_give_equal_profiles(self):
        self.make_profile()
        self.run_ok(*self.grid("again.h5"), "--threads", 1, "--quiet")
        self.check_ok("profile", "again.h5", "--out", "again.json")
        self.assertEqual((self.folder / "p.json").read_bytes(), (self.folder / "again.json").read_bytes())

    def test_a_worse_value_fails_and_a_better_one_does_not(self):
        self.make_profile("--metric", "out_rel_l2_mean")
        self.edit_profile(lambda profile: profile["rows"][0].update(expected=profile["rows"][0]["expected"] / 2))
        result = self.check("check", "out.h5", "p.json")
        self.assertEqual(result.returncode, FAILED)
        self.assertIn("(1 worse)", result.stdout)
        self.edit_profile(lambda profile: profile["rows"][0].update(expected=profile["rows"][0]["expected"] * 4))
        self.assertIn("(1 improved)", self.check_ok("check", "out.h5", "p.json"))

    def test_P39_a_number_that_became_undefined_fails(self):
        self.run_ok(*self.grid(), "--budget", 1000, "--quiet")  # which keeps everything: undefined
        self.check_ok("profile", "out.h5", "--out", "p.json", "--metric", "needle_key_recall")
        self.assertIn('"expected":null,"reason":', (self.folder / "p.json").read_text())
        self.check_ok("check", "out.h5", "p.json")

        def expect_numbers(profile):
            for row in profile["rows"]:
                if row.pop("reason", None):
                    row.update(expected=0.5, n_values=4, n_undefined=0)

        self.edit_profile(expect_numbers)
        result = self.check("check", "out.h5", "p.json")
        self.assertEqual(result.returncode, FAILED)
        self.assertRegex(result.stdout, r"\nFAILED: .* rows failed \(\d+ undefined\)\n$")

    def test_another_model_is_compared_and_named(self):
        profile = self.make_profile()
        self.run_ok(*self.grid("other_out.h5", self.other), "--quiet")
        result = self.check("check", "other_out.h5", "p.json")
        self.assertIn(result.returncode, [DONE, FAILED], result.stderr)
        self.assertIn("NOT those of the profile", result.stdout)
        self.assertIn(profile["captures"][0]["sha256"], result.stdout)
        self.assertIn(f"{len(profile['rows'])} rows", result.stdout)

    def test_P37_a_failed_layer_is_missing(self):
        self.make_profile("--metric", "out_rel_l2_mean")
        self.assertEqual(self.sweep(*self.grid("bad.h5", self.broken), "--quiet").returncode, FAILED)
        result = self.check("check", "bad.h5", "p.json")
        self.assertEqual(result.returncode, FAILED)
        self.assertIn(f"{self.n_grid} missing", result.stdout)
        self.assertIn("not computed: broken layer 1: ", result.stdout)
        self.refused(BAD_INPUT, ["profile", "bad.h5", "--out", "q.json"], "cells of the results were not computed")

    def test_reports_for_ci(self):
        self.make_profile()
        self.edit_profile(lambda profile: profile["rows"][1].update(expected=1e-3, tolerance=0))
        result = self.check("check", "out.h5", "p.json", "--junit", "a/check.xml", "--markdown", "check.md")
        self.assertEqual(result.returncode, FAILED)
        suite = ElementTree.parse(self.folder / "a/check.xml").getroot().find("testsuite")
        cases = suite.findall("testcase")
        self.assertEqual(int(suite.get("tests")), len(cases))
        self.assertEqual(len({(case.get("classname"), case.get("name")) for case in cases}), len(cases))
        failed = [case for case in cases if case.find("failure") is not None]
        self.assertEqual(len(failed), int(suite.get("failures")))
        self.assertEqual(len(failed), 1)
        self.assertIn("out_rel_l2_mean", failed[0].get("name"))
        self.assertIn("worse: expected 0.001", failed[0].find("failure").get("message"))
        markdown = (self.folder / "check.md").read_text()
        self.assertIn("## quoka-check FAILED: 1 of", markdown)
        tables = [line for line in markdown.splitlines() if line.startswith("|")]
        self.assertEqual(len(tables), 2 + 7 + 2 + 1)  # titles and rules, seven metrics, one difference
        self.assertTrue(all(line.endswith("|") for line in tables))

    def test_results_of_another_sweep_are_refused(self):
        self.make_profile()
        other_budget = [24 if word == 16 else word for word in self.grid("another.h5")]
        self.run_ok(*other_budget, "--quiet")
        self.refused(USAGE, ["check", "another.h5", "p.json", "--junit", "x.xml"],
                     "of the profile is not in the results", "instead of budget=16")  # fmt: skip
        for words, parts in [
            (["--sink_size", 3], ["sink_size is 3 in the results and 4 in the profile", "--sink_size 4"]),
            (["--min_history", 10], ["min_history is 10 in the results and 0 in the profile"]),
            (["--layer", 2], ["layers 2 of", "0 1 2", "--group layer"]),
        ]:
            with self.subTest(words=words):
                self.run_ok(*self.grid("another.h5"), *words, "--overwrite", "--quiet")
                self.refused(USAGE, ["check", "another.h5", "p.json", "--junit", "x.xml"], *parts)

    def test_more_configurations_than_the_profile_has_are_noted(self):
        self.make_profile()
        self.run_ok(*self.grid(), "--budget", 8, 16, 24, "--quiet")
        text = self.check_ok("check", "out.h5", "p.json")
        self.assertIn("3 configurations of the results are not in the profile", text)

    def test_options_are_refused_with_2(self):
        self.make_profile()
        for words, part in [
            ([], "no verb is given"),
            (["profile", "out.h5"], "--out"),
            (["check", "out.h5"], "PROFILE"),
            (["profile", "out.h5", "--out", "q.json", "--group", "thirds"], 'layer group "thirds" is not known'),
            (["profile", "out.h5", "--out", "q.json", "--metric", "recall"], 'metric "recall" is not known'),
            (["profile", "out.h5", "--out", "q.json", "--tolerance", "out_rel_l2_mean=x"], "out_rel_l2_mean=x"),
            (["profile", "out.h5", "--out", "q.json", "--tolerance", "kl_mean=0.1"], "add --metric kl_mean"),
            (["profile", "out.h5", "--out", "./out.h5"], "named twice"),
            (["check", "out.h5", "p.json", "--junit", "p.json"], "named twice"),
            (["check", "out.h5", "p.json", "--junit", "x", "--markdown", "x"], "named twice"),
            (["check", "out.h5", "p.json", "--html", "x"], "--html"),
        ]:
            with self.subTest(words=words):
                self.refused(USAGE, words, part)

    def test_bad_files_are_refused_with_3(self):
        self.make_profile()
        (self.folder / "text.json").write_text("no profile\n")
        profile = (self.folder / "p.json").read_text()
        (self.folder / "version.json").write_text(profile.replace('"metric_version": 1', '"metric_version": 9'))
        (self.folder / "twice.json").write_text(profile.replace('"min_history"', '"sink_size"'))
        (self.folder / "extra.json").write_text(profile.replace('"n_values"', '"values"', 1))
        for words, parts in [
            (["check", "none.h5", "p.json"], ["none.h5 does not exist"]),
            (["check", self.capture, "p.json"], ["is no results file"]),
            (["check", "out.h5", "none.json"], ["none.json does not exist"]),
            (["check", "out.h5", "text.json"], ["text.json is not valid JSON"]),
            (["check", "out.h5", "out.h5"], ["out.h5"]),
            (["check", "out.h5", "version.json"], ["metric_version: 9 is not 1"]),
            (["check", "out.h5", "twice.json"], ["sink_size: the key appears twice"]),
            (["check", "out.h5", "extra.json"], ['rows[0]: key "values" is not known']),
            (["profile", "p.json", "--out", "q.json"], ["p.json is not an HDF5 file"]),
        ]:
            with self.subTest(words=words):
                self.refused(BAD_INPUT, words, *parts)

    def test_outputs_that_cannot_be_written_end_with_74(self):
        self.make_profile()
        before = sorted(self.folder.iterdir())
        for words in [["profile", "out.h5", "--out", "q.json"], ["check", "out.h5", "p.json", "--junit", "x.xml"]]:
            with self.subTest(words=words):
                result = self.check(*words, preexec_fn=limit_file_size(1000))
                self.assertEqual(result.returncode, IO_ERROR, result.stderr)
                self.assertEqual(sorted(self.folder.iterdir()), before)

    def test_help_and_version(self):
        self.assertIn("quoka-check profile", self.check_ok("--help"))
        self.assertIn("--tolerance", self.check_ok("profile", "--help"))
        self.assertIn("--markdown", self.check_ok("check", "--help"))
        self.assertRegex(self.check_ok("--version"), r"^quoka-check \d+\.\d+\.\d+ ")


if __name__ == "__main__":
    unittest.main()
