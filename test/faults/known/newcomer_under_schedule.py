#!/usr/bin/env python3
"""Four nodes, shrink, a learning-rate schedule: does a newcomer end itself when a member dies meanwhile?

w4 is killed and started again; w3 is killed when w4's new group has formed and w4 has not entered it. Exit code 1: w4
ended.
"""

from __future__ import annotations

import sys
from pathlib import Path

from trainers import Trainers, await_that, main


def run(build: Path, _seed: int) -> bool:
    options = ["--steps", "400", "--step-time", "300", "--schedule", "taper"]
    with Trainers(build, 4, "on_lost_rank: shrink", options) as nodes:
        nodes.start()
        await_that("a clock of 10", lambda: nodes.clock("w1") > 10)
        nodes.kill("w4")
        await_that("a group of three", lambda: nodes.group("w1")[0] == 3)
        nodes.start("w4")
        await_that("a group of w4 that has formed", lambda: nodes.status("w4").get("epoch", 0) > 0)
        entered = nodes.group("w4")[0] > 0
        nodes.kill("w3")
        print(f"  w4 had {'entered' if entered else 'not entered'} its group when w3 was killed")
        until = nodes.clock("w1") + 8
        await_that("eight more steps of w4, or its end",
                   lambda: nodes.code("w4") is not None or nodes.clock("w4") > until, 30)
        nodes.report("w1", "w2", "w4")
        return nodes.code("w4") is not None


if __name__ == "__main__":
    sys.exit(main(__doc__.splitlines()[0], run))
