#!/usr/bin/env python3
"""Four nodes, shrink, one at most is dead at any moment: does one end, though it belongs to the majority?

A random node is killed, and started again after a random time, again and again. Exit code 1: another node ended.
"""

from __future__ import annotations

import random
import sys
import time
from pathlib import Path

from trainers import Trainers, await_that, main


def run(build: Path, seed: int) -> bool:
    chance = random.Random(seed)
    options = ["--steps", "100000", "--step-time", "20", "--schedule", "constant"]
    with Trainers(build, 4, "on_lost_rank: shrink", options) as nodes:
        nodes.start()
        await_that("a group of four", lambda: all(nodes.group(name)[0] == 4 for name in nodes.names))
        for _ in range(8):
            victim = chance.choice(nodes.names)
            time.sleep(chance.random() * 0.5)
            nodes.kill(victim)
            time.sleep(chance.random())
            nodes.start(victim)
            # Not until it trains: it may be killed again while it comes back.
            time.sleep(chance.random() * 2)
            if ended := nodes.ended():
                nodes.report(*ended)
                return True
        return False


if __name__ == "__main__":
    sys.exit(main(__doc__.splitlines()[0], run))
