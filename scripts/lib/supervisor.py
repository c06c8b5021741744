"""Starts the nodes and servers of a run, says how each ended, and ends the servers after the nodes."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

from lib.messages import fail, last_lines, ok, say, show_end, tell, warn
from lib.processes import Process, end_all, names_of
from lib.run import Run

PROGRESS_INTERVAL = 10.0  # seconds


def heeded(*numbers: signal.Signals) -> list[signal.Signals]:
    """Without those that the caller has set to be ignored, as nohup does, and a script for what it starts with &."""
    return [number for number in numbers if signal.getsignal(number) is not signal.SIG_IGN]


def how_it_ended(code: int) -> str:
    known = {number + 128: f"ended by signal {number.value} ({number.name[3:]})" for number in signal.Signals}
    return known.get(code, f"exit code {code}")


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


def _become_group() -> None:
    """In the new process. A Ctrl-C in the terminal reaches it through run.sh alone, once. It gets no session of its
    own: the autogroup of Linux divides each core among sessions, and a network thread of a node would wait for whole
    slices of the other nodes (four nodes on two cores: .03 blends a step, and .45 in one session)."""
    os.setpgid(0, 0)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # until the program is ready to read its file again


class Supervisor:
    """One run.sh, for one call of supervise()."""

    def __init__(self, run: Run) -> None:
        self._run, self._records, self._began = run, run.records, time.monotonic()
        self._nodes: list[Process] = []  # that run
        self._servers: list[Process] = []
        self._watches: list[asyncio.Future[None]] = []
        self._signals: list[int] = []
        self._codes: dict[str, int] = {}  # of the nodes that have ended
        self._failed_servers: dict[str, int] = {}
        self._ends: dict[tuple[int, str], str] = {}  # exit code and last line that were shown, of whom
        self._nodes_are_vain = False  # a server has never served: they would wait for it, or find one of another run

    async def supervise(self, announce: Callable[[Mapping[str, int]], Awaitable[None]] | None = None) -> int:
        """Until the last node has ended, and then the servers. `announce` begins when all are started; it can see the
        exit codes of nodes. Without it, lines tell the progress. Returns the exit code of the run."""
        run, records = self._run, self._records
        self._changed = asyncio.Event()  # a process has ended, or a signal has come
        try:
            with await records.lock():
                run.refuse_second_start()
                run.keep_copy()
                for number in heeded(signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                    asyncio.get_running_loop().add_signal_handler(number, self._take_signal, number)
                records.write("run", str(os.getpid()), os.getpid(), run.run_dir)
                self._start_all()
            announcement = asyncio.ensure_future(announce(self._codes)) if announce else None
            await self._end_of_nodes(None if announce else PROGRESS_INTERVAL)
            if announcement:
                await announcement
            await self._end_servers()
            return self._result()
        finally:
            for left in (self._nodes, self._servers):  # after a failure
                await end_all(list(left))
            with await records.lock():  # stop.sh waits for the end of this process, whose last lines are written now
                records.forget()

    def _take_signal(self, number: int) -> None:
        self._signals.append(number)
        self._changed.set()

    def _start_all(self) -> None:
        run = self._run
        servers = f"{len(run.servers)} server(s) and " if run.servers else ""
        tell(mark=f"== run: {servers}{len(run.nodes)} node(s) of {run.cluster}", colour=1)
        for name in run.servers:
            self._start(name, [run.cli, "kvserver", "--config", run.cluster, "--name", name])
        for name in run.nodes:
            threads = str(run.threads(name))
            command = [run.trainer, "--config", run.cluster, "--name", name, "--run-dir", run.run_dir]
            if not any(argument.partition("=")[0] == "--threads" for argument in run.arguments):
                command += ["--threads", threads]
            self._start(name, command + run.arguments, threads)

    def _start(self, name: str, command: list[str], threads: str = "") -> None:
        """Starts, pins and records a process: a node with so many threads, or a server."""
        path, cores, allowed = self._run.log(name), self._run.cores[name], os.sched_getaffinity(0)
        pinned = f"cores {','.join(map(str, cores))}, " if cores else ""
        try:
            os.sched_setaffinity(0, cores or allowed)  # the new process takes it over
        except OSError:
            warn(f"{name}: this machine has no {pinned}not pinned")
            pinned = ""
        environment = {**os.environ, **({"OMP_NUM_THREADS": threads} if threads else {})}
        try:
            with open(path, "ab") as log:
                begin = log.tell()
                program = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment,
                                           preexec_fn=_become_group)  # fmt: skip
        except OSError as error:
            warn(f"{name}: cannot be started: {error.filename or command[0]}: {error.strerror}")
            return self._report(name, not threads, 1, os.path.getsize(path) if os.path.exists(path) else 0)
        finally:
            os.sched_setaffinity(0, allowed)
        process = Process(name, program.pid)
        (self._nodes if threads else self._servers).append(process)
        self._watches.append(asyncio.ensure_future(self._watch(process, program, begin)))
        self._records.write("node" if threads else "server", name, program.pid, self._run.run_dir)
        kind, share = ("", f"{threads} thread(s), ") if threads else ("server, ", "")
        say(f"{name}: {kind}pid {program.pid}, {pinned}{share}log {min(path, os.path.relpath(path), key=len)}")

    async def _watch(self, process: Process, program: subprocess.Popen[bytes], begin: int) -> None:
        await process.ended()
        code, is_server = program.wait(), process in self._servers
        (self._servers if is_server else self._nodes).remove(process)
        self._report(process.name, is_server, code if code >= 0 else 128 - code, begin)
        self._changed.set()

    def _report(self, name: str, is_server: bool, code: int, begin: int) -> None:
        """It has ended; its part of the log begins at that byte. No server should end before it is told to: one that
        gives up by itself is a failure of the run, and one that a signal ends may have replicas."""
        log, stopped, seconds = self._run.log(name), code in (130, 143), f"{int(time.monotonic() - self._began)} s"
        if not is_server:
            self._codes[name] = code
        elif not stopped and (code < 128 or not self._run.nodes):
            self._failed_servers[name] = code
            served = False
            with contextlib.suppress(OSError):
                served = b"listens on port" in Path(log).read_bytes()[begin:]
            self._nodes_are_vain |= code == 2 or not served
        if stopped and is_server:
            ok(f"{name}: server stopped ({seconds})")
        elif stopped:
            say(f"{name}: ended by SIG{'INT' if code == 130 else 'TERM'} ({seconds})")
        elif code == 0 and not is_server:
            ok(f"{name}: done ({seconds})")
        else:
            say_it, what = (warn, f"{name}: server") if is_server else (fail, name)
            last = "".join(last_lines(log, begin, 1))
            if (same := self._ends.setdefault((code, last), name)) != name and last:
                return say_it(f"{what}: {how_it_ended(code)} after {seconds}, with the last line of {same}; {log}")
            say_it(f"{what}: {how_it_ended(code)} after {seconds}; the end of {log}:")
            show_end(log, begin, 5)

    async def _change(self, seconds: float | None = None) -> bool:
        """Waits for the next end of a process, or signal. False: there was none in that time."""
        self._changed.clear()
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._changed.wait(), seconds)
        return self._changed.is_set()

    async def _end_of_nodes(self, interval: float | None) -> None:
        """Until the last node has ended; without nodes, until the last server has, or is to."""
        run, stopping = self._run, False
        while self._nodes or not (run.nodes or self._signals or not self._servers):
            if self._nodes and not stopping and (self._signals or self._nodes_are_vain):
                stopping = True
                if not self._signals:
                    warn("ends the nodes: not all servers have started")
                await end_all(list(self._nodes))
            elif not await self._change(interval) and (progress := progress_of(run.run_dir, run.nodes)):
                say(f"{int(time.monotonic() - self._began)} s: {progress}")

    async def _end_servers(self) -> None:
        """The last run.sh with nodes of the cluster file ends its servers, also those of other run.sh. While nodes of
        another run.sh still use them, one with servers of its own waits (a signal ends the wait, and these servers),
        and one without servers leaves that to the others."""
        run, records, told, signals = self._run, self._records, False, len(self._signals)
        while records.running("server", None if run.nodes else run.servers):
            with await records.lock():  # no other run.sh is about to start nodes
                others = records.running("node") if run.nodes else []
                signalled = len(self._signals) > signals
                if others and signalled:
                    warn(f"ends its servers under the nodes of another run.sh: {names_of(others)}")
                if signalled or not others:
                    await end_all(records.running("server", None if run.nodes and not others else run.servers))
                    break
            if not self._servers:
                say(f"the servers continue for the nodes of another run.sh: {names_of(others)}")
                break
            if not told:
                say(f"waits with its servers until the nodes of another run.sh have ended: {names_of(others)}")
            told = True
            await self._change(0.2)
        while self._servers:
            await self._change()

    def _result(self) -> int:
        """Says how the run has ended. Returns the exit code."""
        run, where = self._run, f"; {self._run.run_dir}"
        stopped = [code for code in self._codes.values() if code in (130, 143)]
        failed = [code for code in self._codes.values() if code not in (0, 130, 143)]
        if self._signals:
            return 130 if self._signals[-1] == signal.SIGINT else 143
        if self._failed_servers:
            fail(f"server(s) failed: {' '.join(self._failed_servers)}" + ("" if failed else where))
        if failed:
            fail(f"{len(failed)} of {len(run.nodes)} node(s) failed{where}")
        if codes := {*failed, *self._failed_servers.values()}:
            return 2 if codes == {2} else 1
        if stopped:
            warn(f"{len(stopped)} of {len(run.nodes)} node(s) stopped{where}")
            return 143
        names = " ".join(run.servers)
        ok((f"all {len(run.nodes)} node(s) succeeded" if run.nodes else f"server(s) ended: {names}") + where)
        return 0
