"""Holds what a run observed against the invariants, and sums it up."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field

import invariants
from cluster import Node
from run import Observed
from settings import Settings

MOST_ROUNDS = 15
MOST_SECONDS = 8.0
MIB = 1 << 20


@dataclass
class Verdict:
    violations: list[str] = field(default_factory=list)
    recovery: invariants.Recovery = field(default_factory=invariants.Recovery)
    longest_gossip_ms: float = 0.0
    longest_wait_ms: float = 0.0
    resident_mib: float = 0.0
    descriptors: int = 0
    pulls_ok: int = 0
    pulls_failed: int = 0
    restarts: int = 0
    steps: int = 0


def budget_of(settings: Settings) -> invariants.Budget:
    return invariants.Budget(settings.step_budget_ms, allowance_ms=3000 * settings.slowness,
                             usual_ms=15 * settings.slowness)


def judge(settings: Settings, seen: Observed) -> Verdict:
    verdict = Verdict()
    for node in seen.nodes:
        _judge_node(settings, seen, node, verdict)
    verdict.violations += invariants.different_ends({node.name: node.lines for node in seen.nodes})
    if seen.failure:
        verdict.violations.insert(0, seen.failure)
    elif not settings.netns or seen.healed_ms:
        _judge_consensus(settings, seen, verdict)
    return verdict


def _judge_node(settings: Settings, seen: Observed, node: Node, verdict: Verdict) -> None:
    steps = invariants.steps_of(node.lines)
    found = verdict.violations
    exits = seen.exits.get(node.name, [(0, False)] * 0)
    found += invariants.crashes(node.name, exits, node.sanitizer_report())
    for number, life in enumerate(node.lives):
        times = [line["at_ms"] for line in node.lines if line["life"] == number and "at_ms" in line]
        until = life.ended_ms or seen.watched_ms
        if until:
            times = [life.began_ms, *(time for time in times if time <= until)]
            found += invariants.late_start(node.name, times, until, node.stops, 4 * settings.start_wait_ms)
            found += invariants.hangs(node.name, times[1:], until, node.stops, 10_000 * settings.slowness)
    found += invariants.slow_steps(node.name, steps, node.stops, budget_of(settings))
    found += invariants.bad_parameters(node.name, steps)
    found += invariants.silent(node.name, node.longest_silent_status, 2)
    _judge_resources(settings, seen, node, verdict)
    verdict.steps += len(steps)
    verdict.restarts += len(node.lives) - 1
    running = [step for step in steps if not invariants.overlaps(step, node.stops)]
    verdict.longest_gossip_ms = max([verdict.longest_gossip_ms, *(step["gossip_ms"] for step in running)])
    verdict.longest_wait_ms = max([verdict.longest_wait_ms, *(step["waited_ms"] for step in running)])
    for number in range(len(node.lives)):
        last = [step for step in steps if step["life"] == number][-1:]
        verdict.pulls_ok += sum(step["ok"] for step in last)
        verdict.pulls_failed += sum(step["failed"] for step in last)


def _judge_resources(settings: Settings, seen: Observed, node: Node, verdict: Verdict) -> None:
    settled = [one for one in node.samples if one.at_ms <= seen.warm_ms[1]]
    if not settled:
        return
    # A sanitizer keeps freed memory back on purpose: its bound is that of its quarantine.
    memory_bound = {"": 48.0, "address": 400.0, "thread": 400.0}[settings.sanitizer]
    resident = [one.resident_bytes / MIB for one in node.samples]
    descriptors = [float(one.descriptors) for one in node.samples]
    before_memory = max(one.resident_bytes / MIB for one in settled)
    before_descriptors = float(max(one.descriptors for one in settled))
    verdict.violations += invariants.growth(node.name, "MiB of memory", resident, before_memory, memory_bound,
                                            memory_bound)
    # Inbound connections are bounded by transport.max_connections, 256; in the end they are gone.
    verdict.violations += invariants.growth(node.name, "open descriptors", descriptors, before_descriptors,
                                            256 + 8 * settings.nodes, 16 + 4 * settings.nodes)
    verdict.resident_mib = max(verdict.resident_mib, *resident)
    verdict.descriptors = max(verdict.descriptors, *(one.descriptors for one in node.samples))


def _judge_consensus(settings: Settings, seen: Observed, verdict: Verdict) -> None:
    tracks = [invariants.Track(invariants.steps_of(node.lines)) for node in seen.nodes]
    steady = invariants.steady_state(tracks, *seen.warm_ms)
    if steady is None:
        verdict.violations.append("no steady state to compare with")
        return
    verdict.recovery = invariants.recovery(tracks, steady, seen.healed_ms, 40)
    verdict.violations += invariants.no_consensus(verdict.recovery, MOST_ROUNDS, MOST_SECONDS * settings.slowness)
    if verdict.recovery.rounds is not None:
        back = seen.healed_ms + 1000 * verdict.recovery.seconds
        after = invariants.steady_state(tracks, back, seen.watched_ms)
        if after is not None and after >= 2 * steady:
            verdict.violations.append(f"consensus distance rose again to {after:.3g}, steady was {steady:.3g}")


def summary(values: list[float]) -> str:
    return f"median {statistics.median(values):.3g}, most {max(values):.3g}" if values else "none"
