#!/usr/bin/env python3
"""Workers and servers of a store are killed, started again, frozen and woken at random: does another one end or stand?

One server of two at a time, and never before it was filled again. Exit code 1: the fault was seen.
"""

from __future__ import annotations

import os
import random
import re
import subprocess
import sys
import time
from pathlib import Path

from trainers import Trainers, await_that, free_ports, main

SERVERS, WORKERS, STEPS = ["s1", "s2"], ["w1", "w2", "w3", "w4"], 1000
PAUSES_S = (0.05, 0.1, 0.3, 0.8, 1.5)


class Store(Trainers):
    """Trainers without torch, which end with the weights of the same step, and their servers."""

    def __init__(self, build: Path) -> None:
        super().__init__(build, 0, "", [])
        self.names = SERVERS + WORKERS
        self.ports = dict(zip(self.names, free_ports(len(self.names))))
        entries = [f"{{name: {name}, host: 127.0.0.1, port: {self.ports[name]}}}" for name in self.names]
        text = f"nodes: [{', '.join(entries[len(SERVERS):])}]\nbackend: kvstore\ngossip: {{start_wait_ms: 20000}}\n"
        text += "kvstore: {type: dist_sync, replicas: 1, lost_after_ms: 600, start_wait_ms: 60000, "
        text += f"servers: [{', '.join(entries[: len(SERVERS)])}]}}\n"
        (self.folder / "cluster.yaml").write_text(text, encoding="utf-8")

    def start(self, *names: str) -> None:
        for name in names or self.names:
            self.begin_life(name)
            file = str(self.folder / "cluster.yaml")
            command = [str(self.build / "bin/dpwa"), "kvserver", "--config", file, "--name", name]
            if name in WORKERS:
                command = [str(self.build / "test/process/dpwa_store_trainer"), file, name, str(STEPS), "adam", "10",
                           str(self.output(name))]  # fmt: skip
            with self.log(name).open("wb") as log:
                self.processes[name] = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                                        env={**os.environ, "OMP_NUM_THREADS": "1"})  # fmt: skip

    def output(self, name: str) -> Path:
        return self.folder / f"{name}.steps"

    def step(self, name: str) -> int:
        text = self.output(name).read_text(encoding="utf-8") if self.output(name).exists() else ""
        return int((re.findall(r"^step (\d+)$", text, re.MULTILINE) or ["0"])[-1])

    def filled(self) -> bool:
        """Each server says that both are up, and that each slice has its replica."""
        table = subprocess.run([self.build / "bin/dpwa", "status", "--json", self.folder / "cluster.yaml"],
                               capture_output=True, text=True, check=False).stdout  # fmt: skip
        return table.count('"state": "up"') == len(SERVERS) and table.count('"without_replica": 0') == len(SERVERS)


def run(build: Path, seed: int) -> bool:
    chance = random.Random(seed)
    with Store(build) as store:
        store.start()
        await_that("a step of 20", lambda: store.step("w1") > 20)
        while max(map(store.step, WORKERS)) < STEPS // 2 and not store.ended(0):
            time.sleep(chance.choice(PAUSES_S))
            name = chance.choice(store.names)
            if name in store.away():
                store.bring_back(name)
            elif store.away() & set(SERVERS):
                continue
            elif name in SERVERS and (len(store.away()) > 1 or not store.filled()):
                continue
            elif len(store.away()) < len(WORKERS) // 2:
                store.take_away(name, chance)
        store.bring_back()
        done = not store.ended(0) and await_that(
            f"all workers at step {STEPS}", lambda: store.ended(0) or all(store.code(name) == 0 for name in WORKERS)
        )
        good = done and not store.ended(0)
        models = {Path(f"{store.output(name)}.weights").read_bytes() for name in WORKERS} if good else set()
        if len(models) != 1:
            print(f"  {len(models)} different models")
            for name in store.names:
                print(f"  {name}: exit code {store.code(name)}, step {store.step(name)}, {store.last_line(name)}")
        return len(models) != 1


if __name__ == "__main__":
    sys.exit(main(__doc__.splitlines()[0], run))
