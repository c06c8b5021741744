"""The processes that run.sh started: their records, and how they are ended.

A process is known by pid, start time and boot, and gets its signals through a pidfd: a reused pid is never mistaken for
one of them.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import os
import signal
import socket
import time
import weakref
from collections.abc import Iterable
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

    def __init__(self, name: str, pid: int, run_dir: str = "") -> None:
        self.name, self.pid, self.run_dir, self._fd = name, pid, run_dir, os.pidfd_open(pid)
        weakref.finalize(self, os.close, self._fd)

    def send(self, number: signal.Signals) -> None:
        with contextlib.suppress(OSError):
            signal.pidfd_send_signal(self._fd, number)

    async def ended(self) -> None:
        loop, end, fd = asyncio.get_running_loop(), asyncio.Event(), os.dup(self._fd)  # a loop has one reader of each
        loop.add_reader(fd, end.set)
        try:
            await end.wait()
        finally:
            loop.remove_reader(fd)
            os.close(fd)


def names_of(processes: Iterable[Process]) -> str:
    return " ".join(process.name for process in processes)


async def still_running(processes: list[Process], seconds: float) -> list[Process]:
    """Those that have not ended in that time."""
    ends = {process: asyncio.ensure_future(process.ended()) for process in processes}
    if ends:
        await asyncio.wait(ends.values(), timeout=seconds)
    return [process for process, end in ends.items() if end.cancel()]


async def end_all(processes: list[Process], grace: float = GRACE) -> bool:
    """SIGTERM; SIGKILL for those that still run after `grace` seconds. False when one runs even then."""
    if not processes:
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
    """Of the processes of one cluster file: KEY.KIND.NAME below `root`, where KIND is node, server, or run for each
    run.sh that waits for some, and KEY stands for the file."""

    def __init__(self, root: str, cluster: str) -> None:
        self._root, path = Path(root), os.path.realpath(cluster)
        self._key = hashlib.sha256(os.fsencode(path)).hexdigest()[:16]

    async def lock(self, seconds: float = GRACE + 10) -> socket.socket:
        """Against every other run.sh and stop.sh of the file, until it is closed; after that time without it. Under it
        nodes are started and servers ended: a second SIGTERM ends a server at once, without its last snapshot."""
        name, deadline = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM), time.monotonic() + seconds
        while time.monotonic() < deadline:
            with contextlib.suppress(OSError):
                name.bind(f"\0dpwa-run-{self._key}")
                break
            await asyncio.sleep(0.02)
        return name

    def files(self, kind: str = "*") -> list[Path]:
        return sorted(self._root.glob(f"{self._key}.{kind}.*"))

    def write(self, kind: str, name: str, pid: int, run_dir: str) -> None:
        self._root.mkdir(parents=True, exist_ok=True)
        file = self._root / f"{self._key}.{kind}.{name}"
        file.write_text(json.dumps([pid, start_of(pid), BOOT, run_dir]), encoding="ascii")

    def _read(self, file: Path) -> Process | None:
        """The process of that record, if it still runs."""
        try:
            pid, start, boot, run_dir = json.loads(file.read_text(encoding="ascii"))
            process = Process(file.name.split(".", 2)[2], pid, run_dir)
        except (OSError, ValueError):
            return None
        return process if boot == BOOT and start_of(pid) == start else None

    def running(self, kind: str, names: Iterable[str] | None = None) -> list[Process]:
        """All of that kind, or those of these names."""
        found = [process for file in self.files(kind) if (process := self._read(file))]
        return [process for process in found if names is None or process.name in names]

    def forget(self) -> None:
        """Under the lock: drops the records of what has ended, and of this process."""
        for file in self.files():
            process = self._read(file)
            if process is None or process.pid == os.getpid():
                file.unlink(missing_ok=True)
