"""What a run with lost nodes was like for the survivors, from the times of their steps. Pure: no files, no clock."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Step:
    """The end of a step of one node, in seconds of the monotonic clock."""

    at: float
    averaged: bool = True  # by an all-reduce of all that the node knows to be there


def longest_gap(steps: list[Step], begin: float, end: float) -> float | None:
    """The longest time between two steps in a row of which the later one ended in [begin, end]; None without any."""
    pairs = zip(steps, steps[1:], strict=False)
    return max((later.at - earlier.at for earlier, later in pairs if begin <= later.at <= end), default=None)


def went_on(steps: list[Step], killed: float, grace: float) -> bool:
    """Whether a node still made steps after the others were lost; `grace`: for one that was under way."""
    return bool(steps) and steps[-1].at > killed + grace


def first_averaged(steps: list[Step], begin: float) -> float | None:
    """Seconds from `begin` to the first step that was averaged with the others."""
    return next((step.at - begin for step in steps if step.at > begin and step.averaged), None)


def origin(readings: list[tuple[float, float]]) -> float:
    """When the clock of a file of steps began. `readings`: the time at which the file was read, and the last time that
    it showed, in seconds of that clock. It is read late, never early: so the earliest that fits is taken."""
    return min(now - shown for now, shown in readings)
