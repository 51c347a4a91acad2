"""Bad options and bad configuration files: exit code 2, a message that names the place, nothing written."""

import unittest

from harness import BAD_INPUT, DONE, USAGE, SweepTest


class Options(SweepTest):
    def run_words(self, *more):
        return ["run", "--capture", self.capture, "--out", "out.h5", *more]

    def test_help_names_every_key_and_the_exit_codes(self):
        text = self.run_ok("run", "--help").stdout
        for word in ["--capture", "--budget", "--query_rule", "--min_history", "--retry-failed", "75 interrupted"]:
            self.assertIn(word, text)
        self.assertIn("export", self.run_ok("--help").stdout)

    def test_version_has_commit_and_compiler(self):
        self.assertRegex(self.run_ok("--version").stdout, r"^quoka-sweep \d+\.\d+\.\d+ \(commit \S+, .+\)")

    def test_selectors_are_listed(self):
        lines = self.run_ok("--list-selectors").stdout.splitlines()
        self.assertIn("oracle", [line.split()[0] for line in lines])

    def test_a_missing_verb_is_refused(self):
        self.refused(USAGE, [], "run, export, config")

    def test_an_unknown_verb_is_refused(self):
        self.refused(USAGE, ["sweep"], "sweep")

    def test_an_unknown_flag_names_the_nearest(self):
        self.refused(USAGE, self.run_words("--budgets", 3), "--budgets", "--budget;")

    def test_values_out_of_range_name_flag_and_value(self):
        for flag, value in [
            ("budget", "0"), ("budget", "-5"), ("budget", "0%"), ("budget", "101%"), ("budget", "many"),
            ("budget", "1.5"), ("chunk_size", "0"), ("chunk_size", "12x"), ("n_sel_queries", "0"),
            ("query_rule", "lowest"), ("selector", "quokka"), ("seed", "-1"), ("min_history", "-1"),
            ("sink_size", "four"), ("grid", "products"), ("layer", "first"), ("threads", "-2"),
            ("by_chunk", "maybe"), ("candidates", ""),
        ]:  # fmt: skip
            with self.subTest(flag=flag, value=value):
                self.refused(USAGE, self.run_words(f"--{flag}={value}"), f"--{flag}", value)

    def test_values_that_do_not_fit_together_are_refused(self):
        self.refused(USAGE, self.run_words("--chunk_size", 32, "--chunk_offset", 32), "chunk_offset 32", "chunk_size 32")

    def test_a_single_value_key_takes_one_value(self):
        self.refused(USAGE, self.run_words("--out", "other.h5"), "--out")

    def test_capture_and_out_are_needed(self):
        self.refused(USAGE, ["run", "--out", "out.h5"], "no capture", "--capture")
        self.refused(USAGE, ["run", "--capture", self.capture], "no output", "--out")

    def test_a_layer_that_is_not_there_names_those_that_are(self):
        self.refused(USAGE, self.run_words("--layer", 0, 7), "layer 7", "0, 1, 2")

    def test_two_captures_of_one_name_are_refused(self):
        twin = self.folder / "small.h5"
        twin.write_bytes(self.capture.read_bytes())
        self.refused(USAGE, ["run", "--capture", self.capture, twin, "--out", "out.h5"], '"small"', str(twin))

    def test_a_huge_grid_is_refused(self):
        values = [str(n) for n in range(1, 1200)]
        self.refused(USAGE, self.run_words("--budget", *values, "--n_sel_queries", *values), "one_at_a_time")

    def test_lists_repeat_the_flag_or_stand_after_it(self):
        for words in [["--budget", "8", "25%"], ["--budget", "8", "--budget", "25%"]]:
            text = self.run_ok(*self.run_words(*words, "--dry-run")).stdout
            self.assertRegex(text, r"configurations +2\n")


class ConfigFile(SweepTest):
    def config(self, text):
        (self.folder / "grid.toml").write_text(text)
        return ["run", "grid.toml", "--capture", self.capture, "--out", "out.h5"]

    def test_a_missing_file_is_refused(self):
        self.refused(USAGE, ["run", "none.toml"], "none.toml")

    def test_faults_name_line_and_column(self):
        for text, place, word in [
            ("budget = 8\nbudgte = 8\n", "grid.toml:2:1", "budget"),
            ("budget = [8,\n  0]\n", "grid.toml:2:3", "budget 0"),
            ("budget = 8\nbudget = 16\n", "grid.toml:2:", "budget"),
            ("budget = [8\n", "grid.toml:", ""),
            ("budget = []\n", "grid.toml:1:1", "no values"),
            ("budget = [[8]]\n", "grid.toml:1:11", "wrong type"),
            ("budget = 2024-01-01\n", "grid.toml:1:10", "wrong type"),
            ("\n[sweep]\nbudget = 8\n", "grid.toml:2:", "wrong type"),
            ("chunk_size = 1.5\n", "grid.toml:1:14", "1.5"),
            ("chunk_size = true\n", "grid.toml:1:14", "true"),
            ("selector = 3\n", "grid.toml:1:12", "not a text"),
            ("capture = 3\n", "grid.toml:1:11", "not a text"),
            ("by_chunk = 1\n", "grid.toml:1:12", "true or false"),
            ("layer = [\"all\", 1]\n", "grid.toml:1:10", "all"),
            ("min_history = [1, 2]\n", "grid.toml:1:1", "one value"),
        ]:  # fmt: skip
            with self.subTest(text=text):
                self.refused(USAGE, self.config(text), place, word)

    def test_flags_win_and_numbers_may_be_quoted(self):
        words = self.config('budget = ["8", 16, "25%"]\nn_sel_queries = 1e1\nscore = ["dot", "cosine"]\n')
        self.assertRegex(self.run_ok(*words, "--dry-run").stdout, r"configurations +6\n")
        self.assertRegex(self.run_ok(*words, "--dry-run", "--score", "dot").stdout, r"configurations +3\n")

    def test_the_stored_configuration_gives_the_same_sweep(self):
        words = self.config('budget = [8, "25%"]\ngrid = "one_at_a_time"\nscore = ["cosine", "dot"]\nlayer = [2, 0]\n')
        self.run_ok(*words)
        text = self.run_ok("config", "out.h5").stdout
        (self.folder / "again.toml").write_text(text)
        again = self.run_ok("run", "again.toml")
        self.assertIn("complete already", again.stderr)
        self.run_ok("run", "again.toml", "--out", "other.h5")
        self.assert_same_results("out.h5", "other.h5")
        self.assertIn('out = "other.h5"', self.run_ok("config", "other.h5").stdout)

    def test_P36_a_long_configuration_is_stored_whole(self):
        seeds = ", ".join(["0"] * 40_000)  # one configuration; as text more than an attribute may hold
        words = self.config(f"seed = [{seeds}]\nselector = \"random\"\nbudget = 8\nlayer = 0\n")
        self.run_ok(*words)
        text = self.run_ok("config", "out.h5").stdout
        self.assertGreater(len(text), 100_000)
        self.assertIn(f"seed = [{seeds}]", text)


class BadCaptures(SweepTest):
    """Faults of a capture's structure stop everything before work starts."""

    def refuse_capture(self, path, *parts):
        self.refused(BAD_INPUT, ["run", "--capture", self.capture, path, "--out", "out.h5"], str(path), *parts)

    def test_a_missing_capture_is_refused(self):
        self.refuse_capture(self.folder / "none.h5")

    def test_a_file_that_is_not_hdf5_is_refused(self):
        path = self.folder / "text.h5"
        path.write_text("not a capture " * 100)
        self.refuse_capture(path)

    def test_a_truncated_capture_is_refused(self):
        path = self.folder / "cut.h5"
        path.write_bytes(self.capture.read_bytes()[:-1000])
        self.refuse_capture(path)

    def test_a_results_file_is_not_a_capture(self):
        self.run_ok(*self.grid("results.h5"))
        self.refuse_capture(self.folder / "results.h5")

    def test_a_capture_is_not_a_results_file(self):
        for verb in ["export", "config"]:
            self.refused(BAD_INPUT, [verb, self.capture], str(self.capture), "results file")
        self.refused(BAD_INPUT, ["export", "none.h5"], "none.h5")

    def test_the_exit_code_of_a_good_run_is_0(self):
        self.assertEqual(self.sweep(*self.grid()).returncode, DONE)


if __name__ == "__main__":
    unittest.main()
