#!/usr/bin/env python3
"""What node.step adds to a training step in Python: the trainer of dpwa-measure-step, with the Python package.

usage: python_trainer.py < COMMANDS

Job: {"name": NODE, "config": FILE, "tensors": [[name, elements], ...], "threads": of torch, "compute_ns"}
  -> {"do": "steps", "seconds" or "count"}
  <- {"steps": [[[send_ns, wait_ns, whether a pull was blended in, ns of waiting for the network, 0, 0], ...]]}
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path += [str(ROOT / "bench/peers"), str(ROOT / "build/release/python")]

import dpwa
import torch
from serving import serve


class Trainer:
    def __init__(self, job: dict[str, Any]) -> None:
        torch.set_num_threads(job["threads"])
        model = torch.nn.Module()
        for name, elements in job["tensors"]:
            model.register_parameter(name, torch.nn.Parameter(torch.full((elements,), 0.1)))
        self.compute_ns = job["compute_ns"]
        self.loss = torch.ones(())
        self.node = dpwa.attach(model, job["config"], job["name"], threads=job["threads"])
        self.node.start()

    def ready(self) -> dict[str, Any]:
        return {"name": f"Python {sys.version.split()[0]}, torch {torch.__version__.partition('+')[0]}"}

    def step(self) -> list[int]:
        until = time.perf_counter_ns() + self.compute_ns
        while time.perf_counter_ns() < until: ...
        begun = time.perf_counter_ns()
        self.node.update_send(self.loss)
        sent = time.perf_counter_ns()
        # The optimizer's step is the caller's and would be here.
        waits = time.perf_counter_ns()
        report = self.node.update_wait(self.loss)
        done = time.perf_counter_ns()
        return [sent - begun, done - waits, int(report.outcome == "mixed"), round(1e9 * report.waited), 0, 0]

    def answer(self, command: dict[str, Any]) -> dict[str, Any]:
        until = time.monotonic() + command.get("seconds", 0)
        steps: list[list[int]] = []
        while len(steps) < command.get("count", 1) or time.monotonic() < until:
            steps.append(self.step())
        return {"steps": [steps], "hand": []}


if __name__ == "__main__":
    sys.exit(serve(Trainer, "the trainer in Python"))
