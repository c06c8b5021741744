#!/usr/bin/env python3
"""One rank of a training step without a model: c10d's Gloo all-reduce of a gradient, then SGD with momentum.

usage: c10d_step.py < COMMANDS

For comparison with a step of backend kvstore whose servers run the optimizer. The rank is told what to do, and answers,
as bench/kvstore/store_peers.h says: a job, then commands, one JSON document a line, until the input ends.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from typing import Any

import torch
import torch.distributed as dist


def processor_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


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

    def answer(self, command: dict[str, Any]) -> dict[str, Any]:
        times = []
        for index in range(command["count"] + 1):  # the first brings the ranks together
            self.gradient.fill_(0.01)  # as a backward pass leaves it; not timed
            began = time.perf_counter()
            self.step()
            if index > 0:
                times.append(1e6 * (time.perf_counter() - began))
        return {"times_us": times, "cpu_s": processor_seconds()}


def send(document: dict[str, Any]) -> None:
    print(json.dumps(document), flush=True)


def main() -> int:
    rank: Rank | None = None
    try:
        for line in sys.stdin:
            document = json.loads(line)
            if rank is None:
                rank = Rank(document)
                send({"ready": True, "name": f"c10d Gloo, torch {torch.__version__.partition('+')[0]}"})
            else:
                send(rank.answer(document))
    except Exception as error:  # whatever it is, the one that measures is to hear it
        send({"error": f"c10d Gloo: {error}"})
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
