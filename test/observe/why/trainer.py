"""A program of the campaign: trainer.py FILE NAME CONTROL. Minimises |x - b|²/2 from noisy gradients, under the back end
of the file. CONTROL, a JSON file that may change at any time, says what a step takes and learns."""

from __future__ import annotations

import hashlib
import json
import os
import random
import sys
import threading
import time
from typing import Any

import numpy as np

import dpwa

HASHED = bytes(1 << 15)  # while it hashes more than 2 KiB, Python lets other threads run
HASHED_ASIDE = bytes(1 << 22)
DISK_PIECE = 1 << 23
ARRAY = "x"


def compute(seconds: float) -> None:
    """For so much processor time."""
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        hashlib.sha256(HASHED).digest()


def write_to_disk(path: str, seconds: float) -> None:
    """For so long, past the kernel's memory."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_DIRECT | os.O_DSYNC, 0o600)
    try:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            os.pwrite(descriptor, memoryview(PAGE_ALIGNED), 0)
    finally:
        os.close(descriptor)


def page_aligned(size: int) -> memoryview:
    import mmap

    return memoryview(mmap.mmap(-1, size))


PAGE_ALIGNED = page_aligned(DISK_PIECE)


def compute_aside(control: Control, number: int) -> None:
    """On threads of their own, as those that load data, without pause."""
    while True:
        if number < control.values["threads"]:
            hashlib.sha256(HASHED_ASIDE).digest()
        else:
            time.sleep(0.05)


class Control:
    def __init__(self, path: str) -> None:
        self.path, self.changed, self.values = path, 0, {}

    def read(self) -> dict[str, Any]:
        changed = os.stat(self.path).st_mtime_ns
        if changed != self.changed:
            with open(self.path, encoding="utf-8") as file:
                self.values, self.changed = json.load(file), changed
        return self.values


def main(file: str, name: str, control_path: str) -> None:
    control = Control(control_path)
    now = control.read()
    common = np.random.default_rng(1).normal(0, 1, now["elements"]).astype(np.float32)
    own = np.random.default_rng(int(name[1:])).normal(0, 1, now["elements"]).astype(np.float32)
    noise = np.random.default_rng(100 + int(name[1:]))
    pause = random.Random(name)
    x = np.zeros_like(common)
    node = dpwa.attach_arrays({ARRAY: x}, file, name)
    if now["by_servers"]:
        node.set_optimizer("sgd", learning_rate=now["rate"] / 4)
    for number in range(8):
        threading.Thread(target=compute_aside, args=(control, number), daemon=True).start()
    with node:
        while True:
            now = control.read()
            while now["stall"]:
                time.sleep(0.05)
                now = control.read()
            # The pause comes first, and of a random length, so that nodes that step together do not compute at once.
            time.sleep(now["pause_s"] * pause.uniform(0.6, 1.4))
            compute(now["work_s"])
            if now["disk_s"] > 0:
                write_to_disk(f"{control_path}.disk", now["disk_s"])
            away = x - common - now["shift"] * own
            loss = 1 + float(np.mean(away * away)) / 2
            gradient = away + noise.normal(0, 1, len(x)).astype(np.float32)
            rate = now["rate"]

            def update(mean: Any, rate: float = rate) -> None:
                np.subtract(x, rate * mean[ARRAY], out=x)

            node.step(loss * noise.uniform(0.95, 1.05), gradients={ARRAY: gradient}, update=update)


if __name__ == "__main__":
    threading.current_thread().name = "trainer"
    main(*sys.argv[1:])
