"""run.sh starts every local node once, pinned; stop.sh ends exactly those."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
import unittest
from collections.abc import Callable
from pathlib import Path

from scripts_path import SCRIPTS

BOOT_ID = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()

# `dpwa config nodes FILE --local`: the file of these tests is that command's output.
FAKE_CLI = """#!/bin/sh
grep -q broken "$3" && { echo "$3:1: broken" >&2; exit 2; }
cat "$3"
"""

# Lives until it is told to end; what it was given goes to its log. "deaf" ignores SIGTERM.
FAKE_TRAINER = """#!/bin/bash
trap 'exit 143' TERM
[[ "$*" != *--deaf* ]] || trap '' TERM
exec 3<> <(:)
echo "arguments $*"
echo "threads $OMP_NUM_THREADS cores $(taskset -pc $$ | sed 's/.*: //')"
echo ready
[[ "$*" != *--at-once* ]] || exit 0
[[ "$*" != *"--name w2"*--break-w2* ]] || exit 1
[[ "$*" != *--break-w2* ]] || exit 0
read -r -u 3  # nothing ever comes
"""


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError("what the test waits for does not happen")
        time.sleep(0.01)


def alive(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"


class RunStop(unittest.TestCase):
    def setUp(self) -> None:
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = Path(scratch.name)
        self.run_dir = self.folder / "run"
        self.core = min(os.sched_getaffinity(0))
        self.cluster = self.write("cluster.yaml", f"w1\t127.0.0.1\t1\t{self.core}\tlocal\nw2\t::1\t2\t-\tlocal\n")
        self.environment = {
            **os.environ,
            "DPWA_CLI": str(self.write("dpwa", FAKE_CLI, executable=True)),
            "DPWA_TRAIN": str(self.write("dpwa-train", FAKE_TRAINER, executable=True)),
        }
        self.addCleanup(self.call, "stop.sh", str(self.cluster), "--grace", "0")

    def write(self, name: str, text: str, *, executable: bool = False) -> Path:
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        path.chmod(0o755 if executable else 0o644)
        return path

    def call(self, script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [str(SCRIPTS / script), *arguments]
        return subprocess.run(command, env=self.environment, capture_output=True, text=True, timeout=60, check=False)

    def start(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return self.call("run.sh", str(self.cluster), "--run-dir", str(self.run_dir), *arguments)

    def state(self) -> Path:
        line = f'source {SCRIPTS}/lib/common.sh; source {SCRIPTS}/lib/processes.sh; state_folder "$1"'
        return Path(subprocess.check_output(["bash", "-c", line, "-", str(self.cluster)], text=True).strip())

    def pid(self, node: str) -> int:
        return int(self.state().joinpath(f"{node}.process").read_text(encoding="ascii").split()[0])

    def log(self, node: str, word: str) -> str:
        """The log of a node, once it holds `word`."""
        file = self.run_dir / f"{node}.log"
        wait_until(lambda: word in file.read_text(encoding="utf-8"))
        return file.read_text(encoding="utf-8")

    def test_nodes_get_their_name_their_cores_and_as_many_threads(self) -> None:
        self.assertEqual(self.start("--detach", "--", "--epochs", "2").returncode, 0)
        first = self.log("w1", "ready")
        self.assertIn(f"--config {self.cluster} --name w1 --run-dir {self.run_dir} --threads 1 --epochs 2", first)
        self.assertIn(f"threads 1 cores {self.core}\n", first)
        self.assertIn("--name w2", self.log("w2", "ready"))
        self.assertTrue(self.run_dir.joinpath("cluster.yaml").exists())

    def test_stop_ends_the_nodes_and_is_idempotent(self) -> None:
        self.start("--detach")
        pids = [self.pid("w1"), self.pid("w2")]
        self.assertEqual([alive(pid) for pid in pids], [True, True])
        self.assertEqual(self.call("stop.sh", str(self.cluster)).returncode, 0)
        self.assertEqual([alive(pid) for pid in pids], [False, False])
        self.assertFalse(self.state().exists())
        self.assertEqual(self.call("stop.sh", str(self.cluster)).returncode, 0)

    def test_a_node_that_ignores_sigterm_is_killed_after_the_grace(self) -> None:
        self.start("--detach", "--", "--deaf")
        self.log("w1", "ready")
        pid = self.pid("w1")
        done = self.call("stop.sh", str(self.cluster), "--grace", "1")
        self.assertEqual(done.returncode, 0)
        self.assertIn("SIGKILL", done.stderr)
        self.assertFalse(alive(pid))

    def test_a_process_with_the_pid_but_not_the_start_time_is_left_alone(self) -> None:
        with subprocess.Popen(["sleep", "60"]) as bystander:
            self.state().mkdir(parents=True)
            record = self.state() / "w1.process"
            record.write_text(f"{bystander.pid} 1 {BOOT_ID}\n", encoding="ascii")
            self.assertEqual(self.call("stop.sh", str(self.cluster)).returncode, 0)
            self.assertTrue(alive(bystander.pid))
            bystander.kill()

    def test_a_second_start_is_refused_and_changes_nothing(self) -> None:
        self.start("--detach")
        pid = self.pid("w1")
        again = self.start()
        self.assertEqual(again.returncode, 2)
        self.assertIn("already running: w1 w2", again.stderr)
        self.assertTrue(alive(pid))

    def test_one_node_that_has_gone_is_started_again_alone(self) -> None:
        self.start("--detach")
        first, second = self.pid("w1"), self.pid("w2")
        os.kill(second, signal.SIGKILL)
        wait_until(lambda: not alive(second))
        self.assertEqual(self.start("--only", "w2", "--detach").returncode, 0)
        self.assertTrue(alive(first))
        self.assertNotEqual(self.pid("w2"), second)

    def test_success_needs_every_node(self) -> None:
        self.assertEqual(self.start("--", "--at-once").returncode, 0)
        failed = self.start("--", "--break-w2")
        self.assertEqual(failed.returncode, 1)
        self.assertIn("w2: exit code 1", failed.stderr)

    def test_a_signal_to_run_ends_the_nodes_first(self) -> None:
        command = [str(SCRIPTS / "run.sh"), str(self.cluster), "--run-dir", str(self.run_dir)]
        with subprocess.Popen(command, env=self.environment, stderr=subprocess.DEVNULL) as runner:
            wait_until(self.run_dir.joinpath(".started").exists)
            pids = [self.pid("w1"), self.pid("w2")]
            runner.send_signal(signal.SIGTERM)
            self.assertEqual(runner.wait(timeout=30), 143)
        self.assertEqual([alive(pid) for pid in pids], [False, False])

    def test_a_broken_cluster_file_starts_nothing(self) -> None:
        self.write("cluster.yaml", "broken\n")
        self.assertEqual(self.start().returncode, 2)
        self.assertFalse(self.run_dir.exists())


if __name__ == "__main__":
    unittest.main()
