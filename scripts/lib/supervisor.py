"""Starts the nodes and servers of a run, says how each ended, and ends the servers after the nodes."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from lib.messages import fail, ok, say, tell, warn
from lib.processes import Process, end_all, names_of
from lib.run import Run


@dataclass
class Child:
    """A node or server of this run.sh, from its start until its end is reported."""

    name: str
    is_server: bool
    log: str
    log_from: int = 0  # the first byte that is of this process
    pid: int = 0
    code: int | None = None  # once it has ended

    def lines(self) -> Iterator[str]:
        """What it has written."""
        with contextlib.suppress(OSError), open(self.log, "rb") as file:
            file.seek(self.log_from)
            yield from (line.decode("utf-8", "surrogateescape").rstrip("\n") for line in file)


def how_it_ended(code: int) -> str:
    if code <= 128:
        return f"exit code {code}"
    known = {number.value: number.name[len("SIG") :] for number in signal.Signals}
    return f"ended by signal {code - 128} ({known.get(code - 128, 'unknown')})"


def heeded(*numbers: signal.Signals) -> list[signal.Signals]:
    """Without those that the caller has set to be ignored, as nohup does, and a script for what it starts with &."""
    return [number for number in numbers if signal.getsignal(number) is not signal.SIG_IGN]


def _become_group() -> None:
    """In the new process. A Ctrl-C in the terminal reaches it through run.sh alone, once. It gets no session of its
    own: the autogroup of Linux divides each core among sessions, and a network thread of a node would wait for whole
    slices of the other nodes (four nodes on two cores: .03 blends a step, and .45 in one session)."""
    os.setpgid(0, 0)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # until the program is ready to read its file again


class Supervisor:
    """One run.sh, for one call of supervise()."""

    def __init__(self, run: Run) -> None:
        self._run, self._records = run, run.records
        self._began = time.monotonic()
        self._children: list[Child] = []
        self._waits: list[asyncio.Future[None]] = []
        self._signals: list[int] = []
        self._codes: dict[str, int] = {}  # of the nodes that have ended
        self._failed_servers: dict[str, int] = {}
        self._nodes_are_vain = False  # a server has never served: they would wait for it, or find one of another run

    async def supervise(self, announce: Callable[[Mapping[str, int]], Awaitable[None]] | None = None) -> int:
        """Until the last node has ended, and then the servers. `announce` begins when all are started; it can see the
        exit codes of nodes. Returns the exit code of the run."""
        run, records = self._run, self._records
        record = f"{os.getpid()}.supervisor"
        self._changed = asyncio.Event()  # a process has ended, or a signal has come
        records.folder.mkdir(parents=True, exist_ok=True)
        try:
            with records.locked():
                run.refuse_second_start()
                records.folder.joinpath("run_dir").write_bytes(os.fsencode(run.run_dir) + b"\n")
                run.keep_copy()
                for number in heeded(signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                    asyncio.get_running_loop().add_signal_handler(number, self._take_signal, number)
                records.write(record, os.getpid())
                self._start_all()
            await asyncio.gather(self._watch(), *([announce(self._codes)] if announce else []))
            await self._end_servers()
            return self._result()
        finally:
            for children in (self._nodes(), self._servers()):
                if left := [Process(child.name, child.pid) for child in children if child.code is None]:
                    await end_all(left)
            # stop.sh waits for the end of this process, so its last lines are written by then.
            records.folder.joinpath(record).unlink(missing_ok=True)
            records.forget([*run.servers, *run.nodes])

    def _take_signal(self, number: int) -> None:
        self._signals.append(number)
        self._changed.set()

    def _nodes(self) -> list[Child]:
        return [child for child in self._children if not child.is_server]

    def _servers(self) -> list[Child]:
        return [child for child in self._children if child.is_server]

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
        Path(run.run_dir, ".started").touch()

    def _start(self, name: str, command: list[str], threads: str = "") -> None:
        """Starts, pins and records a process: a node with so many threads, or a server."""
        child = Child(name, not threads, self._run.log(name))
        self._children.append(child)
        cores, allowed = self._run.cores[name], os.sched_getaffinity(0)
        try:
            if cores:
                os.sched_setaffinity(0, map(int, cores.split(",")))  # the new process takes it over
        except OSError:
            warn(f"{name}: this machine has no cores {cores}: not pinned")
            cores = ""
        environment = {**os.environ, "OMP_NUM_THREADS": threads} if threads else None
        try:
            with open(child.log, "ab") as log:
                child.log_from = log.tell()
                program = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment,
                                           preexec_fn=_become_group)  # fmt: skip
        except OSError as error:
            warn(f"{name}: cannot be started: {error.filename or command[0]}: {error.strerror}")
            child.code = 1
            return
        finally:
            os.sched_setaffinity(0, allowed)
        child.pid = program.pid
        self._waits.append(asyncio.ensure_future(self._wait(child, program, Process(name, child.pid))))
        self._records.write(f"{name}.process", child.pid, "node" if threads else "server")
        parts = ["" if threads else "server", f"pid {child.pid}", f"cores {cores}" if cores else "",
                 f"{threads} thread(s)" if threads else "", f"log {child.log}"]  # fmt: skip
        say(f"{name}: {', '.join(filter(None, parts))}")

    async def _wait(self, child: Child, program: subprocess.Popen[bytes], process: Process) -> None:
        await process.ended()
        code = program.wait()
        child.code = code if code >= 0 else 128 - code
        self._changed.set()

    async def _watch(self) -> None:
        """Until the last node has ended; without nodes, until the last server has, or is to."""
        run, stopping = self._run, False
        while True:
            self._changed.clear()
            self._report()
            if not self._nodes() and (run.nodes or self._signals or not self._servers()):
                return
            if run.nodes and (self._signals or self._nodes_are_vain) and not stopping:
                stopping = True
                if not self._signals:
                    warn("ends the nodes: not all servers have started")
                await end_all(self._records.running(run.nodes))
            else:
                await self._changed.wait()

    def _report(self) -> None:
        """Those that have ended. No server should, before it is told to: one that gives up by itself is a failure of
        the run, and one that a signal ends may have replicas."""
        seconds = f"{int(time.monotonic() - self._began)} s"
        ended = [(child, child.code) for child in self._children if child.code is not None]
        self._children = [child for child in self._children if child.code is None]
        for child, code in ended:
            name, stopped = child.name, code in (130, 143)
            if not child.is_server:
                self._codes[name] = code
            elif not stopped and (code < 128 or not self._run.nodes):
                self._failed_servers[name] = code
                self._nodes_are_vain |= code == 2 or not any("listens on port" in line for line in child.lines())
            if stopped and child.is_server:
                ok(f"{name}: server stopped ({seconds})")
            elif stopped:
                say(f"{name}: ended by SIG{'INT' if code == 130 else 'TERM'} ({seconds})")
            elif code == 0 and not child.is_server:
                ok(f"{name}: done ({seconds})")
            else:
                say_it, what = (warn, f"{name}: server") if child.is_server else (fail, name)
                say_it(f"{what}: {how_it_ended(code)} after {seconds}; the end of {child.log}:")
                for line in deque(child.lines(), 5):
                    tell(f"     {line}")

    async def _end_servers(self) -> None:
        """The last run.sh with nodes of the cluster file ends its servers, also those of other run.sh. While nodes of
        another run.sh still use them, one with servers of its own waits (a signal ends the wait, and these servers),
        and one without servers leaves that to the others. One process at a time ends them."""
        run, records = self._run, self._records
        signals, told = len(self._signals), False
        while run.nodes and (running := records.running(records.names("server"))):
            with records.locked():  # no other run.sh is about to start nodes, or to end servers
                others = records.running(records.names("node"))
                mine = not others and not records.other_ender()
                if mine:
                    records.become_ender()
            if mine:
                await end_all(running)
                break
            if others and len(self._signals) > signals:
                warn(f"ends its servers under the nodes of another run.sh: {names_of(others)}")
                await end_all(records.running(run.servers))
                break
            if not self._servers():
                if others:
                    say(f"the servers continue for the nodes of another run.sh: {names_of(others)}")
                break
            if others and not told:
                told = True
                say(f"waits with its servers until the nodes of another run.sh have ended: {names_of(others)}")
            await self._report_changes(0.2)
        if self._servers() and not run.nodes:
            await end_all(records.running(run.servers))
        while self._servers():
            await self._report_changes(None)

    async def _report_changes(self, seconds: float | None) -> None:
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._changed.wait(), seconds)
        self._changed.clear()
        self._report()

    def _result(self) -> int:
        """Says how the run has ended. Returns the exit code."""
        run, where = self._run, f"; {self._run.run_dir}"
        Path(run.run_dir, ".started").unlink(missing_ok=True)
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
