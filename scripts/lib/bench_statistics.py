"""Medians and ranges of what was measured, and whether the machine was quiet meanwhile. Standard library only."""

from __future__ import annotations

import math
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

NOISY = {"spread": 0.15, "other_load": 0.10, "steal": 0.02}  # shares beyond which a machine counts as noisy
REASONS = {
    "spread": "the windows differ by {}",
    "other_load": "other work took {} of the processors",
    "steal": "the host took {} of the processors",
}


def quantile(values: list[float], q: float) -> float:
    """The value below which a share `q` of the values lies: the nearest rank. 0 when there are none."""
    if not values:
        return 0.0
    return sorted(values)[max(math.ceil(q * len(values)), 1) - 1]


def median(values: list[float]) -> float:
    return quantile(values, 0.5)


def quantiles(values: list[float]) -> dict[str, float]:
    ordered = sorted(values)
    return {"median": quantile(ordered, 0.5), "p99": quantile(ordered, 0.99)}


def range_of(values: list[float]) -> dict[str, float]:
    if not values:
        return {"min": 0.0, "median": 0.0, "max": 0.0}
    return {"min": min(values), "median": median(values), "max": max(values)}


def ratios(ones: list[float], others: list[float]) -> dict[str, float]:
    """Window by window: both had the same machine."""
    return range_of([one / other for one, other in zip(ones, others)])


def spread_of(range_: dict[str, float]) -> float:
    return 0.0 if range_["median"] == 0 else (range_["max"] - range_["min"]) / range_["median"]


@dataclass
class ProcessorTime:
    """Of all processors together since boot, in seconds."""

    busy: float = 0.0  # anything but idle and waiting for a disk; `steal` left out
    steal: float = 0.0  # taken by the host of a virtual machine
    total: float = 0.0

    @classmethod
    def parse(cls, proc_stat: str, ticks_per_second: float) -> ProcessorTime:
        """From the text of /proc/stat; zeros where it is not as expected."""
        # user nice system idle iowait irq softirq steal; guest times are part of user.
        name, *fields = (proc_stat.splitlines() or [""])[0].split()[:9] or [""]
        try:
            times = [int(field) / ticks_per_second for field in fields]
        except ValueError:
            return cls()
        if name != "cpu" or len(times) < 8:
            return cls()
        return cls(sum(times) - times[3] - times[4] - times[7], times[7], sum(times))

    @classmethod
    def now(cls) -> ProcessorTime:
        try:
            text = Path("/proc/stat").read_text(encoding="ascii")
        except OSError:
            return cls()
        return cls.parse(text, os.sysconf("SC_CLK_TCK"))


def judge(spread: float, before: ProcessorTime, after: ProcessorTime, own: float) -> dict[str, Any]:
    """Whether a measurement was disturbed. `own`: processor seconds of the measurement between the two moments."""
    shares = {"spread": spread, "other_load": 0.0, "steal": 0.0}
    total = after.total - before.total
    if total > 0:
        shares["other_load"] = max(0.0, after.busy - before.busy - own) / total
        shares["steal"] = (after.steal - before.steal) / total
    reasons = [REASONS[key].format(f"{100 * share:.0f} %") for key, share in shares.items() if share > NOISY[key]]
    return {"noisy": bool(reasons), **shares, "reasons": reasons}


class NoiseWatch:
    """Watches over a measurement, which begins here, and judges it at its end. This process and the children that have
    ended since count as the measurement's own work."""

    def __init__(self) -> None:
        self.own = -self._used()
        self.before = ProcessorTime.now()

    @staticmethod
    def _used() -> float:
        return sum(os.times()[:4])

    def also_used(self, seconds: float) -> None:
        """Of processes of the measurement that still run."""
        self.own += seconds

    def judge(self, spread: float) -> dict[str, Any]:
        return judge(spread, self.before, ProcessorTime.now(), self.own + self._used())


def warn_when_noisy(noise: dict[str, Any]) -> None:
    for reason in noise["reasons"]:
        print(f"!! machine was noisy: {reason}", file=sys.stderr)
