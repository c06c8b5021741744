"""bench_suite.py: what is measured by mode, what happens to a measurement that is refused."""

from __future__ import annotations

import contextlib
import io
import json
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Any
from unittest import mock

import scripts_path  # noqa: F401  (before the modules of scripts/)
import bench_suite
from bench_suite import Measurement, Plan
from lib.bench_results import GB, MB

# In place of dpwa-bench: refuses what is encrypted, else answers with a document.
PRETENDER = """#!/bin/sh
case "$*" in *psk*) echo "progress" >&2; echo "dpwa-bench: no psk here" >&2; exit 2 ;; esac
case $1 in
  memory) echo '{"kind": "memory", "results": []}' ;;
  choice) echo '{"kind": "choice", "results": [{"nodes": 100, "choose_ns": 5.2, "bytes_per_node": 9.5}]}' ;;
  step) echo '{"kind": "step", "arrived": {}}' ;;
  collective) case "$*" in
    *--engines*) echo '{"kind": "engines", "engines": [{"name": "mpi", "absent": "none"}]}' ;;
    *) echo '{"kind": "collective", "dpwa": {"step_us": {"median": 5}}, "ratio_to_ddp": {"median": 0.9}}' ;;
    esac ;;
  kvstore) echo '{"kind": "kvstore", "latency_us": {"median": 5}, "ratio_to_gloo": null}' ;;
  *) echo '{"kind": "pull", "bytes": 200, "gb_per_s": 1, "latency_us": {"median": 5}}' ;;
esac
"""


def program(text: str) -> Measurement:
    return Measurement("a trial", [sys.executable, "-c", text])


class Plans(unittest.TestCase):
    def titles(self, *arguments: Any) -> list[str]:
        return [one.title for one in Plan("dpwa-bench", *arguments).measurements()]

    def test_a_mode_measures_all_that_a_shorter_one_does(self) -> None:
        quick, default, full = (set(self.titles(mode)) for mode in ("quick", "default", "full"))
        self.assertLess(quick, default)
        self.assertLess(default, full)
        self.assertFalse(any("1 GB" in title for title in default))
        self.assertTrue(any("1 GB" in title for title in full))

    def test_no_measurement_is_made_twice(self) -> None:
        for mode in ("quick", "default", "full"):
            titles = self.titles(mode, "mpi", "python3")
            self.assertEqual(len(titles), len(set(titles)))

    def test_peers_of_two_nodes_come_with_pulls_of_both(self) -> None:
        self.assertFalse(any("both pulling" in title for title in self.titles("quick")))
        titles = self.titles("quick", None, "python3")
        self.assertIn("c10d Gloo all-reduce 100 MB, 4 nodes", titles)
        self.assertIn("pull 100 MB, 2 nodes both pulling", titles)
        both = next(one for one in Plan("b", "quick", "mpi").measurements() if "both pulling" in one.title)
        self.assertIn("--all-pull", both.command)

    def test_peers_use_reno_where_that_can_be_set(self) -> None:
        for library in (None, "/where/reno_sockets.so"):
            found = Plan("b", "quick", "mpi", "python3", reno_sockets=library).peers(MB, 4)
            self.assertEqual({one.environment.get("LD_PRELOAD") for one in found}, {library})
            self.assertEqual(len(found), 3)

    def test_steps_of_collective_come_with_ddp_where_a_python_has_torch(self) -> None:
        def found(*arguments: Any) -> list[Measurement]:
            plan = Plan(*arguments, reno_sockets="/where/reno_sockets.so").measurements()
            return [one for one in plan if one.command[1] == "collective"]

        titles = [one.title for one in found("b", "default", None, "python3")]
        steps = [f"collective {model}, {nodes} nodes" for model in ("cnn", "mlp", "resnet18") for nodes in (2, 4)]
        self.assertEqual(titles, [*steps, *(f"engines {size}, 4 nodes" for size in ("4 KB", "400 KB", "100 MB"))])
        for one in found("b", "quick", None, "python3"):
            self.assertEqual("--torch-python" in one.command, "--engines" not in one.command)
            self.assertEqual(one.environment, {"LD_PRELOAD": "/where/reno_sockets.so"})  # of both sides alike
        self.assertFalse(any("--torch-python" in one.command for one in found("b", "quick")))

    def test_the_store_is_measured_by_both_paths_and_beside_the_peers_that_are_there(self) -> None:
        def found(mode: str, **arguments: Any) -> list[Measurement]:
            return [one for one in Plan("b", mode, **arguments).measurements() if one.command[1] == "kvstore"]

        alone = found("default")
        self.assertFalse(any(option in one.command for one in alone for option in ("--torch-python", "--ps-lite")))
        grid = [one for one in alone if "--ping-pong" not in one.command and "momentum" not in one.command]
        # 3 sizes, 1 and 4 workers, 1 and 2 servers, 2 types, 2 paths; and 2-bit pushes
        self.assertEqual(len(grid), 3 * 2 * 2 * 2 * 2 + 1)
        library = "/where/reno_sockets.so"
        beside = found("quick", torch_python="python3", ps_lite="/where/peer", reno_sockets=library)
        for option in ("--torch-python", "--ps-lite"):
            with_peer = [one for one in beside if option in one.command]
            self.assertEqual(len(with_peer), 2)
            self.assertEqual({one.environment["LD_PRELOAD"] for one in with_peer}, {library})

    def test_on_a_device_every_back_end_trains_and_nothing_else_is_measured(self) -> None:
        for mode, models in (("quick", {"mlp"}), ("default", {"wide", "resnet18"})):
            plan = Plan("b", mode, torch_python="python3", device="cuda").measurements()
            words = [dict(zip(one.command[2::2], one.command[3::2])) for one in plan]
            self.assertEqual({one["--device"] for one in words}, {"cuda"})
            self.assertEqual({one["--model"] for one in words}, models)
            self.assertEqual([one.command[1] for one in plan].count("kvstore"), 3)
            self.assertEqual([one["--nodes"] for one in words if "--nodes" in one], ["2", "1", "2"])

    def test_every_pull_runs_in_turn_with_bare_sockets_but_for_four_nodes_of_1_gb(self) -> None:
        for one in Plan("dpwa-bench", "full").measurements():
            if one.command[1] == "pull":
                too_large = str(GB) in one.command and "--all-pull" in one.command
                self.assertEqual("--with-raw" in one.command, not too_large, one.title)

    def test_other_seconds_hold_for_every_measurement(self) -> None:
        plan = Plan("dpwa-bench", "full", "mpi", "python3", 0.5).measurements()
        told = [one.command for one in plan if "--seconds" in one.command]
        seconds = {command[command.index("--seconds") + 1] for command in told}
        self.assertEqual(seconds, {"0.5", "1", "1.5"})  # longer for 100 million parameters and ResNet-18


class Runs(unittest.TestCase):
    def test_a_refusal_is_its_last_line(self) -> None:
        refused = program("import sys; print('progress', file=sys.stderr); sys.exit('tool: not here')")
        self.assertEqual(bench_suite.run(refused), (None, "tool: not here"))
        self.assertEqual(bench_suite.run(program("import os; os._exit(3)")), (None, "exit code 3"))

    def test_a_program_that_is_not_there_is_left_out(self) -> None:
        document, reason = bench_suite.run(Measurement("a trial", ["no-such-program-of-dpwa"]))
        self.assertIsNone(document)
        self.assertIn("no-such-program-of-dpwa", reason)

    def test_what_a_program_says_before_its_document_does_not_count(self) -> None:
        document, _ = bench_suite.run(program("print('hello'); print('{\"kind\": \"raw\"}')"))
        self.assertEqual(document, {"kind": "raw"})
        self.assertEqual(bench_suite.run(program("print('hello')"))[1], "its output is no JSON document")

    def test_the_figures_of_a_peer_are_medians_of_its_windows(self) -> None:
        windows = [{"bytes": 2 * 10**9, "ns": ns, "cpu_s": ns / 10**9} for ns in (10**9, 2 * 10**9, 4 * 10**9)]
        raw = {"kind": "peer", "name": "a peer", "bytes": 8, "nodes": 2, "windows": windows}
        document, _ = bench_suite.run(program(f"import json; print(json.dumps({raw!r}))"))
        self.assertEqual((document["gb_per_s"], document["cpu_s_per_gb"], document["name"]), (1, 1, "a peer"))
        self.assertEqual(document["windows"], {"count": 3, "gb_per_s": {"min": 0.5, "median": 1, "max": 2}})
        self.assertEqual(document["noise"]["reasons"][0], "the windows differ by 150 %")

    def test_a_whole_run_notes_what_was_refused_and_keeps_the_rest(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            tool = Path(folder, "dpwa-bench")
            tool.write_text(PRETENDER, encoding="utf-8")
            tool.chmod(0o755)
            arguments = ["bench_suite.py", folder, "--bench", str(tool), "--mode", "quick"]
            with mock.patch("sys.argv", arguments), contextlib.redirect_stderr(io.StringIO()) as progress:
                self.assertEqual(bench_suite.main(), 0)
            written = json.loads(Path(folder, "bench.json").read_text(encoding="utf-8"))
        self.assertIn("left out: dpwa-bench: no psk here", progress.getvalue())
        self.assertEqual(written["plan"], "quick")
        self.assertEqual([one["reason"] for one in written["skipped"]], ["dpwa-bench: no psk here"])
        self.assertEqual(len(written["results"]), len(Plan("b", "quick").measurements()) - 1)


if __name__ == "__main__":
    unittest.main()
