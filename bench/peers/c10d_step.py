#!/usr/bin/env python3
"""One rank of a training step without a model: c10d's Gloo all-reduce of a gradient, then SGD with momentum.

usage: c10d_step.py < COMMANDS

For comparison with a step of backend kvstore whose servers run the optimizer. The rank is told what to do, and answers,
as scripts/lib/bench_step_peers.py says: a job, then commands, one JSON document a line, until the input ends.
"""

from __future__ import annotations

import os
import sys
import time
from typing import Any

import torch
import torch.distributed as dist
from serving import processor_seconds, serve


class Rank:
    def __init__(self, job: dict[str, Any]) -> None:
        torch.set_num_threads(1)
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
        dist.init_process_group("gloo", init_method=f"file://{job['store']}", rank=job["rank"], world_size=job["ranks"])
        self.ranks = job["ranks"]
        elements = job["bytes"] // 4
        self.parameter = torch.nn.Parameter(torch.full((elements,), 0.1))
        self.gradient = torch.empty(elements)
        self.optimizer = torch.optim.SGD([self.parameter], lr=1e-6, momentum=0.9, foreach=False)
        self.parameter.grad = self.gradient

    def step(self) -> None:
        dist.all_reduce(self.gradient)
        self.gradient.div_(self.ranks)
        self.optimizer.step()

    def ready(self) -> dict[str, Any]:
        return {"name": f"c10d Gloo, torch {torch.__version__.partition('+')[0]}"}

    def answer(self, command: dict[str, Any]) -> dict[str, Any]:
        times = []
        for index in range(command["count"] + 1):  # the first brings the ranks together
            self.gradient.fill_(0.01)  # as a backward pass leaves it; not timed
            began = time.perf_counter_ns()
            self.step()
            if index > 0:
                times.append(time.perf_counter_ns() - began)
        return {"times_ns": times, "cpu_s": processor_seconds()}


if __name__ == "__main__":
    sys.exit(serve(Rank, "c10d Gloo"))
