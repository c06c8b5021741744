#!/usr/bin/env python3
"""Processes of torchrun and of mpirun that a second start joins, and that leave one by one.

usage: growth_test.py DPWA_TRAIN [TORCHRUN]

Prints a line that ctest takes for a skipped test where neither launcher is installed.
"""

from __future__ import annotations

import os
import shutil
import sys
import unittest

from growth import Growth

TRAIN = ""
TORCHRUN: str | None = None
MPIRUN = shutil.which("mpirun")


class Launched(unittest.TestCase):
    @unittest.skipUnless(shutil.which("mpirun"), "mpirun is not installed")
    def test_mpirun(self) -> None:
        def command(count: int) -> list[str]:
            return ["mpirun", "--oversubscribe", "--allow-run-as-root", "--bind-to", "none", "-np", str(count)]
        Growth(TRAIN, command, dict(os.environ)).run()

    def test_torchrun(self) -> None:
        if TORCHRUN is None:
            self.skipTest("torchrun is not installed")

        def command(count: int) -> list[str]:
            return [TORCHRUN, "--no-python", "--rdzv-backend=c10d", "--rdzv-endpoint=localhost:0", "--nnodes=1",
                    f"--nproc-per-node={count}"]
        Growth(TRAIN, command, dict(os.environ)).run()


if __name__ == "__main__":
    TRAIN, *given = sys.argv[1:]
    TORCHRUN = shutil.which(given[0]) if given else shutil.which("torchrun")
    if TORCHRUN is None and MPIRUN is None:
        print("SKIPPED: neither torchrun nor mpirun is installed")
        sys.exit(0)
    unittest.main(argv=sys.argv[:1], verbosity=2)
