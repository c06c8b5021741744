#!/usr/bin/env python3
"""Three nodes, shrink, minority: gossip: do two groups of one node each continue at once, for good?

w1 is killed and w3 frozen; w2 is alone; w1 comes back; w2 is killed; w3 wakes. Exit code 1: the fault was seen.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from trainers import Trainers, await_that, main


def run(build: Path, _seed: int) -> bool:
    policy = "on_lost_rank: shrink, minority: gossip, lost_after_ms: 700"
    with Trainers(build, 3, policy, ["--steps", "100000", "--step-time", "20"]) as nodes:
        nodes.start()
        await_that("a clock of 30", lambda: nodes.clock("w2") > 30)
        nodes.freeze("w3")
        nodes.kill("w1")
        await_that("w2 alone, in a group of its own or by gossip",
                   lambda: nodes.group("w2")[0] == 1 or "continues by gossip" in nodes.text("w2"))
        nodes.report("w2")
        nodes.start("w1")
        await_that("w1 in a group with w2", lambda: nodes.group("w1")[0] == 2, 15)
        nodes.kill("w2")
        await_that("w1 alone", lambda: nodes.group("w1")[0] == 1, 15)
        nodes.thaw("w3")
        time.sleep(20)
        nodes.report("w1", "w3")
        alone = [name for name in ("w1", "w3")
                 if nodes.code(name) is None and nodes.group(name)[0] == 1 and not nodes.status(name).get("apart")]
        return len(alone) == 2


if __name__ == "__main__":
    sys.exit(main(__doc__.splitlines()[0], run))
