#!/usr/bin/env python3
"""One process of kills.py: trains a vector of numbers through the Python package, without torch.

usage: kill_trainer.py BACKEND FILE NAME STEPS STEP_MS      (DPWA_PYTHON_PACKAGE: the folder of the package)

Prints a line of JSON for each step, {"at", "step", "crc"} with `at` of the monotonic clock, and one at the end. Of a
parameter server each push adds 1 to the value, so that the value tells how many pushes have counted.
"""

from __future__ import annotations

import json
import os
import sys
import time
import zlib
from typing import Any

sys.path.insert(0, os.environ["DPWA_PYTHON_PACKAGE"])

import dpwa  # noqa: E402
import numpy as np  # noqa: E402

SIZE = 2048


def tell(**fields: Any) -> None:
    print(json.dumps({"at": time.monotonic(), **fields}), flush=True)


def crc_of(values: np.ndarray[Any, Any]) -> int:
    return zlib.crc32(values.tobytes())


def train(file: str, name: str, steps: int, seconds: float) -> None:
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    w = np.zeros(SIZE, np.float32)
    node = dpwa.attach_arrays({"w": w}, file, name)

    def apply(gradients: Any) -> None:
        w[...] -= np.float32(0.05) * gradients["w"]

    with node:
        tell(started=True)
        while True:
            began = time.monotonic()
            gradient = (w - 1 + rng.normal(0, 0.1, SIZE)).astype(np.float32)
            report = node.step(float(np.square(w - 1).mean()), gradients={"w": gradient}, update=apply)
            tell(step=round(report.clock), outcome=report.outcome, participants=report.participants, crc=crc_of(w))
            if report.clock >= steps:
                break
            time.sleep(max(0.0, seconds - (time.monotonic() - began)))
        finished = node.finish()
    tell(finished=True, averaged=finished.averaged, participants=finished.participants, crc=crc_of(w))


def push(file: str, name: str, steps: int, seconds: float) -> None:
    ones, value = np.full(SIZE, -1, np.float32), np.zeros(SIZE, np.float32)
    with dpwa.KVStore(file, name) as store:
        store.set_optimizer("sgd", learning_rate=1.0)
        store.init("w", value)
        tell(started=True)
        pushed, updates, ends = 0, 0, time.monotonic() + steps * seconds
        # Where all push together they end with the same update.
        while updates < steps if store.type == "dist_sync" else time.monotonic() < ends:
            began = time.monotonic()
            tell(begins=pushed + 1)
            store.push_async("w", ones).wait()
            pushed += 1
            (updates,) = store.pull("w", value)
            tell(step=pushed, dropped=store.dropped_pushes(), value=float(value[0]), crc=crc_of(value))
            time.sleep(max(0.0, seconds - (time.monotonic() - began)))
        store.pull("w", value)
        tell(finished=True, dropped=store.dropped_pushes(), value=float(value[0]), even=bool((value == value[0]).all()))


if __name__ == "__main__":
    (push if sys.argv[1] == "kvstore" else train)(sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5]) / 1000)
