"""Clusters of real trainers with backend collective, for the programs of this folder."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from cluster import ask_status  # noqa: E402

REPOSITORY = Path(__file__).resolve().parents[3]
PATIENCE_S = 60.0


def free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


class Trainers:
    """Nodes w1, w2, ... in a folder of their own; all are killed at the end."""

    def __init__(self, build: Path, count: int, policy: str, options: list[str]) -> None:
        self.build, self.options = build, options
        self.folder = Path(tempfile.mkdtemp(prefix="dpwa-known-"))
        self.names = [f"w{i + 1}" for i in range(count)]
        self.ports = dict(zip(self.names, free_ports(count)))
        nodes = "".join(f"  - {{name: {name}, host: 127.0.0.1, port: {port}}}\n" for name, port in self.ports.items())
        text = "backend: collective\ngossip: {start_wait_ms: 2000, finish_wait_ms: 500}\n"
        text += f"collective: {{start_wait_ms: 60s, {policy}}}\nnodes:\n{nodes}"
        (self.folder / "cluster.yaml").write_text(text, encoding="utf-8")
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.lives: dict[str, int] = {}
        self.dead: set[str] = set()  # were killed and not started again
        self.frozen: set[str] = set()

    def __enter__(self) -> Trainers:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self.processes.values():
            process.kill()
            process.wait()

    def start(self, *names: str) -> None:
        for name in names or self.names:
            self.begin_life(name)
            command = [str(self.build / "bin/dpwa-train"), "--config", str(self.folder / "cluster.yaml"), "--name",
                       name, "--data", "synthetic", "--threads", "1", "--quiet", "--run-dir", str(self.folder)]
            with self.log(name).open("wb") as log:
                self.processes[name] = subprocess.Popen([*command, *self.options], stdin=subprocess.DEVNULL,
                                                        stdout=log, stderr=log,
                                                        env={**os.environ, "OMP_NUM_THREADS": "1"})

    def begin_life(self, name: str) -> None:
        self.lives[name] = self.lives.get(name, 0) + 1
        self.dead.discard(name)

    def log(self, name: str) -> Path:
        return self.folder / f"{name}.{self.lives[name]}.log"

    def text(self, name: str) -> str:
        """What the present process of a node has logged."""
        return self.log(name).read_text(encoding="utf-8", errors="replace")

    def kill(self, name: str) -> None:
        self.processes[name].kill()
        self.processes[name].wait()
        self.dead.add(name)

    def freeze(self, name: str) -> None:
        self.processes[name].send_signal(signal.SIGSTOP)
        self.frozen.add(name)

    def thaw(self, name: str) -> None:
        self.processes[name].send_signal(signal.SIGCONT)
        self.frozen.discard(name)

    def away(self) -> set[str]:
        return self.dead | self.frozen

    def take_away(self, name: str, chance: random.Random) -> None:
        """Kills or freezes it."""
        (self.kill if chance.random() < 0.6 else self.freeze)(name)

    def bring_back(self, *names: str) -> None:
        """Thaws those that are frozen, and starts those that were killed."""
        for name in names or self.names:
            if name in self.frozen:
                self.thaw(name)
            elif name in self.dead:
                self.start(name)

    def ended(self, *fine: int) -> list[str]:
        """Those that have ended by themselves, with another exit code than these."""
        return [name for name in self.names if name not in self.dead and self.code(name) not in (None, *fine)]

    def code(self, name: str) -> int | None:
        return self.processes[name].poll()

    def last_line(self, name: str) -> str:
        return (self.text(name).strip().splitlines() or [""])[-1]

    def status(self, name: str) -> dict[str, Any]:
        """The entry `collective` of its status, and its clock; {} when it does not answer."""
        found = asyncio.run(ask_status(("127.0.0.1", self.ports[name]), "dpwa", 2.0)) or {}
        return {**found.get("collective", {}), "clock": found.get("clock") or 0} if found else {}

    def clock(self, name: str) -> float:
        return float(self.status(name).get("clock", 0))

    def group(self, name: str) -> tuple[int, int]:
        """Size and epoch of the group that it has entered last, by its log; (0, 0): none."""
        found = re.findall(r"rank \d+ of (\d+) \(.*\), group (\d+)", self.text(name))
        return (int(found[-1][0]), int(found[-1][1])) if found else (0, 0)

    def report(self, *names: str) -> None:
        for name in names:
            print(f"  {name}: exit code {self.code(name)}, group (size, epoch) {self.group(name)}, last line: "
                  f"{self.last_line(name)}")


def await_that(what: str, holds: Callable[[], bool], limit_s: float = PATIENCE_S) -> bool:
    until = time.monotonic() + limit_s
    while time.monotonic() < until:
        if holds():
            return True
        time.sleep(0.02)
    print(f"  not within {limit_s:g} s: {what}")
    return False


def main(description: str, run: Callable[[Path, int], bool]) -> int:
    """`run`: makes one run of this seed and returns whether the fault was seen."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--build", type=Path, default=REPOSITORY / "build" / "release")
    parser.add_argument("--runs", type=int, default=3)
    chosen = parser.parse_args()
    seen = 0
    for seed in range(1, chosen.runs + 1):
        print(f"run {seed} of {chosen.runs}", flush=True)
        fault = run(chosen.build, seed)
        print("  the fault" if fault else "  no fault", flush=True)
        seen += fault
    print(json.dumps({"runs": chosen.runs, "with the fault": seen}))
    return 1 if seen else 0
