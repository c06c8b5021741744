"""The processes under test: dpwa_vector_trainer, started, signalled and watched by process id."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import ssl
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import wire

PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
SANITIZER_MARKS = ("ERROR: AddressSanitizer", "WARNING: ThreadSanitizer", "runtime error:", "ERROR: LeakSanitizer",
                   "SUMMARY: UndefinedBehaviorSanitizer")


def now_ms() -> float:
    return time.monotonic() * 1000  # the clock of the trainers' at_ms


@dataclass
class Life:
    """One process of a node, from its start to its end."""

    process: subprocess.Popen[bytes]
    began_ms: float
    ended_ms: float | None = None  # when we killed it
    started_ms: float | None = None  # when it had common weights


@dataclass
class Sample:
    at_ms: float
    resident_bytes: int
    descriptors: int
    threads: int


@dataclass
class Node:
    name: str
    address: tuple[str, int]  # where it listens itself
    config: Path
    output: Path
    log: Path
    lives: list[Life] = field(default_factory=list)
    lines: list[dict[str, Any]] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)
    stops: list[tuple[float, float]] = field(default_factory=list)  # intervals under SIGSTOP, ms
    stopped_ms: float | None = None
    silent_status: int = 0  # status requests without an answer, in a row
    longest_silent_status: int = 0
    statuses: list[dict[str, Any]] = field(default_factory=list)
    _read: int = 0
    _partial: bytes = b""

    @property
    def life(self) -> Life:
        return self.lives[-1]

    @property
    def runs(self) -> bool:
        return bool(self.lives) and self.life.process.poll() is None

    def start(self, command: list[str], environment: dict[str, str]) -> None:
        with self.log.open("ab") as log:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                       env={**os.environ, **environment})
        self.lives.append(Life(process, now_ms()))

    def kill(self) -> None:
        self.life.ended_ms = now_ms()
        self.life.process.kill()
        self.life.process.wait()

    def stop(self) -> None:
        self.stopped_ms = now_ms()
        self.life.process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        if self.stopped_ms is None:
            return
        self.life.process.send_signal(signal.SIGCONT)
        self.stops.append((self.stopped_ms, now_ms()))
        self.stopped_ms = None

    def end(self) -> None:
        """Whatever state it is in."""
        for life in self.lives:
            if life.process.poll() is None:
                life.process.kill()
                life.process.wait()

    def read_lines(self) -> None:
        """What it has written since. A line cut by kill -9 is passed over."""
        if not self.output.exists():
            return
        with self.output.open("rb") as file:
            file.seek(self._read)
            text = file.read()
        self._read += len(text)
        whole, _, self._partial = (self._partial + text).rpartition(b"\n")
        for line in whole.split(b"\n"):
            if not line:
                continue
            # After a kill in the middle of a line the next process continues behind it.
            start = line.rfind(b'{"', 1) if not line.startswith(b"{") else 0
            try:
                entry = json.loads(line[max(0, start):])
            except ValueError:
                continue
            entry["life"] = len(self.lives) - 1
            self.lines.append(entry)
            if entry.get("started"):
                self.life.started_ms = entry["at_ms"]

    def measure(self) -> None:
        if not self.runs:
            return
        folder = Path(f"/proc/{self.life.process.pid}")
        try:
            resident = int((folder / "statm").read_text(encoding="ascii").split()[1]) * PAGE_BYTES
            descriptors = len(os.listdir(folder / "fd"))
            threads = len(os.listdir(folder / "task"))
        except OSError:
            return
        self.samples.append(Sample(now_ms(), resident, descriptors, threads))

    def sanitizer_report(self) -> str:
        text = self.log.read_text(encoding="utf-8", errors="replace") if self.log.exists() else ""
        for line in text.splitlines():
            if any(mark in line for mark in SANITIZER_MARKS):
                return line.strip()
        return ""


def make_key(cli: Path, file: Path) -> None:
    subprocess.run([str(cli), "keygen", "--output", str(file)], check=True, capture_output=True, timeout=60)


async def ask_status(address: tuple[str, int], cluster: str, timeout_s: float,
                     identity: ssl.SSLContext | None = None) -> dict[str, Any] | None:
    """The status object of a node, asked for as an observer; None when there is no sound answer in time."""

    async def ask() -> dict[str, Any]:
        reader, writer = await asyncio.open_connection(*address, ssl=identity)
        try:
            writer.write(wire.hello(wire.OBSERVER, cluster, "", 1) + wire.frame(wire.STATUS_REQUEST, 2))
            for expected in (wire.WELCOME, wire.STATUS):
                kind, _, size = wire.parse_header(await reader.readexactly(wire.HEADER_BYTES))
                body = await reader.readexactly(size)
                if kind != expected:
                    raise ValueError(f"message {kind} in place of {expected}")
            return json.loads(body[4:-4])
        finally:
            writer.transport.abort()

    try:
        return await asyncio.wait_for(ask(), timeout_s)
    except (OSError, ValueError, asyncio.IncompleteReadError, asyncio.TimeoutError):
        return None
