"""The processes that run.sh started: their records, and how they are ended.

Each cluster file has a folder with a record for each node or server, NAME.process, and for each run.sh that waits for
nodes, PID.supervisor. A process is known by pid, start time and boot, and gets its signals through a pidfd: a reused
pid is never mistaken for one of them. Beside the records, run_dir names the folder of the run, and `ender` the one
process that ends the servers: a second SIGTERM ends a server at once, without its last snapshot.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import hashlib
import math
import os
import signal
import time
import weakref
from collections.abc import Iterable, Iterator
from pathlib import Path

from lib.messages import fail, ok, say, warn

BOOT = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
GRACE = 10  # seconds from SIGTERM to SIGKILL


def start_of(pid: int) -> str | None:
    """Start time in clock ticks since boot; None when the process has ended, also when it waits to be reaped."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    fields = stat.rpartition(") ")[2].split()  # the name before it may hold spaces; field 3 is the first here
    return None if fields[0] in "ZX" else fields[19]


class Process:
    """A process that runs, or has ended since this object was made."""

    def __init__(self, name: str, pid: int) -> None:
        self.name, self.pid, self._fd = name, pid, os.pidfd_open(pid)
        weakref.finalize(self, os.close, self._fd)

    def send(self, number: signal.Signals) -> None:
        with contextlib.suppress(OSError):
            signal.pidfd_send_signal(self._fd, number)

    async def ended(self) -> None:
        loop = asyncio.get_running_loop()
        end = loop.create_future()
        loop.add_reader(self._fd, lambda: end.done() or end.set_result(None))
        try:
            await end
        finally:
            loop.remove_reader(self._fd)


def names_of(processes: Iterable[Process]) -> str:
    return " ".join(process.name for process in processes)


async def still_running(processes: list[Process], seconds: float) -> list[Process]:
    """Those that have not ended in that time."""
    ends = {asyncio.ensure_future(process.ended()): process for process in processes}
    _, pending = await asyncio.wait(ends, timeout=seconds) if ends else (None, set())
    for end in pending:
        end.cancel()
    return [process for end, process in ends.items() if end in pending]


async def end_all(processes: list[Process], grace: float = GRACE) -> bool:
    """SIGTERM; SIGKILL for those that still run after `grace` seconds. False when one runs even then."""
    if not processes:
        ok("nothing of it runs")
        return True
    say(f"SIGTERM: {names_of(processes)}")
    for number in (signal.SIGTERM, signal.SIGCONT):  # a stopped process would not see the first
        for process in processes:
            process.send(number)
    if left := await still_running(processes, grace):
        warn(f"still there after {grace} s, SIGKILL: {names_of(left)}")
        for process in left:
            process.send(signal.SIGKILL)
        if left := await still_running(left, 5):
            fail(f"cannot be ended: {names_of(left)}")
            return False
    ok(f"stopped: {names_of(processes)}")
    return True


class Records:
    """The folder of one cluster file below `root`."""

    def __init__(self, root: str, cluster: str) -> None:
        path = os.path.realpath(cluster)
        self.folder = Path(root, f"{os.path.basename(path)}-{hashlib.sha256(os.fsencode(path)).hexdigest()[:12]}")

    @contextlib.contextmanager
    def locked(self, seconds: float = math.inf) -> Iterator[None]:
        """Against every other run.sh and stop.sh; after that time without the lock."""
        deadline = time.monotonic() + seconds
        with self.folder.with_name("lock").open("w") as file:
            while time.monotonic() < deadline:
                with contextlib.suppress(BlockingIOError):
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                time.sleep(0.02)
            yield

    def write(self, file: str, pid: int, *role: str) -> None:
        if start := start_of(pid):
            self.folder.joinpath(file).write_text(" ".join([str(pid), start, BOOT, *role]) + "\n", encoding="ascii")

    def run_dir(self) -> str:
        """That of the run that goes on; empty when it is not there."""
        with contextlib.suppress(OSError):
            folder = os.fsdecode(self.folder.joinpath("run_dir").read_bytes().rstrip(b"\n"))
            return folder if os.path.isdir(folder) else ""
        return ""

    def _fields(self, file: str) -> list[str]:
        try:
            return self.folder.joinpath(file).read_text(encoding="ascii").split()
        except (OSError, ValueError):
            return []

    def read(self, file: str) -> Process | None:
        """The process of that record, if it still runs."""
        pid, start, boot, *_ = [*self._fields(file), "", "", ""]
        try:
            process = Process(file.rpartition(".")[0], int(pid))
        except (OSError, ValueError, OverflowError):
            return None
        return process if boot == BOOT and start_of(process.pid) == start else None

    def names(self, *role: str) -> list[str]:
        """Of the recorded processes, running or not: of role node, of role server, or of all."""
        files = sorted(file.name for file in self.folder.glob("*.process"))
        files = [file for file in files if not role or (self._fields(file)[3:] or ["node"]) == [*role]]
        return [file[: -len(".process")] for file in files]

    def running(self, names: Iterable[str]) -> list[Process]:
        return [process for name in names if (process := self.read(f"{name}.process"))]

    def supervisors(self) -> list[Process]:
        return [process for file in self.folder.glob("*.supervisor") if (process := self.read(file.name))]

    def become_ender(self) -> None:
        with contextlib.suppress(OSError):  # no folder: all have ended
            self.write("ender", os.getpid())

    def other_ender(self) -> bool:
        ender = self.read("ender")
        return ender is not None and ender.pid != os.getpid()

    def forget(self, names: Iterable[str]) -> None:
        """Drops the records of these processes where they have ended, and of a run.sh that was killed."""
        for file in [f"{name}.process" for name in names] + [file.name for file in self.folder.glob("*.supervisor")]:
            if not self.read(file):
                self.folder.joinpath(file).unlink(missing_ok=True)
        if not self.other_ender():
            self.folder.joinpath("ender").unlink(missing_ok=True)
        if not self.names():
            self.folder.joinpath("run_dir").unlink(missing_ok=True)
            with contextlib.suppress(OSError):  # another run.sh is at work there
                self.folder.rmdir()
