"""What must hold whatever happens. Pure functions on what was observed: each returns the violations, in words."""

from __future__ import annotations

import bisect
import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

Line = dict[str, Any]
Interval = tuple[float, float]

ROUND_ENDS = {"mixed", "timed_out", "unreachable", "stale", "rejected"}  # not: politely declined
TWIN_TOLERANCE = 1e-5  # rounding of a float32 that two code paths blended; a torn vector is off by a thousand times that


def steps_of(lines: Iterable[Line]) -> list[Line]:
    return [line for line in lines if "step" in line]


# No crash.

def crashes(name: str, exits: Iterable[tuple[int | None, bool]], report: str) -> list[str]:
    """`exits`: of every process, its exit code (None = it had to be killed at the end) and whether we killed it."""
    found = [f"{name}: {report}"] if report else []
    for code, killed in exits:
        if code is None:
            found.append(f"{name}: did not end by itself")
        elif code != 0 and not killed:
            found.append(f"{name}: ended with " + (f"signal {-code}" if code < 0 else f"exit code {code}"))
    return found


# No hang.

def hangs(name: str, times_ms: Sequence[float], until_ms: float, excused: Iterable[Interval],
          patience_ms: float) -> list[str]:
    """`times_ms`: of its steps in one life, up to `until_ms`. Time in `excused` (SIGSTOP) does not count."""
    excused = [*excused]
    found = []
    for begin, end in zip(times_ms, [*times_ms[1:], until_ms]):
        gap = _running_ms(begin, end, excused)
        if gap > patience_ms:
            found.append(f"{name}: no step for {gap / 1000:.1f} s")
    return found


def late_start(name: str, times_ms: Sequence[float], until_ms: float, excused: Iterable[Interval],
               patience_ms: float) -> list[str]:
    """The first of `times_ms` is when the process was started, the second when it had common weights."""
    taken = _running_ms(times_ms[0], times_ms[1] if len(times_ms) > 1 else until_ms, [*excused])
    return [f"{name}: did not train {taken / 1000:.1f} s after its start"] if taken > patience_ms else []


def _running_ms(begin: float, end: float, excused: Sequence[Interval]) -> float:
    return end - begin - sum(max(0.0, min(end, b) - max(begin, a)) for a, b in excused)


# No step beyond its budget.

@dataclass
class Budget:
    """A step may take `budget_ms`, and on a busy machine is given back its processor late: `allowance_ms` at any time,
    `usual_ms` in nine of ten steps."""

    budget_ms: float
    allowance_ms: float
    usual_ms: float


def overlaps(step: Line, excused: Iterable[Interval]) -> bool:
    begin = step["at_ms"] - step["gossip_ms"] - 5  # when it was written down is a little later than it ended
    return any(a <= step["at_ms"] and begin <= b for a, b in excused)


def slow_steps(name: str, steps: Sequence[Line], excused: Iterable[Interval], budget: Budget) -> list[str]:
    excused = [*excused]
    found = []
    taken = []
    for step in steps:
        if overlaps(step, excused):
            continue
        taken.append(step["gossip_ms"])
        if step["waited_ms"] > budget.budget_ms + budget.allowance_ms:
            found.append(f"{name}: step {step['step']} waited {step['waited_ms']:.0f} ms for the network")
        elif step["gossip_ms"] > budget.budget_ms + budget.allowance_ms:
            found.append(f"{name}: step {step['step']} gave {step['gossip_ms']:.0f} ms to gossip")
    if len(taken) >= 20:
        usual = sorted(taken)[len(taken) * 9 // 10]
        if usual > budget.budget_ms + budget.usual_ms:
            found.append(f"{name}: nine of ten steps gave up to {usual:.1f} ms to gossip")
    return found


# No torn or non-finite parameter.

def bad_parameters(name: str, steps: Iterable[Line]) -> list[str]:
    for step in steps:
        if not step["finite"] or any(value is None for value in step["probe"]):
            return [f"{name}: parameters are not finite at step {step['step']}"]
        if step["twin_gap"] is None or step["twin_gap"] > TWIN_TOLERANCE:
            return [f"{name}: torn parameters at step {step['step']}: twins are {step['twin_gap']:.2g} apart"]
        if step["clock"] is None or not math.isfinite(step["clock"]):
            return [f"{name}: the clock is not finite at step {step['step']}"]
    return []


# Consensus comes back.

class Track:
    """What a node's parameters were over time, and when its pulls ended."""

    def __init__(self, steps: Sequence[Line]) -> None:
        self.times = [step["at_ms"] for step in steps]
        self.probes = [step["probe"] for step in steps]
        self.round_ends = [step["at_ms"] for step in steps if step["outcome"] in ROUND_ENDS]

    def at(self, time_ms: float) -> list[float] | None:
        index = bisect.bisect_right(self.times, time_ms) - 1
        return self.probes[index] if index >= 0 else None

    def round_end(self, since_ms: float, rounds: int) -> float | None:
        """When it had ended so many pulls since then."""
        index = bisect.bisect_right(self.round_ends, since_ms) + rounds - 1
        return self.round_ends[index] if index < len(self.round_ends) else None

    def steps_between(self, begin_ms: float, end_ms: float) -> int:
        return bisect.bisect_right(self.times, end_ms) - bisect.bisect_right(self.times, begin_ms)


def consensus_distance(tracks: Sequence[Track], time_ms: float) -> float | None:
    """Root mean square, over nodes and probed elements, of the distance to the mean."""
    probes = [track.at(time_ms) for track in tracks]
    if not probes or any(probe is None for probe in probes):
        return None
    total = 0.0
    columns = [*zip(*probes)]
    for column in columns:
        mean = sum(column) / len(column)
        total += sum((value - mean) ** 2 for value in column)
    return math.sqrt(total / (len(columns) * len(probes)))


def steady_state(tracks: Sequence[Track], begin_ms: float, end_ms: float) -> float | None:
    """The median consensus distance of an undisturbed time."""
    count = 60
    seen = [consensus_distance(tracks, begin_ms + (end_ms - begin_ms) * i / count) for i in range(count + 1)]
    known = [distance for distance in seen if distance is not None]
    return statistics.median(known) if len(known) > count // 2 else None


@dataclass
class Recovery:
    rounds: int | None = None  # of the node with the fewest; None = not within those that were looked at
    seconds: float = 0.0
    steps: int = 0  # the most that a node made meanwhile
    distance_at_heal: float = 0.0
    steady: float = 0.0


def recovery(tracks: Sequence[Track], steady: float, healed_ms: float, most_rounds: int) -> Recovery:
    """After how many rounds the consensus distance was below twice its steady state. A round is a pull that ended;
    the n-th is over when every node has ended n since the last fault."""
    result = Recovery(steady=steady, distance_at_heal=consensus_distance(tracks, healed_ms) or 0.0)
    for rounds in range(most_rounds + 1):
        ends = [healed_ms if rounds == 0 else track.round_end(healed_ms, rounds) for track in tracks]
        if any(end is None for end in ends):
            return result
        at = max(end for end in ends if end is not None)
        distance = consensus_distance(tracks, at)
        if distance is not None and distance < 2 * steady:
            result.rounds, result.seconds = rounds, (at - healed_ms) / 1000
            result.steps = max(track.steps_between(healed_ms, at) for track in tracks)
            return result
    return result


def no_consensus(found: Recovery, most_rounds: int, most_seconds: float) -> list[str]:
    """A node with nobody to ask makes no rounds: hence a bound on the time as well."""
    if found.rounds is not None and found.rounds <= most_rounds and found.seconds <= most_seconds:
        return []
    return [f"consensus distance was {found.distance_at_heal:.3g} at the last heal and not below twice its steady "
            f"{found.steady:.3g} within {most_rounds} rounds and {most_seconds:g} s"]


# Memory and descriptors are bounded.

def growth(name: str, what: str, values: Sequence[float], settled: float, bound: float, last_bound: float) -> list[str]:
    """`settled`: before the faults; never more than `bound` above it, and in the end `last_bound`."""
    if not values:
        return []
    found = []
    if max(values) > settled + bound:
        found.append(f"{name}: {what} grew from {settled:,.0f} to {max(values):,.0f}")
    elif values[-1] > settled + last_bound:
        found.append(f"{name}: {what} stayed at {values[-1]:,.0f}, from {settled:,.0f} before the faults")
    return found


def different_ends(lines_of: dict[str, Sequence[Line]]) -> list[str]:
    """Nodes that averaged end with one model. `lines_of`: all lines of each node, by its name."""
    ends = {name: lines[-1] for name, lines in lines_of.items() if lines and lines[-1].get("finished")}
    averaged = {name: end for name, end in ends.items() if end["participants"] > 1}
    if len({end["checksum"] for end in averaged.values()}) <= 1:
        return []
    words = ", ".join(f"{name} that of {end['participants']}" for name, end in averaged.items())
    return [f"the nodes end with different averages: {words}"]


def silent(name: str, longest: int, most: int) -> list[str]:
    return [f"{name}: left {longest} status requests in a row without an answer"] if longest > most else []
