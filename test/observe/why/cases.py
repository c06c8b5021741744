"""What goes wrong in a case of the campaign: clusters and faults that follow from a seed. Pure."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

ABSENT = {"gone", "cut off", "frozen"}  # the cluster is not used again after them
PROCESSORS = {"too many nodes", "other programs", "limited processors", "slow processor"}
LEARNING = {"other step size", "skewed data"}
LINKS = {"lossy link", "slow link", "one-way link"}
CAUSES = ABSENT | PROCESSORS | LEARNING | LINKS | {"stalled", "stolen processor time", "slow program", "disk"}


@dataclass(frozen=True)
class Fault:
    cause: str
    at: tuple[str, ...]  # a process; a host has one, so has all of its hosts' processes; or both ends of a link
    values: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.cause} at {' - '.join(self.at)} {self.values or ''}".strip()


@dataclass(frozen=True)
class Cluster:
    seed: int
    backend: str  # "gossip", "collective", or a type of kvstore
    one_host: bool  # all processes on one with two processors; else each on its own, with one
    workers: int
    elements: int
    work_s: float  # of a step
    pause_s: float
    cases: tuple[tuple[Fault, ...], ...]

    @property
    def nodes(self) -> list[str]:
        return [f"w{i + 1}" for i in range(self.workers)]

    @property
    def servers(self) -> list[str]:
        return ["s1"] if self.backend.startswith("dist_") else []

    @property
    def together(self) -> bool:
        """Whether all wait for the slowest."""
        return self.backend in ("collective", "dist_sync")

    def __str__(self) -> str:
        where = "one host" if self.one_host else "a host each"
        return f"{self.backend}, {self.workers} nodes on {where}, {1e3 * (self.work_s + self.pause_s):.0f} ms a step"


def make_cluster(seed: int, cases: int) -> Cluster:
    rng = random.Random(seed)
    backend = rng.choice(["gossip"] * 4 + ["collective"] * 2 + ["dist_sync"] * 2 + ["dist_async"])
    one_host = rng.random() < 0.25
    workers = rng.randint(3, 4) if backend != "gossip" else rng.randint(3, 5)
    plain = Cluster(seed, backend, one_host, workers, rng.choice((2000, 5000, 12000)), rng.uniform(3e-3, 6e-3),
                    rng.uniform(30e-3, 60e-3), ())
    made = sorted((make_case(rng, plain) for _ in range(cases)), key=lambda faults: any(f.cause in ABSENT for f in faults))
    while sum(any(f.cause in ABSENT for f in faults) for faults in made) > 1:  # only the last case may end a process
        made[-2] = make_case(rng, plain)
        made.sort(key=lambda faults: any(f.cause in ABSENT for f in faults))
    return Cluster(**{**plain.__dict__, "cases": tuple(made)})


def causes_for(cluster: Cluster) -> list[str]:
    causes = CAUSES - (LINKS | {"cut off", "stolen processor time"} if cluster.one_host else set())
    if cluster.backend != "gossip":
        causes -= {"one-way link", "other step size"}
    if cluster.together:
        causes -= {"stalled"}
    if cluster.one_host and cluster.servers:
        causes -= {"too many nodes"}
    return sorted(causes)


def make_case(rng: random.Random, cluster: Cluster) -> tuple[Fault, ...]:
    """One thing that is wrong, or two at places that have nothing to do with one another."""
    faults: list[Fault] = []
    wanted = 2 if rng.random() < 0.3 else 1
    for _ in range(50):
        if len(faults) == wanted:
            break
        fault = make_fault(rng, cluster)
        if fault is not None and all(go_together(fault, other, cluster) for other in faults):
            faults.append(fault)
    return tuple(faults)


def go_together(one: Fault, other: Fault, cluster: Cluster) -> bool:
    if set(one.at) & set(other.at) or one.cause == other.cause:
        return False
    for kind in (ABSENT, PROCESSORS, LEARNING):
        if one.cause in kind and other.cause in kind:
            return False
    if ABSENT & {one.cause, other.cause} and LEARNING & {one.cause, other.cause} and cluster.workers < 4:
        return False  # two are left, both midway between what they learn from: their losses are equal
    if any(fault.cause in ABSENT and set(fault.at) & set(cluster.servers) for fault in (one, other)):
        return False  # no worker steps
    if cluster.together and ABSENT & {one.cause, other.cause}:
        return False  # all wait for it, and show nothing else
    if cluster.one_host and PROCESSORS & {one.cause, other.cause} and {"disk"} & {one.cause, other.cause}:
        return False
    return True


def make_fault(rng: random.Random, cluster: Cluster) -> Fault | None:
    cause = rng.choice(causes_for(cluster))
    node = rng.choice(cluster.nodes)
    own_host = (node,) if not cluster.one_host else tuple(cluster.nodes)
    if cause in ("gone", "cut off", "frozen"):
        return Fault(cause, (rng.choice([node, *cluster.servers]) if cause == "frozen" else node,))
    if cause == "stolen processor time":
        return Fault(cause, (node,), {"share": rng.uniform(0.15, 0.6)})
    if cause == "too many nodes":
        return Fault(cause, own_host, {"threads": rng.randint(5, 8) if not cluster.one_host else 3})
    if cause == "other programs":
        return Fault(cause, own_host, {"programs": rng.randint(5, 8) * (2 if cluster.one_host else 1),
                                       "shares": 8192})  # fmt: skip
    if cause == "limited processors":
        pins = cluster.one_host
        return Fault(cause, own_host if pins else (node,), {"pins": pins, "share": rng.uniform(0.25, 0.5)})
    if cause == "slow processor":
        return Fault(cause, (node,), {"times": rng.uniform(2, 4)})
    if cause == "slow program":
        return Fault(cause, (node,), {"times": rng.uniform(2, 5)})
    if cause == "disk":
        return Fault(cause, (node,), {"times": rng.uniform(1, 3)})
    if cause in LINKS:
        if cluster.servers:
            pair = (node, "s1")
        else:
            pair = tuple(rng.sample(cluster.nodes, 2))
            at = sorted(cluster.nodes.index(one) for one in pair)
            if cluster.backend == "collective" and at[1] - at[0] not in (1, cluster.workers - 1):
                return None  # no neighbours of the ring
        return Fault(cause, pair, {"lossy link": {"loss": rng.uniform(0.03, 0.12)},
                                   "slow link": {"delay_s": rng.uniform(0.01, 0.04)}}.get(cause, {}))  # fmt: skip
    if cause == "other step size":
        return Fault(cause, (node,), {"rate": rng.uniform(1.75, 1.9)})
    if cause == "skewed data":
        return Fault(cause, (node,), {"shift": rng.uniform(3, 6)})
    return Fault(cause, (node,))


def is_right(faults: tuple[Fault, ...], findings: list[dict[str, Any]]) -> bool:
    """Every fault is named at its place, and no cause that is not there, or elsewhere."""

    def names(finding: dict[str, Any], fault: Fault) -> bool:
        words = set(finding["where"].replace(",", " ").split())
        return finding["cause"] == fault.cause and bool(words & set(fault.at))

    # That honest nodes are clipped has no other cause here than that one of them is far away.
    def follows(finding: dict[str, Any], fault: Fault) -> bool:
        return finding["cause"] == "clipped peers" and fault.cause in LEARNING

    return (all(any(names(finding, fault) for finding in findings) for fault in faults)
            and all(any(names(finding, fault) or follows(finding, fault) for fault in faults) for finding in findings))
