"""The results file and what is around it: existing outputs, export, table, threads, disk full."""

import csv
import io
import os
import unittest

from harness import DONE, IO_ERROR, USAGE, SweepTest, limit_file_size, unit_lines


class Output(SweepTest):
    def test_datasets_do_not_depend_on_threads(self):
        for threads in [1, 2, 5]:
            self.run_ok(*self.grid(f"{threads}.h5"), "--threads", threads, "--by_chunk", "--selections")
        self.assert_same_results("1.h5", "2.h5")
        self.assert_same_results("1.h5", "5.h5")

    def test_the_comparison_of_these_tests_sees_a_difference(self):
        self.run_ok(*self.grid("a.h5"))
        self.run_ok(*self.grid("b.h5"), "--sink_size", 3)
        self.assertIn("mass_recall_no_sink_mean", self.differences("a.h5", "b.h5"))

    def test_folders_of_the_output_are_made(self):
        self.run_ok(*self.grid("a/b/out.h5"))
        self.assertEqual([p.name for p in (self.folder / "a/b").iterdir()], ["out.h5"])

    def test_a_complete_output_is_left_alone_and_its_table_printed(self):
        first = self.run_ok(*self.grid())
        before = (self.folder / "out.h5").stat()
        again = self.run_ok(*self.grid())
        self.assertIn("complete already", again.stderr)
        self.assertEqual(again.stdout, first.stdout)
        self.assertEqual((self.folder / "out.h5").stat().st_mtime_ns, before.st_mtime_ns)
        self.assertEqual(os.listdir(self.folder), ["out.h5"])

    def test_a_larger_grid_computes_only_the_missing_cells(self):
        self.run_ok(*self.grid())
        larger = self.run_ok(*self.grid(), "--seed", 0, "--keep_first", 0, 1)
        self.assertEqual(unit_lines(larger.stderr), [4] * self.layers)  # quoka again; oracle folds it
        self.run_ok(*self.grid("fresh.h5"), "--seed", 0, "--keep_first", 0, 1)
        self.assert_same_results("out.h5", "fresh.h5")

    def test_more_layers_compute_only_the_missing_layers(self):
        self.run_ok(*self.grid(), "--layer", 2)
        more = self.run_ok(*self.grid())
        self.assertEqual(unit_lines(more.stderr), [self.n_grid] * (self.layers - 1))
        self.run_ok(*self.grid("fresh.h5"))
        self.assert_same_results("out.h5", "fresh.h5")

    def test_a_larger_grid_with_kept_keys_equals_a_fresh_one(self):
        self.run_ok(*self.grid(), "--by_chunk", "--selections")
        self.run_ok(*self.grid(), "--by_chunk", "--selections", "--keep_first", 0, 1)
        self.run_ok(*self.grid("fresh.h5"), "--by_chunk", "--selections", "--keep_first", 0, 1)
        self.assert_same_results("out.h5", "fresh.h5")

    def test_an_output_of_another_sweep_is_not_replaced(self):
        self.run_ok(*self.grid())
        other = self.make_capture("other.h5", 1, 64)
        for words, part in [
            (["--sink_size", 3], "sink_size"),
            (["--min_history", 9], "min_history"),
            (["--by_chunk"], "by_chunk"),
            (["--selections"], "selections"),
            (["--layer", 1], "layer 0"),
            (["--candidates", "cache"], "configuration"),
        ]:
            with self.subTest(words=words):
                self.refused(USAGE, [*self.grid(), *words], "not from this sweep", "--overwrite", part)
        self.refused(USAGE, self.grid(capture=other), "capture small")

    def test_a_file_that_is_no_results_file_is_not_replaced(self):
        (self.folder / "out.h5").write_text("my thesis")
        self.refused(USAGE, self.grid(), "out.h5", "--overwrite")
        self.assertEqual((self.folder / "out.h5").read_text(), "my thesis")

    def test_a_capture_is_never_replaced(self):
        capture = self.folder / "mine.h5"
        capture.write_bytes(self.capture.read_bytes())
        self.refused(USAGE, [*self.grid("mine.h5", capture), "--overwrite"], "mine.h5", "capture of this sweep")
        self.assertEqual(capture.read_bytes(), self.capture.read_bytes())

    def test_overwrite_replaces_the_output(self):
        self.run_ok(*self.grid(), "--sink_size", 3)
        self.run_ok(*self.grid(), "--overwrite")
        self.run_ok(*self.grid("fresh.h5"))
        self.assert_same_results("out.h5", "fresh.h5")

    def test_an_output_that_cannot_be_written_is_found_before_work(self):
        (self.folder / "file").write_text("")
        (self.folder / "folder.h5").mkdir()
        for out in ["file/out.h5", "folder.h5", "/proc/none/out.h5"]:
            with self.subTest(out=out):
                result = self.sweep(*self.grid(out))
                self.assertEqual(result.returncode, IO_ERROR, result.stderr)
                self.assertIn(out, result.stderr)
                self.assertNotIn("unit 1", result.stderr)

    def test_a_full_disk_ends_with_74_and_the_same_command_continues(self):
        self.run_ok(*self.grid("fresh.h5"))
        sizes = [100, 4_000, 100_000]  # too small for plan.json, for a part, for the results
        for n_bytes in sizes:
            full = self.sweep(*self.grid(), preexec_fn=limit_file_size(n_bytes))
            self.assertEqual(full.returncode, IO_ERROR, full.stderr)
            self.assertFalse((self.folder / "out.h5").exists())
        self.assertEqual(len(unit_lines(full.stderr)), self.layers)  # the last one failed in the merge
        self.assertEqual(unit_lines(self.run_ok(*self.grid()).stderr), [])
        self.assert_same_results("out.h5", "fresh.h5")

    def test_a_dry_run_writes_nothing(self):
        text = self.run_ok(*self.grid(), "--dry-run").stdout
        self.assertRegex(text, rf"configurations +{self.n_grid}\n")
        for word in ["units to do", "memory", "GFLOP/s"]:
            self.assertIn(word, text)
        self.assertEqual(os.listdir(self.folder), [])

    def test_quiet_prints_warnings_only(self):
        result = self.run_ok(*self.grid(), "--quiet")
        self.assertEqual(result.stdout, "")
        self.assertRegex(result.stderr, r"^warning: capture \S+small\.h5: not verified .*\n$")  # and nothing else


class Readers(SweepTest):
    def test_csv_has_one_line_per_head_and_empty_fields_for_nan(self):
        self.run_ok(*self.grid())
        self.run_ok("export", "out.h5", "--csv", "table.csv")
        rows = list(csv.DictReader(io.StringIO((self.folder / "table.csv").read_text())))
        self.assertEqual(len(rows), self.n_grid * self.layers * 4)
        oracle = [row for row in rows if row["selector"] == "oracle"]
        self.assertEqual({row["score"] for row in oracle}, {""})
        self.assertEqual({row["oracle_ratio"] for row in oracle}, {"1"})
        self.assertEqual({row["layer_kind"] for row in rows}, {"full"})
        self.assertEqual({row["cut_margin"] == "" for row in rows}, {False})

    def test_csv_columns_can_be_chosen(self):
        self.run_ok(*self.grid())
        text = self.run_ok("export", "out.h5", "--columns", "kl_mean", "n_rows").stdout
        header = next(csv.reader(io.StringIO(text)))
        self.assertEqual(header[-3:], ["q_head", "kl_mean", "n_rows"])
        self.refused(USAGE, ["export", "out.h5", "--columns", "kl"], '"kl"')

    def test_the_table_has_what_varies_and_fits_a_terminal(self):
        text = self.run_ok(*self.grid()).stdout
        header, *lines = text.splitlines()
        self.assertEqual(header.split()[:4], ["selector", "budget", "score", "recall"])
        self.assertEqual(len(lines[: lines.index("")]), self.n_grid)
        self.assertLessEqual(max(map(len, text.splitlines())), 120)
        self.assertNotIn("different rows", text)  # 32 keys of history are more than any budget

    def test_the_table_says_when_configurations_have_different_rows(self):
        words = ["run", "--capture", self.capture, "--chunk_size", 32, "--budget", 8, 64]
        text = self.run_ok(*words, "--out", "a.h5").stdout
        self.assertIn("different rows", text)
        self.assertIn("--min_history 65", text)
        self.assertNotIn("different rows", self.run_ok(*words, "--out", "b.h5", "--min_history", 65).stdout)

    def test_the_table_can_be_split(self):
        for by, n_groups in [("layer", self.layers), ("capture", 1)]:
            lines = self.run_ok(*self.grid(f"{by}.h5"), "--by", by).stdout.splitlines()
            self.assertEqual(lines[0].split()[0], by)
            self.assertEqual(lines.index("") - 1, n_groups * self.n_grid)


if __name__ == "__main__":
    unittest.main()
