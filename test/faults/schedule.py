"""Which faults happen when: a pure function of the seed. The same seed gives the same schedule, byte for byte."""

from __future__ import annotations

import json
import random
from dataclasses import asdict, dataclass, field

PROCESS_KINDS = ("kill", "stop", "flap", "kill_most")
LINK_KINDS = ("reset", "throttle", "delay", "blackhole", "partition", "corrupt", "truncate")
BEHAVIOURS = (
    # answers of a node that lies
    "nan", "infinity", "far_away", "biased", "clock_huge", "clock_nan", "clock_negative", "loss", "length_long", "length_short",
    "chunk_length", "replay", "replay_renumbered", "silent", "trickle", "noise_reply", "other_lineage", "bad_checksum",
    "wrong_request", "endless_welcome",
    # callers that misbehave
    "half_open", "connections", "requests", "noise", "slow_hello", "never_reads", "impersonate", "huge_frame", "hoard",
    # what an admitted node says of others
    "bury", "crowd",
)


@dataclass(frozen=True)
class Fault:
    """`targets`: a node (kill, stop), caller and called (links), the smaller side (partition), an attacker."""

    at: float
    seconds: float
    kind: str
    targets: tuple[str, ...]
    values: dict[str, float | str] = field(default_factory=dict)

    @property
    def end(self) -> float:
        return round(self.at + self.seconds, 3)


def generate(seed: int, nodes: list[str], attackers: list[str], seconds: float, kinds: tuple[str, ...],
             left_out: tuple[str, ...] = ()) -> list[Fault]:
    """Faults from time 0 on, all over by `seconds`, in order of time. One process fault a node, one fault a link and
    one behaviour an attacker at a time; at least half of the nodes run and are connected to each other, but for `kill_most`."""
    rng = random.Random(f"dpwa-faults-{seed}-{len(nodes)}")
    faults = [_last(rng, nodes, seconds, kinds)]
    if "kill_most" in kinds and rng.random() < 0.4:
        down = round(rng.uniform(0.1, 1.5), 3)  # first come: it fits beside no other process fault
        faults.append(Fault(round(rng.uniform(0, seconds * 0.3), 3), down, "kill_most", _most(rng, nodes)))
    bag: list[str] = []
    behaviours: list[str] = []
    # About one and a half faults a second for four nodes, twice as many for sixteen.
    wanted = int(seconds * (1 + len(nodes) / 8))
    for _ in range(wanted * 3):
        if len(faults) >= wanted:
            break
        if not bag:
            bag = [*kinds]
            rng.shuffle(bag)
        if not behaviours:
            behaviours = [one for one in BEHAVIOURS if one not in left_out]
            rng.shuffle(behaviours)
        kind = bag.pop()
        longest = 20.0 if kind == "attack" and rng.random() < 0.3 else 3.0
        length = round(min(rng.uniform(0.4, longest), seconds * 0.6), 3)
        at = round(rng.uniform(0, seconds - length), 3)
        fault = _draw(rng, kind, at, length, nodes, attackers, behaviours)
        if fault is not None and _fits(fault, faults, nodes):
            faults.append(fault)
    return sorted(faults, key=lambda one: (one.at, one.kind, one.targets))


def _last(rng: random.Random, nodes: list[str], seconds: float, kinds: tuple[str, ...]) -> Fault:
    """One that keeps nodes apart for a while and ends with the schedule: there must be something to recover from."""
    longest = 14.0 if seconds >= 40 else seconds * 0.45
    length = round(rng.uniform(0.7, 1) * longest, 3)
    at = round(seconds - length, 3)
    kind = rng.choice([one for one in ("partition", "partition", "kill", "stop", "interface") if one in kinds])
    if kind == "partition":
        size = rng.randint(1, len(nodes) // 2)
        direction = rng.choice(("both", "both", "in", "out"))
        return Fault(at, length, kind, tuple(sorted(rng.sample(nodes, size))), {"direction": direction})
    return Fault(at, length, kind, (rng.choice(nodes),))


def _draw(rng: random.Random, kind: str, at: float, length: float, nodes: list[str], attackers: list[str],
          behaviours: list[str]) -> Fault | None:
    if kind == "attack":
        if not attackers:
            return None
        return Fault(at, length, kind, (rng.choice(attackers),), {"behaviour": behaviours.pop()})
    if kind == "kill_most":
        return Fault(at, length, kind, _most(rng, nodes))
    if kind in PROCESS_KINDS or kind == "interface":
        return Fault(at, length, kind, (rng.choice(nodes),))
    if kind == "partition":
        size = rng.randint(1, max(1, (len(nodes) - 1) // 2))
        direction = rng.choice(("in", "out", "both"))
        return Fault(at, length, kind, tuple(sorted(rng.sample(nodes, size))), {"direction": direction})
    caller, called = rng.sample(nodes, 2)
    values: dict[str, float | str] = {}
    if kind == "throttle":
        values["bytes_per_second"] = rng.choice((1, 200, 5000, 50000))
    elif kind == "delay":
        values["milliseconds"] = rng.choice((20, 100, 300, 1000))
    elif kind == "blackhole":
        values["direction"] = rng.choice(("out", "in"))
    elif kind == "corrupt":
        values["every_bytes"] = rng.choice((7, 300, 5000, 40000))
    elif kind == "truncate":
        values["after_bytes"] = rng.choice((0, 10, 150, 9000))
    return Fault(at, length, kind, (caller, called), values)


def _most(rng: random.Random, nodes: list[str]) -> tuple[str, ...]:
    return tuple(sorted(rng.sample(nodes, rng.randint(2, len(nodes) - 1))))


def _nodes_away(fault: Fault) -> set[str]:
    return set(fault.targets) if fault.kind in (*PROCESS_KINDS, "partition", "interface") else set()


def _fits(new: Fault, others: list[Fault], nodes: list[str]) -> bool:
    margin = 0.3  # between two faults of one target
    beside = [one for one in others if one.at < new.end + margin and new.at < one.end + margin]
    for one in beside:
        if new.kind == "attack" or one.kind == "attack":
            if new.kind == one.kind and new.targets == one.targets:
                return False
        elif new.kind in LINK_KINDS and one.kind in LINK_KINDS:
            if "partition" in (new.kind, one.kind):
                return False  # it takes all links of its nodes
            if new.targets == one.targets:
                return False
        elif new.kind not in LINK_KINDS and one.kind not in LINK_KINDS and set(new.targets) & set(one.targets):
            return False
    if any("kill_most" in (new.kind, one.kind) and _nodes_away(new) and _nodes_away(one) for one in beside):
        return False
    if new.kind == "kill_most":
        return True
    away = _nodes_away(new).union(*(_nodes_away(one) for one in beside))
    return len(away) * 2 <= len(nodes) if _nodes_away(new) else True


def to_json(faults: list[Fault]) -> str:
    return "\n".join(json.dumps(asdict(one), sort_keys=True) for one in faults)


def from_json(text: str, slowness: float = 1) -> list[Fault]:
    faults = []
    for line in text.splitlines():
        if line.strip():
            entry = json.loads(line)
            faults.append(Fault(entry["at"] * slowness, entry["seconds"] * slowness, entry["kind"],
                                tuple(entry["targets"]), entry.get("values", {})))
    return faults


def table(faults: list[Fault]) -> str:
    rows = ["    from      to  fault      on"]
    for one in faults:
        values = " ".join(f"{key}={value}" for key, value in one.values.items())
        rows.append(f"{one.at:7.2f}s {one.end:6.2f}s  {one.kind:<10} {' > '.join(one.targets)} {values}".rstrip())
    return "\n".join(rows)
