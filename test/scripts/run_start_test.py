"""run.sh with a cluster file that comes through a pipe, and run.sh --detach, which waits until all nodes take part."""

from __future__ import annotations

import os
import signal
import subprocess
import unittest

from run_scripts import Scripts, alive
from scripts_path import SCRIPTS

class Piped(Scripts):
    """A cluster file that comes through a pipe is read once; the nodes take the copy in the folder of the run."""

    def pipe(self, *arguments: str, text: str | None = None) -> subprocess.CompletedProcess[str]:
        self.text = self.cluster.read_text(encoding="utf-8") if text is None else text
        script = 'exec "$0" <(printf "%s" "$TEXT") "$@"'
        command = ["bash", "-c", script, str(SCRIPTS / "run.sh"), "--run-dir", str(self.run_dir), *arguments]
        environment = {**self.environment, "TEXT": self.text}
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=240, check=False)

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
            done = subprocess.run(command, env=self.environment, stdin=file, capture_output=True, text=True, timeout=240,
                                  check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("all 2 node(s) succeeded", done.stderr)
        self.assertIn(f"--config {self.run_dir}/cluster.yaml --name w1", self.log("w1", "ready"))

    def test_what_is_no_cluster_file_starts_nothing(self) -> None:
        for text, words in (("broken\n", ":1: broken"), ("", "is empty")):
            done = self.pipe(text=text)
            self.assertEqual(done.returncode, 2)
            self.assertIn(words, done.stderr)
            self.assertEqual(len(done.stderr.splitlines()), 1)
            self.assertFalse(self.run_dir.exists())

    def test_a_named_pipe_is_read_to_the_end_of_its_writer(self) -> None:
        pipe, text = self.folder / "pipe", self.cluster.read_text(encoding="utf-8")
        os.mkfifo(pipe)
        command = [str(SCRIPTS / "run.sh"), str(pipe), "--run-dir", str(self.run_dir), "--", "--at-once"]
        with subprocess.Popen(command, env=self.environment, stderr=subprocess.DEVNULL) as run:
            pipe.write_text(text, encoding="utf-8")
            self.assertEqual(run.wait(timeout=240), 0)
        self.assertEqual(self.run_dir.joinpath("cluster.yaml").read_text(encoding="utf-8"), text)

    def test_one_node_of_a_run_is_started_again_by_its_file(self) -> None:
        done = self.pipe("--only", "w1")
        self.assertEqual(done.returncode, 2)
        self.assertIn("--only takes the cluster file of the run to continue", done.stderr)


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
        self.assertFalse(self.recorded())
        self.assertFalse(self.run_dir.exists())

    def test_a_node_process_that_waits_for_its_trainer_is_in_nobodys_way(self) -> None:
        self.says("w2", "stale")
        self.assertEqual(self.detach().returncode, 0)

    def test_usage_errors_of_every_trainer_are_the_result(self) -> None:
        done = self.detach("--usage-w1", "--usage-w2")
        self.assertEqual(done.returncode, 2)
        for node in ("w1", "w2"):
            self.assertIn(f"{node}: exit code 2 after ", done.stderr)
            self.assertIn(f"     trainer: what is --usage-{node}\n", done.stderr)
        self.assertNotIn("ok ", done.stderr)
        self.assertNotIn("still running", done.stderr)

    def test_one_node_that_fails_is_named_and_the_others_go_on(self) -> None:
        done = self.detach("--fail-w2")
        self.assertEqual(done.returncode, 1)
        self.assertIn("w2: exit code 1 after", done.stderr)
        self.assertIn("trainer: no memory", done.stderr)
        self.assertNotIn("w1: exit", done.stderr)
        self.assertIn(f"still running: w1; {SCRIPTS}/stop.sh {self.cluster} ends them", done.stderr)
        self.assertTrue(alive(self.pid("w1")))

    def test_a_node_that_is_not_ready_in_time_is_named_with_its_state(self) -> None:
        for wait in ("3", "15", "60"):  # on a busy machine 3 s may be over before w1 trains and both are asked
            self.run_dir = self.folder / f"run{wait}"
            done = self.detach("--slow-w2", wait=wait)
            self.assertEqual(done.returncode, 1)
            self.assertIn(f"w2: not ready after {wait} s", done.stderr)
            if "waiting for w2 (joining)\n" in done.stderr:
                break
            self.call("stop.sh", str(self.cluster), "--grace", "0")
        self.assertIn("waiting for w2 (joining)\n", done.stderr)
        self.assertIn(f"w2: not ready after {wait} s (joining); the last line", done.stderr)
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
            self.assertEqual((runner.wait(timeout=240), waited), (0, True))

    def test_nodes_that_are_done_already_have_taken_part(self) -> None:
        self.assertEqual(self.detach("--at-once").returncode, 0)

    def test_nodes_without_a_network_are_ready_when_they_write_metrics(self) -> None:
        self.write("document", '{"backend": "null", "start_wait_ms": 60000}')
        self.assertEqual(self.detach("--metrics").returncode, 0)
        self.assertFalse(self.folder.joinpath("asked").exists())

    def test_without_waiting_nobody_is_asked(self) -> None:
        done = self.detach("--slow-w1", wait="0")
        self.assertEqual(done.returncode, 0)
        self.assertIn("not waited for", done.stderr)
        self.assertFalse(self.folder.joinpath("asked").exists())

    def test_a_node_ignores_a_hang_up_until_it_is_ready_for_one(self) -> None:
        self.assertEqual(self.detach().returncode, 0)
        ignored = int(self.log("w1", "ready").split("ignores ")[1].split()[0], 16)
        self.assertTrue(ignored >> (signal.SIGHUP - 1) & 1)
        self.assertFalse(ignored >> (signal.SIGPIPE - 1) & 1)

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
