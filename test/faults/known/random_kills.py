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


def is_settled(nodes: Trainers) -> bool:
    """Those that are up, three or more, are the members of the latest group."""
    up = [name for name in nodes.names if name not in nodes.away()]
    latest = max((nodes.group(name) for name in up), key=lambda group: group[1])
    return latest[0] == sum(nodes.group(name) == latest for name in up) >= 3


def run(build: Path, seed: int) -> bool:
    chance = random.Random(seed)
    options = ["--steps", "100000", "--step-time", "20"]
    with Trainers(build, NODES, "on_lost_rank: shrink, lost_after_ms: 700", options) as nodes:
        nodes.start()
        await_that("a clock of 20", lambda: nodes.clock("w1") > 20)
        for _ in range(EVENTS):
            time.sleep(chance.choice(PAUSES_S))
            name = chance.choice(nodes.names)
            if name in nodes.away():
                nodes.bring_back(name)
            elif len(nodes.away()) < (NODES - 1) // 2 and is_settled(nodes):
                nodes.take_away(name, chance)
            if nodes.ended():
                break
        nodes.bring_back()
        clocks = {name: nodes.clock(name) for name in nodes.names}
        together = not nodes.ended() and await_that(
            "all in one group that makes steps",
            lambda: len({nodes.group(name) for name in nodes.names}) == 1
            and all(nodes.clock(name) > clocks[name] + 5 for name in nodes.names),
        )
        fault = bool(nodes.ended()) or not together
        if fault:
            nodes.report(*nodes.names)
        return fault


if __name__ == "__main__":
    sys.exit(main(__doc__.splitlines()[0], run))
