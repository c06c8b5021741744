"""Several groups of nodes in windows that take turns: A B A B ..., so that a machine that drifts does so under all."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from lib.bench_processes import Group, Json, Window, say
from lib.bench_results import rate_text, time_text
from lib.bench_statistics import NoiseWatch, quantiles, range_of, spread_of, warn_when_noisy

SHORTEST = 0.2  # seconds of a window
RANGES = ("gb_per_s", "latency_us", "cpu_s_per_gb")  # that a document has of its windows


@dataclass
class Series:
    """One thing measured, and its windows."""

    name: str
    group: Group
    windows: list[Window] = field(default_factory=list)
    memory: list[Json] = field(default_factory=list)  # of each node, at the end

    def values(self, figure: str) -> list[float]:
        return [getattr(window, figure) for window in self.windows]

    def range(self, figure: str) -> dict[str, float]:
        return range_of(self.values(figure))

    def figures(self) -> Json:
        """What all kinds of pulls have in common."""
        pulls = sum(window.pulls for window in self.windows)
        failed: dict[str, int] = {}
        for window in self.windows:
            for outcome, times in window.failed.items():
                failed[outcome] = failed.get(outcome, 0) + times
        found: Json = {"pulls": pulls, "failed": failed, "gb_per_s": self.range("gb_per_s")["median"]}
        found["latency_us"] = quantiles([one for window in self.windows for one in window.latencies_us])
        trainer = [one for window in self.windows for one in window.trainer_latencies_us]
        if trainer:
            found["trainer_latency_us"] = quantiles(trainer)
        found["cpu_s_per_gb"] = self.range("cpu_s_per_gb")["median"]
        found["peak_rss_mib"] = max(node["peak_kib"] for node in self.memory) / 1024
        found["peers_mapped_mib"] = max(node["peers_kib"] for node in self.memory) / 1024
        found["windows"] = {"count": len(self.windows), **{figure: self.range(figure) for figure in RANGES}}
        return found


def window_count(seconds: float) -> int:
    return 5 if seconds >= 5 * SHORTEST else 3


def measure(series: list[Series], seconds: float) -> Json:
    """Measures each for `seconds`. A window that is not counted comes first. Returns the noise."""
    windows = window_count(seconds)
    length = seconds / windows
    for one in series:
        one.group.run(seconds=min(length, SHORTEST))
    watch = NoiseWatch()
    for index in range(windows):
        line = f"   window {index + 1}/{windows}"
        for one in series:
            one.windows.append(one.group.run(seconds=length))
            watch.also_used(one.windows[-1].cpu_s)
            line += f"  {one.name} {rate_text(one.windows[-1].gb_per_s)}"
        if seconds > 1:
            say(line)
    noise = watch.judge(max(spread_of(one.range("gb_per_s")) for one in series))
    for one in series:
        one.memory = one.group.memory()
    return noise


def spread_text(range_: Json, text: Callable[[float], str] = "{:.2f}".format) -> str:
    return f"{text(range_['median'])} ({text(range_['min'])} to {text(range_['max'])})"


def latency_text(latency: Json) -> str:
    return f"{time_text(latency['median'])} median, {time_text(latency['p99'])} p99"


def figure_lines(figures: Json) -> list[str]:
    """One line a figure, for people."""
    range_ = figures["windows"]["gb_per_s"]
    among = f"({rate_text(range_['min'])} to {rate_text(range_['max'])} in {figures['windows']['count']} windows)"
    lines = [f"  throughput        {rate_text(figures['gb_per_s'])} {among}, {figures['pulls']} pulls"]
    lines.append(f"  latency           {latency_text(figures['latency_us'])}")
    if "trainer_latency_us" in figures:
        lines.append(f"  as trainer sees   {latency_text(figures['trainer_latency_us'])}")
    lines.append(f"  processor         {figures['cpu_s_per_gb']:.3f} s/GB")
    mapped = figures["peers_mapped_mib"]
    more = f", {mapped:.1f} of it mapped from peers" if mapped > 0 else ""
    return [*lines, f"  peak memory       {figures['peak_rss_mib']:.1f} MiB a node{more}"]


def print_result(document: Json, as_json: bool, lines: Callable[[Json], list[str]]) -> int:
    """The end of every measurement. Returns the exit code."""
    warn_when_noisy(document["noise"])
    print(json.dumps(document, indent=2) if as_json else "\n".join(lines(document)))
    return 0


def add_common(parser: Any, seconds: Any) -> None:
    parser.add_argument("--seconds", type=seconds, default=3, help="How long to measure each of those in turn (3)")
    parser.add_argument("--json", action="store_true", help="Print one JSON document instead of text")
