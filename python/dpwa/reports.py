"""What a step and the end of a run report."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class StepReport:
    """The result of one step. A peer that was missed is a normal outcome, never an exception.

    outcome: skipped, pending, mixed, timed_out, unreachable, busy, not_ready, stale or rejected (docs/ADAPTER.md);
    averaged: of gradients, over `participants` nodes; updated: by servers; dropped: the others had gone on. made: False where the node was told to stop before the step of
    the optimizer. factor: of the blend, 0 unless mixed. staleness: own clock - the peer's. distance: L2, to the peer,
    before the blend. waited: seconds for the network. bytes: received; of averaged gradients: their size. sent: to
    servers. pulls_ok, pulls_failed: since start().
    """

    outcome: str
    made: bool
    peer: str
    factor: float
    staleness: float
    distance: float
    clipped: bool
    refused: int
    bytes: int
    waited: float
    clock: float
    participants: int
    block: int
    blocks: int
    same_host: bool
    pulls_ok: int
    pulls_failed: int
    skipped_steps: int = 0
    sent: int = 0


@dataclass(frozen=True)
class FinishReport:
    """averaged: a global average was taken, of `participants` models. distance_to_average: L2, of this node's model
    before it; NaN: not known. enough: no fewer took part than gossip.min_nodes asks for. lost_final_model: the servers
    did not give the model of all workers."""

    averaged: bool
    participants: int
    distance_to_average: float
    enough: bool
    lost_final_model: bool = False
