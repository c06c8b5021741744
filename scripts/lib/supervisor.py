"""One run.sh: what it starts, how each node and server ends, and the end of the servers after the nodes."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from lib.messages import Failure, UsageError, fail, last_lines, ok, say, show_end, tell, warn
from lib.processes import GRACE, Process, Records, end_all, names_of

PROGRESS_INTERVAL, LONG = 10.0, 1e6  # seconds
TAKES_PART = ("training", "finished")
STOPPED = (130, 143)  # exit codes after SIGINT and SIGTERM
SIGNALS = {number + 128: number.name[3:] for number in signal.Signals}  # by exit code


def config(cli: str, *commands: list[str]) -> str:
    """What the first of these commands of `dpwa config` prints. Shows each fault and warning once. A fault ends this
    process."""
    runs = [subprocess.run([cli, "config", *words], capture_output=True, check=False, close_fds=False,
                           encoding="utf-8", errors="replace") for words in commands]  # fmt: skip
    lines = [line for run in runs for line in run.stderr.splitlines()
             if run.returncode != 0 or run.args[2] == "nodes" or line.startswith("warning: ")]  # fmt: skip
    for line in dict.fromkeys(lines):
        tell(line)
    if any(run.returncode != 0 for run in runs):
        sys.exit(2)
    return runs[0].stdout


def progress_of(run_dir: str, nodes: list[str]) -> str:
    """Steps and losses of the nodes, from the last steps in their metrics; empty before the first."""
    steps, losses = [], []
    for name in nodes:
        path = f"{run_dir}/{name}.metrics.jsonl"
        with contextlib.suppress(OSError, ValueError, LookupError, TypeError), open(path, "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - 8192))
            records = [json.loads(line) for line in file.read().split(b"\n")[-4:-1]]
            steps.append(records[-1]["step"])
            losses += [record["loss"] for record in records if record["loss"] is not None][-1:]
    ranges = [sorted({f"{edge(values):.5g}" for edge in (min, max)}, key=float) for values in (steps, losses) if values]
    return ", ".join(f"{what} {' to '.join(ends)}" for what, ends in zip(("step", "loss"), ranges))


def become_group(cores: list[int]) -> None:
    """In the new process. A Ctrl-C in the terminal reaches it through run.sh alone, once. It gets no session of its
    own: the autogroup of Linux divides each core among sessions, and a network thread of a node would wait for whole
    slices of the other nodes (four nodes on two cores: .03 blends a step, and .45 in one session)."""
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    os.setpgid(0, 0)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # until the program is ready to read its file again
    with contextlib.suppress(OSError):  # no cores, or none that this machine has, of which `dpwa config` warns
        os.sched_setaffinity(0, cores)


def grace() -> int:
    """Seconds that a node has for its end: those that the launcher gives, as dpwa-train reads them, and no fewer than
    stop.sh gives."""
    given = os.environ.get("DPWA_GRACE_S", "")
    return max(GRACE, int(given)) if given.isascii() and given.isdigit() else GRACE


class Run:
    """One run.sh. One call of supervise() starts its processes, and watches them."""

    def __init__(self, options: Any, trainer_options: list[str]) -> None:
        """Refuses what is wrong before anything is written, but for the copy of a file that comes through a pipe."""
        self.cluster, self.run_dir, self.cli, self._runs = options.cluster, options.run_dir, options.cli, options.runs
        self._trainer, self._trainer_options, self.began = options.trainer, trainer_options, time.time()
        # What is open in this process alone, such as <(...) of a shell, counts as a pipe.
        piped = self.cluster.startswith(("/dev/stdin", "/dev/fd/", "/proc/self/fd/")) or Path(self.cluster).is_fifo()
        if piped and options.only:
            raise UsageError("--only takes the cluster file of the run to continue, as in runs/latest, not a pipe")
        for program in (self._trainer, self.cli):
            if not os.access(program, os.X_OK):
                raise Failure(f"there is no {program}: build it (scripts/build.sh), or set DPWA_TRAIN and DPWA_CLI")
        self.file = json.loads(config(self.cli, ["nodes", self.cluster, "--local", "--json"]))
        self._text = self.file["text"].encode()
        self._cores = {entry["name"]: entry["cores"] for entry in self.file["nodes"] + self.file["servers"]}
        if not self._cores:
            raise UsageError(f"no node of {self.cluster} lives on this host")
        only = options.only or self._cores
        if unknown := [name for name in only if name not in self._cores]:
            raise UsageError(f"--only {unknown[0]}: the nodes here are {' '.join(self._cores)}")
        self.servers, self.nodes = (
            [entry["name"] for entry in self.file[kind] if entry["name"] in only] for kind in ("servers", "nodes")
        )
        if piped:
            self.make_folder()
            self.cluster = f"{self.run_dir}/cluster.yaml"  # relative paths in it start there
            say(f"the cluster file came through a pipe: {self.cluster}")
        self._records = Records(options.states, self.cluster)
        self.lock = self._records.lock()  # until all are started
        in_wheel = options.script == "dpwa run"
        stop = "dpwa stop" if in_wheel else f"{os.path.dirname(options.script) or '.'}/stop.sh"
        self.how_to_end = f"{stop} {self.cluster} ends them"
        others = self._records.running()
        if running := [other for other in others if other.name in self.servers + self.nodes]:
            raise Failure(f"already running: {names_of(running)} ({self.how_to_end})")
        config(self.cli, *(["check", self.cluster, "--name", name] for name in self.nodes + self.servers))
        if options.only and not self.run_dir:
            latest = Path(self._runs, "latest", "cluster.yaml")
            if others:
                self.run_dir = others[0].run_dir
            elif "--resume" in trainer_options and latest.exists() and latest.read_bytes() == self._text:
                self.run_dir = str(latest.parent)

    def make_folder(self) -> None:
        """The folder of the run, an absolute path from now on, with a copy of the cluster file. Where none is given, it
        is a new one, named for the time and linked as latest."""
        try:
            os.makedirs(self.run_dir or self._runs, exist_ok=True)
            if not self.run_dir:
                base, latest = time.strftime("%Y%m%d-%H%M%S"), Path(self._runs, "latest")
                for name in (base, *(f"{base}-{count}" for count in range(2, 100))):
                    with contextlib.suppress(FileExistsError):
                        os.mkdir(f"{self._runs}/{name}")
                        break
                latest.unlink(missing_ok=True)
                latest.symlink_to(name)
                self.run_dir = f"{self._runs}/{name}"
            self.run_dir = os.path.realpath(self.run_dir)
            copy = Path(self.run_dir, "cluster.yaml")
            if not copy.exists() or copy.read_bytes() != self._text:
                if copy.exists():
                    os.replace(copy, f"{copy}.replaced")
                    say(f"{copy} was another file, and is {copy.name}.replaced now")
                copy.write_bytes(self._text)
        except OSError as error:
            raise Failure(f"there can be no folder of the run: {error.filename}: {error.strerror}") from None

    def log(self, name: str) -> str:
        return f"{self.run_dir}/{name}.log"

    def seconds(self) -> str:
        return f"{int(time.time() - self.began)} s"

    def states(self) -> dict[str, str]:
        """What the nodes say of themselves; the words may come from other machines. A node without a network (backend
        "null") cannot be asked: it trains once it writes metrics."""
        if self.file["backend"] == "null":
            metrics = {name: Path(f"{self.run_dir}/{name}.metrics.jsonl") for name in self.nodes}
            began = [name for name, file in metrics.items() if file.exists() and file.stat().st_mtime > self.began]
            return dict.fromkeys(began, "training")
        command = [self.cli, "status", "--config", self.cluster, "--json", "--timeout-ms", "1000"]
        known = (*TAKES_PART, "joining", "stale", "waiting")
        with contextlib.suppress(OSError, ValueError):
            document = json.loads(subprocess.run(command, capture_output=True, check=False).stdout)
            states = {node["name"]: node.get("status", {}).get("state") for node in document["nodes"]}
            states |= {server["name"]: "training" for server in document.get("servers", []) if server["answered"]}
            return {name: state for name, state in states.items() if state in known}
        return {}

    def supervise(self, view: Iterator[float]) -> int:
        """Until the last node has ended, and then the servers. The view shows what nodes do: it is continued after as
        many seconds as it asks for, and when they have ended. Returns the exit code of the run."""
        self.codes: dict[str, int] = {}  # of the nodes that have ended, and of the servers that have failed
        self._running: dict[Process, tuple[subprocess.Popen[bytes], int]] = {}  # and where its part of its log begins
        self._shown: dict[tuple[int, str], str] = {}  # exit code and last line, of which node or server
        self._vain = False  # a server has never served: the nodes would wait for it, or find one of another run
        self._signals: list[int] = []
        # The caller may have some ignored, as nohup does, and a script for what it starts with &.
        heeded = (signal.SIGCHLD, signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        self._heeded = [number for number in heeded if signal.getsignal(number) is not signal.SIG_IGN]
        signal.pthread_sigmask(signal.SIG_BLOCK, self._heeded)  # for _wait()
        try:
            with self.lock:
                self._records.write("run", str(os.getpid()), os.getpid(), self.run_dir)
                self._start_all()
            self._await_nodes(view)
            self._end_servers()
            return self._result()
        finally:
            for names in (self.nodes, self.servers):  # after a failure
                end_all(self._left(names))
            with self._records.lock():  # stop.sh waits for the end of this process, whose last lines are written now
                self._records.forget()

    def _start_all(self) -> None:
        servers = f"{len(self.servers)} server(s) and " if self.servers else ""
        tell(mark=f"== run: {servers}{len(self.nodes)} node(s) of {self.cluster}", colour=1)
        for name in self.servers:
            options = ["--config", self.cluster, "--name", name, "--run-dir", self.run_dir]
            self._start(name, [self.cli, "kvserver", *options])
        for name in self.nodes:
            # As many as cores; a node without cores gets its share of the machine, or of this command's CPU quota.
            processors = self.file["processors"]
            threads = min(len(self._cores[name]), processors) or max(1, processors // len(self.file["nodes"]))
            command = [self._trainer, "--config", self.cluster, "--name", name, "--run-dir", self.run_dir]
            given = {option.partition("=")[0] for option in self._trainer_options}
            if not given & {"--threads", "--devices"}:  # several devices share the trainer's own choice
                command += ["--threads", str(threads)]
            self._start(name, command + self._trainer_options, threads)

    def _start(self, name: str, command: list[str], threads: int = 0) -> None:
        """Starts, pins and records a process: a node with so many threads, or a server."""
        path, environment = self.log(name), {**os.environ, **({"OMP_NUM_THREADS": str(threads)} if threads else {})}
        begin = 0
        try:
            with open(path, "ab") as log:
                begin = log.tell()
                program = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment,
                                           preexec_fn=partial(become_group, self._cores[name]))  # fmt: skip
        except OSError as error:
            warn(f"{name}: cannot be started: {error.filename}: {error.strerror}")
            return self._report(name, 1, begin)
        process = Process(name, program.pid)
        self._running[process] = program, begin
        self._records.write("node" if threads else "server", name, program.pid, self.run_dir)
        cores = sorted(os.sched_getaffinity(program.pid)) if self._cores[name] else []
        words = ("" if threads else "server", f"pid {program.pid}", cores and f"cores {','.join(map(str, cores))}",
                 threads and f"{threads} thread(s)", f"log {min(path, os.path.relpath(path), key=len)}")  # fmt: skip
        say(f"{name}: {', '.join(filter(None, words))}")

    def _report(self, name: str, code: int, begin: int) -> None:
        """It has ended; its part of the log begins at that byte. No server should end before it is told to: one that
        gives up by itself is a failure of the run, and one that a signal ends may have replicas."""
        log, is_server = self.log(name), name in self.servers
        if not is_server:
            self.codes[name] = code
        elif code not in STOPPED and (code < 128 or not self.nodes):
            self.codes[name] = code
            served = False
            with contextlib.suppress(OSError, ValueError, LookupError):
                events = Path(self.run_dir, f"{name}.events.jsonl").read_text(encoding="utf-8").splitlines()
                served = any(event["event"] == "started" and event["wall"] >= self.began for event in map(json.loads, events))
            self._vain |= code == 2 or not served
        if code in STOPPED or (code == 0 and not is_server):
            how = "server stopped" if is_server else "done" if code == 0 else f"ended by SIG{SIGNALS[code]}"
            return (ok if is_server or code == 0 else say)(f"{name}: {how} ({self.seconds()})")
        how = f"ended by signal {code - 128} ({SIGNALS[code]})" if code in SIGNALS else f"exit code {code}"
        say_it, what = (warn, f"{name}: server: {how}") if is_server else (fail, f"{name}: {how}")
        last = "".join(last_lines(log, begin, 1))
        if (same := self._shown.setdefault((code, last), name)) != name and last:
            return say_it(f"{what} after {self.seconds()}, with the last line of {same}; {log}")
        say_it(f"{what} after {self.seconds()}; the end of {log}:")
        show_end(log, begin, 5)

    def _wait(self, seconds: float) -> bool:
        """For the end of a process, or a signal. False: there was none in that time."""
        taken = signal.sigtimedwait(self._heeded, seconds)
        if taken and taken.si_signo != signal.SIGCHLD:
            self._signals.append(taken.si_signo)
        for process, (program, begin) in list(self._running.items()):
            if (code := program.poll()) is not None:
                del self._running[process]
                self._report(process.name, code if code >= 0 else 128 - code, begin)
        return taken is not None

    def _left(self, names: list[str]) -> list[Process]:
        """Those that still run."""
        self._wait(0)
        return [process for process in self._running if process.name in names]

    def progress(self) -> Iterator[float]:
        """The view of the foreground."""
        while True:
            yield PROGRESS_INTERVAL
            if self._left(self.nodes) and (progress := progress_of(self.run_dir, self.nodes)):
                say(f"{self.seconds()}: {progress}")

    def _await_nodes(self, view: Iterator[float]) -> None:
        """Until the last node has ended; in a run of servers alone, until the last of them has."""
        names, pause = self.nodes or self.servers, next(view, LONG)
        while self._left(names):
            if self._signals or (self._vain and self.nodes):
                if not self._signals:
                    warn("ends the nodes: not all servers have started")
                with self._records.lock():
                    end_all(self._left(names), grace())
            elif not self._wait(pause):
                pause = next(view, LONG)
        next(view, None)

    def _end_servers(self) -> None:
        """The last run.sh with nodes of the cluster file ends its servers, also those of other run.sh. While nodes of
        another run.sh still use them, one with servers of its own waits (a signal ends the wait, and these servers),
        and one without servers leaves that to the others."""
        signals, waits = len(self._signals), False
        while self.nodes and self._records.running("server"):
            with self._records.lock():  # no other run.sh is about to start nodes
                others, own = names_of(self._records.running("node")), self._left(self.servers)
                if not others:
                    return end_all(self._records.running("server"))
                if len(self._signals) > signals:
                    warn(f"ends its servers under the nodes of another run.sh: {others}")
                    return end_all(own)
            if not own:
                return say(f"the servers continue for the nodes of another run.sh: {others}")
            if not waits:
                say(f"waits with its servers until the nodes of another run.sh have ended: {others}")
            waits = True
            self._wait(0.2)

    def _result(self) -> int:
        """Says how the run has ended. Returns the exit code."""
        self._wait(0)
        if self._signals:
            return 130 if self._signals[-1] == signal.SIGINT else 143
        where = f"; {self.run_dir}"
        servers = [name for name in self.servers if name in self.codes]
        failed = [name for name in self.nodes if self.codes[name] not in (0, *STOPPED)]
        if servers:
            fail(f"server(s) failed: {' '.join(servers)}{'' if failed else where}")
        if failed:
            fail(f"{len(failed)} of {len(self.nodes)} node(s) failed{where}")
        if servers or failed:
            return 2 if {self.codes[name] for name in servers + failed} == {2} else 1
        if stopped := sum(code in STOPPED for code in self.codes.values()):
            warn(f"{stopped} of {len(self.nodes)} node(s) stopped{where}")
            return 143
        ok(f"all {len(self.nodes)} node(s) succeeded{where}" if self.nodes
           else f"server(s) ended: {' '.join(self.servers)}{where}")  # fmt: skip
        return 0
