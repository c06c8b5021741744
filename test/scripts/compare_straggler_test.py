"""compare_straggler.py gives every back end the same time, and sums up what its runs have left."""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import scripts_path  # before the modules of scripts/

import compare_straggler

CHOSEN = {"seconds": 36, "step_ms": 30, "factor": 4, "staleness": 8, "accuracy": 0.95}


class CompareStraggler(unittest.TestCase):
    def setUp(self) -> None:
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.chosen = argparse.Namespace(**CHOSEN, runs=Path(scratch.name))

    def steps(self, back_end: str) -> tuple[int, int]:
        return (compare_straggler.steps_of(self.chosen, back_end, "w1"),
                compare_straggler.steps_of(self.chosen, back_end, "w4"))

    def test_nodes_that_wait_for_the_slow_one_make_its_steps(self) -> None:
        self.assertEqual(self.steps("gossip"), (1200, 300))
        self.assertEqual(self.steps("dist_async"), (1200, 300))
        self.assertEqual(self.steps("dist_sync"), (300, 300))
        self.assertEqual(self.steps("collective"), (300, 300))
        self.assertEqual(self.steps("dist_ssp"), (308, 300))

    def leave_run(self, name: str, own: list[float], shared: float, evaluations: list[tuple[float, float]]) -> None:
        folder = self.chosen.runs / name
        folder.mkdir()
        (folder / "run.json").write_text(json.dumps({"load": [2.0, 4.0]}), encoding="utf-8")
        for i, accuracy in enumerate(own):
            node = f"w{i + 1}"
            result = {"node": node, "test_accuracy": accuracy, "steps": 300 if node == "w4" else 1200,
                      "averaged_model": {"test_accuracy": shared}}
            (folder / f"{node}.result.json").write_text(json.dumps(result), encoding="utf-8")
        lines = [json.dumps({"t": t, "test_accuracy": accuracy}) for t, accuracy in evaluations]
        (folder / "w1.metrics.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")

    def table(self) -> str:
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            compare_straggler.print_table(self.chosen)
        return out.getvalue()

    def test_the_table_has_means_and_ranges_of_the_seeds(self) -> None:
        self.leave_run("gossip.1", [0.95, 0.95, 0.95, 0.9], 0.96, [(1.0, 0.9), (8.0, 0.95), (9.0, 0.96)])
        self.leave_run("gossip.2", [0.95, 0.95, 0.95, 0.92], 0.97, [(4.0, 0.9)])
        (self.chosen.runs / "dist_sync.1").mkdir()  # not complete
        lines = self.table().splitlines()
        self.assertEqual(lines[2], "| `gossip` | 96.50 (96.00 to 97.00) | 91.00 (90.00 to 92.00) | 8.0 (8.0 to 8.0), "
                                   "1 of 2 | 300, 1200 |")
        self.assertEqual(lines[3:], ["", "load of the machine: 3.0 (3.0 to 3.0)"])

    def test_a_run_says_in_each_period_for_how_long_it_has_gone_on(self) -> None:
        read, write = os.pipe()
        holder = subprocess.Popen(["cat"], stdin=read)  # ends when the second line has been said
        os.close(read)
        lines: list[str] = []

        def say(line: str) -> None:
            lines.append(line)
            if len(lines) == 2:
                os.close(write)

        with mock.patch.object(compare_straggler, "say", say):
            codes = compare_straggler.wait_for({"w1": holder}, "gossip.1: {:.0f} s of about 36", period=0.01)
        self.assertEqual((codes, lines[0]), ({"w1": 0}, "gossip.1: 0 s of about 36"))

    def test_a_table_that_cannot_be_written_is_a_failure(self) -> None:
        program = "from lib.output import checked; raise SystemExit(checked(lambda: print(1)))"
        for redirected in (">/dev/full", ">&-"):
            shell = ["sh", "-c", f'exec "$@" {redirected}', "sh", sys.executable, "-c", program]
            done = subprocess.run(shell, cwd=scripts_path.SCRIPTS, stderr=subprocess.PIPE, text=True, check=False)
            self.assertEqual((done.returncode, done.stderr), (1, "-c: cannot write the result\n"))

    def test_every_script_says_when_its_help_cannot_be_written(self) -> None:
        for script in sorted(scripts_path.SCRIPTS.glob("*.py")):
            if "argparse" not in script.read_text(encoding="utf-8"):
                continue
            with self.subTest(script.name), open("/dev/full", "w", encoding="utf-8") as full:
                done = subprocess.run([sys.executable, str(script), "--help"], stdout=full, stderr=subprocess.PIPE,
                                      text=True, check=False)  # fmt: skip
                self.assertEqual((done.returncode, done.stderr), (1, f"{script.name}: cannot write the result\n"))

    def test_a_fault_of_another_file_is_not_called_one_of_the_result(self) -> None:
        program = "from lib.output import checked\ndef main(): raise BrokenPipeError('of a child')\nchecked(main)"
        done = subprocess.run([sys.executable, "-c", program], cwd=scripts_path.SCRIPTS, capture_output=True, text=True,
                              check=False)  # fmt: skip
        self.assertIn("BrokenPipeError", done.stderr)


if __name__ == "__main__":
    unittest.main()
