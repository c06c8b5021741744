"""run.sh starts every local node once, pinned; stop.sh ends exactly those."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import unittest
from pathlib import Path

from run_scripts import STATES, Scripts, alive, wait_until
from scripts_path import SCRIPTS

from lib.processes import Records, start_of  # isort: skip

ONE_SERVER, TWO_SERVERS = "s1\n", "s1\ns2\n"


class Start(Scripts):
    """Which processes run.sh starts, and what it refuses."""

    def test_nodes_get_their_name_and_as_many_threads_as_cores_or_their_share(self) -> None:
        self.assertEqual(self.start("--detach", "--", "--epochs", "2").returncode, 0)
        first = self.log("w1", "ready")
        self.assertIn(f"--config {self.cluster} --name w1 --run-dir {self.run_dir} --threads 1 --epochs 2", first)
        self.assertIn(f"threads 1 cores {self.core}\n", first)
        second = self.log("w2", "ready")
        # Without cores: its part of the six processors that the fake dpwa says.
        self.assertIn(f"--name w2 --run-dir {self.run_dir} --threads 3 ", second)
        self.assertIn("threads 3 cores", second)
        self.assertTrue(self.run_dir.joinpath("cluster.yaml").exists())

    def test_nodes_and_servers_are_process_groups_of_one_session(self) -> None:
        """Linux may divide each core among sessions (autogroup), and a terminal sends Ctrl-C to one group."""
        self.write("servers", TWO_SERVERS)
        for detached in (True, False):
            with self.subTest(detached=detached):
                self.run_dir = self.folder / f"run-{detached}"
                if detached:
                    self.start("--detach")
                else:
                    run = self.run_in_background()
                pids = [self.pid(name) for name in ("s1", "s2", "w1", "w2")]
                self.assertEqual([os.getpgid(pid) for pid in pids], pids)
                sessions = {os.getsid(pid) for pid in pids}
                self.assertEqual(sessions == {os.getsid(0)}, not detached)
                self.assertEqual(len(sessions), 1)
                self.call("stop.sh", str(self.cluster))
        run.communicate(timeout=240)

    def test_a_detached_run_may_be_started_without_standard_descriptors_or_a_path(self) -> None:
        script = 'cd "$1"; bash run.sh "$2" --run-dir "$3" --detach <&- >&- 2>&-'
        self.assertEqual(self.in_shell(script).returncode, 0)
        self.assertTrue(alive(self.pid("w1")) and alive(self.pid("w2")))

    def test_a_folder_of_the_run_that_cannot_be_is_wrong_usage(self) -> None:
        done = self.call("run.sh", str(self.cluster), "--run-dir", str(self.write("file", "")), "--detach")
        self.assertEqual(done.returncode, 2)
        self.assertIn("there can be no folder of the run", done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1)

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
        wait_until(lambda: not Path(f"/proc/{second}").exists())  # and its supervisor has seen it
        self.assertEqual(self.call("run.sh", str(self.cluster), "--only", "w2", "--detach").returncode, 0)
        self.assertTrue(alive(first))
        self.assertNotEqual(self.pid("w2"), second)
        self.assertTrue(self.run_dir.joinpath("run-w2.log").exists())  # the folder of the others

    def test_another_file_in_the_folder_of_the_run_is_kept(self) -> None:
        self.run_dir.mkdir()
        self.run_dir.joinpath("cluster.yaml").write_text("mine\n", encoding="utf-8")
        done = self.start("--", "--at-once")
        self.assertEqual(done.returncode, 0)
        self.assertIn("cluster.yaml.replaced now", done.stderr)
        self.assertEqual(self.run_dir.joinpath("cluster.yaml.replaced").read_text(encoding="utf-8"), "mine\n")

    def test_a_node_that_is_named_twice_is_started_once(self) -> None:
        done = self.start("--only", "w1", "--only=w1", "--", "--at-once")
        self.assertEqual(done.returncode, 0)
        self.assertIn("run: 1 node(s)", done.stderr)

    def test_an_option_given_twice_is_wrong_usage(self) -> None:
        calls = [("--run-dir", self.start("--run-dir", str(self.folder / "other"), "--", "--at-once")),
                 ("--grace", self.call("stop.sh", str(self.cluster), "--grace", "0", "--grace", "1"))]
        for option, done in calls:
            self.assertEqual(done.returncode, 2)
            self.assertEqual(len(done.stderr.splitlines()), 1)
            self.assertIn(f"{option} is given twice", done.stderr)
        self.assertFalse(self.run_dir.exists())

    def test_each_node_and_server_is_checked_and_every_fault_is_one_line(self) -> None:
        self.write("servers", TWO_SERVERS)
        refusals = [f"cluster.yaml:9: security.cert: '{name}.pem' is for 'other'\n" for name in ("w2", "s1")]
        self.write("refusal-w2", refusals[0])
        self.write("refusal-s1", refusals[1])
        self.write("refusal-s2", refusals[1])  # as a folder that both name
        done = self.start("--detach")
        self.assertEqual((done.returncode, done.stderr), (2, "".join(refusals)))
        self.assertFalse(self.run_dir.exists())
        self.assertFalse(self.recorded())
        self.assertEqual(self.start("--only", "w1", "--", "--at-once").returncode, 0)  # the others are not to start

    def test_options_of_the_trainer_before_the_dashes_are_shown_in_their_place(self) -> None:
        script, file = SCRIPTS / "run.sh", self.cluster
        for words, command in (
            ([file, "--steps", "5"], f"{script} {file} -- --steps 5"),
            ([file, "--steps=5", "--detach", "--", "--data", "a b"], f"{script} {file} --detach -- --steps=5 --data 'a b'"),
            (["--steps", "5", file], f"{script} CLUSTER.yaml -- OPTIONS"),
        ):
            done = self.call("run.sh", *map(str, words))
            self.assertEqual(done.returncode, 2)
            self.assertEqual(done.stderr, "failed: --steps is no option of run.sh, and those of the trainer come after --: "
                                          f"{command}; see run.sh --help\n")  # fmt: skip
        self.assertIn("unrecognized arguments: w1;", self.call("run.sh", str(file), "w1").stderr)

    def test_one_node_that_resumes_continues_in_the_folder_of_the_latest_run_of_the_file(self) -> None:
        runs, states = self.folder / "runs", self.folder / "records"

        def run(*arguments: str) -> str:
            command = [sys.executable, str(SCRIPTS / "supervise.py"), "run", "run.sh", "/nowhere", str(runs),
                       str(states), str(self.cluster), *arguments, "--at-once"]  # fmt: skip
            subprocess.run(command, env=self.environment, stderr=subprocess.DEVNULL, timeout=240, check=True)
            return os.readlink(runs / "latest")

        first = run("--")
        self.assertEqual(run("--only", "w2", "--", "--resume"), first)
        self.assertEqual(runs.joinpath(first, "w2.log").read_text(encoding="utf-8").count("ready"), 2)
        self.assertNotEqual(run("--only", "w2", "--"), first)
        self.assertNotEqual(run("--", "--resume"), first)
        runs.joinpath("latest", "cluster.yaml").write_text("other\n", encoding="utf-8")
        other = os.readlink(runs / "latest")
        self.assertNotEqual(run("--only", "w2", "--", "--resume"), other)


class End(Scripts):
    """How run.sh ends, with its nodes or on a signal."""

    def test_success_needs_every_node_and_only_usage_errors_make_a_usage_error(self) -> None:
        for arguments, code, lines in ((("--usage-w1", "--fail-w2"), 1, ("w1: exit code 2", "w2: exit code 1", "2 of 2")),
                                       (("--usage-w2", "--at-once"), 2, ("w1: done", "w2: exit code 2", "1 of 2"))):
            done = self.start("--", *arguments)
            self.assertEqual(done.returncode, code, done.stderr)
            for line in lines:
                self.assertIn(line, done.stderr)

    def test_a_fault_of_all_nodes_is_shown_once(self) -> None:
        done = self.start("--", "--usage-all")
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertEqual(done.stderr.count("trainer: what is --usage-all"), 1)
        self.assertRegex(done.stderr, r"w[12]: exit code 2 after \d+ s, with the last line of w[12]; ")

    def test_a_node_that_a_signal_ended_is_named_in_one_way_only(self) -> None:
        self.start("--detach")
        log = self.run_dir / "run.log"
        for node, number, name in (("w1", signal.SIGKILL, "KILL"), ("w2", signal.SIGSEGV, "SEGV")):
            os.kill(self.pid(node), number)
            line = f"{node}: ended by signal {number.value} ({name})"
            wait_until(lambda line=line: line in log.read_text(encoding="utf-8"))
        wait_until(lambda: "2 of 2 node(s) failed" in log.read_text(encoding="utf-8"))
        self.assertNotRegex(log.read_text(encoding="utf-8"), r"run\.sh|Killed|Segmentation")

    def test_a_program_that_cannot_be_executed_fails_the_run(self) -> None:
        self.write("dpwa-train", "#!/no/such/program", executable=True)
        done = self.start("--detach")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("w2: cannot be started: ", done.stderr)
        wait_until(lambda: not self.recorded())

    def test_a_ctrl_c_reaches_the_nodes_through_run_alone(self) -> None:
        command = [str(SCRIPTS / "run.sh"), str(self.cluster), "--run-dir", str(self.run_dir)]
        with subprocess.Popen(command, env=self.environment, stderr=subprocess.PIPE, text=True,
                              start_new_session=True) as run:  # fmt: skip
            for node in ("w1", "w2"):
                wait_until(self.states.joinpath(node).exists)
            os.killpg(run.pid, signal.SIGINT)  # as a terminal does
            _, messages = run.communicate(timeout=240)
        self.assertEqual(run.returncode, 130, messages)
        self.assertEqual(messages.count(": ended by "), 2, messages)
        self.assertNotIn("ended by SIGINT", messages)

    def test_a_signal_to_run_ends_the_nodes_first(self) -> None:
        command = [str(SCRIPTS / "run.sh"), str(self.cluster), "--run-dir", str(self.run_dir)]
        with subprocess.Popen(command, env=self.environment, stderr=subprocess.DEVNULL) as runner:
            wait_until(lambda: len(self.running()) == 3)  # with run.sh
            pids = [self.pid("w1"), self.pid("w2")]
            runner.send_signal(signal.SIGTERM)
            self.assertEqual(runner.wait(timeout=240), 143)
        self.assertEqual([alive(pid) for pid in pids], [False, False])

    def test_the_foreground_tells_the_steps_and_losses_of_the_nodes(self) -> None:
        script = "import sys, lib.supervisor, supervise; lib.supervisor.PROGRESS_INTERVAL = 0.01; supervise.main()"
        command = [sys.executable, "-c", script, "run", "run.sh", "/nowhere", "/nowhere", str(self.folder / "records"),
                   str(self.cluster), "--run-dir", str(self.run_dir)]  # fmt: skip
        self.run_dir.mkdir()
        for node in ("w1", "w2"):
            metrics = self.run_dir / f"{node}.metrics.jsonl"
            metrics.write_text(f'{{"step": 1{node[1]}, "loss": 0.5}}\n', encoding="utf-8")
        with subprocess.Popen(command, env={**self.environment, "PYTHONPATH": str(SCRIPTS)}, stderr=subprocess.PIPE,
                              text=True) as run:  # fmt: skip
            assert run.stderr is not None
            self.assertTrue(any("s: step 11 to 12, loss 0.5\n" in line for line in run.stderr))
            for node in ("w1", "w2"):
                self.write(f"finish-{node}", "")
            self.assertIn("ok all 2 node(s) succeeded", run.stderr.read())

    def test_a_run_whose_reader_goes_away_watches_its_nodes_on(self) -> None:
        script = '"$1"/run.sh "$2" --run-dir "$3" 2>&1 | head -n 1'
        with subprocess.Popen(["bash", "-c", script, "-", SCRIPTS, self.cluster, self.run_dir],
                              env=self.environment, stdout=subprocess.DEVNULL, start_new_session=True) as run:
            wait_until(lambda: len(self.running()) == 3)  # with run.sh
            supervisor = self.running("run")[0].pid
            self.assertTrue(alive(supervisor))
            os.kill(supervisor, signal.SIGTERM)
            run.wait(timeout=60)
        self.assertFalse(self.recorded())


class Stop(Scripts):
    """stop.sh ends what run.sh has started, and nothing else."""

    def test_stop_ends_the_nodes_and_is_idempotent(self) -> None:
        self.start("--detach")
        pids = [self.pid("w1"), self.pid("w2")]
        self.assertEqual([alive(pid) for pid in pids], [True, True])
        self.assertEqual(self.call("stop.sh", str(self.cluster)).returncode, 0)
        self.assertEqual([alive(pid) for pid in pids], [False, False])
        self.assertFalse(self.recorded())
        self.assertEqual(self.call("stop.sh", str(self.cluster)).returncode, 0)

    def test_nodes_are_ended_when_the_messages_cannot_be_written(self) -> None:
        for stderr in ("2>&-", "2>&1 | true"):
            self.start("--only", "w1", "--detach")
            pid = self.pid("w1")
            self.in_shell(f'"$1"/stop.sh "$2" {stderr}')
            wait_until(lambda pid=pid: not alive(pid))
            wait_until(lambda: not self.recorded())

    def test_a_process_with_the_pid_but_not_the_start_time_is_left_alone(self) -> None:
        with subprocess.Popen(["sleep", "60"]) as bystander:
            self.start("--only", "w1", "--", "--at-once")  # makes the folder of the records
            records = Records(STATES, str(self.cluster))
            records.write("node", "w1", bystander.pid, "")
            (file,) = records.files()
            file.write_text(file.read_text(encoding="ascii").replace(start_of(bystander.pid), "1"), encoding="ascii")
            self.assertEqual(self.call("stop.sh", str(self.cluster)).returncode, 0)
            self.assertTrue(alive(bystander.pid))
            self.assertFalse(self.recorded())
            bystander.kill()

    def test_nodes_and_servers_that_ignore_sigterm_are_killed_after_the_grace(self) -> None:
        self.write("servers", ONE_SERVER)
        self.write("deaf-s1", "")
        self.start("--detach", "--", "--deaf")
        for name, word in (("w1", "ready"), ("w2", "ready"), ("s1", "listens")):
            self.log(name, word)
        pids = [self.pid(name) for name in ("w1", "w2", "s1")]
        done = self.call("stop.sh", str(self.cluster), "--grace", "0")
        self.assertEqual(done.returncode, 0, done.stderr)
        for line in ("SIGKILL: w1 w2\n", "SIGKILL: s1\n"):
            self.assertIn(line, done.stderr)
        self.assertFalse(any(alive(pid) for pid in pids))
        self.assertFalse(self.recorded())

    def test_what_a_run_that_was_killed_has_left_is_ended_by_stop(self) -> None:
        self.write("servers", ONE_SERVER)
        self.start("--only", "s1", "--only", "w1", "--detach")
        self.assertEqual([file.name for file in self.run_dir.glob("run*.log")], ["run-s1,w1.log"])
        pids = [self.pid("s1"), self.pid("w1")]
        os.kill(self.running("run")[0].pid, signal.SIGKILL)
        done = self.call("stop.sh", str(self.cluster))
        self.assertEqual((done.returncode, [alive(pid) for pid in pids]), (0, [False, False]), done.stderr)
        self.assertNotIn("nothing of it runs", done.stderr)
        self.assertFalse(self.recorded())

    def test_stop_ends_the_nodes_of_a_file_that_was_deleted_and_knows_none_then(self) -> None:
        self.start("--detach")
        pid = self.pid("w1")
        self.cluster.unlink()
        self.assertEqual(self.call("stop.sh", str(self.cluster)).returncode, 0)
        self.assertFalse(alive(pid))
        done = self.call("stop.sh", str(self.cluster))
        self.assertEqual(done.returncode, 2)
        self.assertEqual(len(done.stderr.splitlines()), 1)
        self.assertIn("there is no file", done.stderr)

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
            self.assertEqual(stop.wait(timeout=240), 0)
            self.assertEqual((waited, alive(run)), (True, False))
        self.assertIn("2 of 2 node(s) stopped", self.run_dir.joinpath("run.log").read_text(encoding="utf-8"))
        self.assertFalse(self.recorded())

    def test_stop_of_what_is_no_cluster_file_is_wrong_usage(self) -> None:
        file = self.write("file", "broken\n")
        done = self.call("stop.sh", str(file))
        self.assertEqual((done.returncode, done.stderr), (2, f"{file}:1: broken\n"))


class Servers(Scripts):
    """The servers of backend kvstore in one run."""

    def test_servers_start_before_the_nodes_and_end_after_the_last_one(self) -> None:
        self.write("servers", ONE_SERVER)
        done = self.start("--", "--at-once")
        self.assertEqual(done.returncode, 0, done.stderr)
        order = [done.stderr.index(text) for text in ("s1: server, pid", "w1: pid", "w1: done", "s1: server stopped")]
        self.assertEqual(order, sorted(order))
        self.assertIn("run: 1 server(s) and 2 node(s)", done.stderr)

    def test_a_server_that_cannot_start_ends_the_nodes_and_fails_the_run(self) -> None:
        self.write("servers", TWO_SERVERS)
        for code in (1, 2):
            self.write("fail-s2", str(code))
            done = self.start()
            self.assertEqual(done.returncode, code, done.stderr)
            for line in ("s2: server: exit code", "Address already in use", "ends the nodes", "w1: ended by SIGTERM",
                         "s1: server stopped", "server(s) failed: s2"):
                self.assertIn(line, done.stderr)
            self.assertNotIn("0 of 2 node(s) failed", done.stderr)

    def test_a_server_that_gives_up_once_the_nodes_are_done_fails_the_run(self) -> None:
        self.write("servers", ONE_SERVER)
        self.write("fail-s1", "1")
        done = self.start("--", "--at-once")
        self.assertEqual(done.returncode, 1, done.stderr)

    def test_a_server_in_the_background_that_cannot_start_is_told(self) -> None:
        self.write("servers", ONE_SERVER)
        self.write("fail-s1", "1")
        done = self.start("--only", "s1", "--detach")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("bind: Address already in use", done.stderr)

    def test_nodes_go_on_without_a_server_that_is_killed(self) -> None:
        self.write("servers", TWO_SERVERS)
        self.write("lose-s2", "")
        done = self.start("--", "--at-once")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("s2: server: ended by signal 9", done.stderr)

    def test_stop_ends_the_servers_once_the_nodes_have_ended_and_signals_them_once(self) -> None:
        self.write("servers", TWO_SERVERS)
        self.start("--detach")
        done = self.call("stop.sh", str(self.cluster))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(sorted(self.events()[:2]), ["w1 ends", "w2 ends"])
        self.assertEqual(sorted(self.events()[2:]), ["s1 was told to end", "s2 was told to end"])
        order = [done.stderr.index(text) for text in ("SIGTERM: w1 w2", "stopped: w1 w2", "SIGTERM: s1 s2",
                                                      "stopped: s1 s2")]
        self.assertEqual(order, sorted(order))
        self.assertFalse(self.recorded())


class SeveralRuns(Scripts):
    """Servers that nodes of several run.sh use."""

    def test_servers_serve_the_nodes_of_another_run_until_these_have_ended(self) -> None:
        self.write("servers", ONE_SERVER)
        with self.run_in_background("--only", "s1", "--only", "w1") as first:
            assert first.stderr is not None
            self.start("--only", "w2", "--detach")
            server = self.pid("s1")
            self.write("finish-w1", "")
            said = next(line for line in first.stderr if "waits with its servers" in line)
            self.assertIn("until the nodes of another run.sh have ended: w2", said)
            self.assertTrue(alive(server))
            self.write("finish-w2", "")
            rest = first.stderr.read()
            self.assertEqual(first.wait(timeout=240), 0, rest)
        self.assertFalse(alive(server))
        self.assertEqual(self.events(), ["s1 was told to end"])
        self.assertIn("all 1 node(s) succeeded", rest)
        wait_until(lambda: not self.recorded())

    def test_a_signal_ends_servers_that_wait_for_the_nodes_of_another_run(self) -> None:
        self.write("servers", ONE_SERVER)
        with self.run_in_background("--only", "s1", "--only", "w1") as first:
            assert first.stderr is not None
            self.start("--only", "w2", "--detach")
            for expected in ("waits with its servers", "ends its servers under the nodes of another run.sh: w2"):
                first.send_signal(signal.SIGTERM)
                self.assertTrue(any(expected in line for line in first.stderr), expected)
            first.stderr.read()
            self.assertEqual(first.wait(timeout=240), 143)
        self.assertEqual(self.events(), ["w1 ends", "s1 was told to end"])
        self.assertTrue(alive(self.pid("w2")))

    def test_the_last_run_with_nodes_ends_servers_that_were_started_again(self) -> None:
        self.write("servers", ONE_SERVER)
        with self.run_in_background() as first:
            assert first.stderr is not None
            os.kill(self.pid("s1"), signal.SIGKILL)
            next(line for line in first.stderr if "s1: server: ended by signal 9" in line)
            self.start("--only", "s1", "--detach")
            server = self.pid("s1")
            for node in ("w1", "w2"):
                self.write(f"finish-{node}", "")
            rest = first.stderr.read()
            self.assertEqual(first.wait(timeout=240), 0, rest)
        self.assertIn("stopped: s1", rest)
        self.assertFalse(alive(server))
        self.assertEqual(self.events(), ["s1 was told to end"])
        wait_until(lambda: not self.recorded())

    def test_a_run_of_servers_alone_ends_them_at_once_when_it_is_told_to(self) -> None:
        self.write("servers", ONE_SERVER)
        with self.run_in_background("--only", "s1") as servers:
            assert servers.stderr is not None
            self.start("--only", "w1", "--detach")
            servers.send_signal(signal.SIGTERM)
            rest = servers.stderr.read()
            self.assertEqual(servers.wait(timeout=240), 143, rest)
        self.assertEqual(self.events(), ["s1 was told to end"])
        self.assertTrue(alive(self.pid("w1")))


if __name__ == "__main__":
    unittest.main()
