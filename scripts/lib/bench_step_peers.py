"""Processes that do the same number of timed steps on command: nodes of a benchmark, and other programs that do the
same work. They speak lines of JSON:

  -> a job                            <- {"ready": true, ...}
  -> {"do": "steps", "count", ...}    <- {"times_ns": [...], "cpu_s"}, so far and of the process

One step more than asked for comes first, untimed: it brings the processes together.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from lib.bench_options import Failure
from lib.bench_processes import Json, Process, Processes
from lib.bench_statistics import NoiseWatch, median, quantiles, range_of
from lib.ports import free_ports

FEWEST, MOST = 3, 1_000_000  # steps of a window


class StepGroup(Processes):
    def __init__(self, command: Iterable[Any], jobs: list[Json]) -> None:
        self.cpu = [0.0] * len(jobs)
        super().__init__(command, jobs)

    def ask(self, command: Json, of: list[Process] | None = None) -> list[Json]:
        answers = super().ask(command, of)
        self.cpu = [answer["cpu_s"] for answer in answers]
        return answers

    def times(self, do: str, count: int, **more: Any) -> list[float]:
        """Microseconds, of all processes."""
        return [ns / 1000 for answer in self.ask({"do": do, "count": count, **more}) for ns in answer["times_ns"]]

    def cpu_s(self) -> float:
        return sum(self.cpu)


def count_for(seconds: float, step_us: float, fewest: int = FEWEST, most: int = MOST) -> int:
    """Steps of a window of this length: enough for a median, and all processes take the same number."""
    return round(min(max(1e6 * seconds / max(step_us, 1.0), fewest), most))


@dataclass
class StepPeer:
    """Another program that does the same, in windows that take turns with those of dpwa; or why there is none."""

    key: str  # in the document: "gloo", "ps_lite"
    group: StepGroup | None = None
    absent: str = ""
    windows_us: list[float] = field(default_factory=list)  # medians
    times_us: list[float] = field(default_factory=list)
    cpu_s: float = 0.0

    @classmethod
    def start(cls, key: str, command: Iterable[Any], jobs: list[Json]) -> StepPeer:
        peer = cls(key)
        try:
            peer.group = StepGroup(command, jobs)
            peer.group.times("steps", 1)
        except Failure as error:
            peer.close()
            peer.group, peer.absent = None, str(error)
        return peer

    @property
    def name(self) -> str:
        return self.group.facts[-1]["name"] if self.group else self.key

    def close(self) -> None:
        if self.group:
            self.group.close()

    def run_window(self, seconds: float, watch: NoiseWatch) -> None:
        known = self.windows_us[-1] if self.windows_us else median(self.group.times("steps", 1))
        before = self.group.cpu_s()
        times = self.group.times("steps", count_for(seconds, known))
        used = self.group.cpu_s() - before
        watch.also_used(used)
        self.cpu_s += used
        self.times_us += times
        self.windows_us.append(median(times))

    def figures(self) -> Json:
        if self.absent:
            return {"absent": self.absent}
        windows = {"count": len(self.windows_us), "step_us": range_of(self.windows_us)}
        steps = {"name": self.name, "steps": len(self.times_us), "step_us": quantiles(self.times_us)}
        return {**steps, "cpu_s": self.cpu_s, "windows": windows}


def gloo(python: str, script: str, ranks: int, size: int, folder: str) -> StepPeer:
    """Steps of c10d's Gloo all-reduce and an optimizer on each rank (bench/peers/c10d_step.py)."""
    job = {"ranks": ranks, "bytes": size, "store": f"{folder}/gloo"}
    return StepPeer.start("gloo", [python, script], [{"rank": rank, **job} for rank in range(ranks)])


def ps_lite(program: str, workers: int, servers: int, size: int) -> StepPeer:
    """Pushes and pulls of ps-lite, by the built bench/peers/ps_lite_push_pull.cpp."""
    return StepPeer.start("ps_lite", [program, free_ports(1)[0], workers, servers, size], [{}])
