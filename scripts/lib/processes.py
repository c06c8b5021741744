"""The processes that run.sh started: their records, and how they are ended.

A process is known by pid, start time and boot, and gets its signals through a pidfd: a reused pid is never mistaken for
one of them.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import select
import signal
import socket
import sys
import time
import weakref
from collections.abc import Iterable
from pathlib import Path

from lib.messages import Failure, ok, say, warn

BOOT = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
GRACE = 10  # seconds from SIGTERM to SIGKILL


def start_of(pid: int) -> str | None:
    """Start time in clock ticks since boot; None when the process has ended, also when it waits to be reaped."""
    with contextlib.suppress(OSError):
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        fields = stat.rpartition(") ")[2].split()  # the name before it may hold spaces; field 3 is the first here
        return None if fields[0] in "ZX" else fields[19]
    return None


def require_pidfds() -> None:
    """Before anything is started: what cannot be watched would be left behind."""
    try:
        os.close(os.pidfd_open(os.getpid()))
        _ = signal.pidfd_send_signal
    except (AttributeError, OSError) as error:  # of a Python for older systems, such as some of Conda's; of the kernel
        raise Failure(f"processes cannot be watched under {sys.executable}: {error}; accepted: Linux 5.3, and a Python that "
                      "was built for it") from None  # fmt: skip


class Process:
    """A process that runs, or has ended since this object was made; `fd` is readable then."""

    def __init__(self, name: str, pid: int, run_dir: str = "") -> None:
        self.name, self.pid, self.run_dir, self.fd = name, pid, run_dir, os.pidfd_open(pid)
        weakref.finalize(self, os.close, self.fd)


def names_of(processes: Iterable[Process]) -> str:
    return " ".join(process.name for process in processes)


def still_running(processes: list[Process], seconds: float, *signals: signal.Signals) -> list[Process]:
    """Sends these signals to all. Returns those that have not ended in that time."""
    deadline = time.monotonic() + seconds
    for process in processes:
        for number in signals:
            with contextlib.suppress(OSError):
                signal.pidfd_send_signal(process.fd, number)
    return [process for process in processes
            if not select.select([process.fd], [], [], max(0, deadline - time.monotonic()))[0]]  # fmt: skip


def end_all(processes: list[Process], grace: float = GRACE) -> None:
    """SIGTERM; SIGKILL for those that still run after `grace` seconds."""
    if not processes:
        return
    say(f"SIGTERM: {names_of(processes)}")
    # A stopped process would not see the first alone.
    if left := still_running(processes, grace, signal.SIGTERM, signal.SIGCONT):
        warn(f"still there after {grace} s, SIGKILL: {names_of(left)}")
        if left := still_running(left, 5, signal.SIGKILL):
            raise Failure(f"cannot be ended: {names_of(left)}", 1)
    ok(f"stopped: {names_of(processes)}")


class Records:
    """Of the processes of one cluster file: KEY.KIND.NAME below `root`, where KIND is node, server, or run for each
    run.sh that waits for some, and KEY stands for the file and this host: several may share the folder."""

    def __init__(self, root: str, cluster: str) -> None:
        self._root, path = Path(root), os.path.realpath(cluster)
        self._key = hashlib.sha256(os.fsencode(f"{os.uname().nodename}\0{path}")).hexdigest()[:16]

    def lock(self) -> socket.socket:
        """Against every other run.sh and stop.sh of the file, until it is closed; after 20 s without it. Under it
        processes are started and ended: a second SIGTERM ends a server at once, without its last snapshot."""
        name = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        for _ in range(1000):
            with contextlib.suppress(OSError):
                name.bind(f"\0dpwa-run-{self._key}")
                break
            time.sleep(0.02)
        return name

    def files(self, kind: str = "*") -> list[Path]:
        return sorted(self._root.glob(f"{self._key}.{kind}.*"))

    def write(self, kind: str, name: str, pid: int, run_dir: str) -> None:
        self._root.mkdir(parents=True, exist_ok=True)
        file = self._root / f"{self._key}.{kind}.{name}"
        file.write_text(json.dumps([pid, start_of(pid), BOOT, run_dir]), encoding="ascii")

    def running(self, kind: str = "*") -> list[Process]:
        found = []
        for file in self.files(kind):
            with contextlib.suppress(OSError, ValueError):  # it has ended, or the record is just being written
                pid, start, boot, run_dir = json.loads(file.read_text(encoding="ascii"))
                process = Process(file.name.split(".", 2)[2], pid, run_dir)
                if (boot, start) == (BOOT, start_of(pid)):
                    found.append(process)
        return found

    def forget(self) -> None:
        """Under the lock: drops the records of what has ended, and of this process."""
        kept = [process.name for process in self.running() if process.pid != os.getpid()]
        for file in self.files():
            if file.name.split(".", 2)[2] not in kept:
                file.unlink(missing_ok=True)
