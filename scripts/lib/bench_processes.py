"""The processes of a benchmark, which speak JSON documents over their standard input and output, one a line: see
bench/serve.h. Those of a group are measured together, window by window, and idle in between."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import re
import select
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lib.bench_options import Failure, WrongUsage
from lib.bench_results import size_text
from lib.bench_statistics import median

Json = dict[str, Any]
PATIENCE = 300  # seconds for an answer
ROOT = Path(__file__).resolve().parents[2]


def program(name: str) -> Path:
    """A measuring program: beside the command dpwa-bench; for the script of this checkout, in its release build."""
    folder = Path(sys.argv[0]).absolute().parent
    path = (folder if (folder / "dpwa-measure").exists() else ROOT / "build/release/bin") / name
    if not path.exists():
        raise WrongUsage(f"this build has no {path}; what needs LibTorch is not built without it")
    return path


LIBC = ctypes.CDLL(None)
PR_SET_PDEATHSIG = 1


class Process:
    """A child that answers. Its errors go where ours go; it is killed at the end, and the kernel kills it when this
    process ends, however it ends. `core`: it keeps to one of the usable cores, counted round and round."""

    def __init__(self, command: Iterable[Any], job: Json | None = None, core: int | None = None) -> None:
        words = [str(word) for word in command]
        usable = sorted(os.sched_getaffinity(0))

        def begin() -> None:
            LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            if core is not None:
                os.sched_setaffinity(0, {usable[core % len(usable)]})

        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        try:
            self.child = subprocess.Popen(words, bufsize=0, preexec_fn=begin, **pipes)
        except OSError as error:
            raise Failure(f"{words[0]}: {error.strerror}") from None
        self.buffered = b""
        if job is not None:
            self.send(job)

    def send(self, document: Json) -> None:
        left = json.dumps(document).encode() + b"\n"
        try:
            while left:
                left = left[self.child.stdin.write(left) :]
        except OSError:
            pass  # it has ended: what it said is still to be read

    def receive(self) -> Json:
        pieces = [self.buffered]
        while b"\n" not in pieces[-1]:
            ready, _, _ = select.select([self.child.stdout], [], [], PATIENCE)
            if not ready:
                raise Failure("a benchmark process does not answer")
            pieces.append(os.read(self.child.stdout.fileno(), 1 << 20))
            if not pieces[-1]:
                raise Failure("a benchmark process has ended")
        line, _, self.buffered = b"".join(pieces).partition(b"\n")
        document = json.loads(line)
        if "error" in document:
            raise (WrongUsage if document.get("usage") else Failure)(document["error"])
        return document

    def ask(self, document: Json) -> Json:
        self.send(document)
        return self.receive()

    def cpu_s(self) -> float:
        """So far, of a process that does not answer, from /proc/PID/stat."""
        fields = Path(f"/proc/{self.child.pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def await_end(self) -> None:
        """Until it has ended by itself, so that it leaves its group in order."""
        with contextlib.suppress(OSError):
            self.child.stdin.close()
        while os.read(self.child.stdout.fileno(), 1 << 16):
            pass
        self.child.wait(PATIENCE)

    def close(self) -> None:
        self.child.kill()
        self.child.wait()
        for end in (self.child.stdin, self.child.stdout):
            with contextlib.suppress(OSError):
                end.close()


@contextlib.contextmanager
def closing(*things: Any) -> Iterator[None]:
    """Closes all of them at the end, the last started last: workers end before their servers."""
    try:
        yield
    finally:
        for one in things:
            one.close()


@dataclass
class Window:
    """What all nodes of a group together did in one window."""

    pulls: int = 0
    bytes: int = 0
    gb_per_s: float = 0.0  # sum over the nodes that pull
    cpu_s: float = 0.0  # of all nodes
    tcp_bytes: float = 0.0  # received over TCP, framing included
    latency_us: float = 0.0  # median over the nodes' medians
    failed: dict[str, int] = field(default_factory=dict)
    latencies_us: list[float] = field(default_factory=list)
    trainer_latencies_us: list[float] = field(default_factory=list)

    @property
    def cpu_s_per_gb(self) -> float:
        return 0.0 if self.bytes == 0 else self.cpu_s / (self.bytes / 1e9)

    @classmethod
    def of(cls, answers: list[Json], cpu_s: float, tcp_bytes: float) -> Window:
        window = cls(cpu_s=cpu_s, tcp_bytes=tcp_bytes)
        medians = []
        for node in answers:
            latencies = [ns / 1000 for ns in node["latency_ns"]]
            window.pulls += node["pulls"]
            window.bytes += node["bytes"]
            window.gb_per_s += node["bytes"] / node["ns"]
            window.latencies_us += latencies
            window.trainer_latencies_us += [ns / 1000 for ns in node["trainer_latency_ns"]]
            medians.append(median(latencies))
            for outcome, times in node["failed"].items():
                window.failed[outcome] = window.failed.get(outcome, 0) + times
        window.latency_us = median(medians)
        return window


class Processes:
    """That are started, asked and closed together. `jobs`: of each; its `core`, if any, is the one that it keeps to."""

    def __init__(self, command: Iterable[Any], jobs: list[Json]) -> None:
        self.processes: list[Process] = []
        try:
            self.processes += [Process(command, job, job.get("core")) for job in jobs]
            self.facts = [process.receive() for process in self.processes]
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        for process in self.processes:
            process.close()

    def ask(self, command: Json, of: list[Process] | None = None) -> list[Json]:
        """All, or those of a part."""
        chosen = self.processes if of is None else of
        for process in chosen:
            process.send(command)
        return [process.receive() for process in chosen]


class Group(Processes):
    """Nodes. `jobs`: of each, and whether it pulls; otherwise it serves only."""

    def __init__(self, jobs: list[tuple[Json, bool]], instruction_set: str | None = None) -> None:
        more = {"instruction_set": instruction_set} if instruction_set else {}
        super().__init__([program("dpwa-measure")], [{**job, **more} for job, _ in jobs])
        self.pullers = [process for process, (_, pulls) in zip(self.processes, jobs) if pulls]

    def cpu_s(self) -> float:
        """Of all nodes, so far."""
        return sum(one["cpu_s"] for one in self.ask({"do": "mark"}))

    def run(self, **how: float) -> Window:
        """For `seconds`, or `count` pulls by each node."""
        before = self.ask({"do": "mark"})
        answers = self.ask({"do": "pull", **how}, self.pullers)
        after = self.ask({"do": "mark"})
        used = [sum(one[key] for one in after) - sum(one[key] for one in before) for key in ("cpu_s", "tcp_bytes")]
        return Window.of(answers, *used)

    def memory(self) -> list[Json]:
        """Of each node: {peak_kib, peers_kib, huge_kib, congestion_control}."""
        answers = [{**one, **mark} for one, mark in zip(self.ask({"do": "memory"}), self.ask({"do": "mark"}))]
        return [
            {
                **mapped_memory(one["smaps"], node.child.pid),
                "peak_kib": sum(int(kib) for kib in re.findall(r"^VmHWM:\s*([0-9]+)", one["status"], re.MULTILINE)),
                "congestion_control": one["congestion_control"],
            }
            for node, one in zip(self.processes, answers)
        ]


SNAPSHOT = "/memfd:dpwa-snapshot-"  # dpwa/snapshot/memory_file.h; then the owner's id


def mapped_memory(smaps: str, pid: int) -> dict[str, int]:
    """Of the text of /proc/PID/smaps, in KiB. peers: resident pages of snapshots that belong to other processes. huge:
    of the process's own memory, on huge pages."""
    found = {"peers_kib": 0, "huge_kib": 0}
    of_peer = False
    for line in smaps.splitlines():
        if re.match("[0-9a-f]+-[0-9a-f]+ ", line):
            owner = re.search(f"{SNAPSHOT}([0-9]+)", line)
            of_peer = owner is not None and int(owner[1]) != pid
        elif of_peer and line.startswith("Rss:"):
            found["peers_kib"] += int(line.split()[1])
        elif not of_peer and line.startswith(("AnonHugePages:", "ShmemPmdMapped:")):
            found["huge_kib"] += int(line.split()[1])
    return found


def value_in(file: str, key: str) -> str:
    """The value behind "KEY<spaces>: " in a file of such lines."""
    with contextlib.suppress(OSError):
        for line in Path(file).read_text(encoding="utf-8", errors="replace").splitlines():
            name, _, value = line.partition(":")
            if name.strip() == key:
                return value.strip()
    return ""


def first_line(file: str) -> str:
    with contextlib.suppress(OSError):
        return Path(file).read_text(encoding="utf-8").partition("\n")[0]
    return ""


def cores() -> int:
    return len(os.sched_getaffinity(0))


def machine_settings(facts: Json) -> Json:
    """What of the machine affects figures. `facts`: of one of the processes. Unknown values are empty."""
    pages = re.search(r"\[(.*)\]", first_line("/sys/kernel/mm/transparent_hugepage/enabled"))
    names = os.uname()
    return {
        "version": facts["version"],
        "instruction_set": facts["instruction_set"],
        "transparent_huge_pages": pages[1] if pages else "",
        "cores": cores(),
        "cpu": value_in("/proc/cpuinfo", "model name"),
        "kernel": f"{names.sysname} {names.release}",
        "system_congestion_control": first_line("/proc/sys/net/ipv4/tcp_congestion_control"),
    }


def require_memory(needed: float) -> None:
    available = 1024 * int((value_in("/proc/meminfo", "MemAvailable") or "0").split()[0])
    if 0 < available < needed:
        raise Failure(f"this takes {size_text(int(needed))} of memory, and {size_text(available)} are available")


def say(text: str) -> None:
    """How far it is, for people."""
    print(text, file=sys.stderr, flush=True)
