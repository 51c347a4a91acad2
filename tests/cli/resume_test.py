"""Interrupted and killed sweeps: the same command continues, and the result is that of an undisturbed run."""

import os
import random
import signal
import subprocess
import time
import unittest

from harness import INTERRUPTED, SWEEP, SweepTest, unit_lines


class Resume(SweepTest):
    layers = 12
    tokens = 400

    def start(self, *more):
        command = [SWEEP, *(str(word) for word in [*self.grid(), "--threads", 1, *more])]
        return subprocess.Popen(command, cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def fresh(self):
        begin = time.monotonic()
        self.run_ok(*self.grid("fresh.h5"), "--threads", 1)
        return time.monotonic() - begin

    def parts(self):
        return sorted((self.folder / "out.h5.parts/shards").rglob("*.h5"))

    def stop_after_first_unit(self, number):
        process = self.start()
        line = process.stderr.readline()
        while line.startswith("warning: capture"):  # it was not verified
            line = process.stderr.readline()
        self.assertIn("unit 1/", line)
        process.send_signal(number)
        rest = process.communicate()[1]
        return process.returncode, line + rest

    def test_a_signal_ends_with_75_and_the_same_command_continues(self):
        self.fresh()
        for number in [signal.SIGINT, signal.SIGTERM]:
            code, stderr = self.stop_after_first_unit(number)
            self.assertEqual(code, INTERRUPTED, stderr)
            self.assertIn("run the same command to continue", stderr)
            self.assertFalse((self.folder / "out.h5").exists())
        n_done = len(self.parts())
        self.assertGreaterEqual(n_done, 2)
        rest = self.run_ok(*self.grid())
        self.assertEqual(len(unit_lines(rest.stderr)), self.layers - n_done)
        self.assert_same_results("out.h5", "fresh.h5")
        self.assertFalse((self.folder / "out.h5.parts").exists())

    def test_P33_kills_at_random_moments_lose_nothing(self):
        seconds = self.fresh()
        moments = random.Random(1)  # where the kills fall depends on the machine; the result must not
        for _ in range(12):
            process = self.start()
            time.sleep(moments.uniform(0, 0.4 * seconds))
            process.kill()
            process.communicate()
        done = {path: path.read_bytes() for path in self.parts()}
        process = self.start()  # even if the last kill fell between the merge and the removal of the parts
        process.communicate()
        self.assertEqual(process.returncode, 0)
        self.assertTrue(all(not path.exists() for path in done))  # merged
        self.assert_same_results("out.h5", "fresh.h5")
        self.assertEqual(sorted(os.listdir(self.folder)), ["fresh.h5", "out.h5"])

    def test_P37_parts_of_another_grid_are_used_as_far_as_they_fit(self):
        self.stop_after_first_unit(signal.SIGKILL)
        n_done = len(self.parts())
        self.assertGreaterEqual(n_done, 1)
        larger = [*self.grid(), "--keep_first", 0, 1]
        stderr = self.run_ok(*larger).stderr
        self.assertEqual(sorted(unit_lines(stderr)), [4] * n_done + [10] * (self.layers - n_done))

    def test_P37_changed_constants_use_nothing_of_the_old_parts(self):
        self.stop_after_first_unit(signal.SIGKILL)
        stderr = self.run_ok(*self.grid(), "--sink_size", 3).stderr
        self.assertEqual(unit_lines(stderr), [self.n_grid] * self.layers)
        self.assertGreaterEqual(len(self.parts()), 1)  # they still serve the old sweep

    def test_a_damaged_part_is_computed_again(self):
        self.fresh()
        self.stop_after_first_unit(signal.SIGINT)
        first, *others = self.parts()
        content = bytearray(first.read_bytes())
        content[len(content) // 2] ^= 1
        first.write_bytes(content)
        stderr = self.run_ok(*self.grid()).stderr
        self.assertIn(f"{first.name} does not fit its checksum", stderr)
        self.assertEqual(len(unit_lines(stderr)), self.layers - len(others))
        self.assert_same_results("out.h5", "fresh.h5")

    def test_a_truncated_part_is_computed_again(self):
        self.stop_after_first_unit(signal.SIGINT)
        for part in self.parts():
            part.write_bytes(part.read_bytes()[:500])
        self.assertEqual(unit_lines(self.run_ok(*self.grid()).stderr), [self.n_grid] * self.layers)

    def test_temporary_files_of_dead_processes_are_removed(self):
        self.stop_after_first_unit(signal.SIGINT)
        dead = subprocess.Popen(["true"])
        dead.wait()
        folder = self.parts()[0].parent
        left = [folder / f".unit.h5.{dead.pid}.0.tmp", self.folder / f".out.h5.{dead.pid}.0.tmp"]
        alive = self.folder / f".out.h5.{os.getpid()}.0.tmp"
        foreign = self.folder / f".other.h5.{dead.pid}.0.tmp"
        for path in [*left, alive, foreign]:
            path.write_text("")
        self.run_ok(*self.grid())
        self.assertEqual([path.exists() for path in left], [False, False])
        self.assertTrue(alive.exists() and foreign.exists())


if __name__ == "__main__":
    unittest.main()
