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

# `dpwa config nodes FILE --local`: the file of these tests is that command's output. `dpwa config check
# FILE` and `dpwa status --config FILE --json`: what the test and the trainers below have put into FOLDER.
FAKE_CLI = r"""#!/bin/bash
folder=$(dirname "$0")
case "$1 $2" in
  "config nodes")
    grep -q broken "$3" && { echo "$3:1: broken" >&2; exit 2; }
    cat "$3" ;;
  "config check") cat "$folder/effective.yaml" ;;
  "status --config")
    echo asked >>"$folder/asked"
    comma='' nodes=''
    for file in "$folder"/states/*; do
      read -r state pid <"$file" && kill -0 "$pid" || continue  # STATE PID
      nodes+="$comma{\"name\": \"${file##*/}\", \"status\": {\"state\": \"$state\"}}"
      comma=,
    done 2>/dev/null
    echo "{\"nodes\": [$nodes]}" ;;
esac
"""

# Lives until it is told to end; what it was given goes to its log. "deaf" ignores SIGTERM.
FAKE_TRAINER = """#!/bin/bash
trap 'exit 143' TERM
[[ "$*" != *--deaf* ]] || trap '' TERM
folder=$(dirname "$0")
node=$4
exec 3<> <(:)
echo "arguments $*"
echo "threads $OMP_NUM_THREADS cores $(taskset -pc $$ | sed 's/.*: //')"
[[ "$*" != *--usage-$node* ]] || { echo "trainer: what is --usage-$node"; echo; exit 2; }
[[ "$*" != *--fail-$node* ]] || { echo "trainer: no memory"; exit 1; }
state=training
[[ "$*" != *--slow-$node* ]] || state=joining
echo $state $$ >"$folder/states/$node"
[[ "$*" != *--metrics* ]] || echo '{}' >"$6/$node.metrics.jsonl"
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


class Scripts(unittest.TestCase):
    """A cluster file of two nodes, w1 with one core, and fakes in the place of the binaries."""

    def setUp(self) -> None:
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = Path(scratch.name)
        self.run_dir = self.folder / "run"
        self.core = min(os.sched_getaffinity(0))
        self.cluster = self.write("cluster.yaml", f"w1\t127.0.0.1\t1\t{self.core}\tlocal\nw2\t::1\t2\t-\tlocal\n")
        self.environment = {
            **{name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"},  # nproc goes by it
            "DPWA_CLI": str(self.write("dpwa", FAKE_CLI, executable=True)),
            "DPWA_TRAIN": str(self.write("dpwa-train", FAKE_TRAINER, executable=True)),
            "TMPDIR": str(self.folder),
        }
        self.states = self.folder / "states"
        self.states.mkdir()
        self.write("effective.yaml", "backend: gossip\ngossip:\n  start_wait_ms: 10000\n")
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


class RunStop(Scripts):
    def test_nodes_get_their_name_and_as_many_threads_as_cores_or_their_share(self) -> None:
        self.assertEqual(self.start("--detach", "--", "--epochs", "2").returncode, 0)
        first = self.log("w1", "ready")
        self.assertIn(f"--config {self.cluster} --name w1 --run-dir {self.run_dir} --threads 1 --epochs 2", first)
        self.assertIn(f"threads 1 cores {self.core}\n", first)
        second = self.log("w2", "ready")
        share = max(1, len(os.sched_getaffinity(0)) // 2)  # without cores: its part of the machine
        self.assertIn(f"--name w2 --run-dir {self.run_dir} --threads {share} ", second)
        self.assertIn(f"threads {share} cores", second)
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

    def test_a_node_that_is_named_twice_is_started_once(self) -> None:
        self.assertEqual(self.start("--only", "w1", "--only=w1", "--", "--at-once").returncode, 0)
        self.assertIn("run: 1 node(s)", self.start("--only", "w1", "--only", "w1", "--", "--at-once").stderr)

    def test_an_option_given_twice_is_wrong_usage(self) -> None:
        calls = [("--run-dir", self.start("--run-dir", str(self.folder / "other"), "--", "--at-once")),
                 ("--wait", self.start("--detach", "--wait", "0", "--wait", "1")),
                 ("--grace", self.call("stop.sh", str(self.cluster), "--grace", "0", "--grace", "1"))]
        for option, done in calls:
            self.assertEqual(done.returncode, 2)
            self.assertEqual(len(done.stderr.splitlines()), 1)
            self.assertIn(f"{option} is given twice", done.stderr)
        self.assertFalse(self.run_dir.exists())

    def test_success_needs_every_node(self) -> None:
        self.assertEqual(self.start("--", "--at-once").returncode, 0)
        failed = self.start("--", "--break-w2")
        self.assertEqual(failed.returncode, 1)
        self.assertIn("w2: exit code 1", failed.stderr)

    def test_only_usage_errors_make_a_usage_error_of_the_run(self) -> None:
        self.assertEqual(self.start("--", "--usage-w1", "--usage-w2").returncode, 2)
        mixed = self.start("--", "--usage-w1", "--fail-w2")
        self.assertEqual(mixed.returncode, 1)
        self.assertIn("w1: exit code 2", mixed.stderr)

    def test_a_node_that_a_signal_ended_is_named_in_one_way_only(self) -> None:
        self.start("--detach")
        log = self.run_dir / "run.log"
        for node, number, name in (("w1", signal.SIGKILL, "KILL"), ("w2", signal.SIGSEGV, "SEGV")):
            os.kill(self.pid(node), number)
            line = f"{node}: ended by signal {number.value} ({name})"
            wait_until(lambda line=line: line in log.read_text(encoding="utf-8"))
        wait_until(lambda: "2 of 2 node(s) failed" in log.read_text(encoding="utf-8"))
        self.assertNotRegex(log.read_text(encoding="utf-8"), r"run\.sh|Killed|Segmentation")

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

    def test_stop_of_a_file_that_does_not_exist_is_wrong_usage(self) -> None:
        done = self.call("stop.sh", str(self.folder / "nowhere.yaml"))
        self.assertEqual(done.returncode, 2)
        self.assertEqual(len(done.stderr.splitlines()), 1)
        self.assertIn("there is no file", done.stderr)

    def test_stop_ends_the_nodes_of_a_file_that_was_deleted_meanwhile(self) -> None:
        self.start("--detach")
        pid = self.pid("w1")
        self.cluster.unlink()
        self.assertEqual(self.call("stop.sh", str(self.cluster)).returncode, 0)
        self.assertFalse(alive(pid))


    def test_stop_returns_once_the_run_that_waited_has_written_its_last_line(self) -> None:
        self.start("--detach")
        node = Path(f"/proc/{self.pid('w1')}/stat").read_text(encoding="ascii")
        run = int(node.rpartition(")")[2].split()[1])  # its parent
        os.kill(run, signal.SIGSTOP)  # it comes to that line when it is let
        command = [str(SCRIPTS / "stop.sh"), str(self.cluster)]
        with subprocess.Popen(command, env=self.environment, stderr=subprocess.PIPE, text=True) as stop:
            assert stop.stderr is not None
            waited = any(f"waiting for run.sh (pid {run})" in line for line in stop.stderr)
            os.kill(run, signal.SIGCONT)
            self.assertEqual(stop.wait(timeout=30), 0)
            self.assertEqual((waited, alive(run)), (True, False))
        self.assertIn("2 of 2 node(s) stopped", self.run_dir.joinpath("run.log").read_text(encoding="utf-8"))
        self.assertFalse(self.state().exists())


class Piped(Scripts):
    """A cluster file that comes through a pipe is read once; the nodes take the copy in the folder of the run."""

    def pipe(self, *arguments: str, text: str | None = None) -> subprocess.CompletedProcess[str]:
        self.text = self.cluster.read_text(encoding="utf-8") if text is None else text
        script = 'exec "$0" <(printf "%s" "$TEXT") "$@"'
        command = ["bash", "-c", script, str(SCRIPTS / "run.sh"), "--run-dir", str(self.run_dir), *arguments]
        environment = {**self.environment, "TEXT": self.text}
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)

    def test_the_nodes_take_the_copy_and_so_does_stop(self) -> None:
        started = self.pipe("--detach")
        self.assertEqual(started.returncode, 0, started.stderr)
        self.cluster = self.run_dir / "cluster.yaml"  # from here on
        self.assertEqual(self.cluster.read_text(encoding="utf-8"), self.text)
        self.assertIn(f"came through a pipe: {self.cluster}\n", started.stderr)
        self.assertIn(f"--config {self.cluster} --name w2", self.log("w2", "ready"))
        pid = self.pid("w2")
        self.assertEqual(self.start("--detach").returncode, 2)  # of the copy: runs already
        self.assertEqual(self.call("stop.sh", str(self.cluster)).returncode, 0)
        self.assertFalse(alive(pid))

    def test_standard_input_is_read_too(self) -> None:
        command = [str(SCRIPTS / "run.sh"), "/dev/stdin", "--run-dir", str(self.run_dir), "--", "--at-once"]
        with self.cluster.open(encoding="utf-8") as file:
            done = subprocess.run(command, env=self.environment, stdin=file, capture_output=True, text=True, timeout=60,
                                  check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("all 2 node(s) succeeded", done.stderr)
        self.assertIn(f"--config {self.run_dir}/cluster.yaml --name w1", self.log("w1", "ready"))

    def test_what_is_no_cluster_file_starts_nothing(self) -> None:
        for text, words in (("broken\n", ":1: broken"), ("", "is empty; accepted: a cluster file, or a pipe")):
            done = self.pipe(text=text)
            self.assertEqual(done.returncode, 2)
            self.assertIn(words, done.stderr)
            self.assertEqual(len(done.stderr.splitlines()), 1)
            self.assertFalse(self.run_dir.exists())

    def test_a_pipe_has_the_patience_that_the_programs_have(self) -> None:
        """Two seconds for somebody to write it, ten for the next bytes, a minute in all."""
        nobody = "is a pipe that nobody has opened to write it for 2 s"
        still = "is not written to its end: nothing has come for 10 s"
        late = "is not written to its end within 60 s"
        for opened, total, idle, complaint in (("no", 199, 199, ""), ("no", 200, 200, nobody), ("yes", 999, 999, ""),
                                               ("yes", 1000, 1000, still), ("yes", 5999, 999, ""),
                                               ("yes", 6000, 5, late)):
            line = f"source {SCRIPTS}/lib/piped_file.sh; pipe_complaint {opened} {total} {idle}"
            self.assertEqual(subprocess.check_output(["bash", "-c", line], text=True).strip(), complaint)

    def test_a_pipe_that_nobody_writes_is_refused(self) -> None:
        os.mkfifo(self.folder / "pipe")
        done = self.call("run.sh", str(self.folder / "pipe"), "--run-dir", str(self.run_dir))
        self.assertEqual(done.returncode, 2)
        self.assertEqual(len(done.stderr.splitlines()), 1)
        self.assertIn("is a pipe that nobody has opened to write it for 2 s; accepted: a cluster file", done.stderr)
        self.assertFalse(self.run_dir.exists())

    def test_a_named_pipe_is_read_to_the_end_of_its_writer_and_no_further_than_a_file_may_be(self) -> None:
        pipe = self.folder / "pipe"
        os.mkfifo(pipe)
        for size in (100_000, 30 << 20):
            script = f'source {SCRIPTS}/lib/common.sh; source {SCRIPTS}/lib/piped_file.sh; read_pipe "$0" "$1"'
            command = ["bash", "-euo", "pipefail", "-c", script, str(pipe), str(self.folder / "copy")]
            with subprocess.Popen(command, stdin=subprocess.DEVNULL) as reader:
                try:
                    pipe.write_bytes(b"x" * size)
                except BrokenPipeError:
                    self.assertGreater(size, 4 << 20)
                self.assertEqual(reader.wait(timeout=30), 0)
            most = (4 << 20) + 1024
            self.assertEqual(self.folder.joinpath("copy").stat().st_size, min(size, most))

    def test_one_node_of_a_run_is_started_again_by_its_file(self) -> None:
        done = self.pipe("--only", "w1")
        self.assertEqual(done.returncode, 2)
        self.assertIn("--only takes the cluster file of the run that goes on", done.stderr)


class Detached(Scripts):
    """--detach returns when every node takes part, or says which do not."""

    def detach(self, *arguments: str, wait: str = "60") -> subprocess.CompletedProcess[str]:
        return self.start("--detach", "--wait", wait, "--", *arguments)

    def says(self, node: str, state: str) -> None:
        """What a node answers to `dpwa status` from now on."""
        self.states.joinpath(node).write_text(f"{state} {os.getpid()}\n", encoding="ascii")

    def test_a_node_that_another_process_runs_already_is_not_started(self) -> None:
        self.says("w2", "training")
        done = self.detach()
        self.assertEqual(done.returncode, 2)
        self.assertIn("already running, and not started by run.sh: w2 ", done.stderr)
        self.assertFalse(self.state().exists())
        self.assertFalse(self.run_dir.exists())

    def test_a_node_process_that_waits_for_its_trainer_is_in_nobodys_way(self) -> None:
        self.says("w2", "stale")
        self.assertEqual(self.detach().returncode, 0)

    def test_usage_errors_of_every_trainer_are_the_result(self) -> None:
        done = self.detach("--usage-w1", "--usage-w2")
        self.assertEqual(done.returncode, 2)
        for node in ("w1", "w2"):
            self.assertIn(f"{node}: exit code 2; the last line of {self.run_dir}/{node}.log:", done.stderr)
            self.assertIn(f"     trainer: what is --usage-{node}\n", done.stderr)
        self.assertNotIn("ok ", done.stderr)
        self.assertNotIn("still running", done.stderr)

    def test_one_node_that_fails_is_named_and_the_others_go_on(self) -> None:
        done = self.detach("--fail-w2")
        self.assertEqual(done.returncode, 1)
        self.assertIn("w2: exit code 1; the last line", done.stderr)
        self.assertIn("trainer: no memory", done.stderr)
        self.assertNotIn("w1: exit", done.stderr)
        self.assertIn(f"still running: w1; {SCRIPTS}/stop.sh {self.cluster} ends them", done.stderr)
        self.assertTrue(alive(self.pid("w1")))

    def test_a_node_that_is_not_ready_in_time_is_named_with_its_state(self) -> None:
        done = self.detach("--slow-w2", wait="3")
        self.assertEqual(done.returncode, 1)
        self.assertIn("waiting for w2 (joining)\n", done.stderr)
        self.assertIn("w2: not ready after 3 s (joining); the last line", done.stderr)
        self.assertIn("     ready\n", done.stderr)
        self.assertTrue(alive(self.pid("w2")))

    def test_it_returns_once_the_last_node_is_ready(self) -> None:
        command = [str(SCRIPTS / "run.sh"), str(self.cluster), "--run-dir", str(self.run_dir)]
        command += ["--detach", "--", "--slow-w2"]
        with subprocess.Popen(command, env=self.environment, stderr=subprocess.PIPE, text=True) as runner:
            assert runner.stderr is not None
            waited = False
            for line in runner.stderr:
                if "waiting for w2 (joining)" in line:
                    waited = True
                    self.says("w2", "training")
            self.assertEqual((runner.wait(timeout=30), waited), (0, True))

    def test_nodes_that_are_done_already_have_taken_part(self) -> None:
        self.assertEqual(self.detach("--at-once").returncode, 0)

    def test_nodes_without_a_network_are_ready_when_they_write_metrics(self) -> None:
        self.write("effective.yaml", 'backend: "null"\n')
        self.assertEqual(self.detach("--metrics").returncode, 0)
        self.assertFalse(self.folder.joinpath("asked").exists())

    def test_without_waiting_nobody_is_asked(self) -> None:
        done = self.detach("--slow-w1", wait="0")
        self.assertEqual(done.returncode, 0)
        self.assertIn("not waited for", done.stderr)
        self.assertFalse(self.folder.joinpath("asked").exists())

    def test_no_temporary_file_is_left(self) -> None:
        before = {file.name for file in self.folder.iterdir()}
        self.detach("--fail-w2")
        self.assertEqual({file.name for file in self.folder.iterdir()} - before, {"run", "asked"})

    def test_wait_is_checked(self) -> None:
        self.assertEqual(self.detach(wait="soon").returncode, 2)
        self.assertEqual(self.start("--wait", "3").returncode, 2)
        self.assertFalse(self.run_dir.exists())


if __name__ == "__main__":
    unittest.main()
