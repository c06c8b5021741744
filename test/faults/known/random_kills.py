#!/usr/bin/env python3
"""Nodes are killed, started again, frozen and woken at random: does another one end, or do they stay apart?

Never so many at a time that the others have no majority. Exit code 1: the fault was seen.
"""

from __future__ import annotations

import random
import sys
import time
from pathlib import Path

from trainers import Trainers, await_that, main

NODES = 5
EVENTS = 14
PAUSES_S = (0.05, 0.1, 0.3, 0.8, 1.5, 2.5)


def is_settled(nodes: Trainers, up: list[str]) -> bool:
    """Those that are up, three or more, are the members of the latest group."""
    latest = max((nodes.group(name) for name in up), key=lambda group: group[1])
    return latest[0] == sum(nodes.group(name) == latest for name in up) >= 3


def run(build: Path, seed: int) -> bool:
    chance = random.Random(seed)
    options = ["--steps", "100000", "--step-time", "20"]
    with Trainers(build, NODES, "on_lost_rank: shrink, lost_after_ms: 700", options) as nodes:
        nodes.start()
        await_that("a clock of 20", lambda: nodes.clock("w1") > 20)
        dead: set[str] = set()
        frozen: set[str] = set()

        def ended() -> list[str]:
            return [name for name in nodes.names if name not in dead and nodes.code(name) is not None]

        for _ in range(EVENTS):
            time.sleep(chance.choice(PAUSES_S))
            name = chance.choice(nodes.names)
            up = [one for one in nodes.names if one not in dead | frozen]
            if name in frozen:
                nodes.thaw(name)
                frozen.discard(name)
            elif name in dead:
                nodes.start(name)
                dead.discard(name)
            elif len(dead | frozen) < (NODES - 1) // 2 and is_settled(nodes, up):
                if chance.random() < 0.6:
                    nodes.kill(name)
                    dead.add(name)
                else:
                    nodes.freeze(name)
                    frozen.add(name)
            if ended():
                break
        for name in frozen:
            nodes.thaw(name)
        for name in sorted(dead):
            nodes.start(name)
        dead.clear()
        clocks = {name: nodes.clock(name) for name in nodes.names}
        together = not ended() and await_that(
            "all in one group that makes steps",
            lambda: len({nodes.group(name) for name in nodes.names}) == 1
            and all(nodes.clock(name) > clocks[name] + 5 for name in nodes.names),
        )
        if ended() or not together:
            nodes.report(*nodes.names)
        return bool(ended()) or not together


if __name__ == "__main__":
    sys.exit(main(__doc__.splitlines()[0], run))
