#!/usr/bin/env python3
"""One node that trains with DistributedDataParallel or torchft over Gloo on loopback, for longest_gap.py.

usage: peer_trainer.py KIND RANK SIZE FOLDER STEP_MS SECONDS [LIGHTHOUSE]

KIND: ddp or torchft. FOLDER: shared by all nodes. A perceptron as dpwa-train's mlp, steps padded to STEP_MS, for
SECONDS. Prints one line {"at", "step"} for every step that changed the weights, `at` of the monotonic clock.
"""

from __future__ import annotations

import datetime
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional

BATCH, PIXELS, HIDDEN, CLASSES = 32, 784, 128, 10

Train = Callable[[], bool]  # a step; whether it changed the weights


def model() -> nn.Module:
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(PIXELS, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, CLASSES))


def batch() -> tuple[torch.Tensor, torch.Tensor]:
    return torch.randn(BATCH, PIXELS), torch.randint(0, CLASSES, (BATCH,))


def by_ddp(rank: int, size: int, folder: str) -> Train:
    store = f"file://{folder}/store"
    torch.distributed.init_process_group("gloo", init_method=store, rank=rank, world_size=size)
    network = nn.parallel.DistributedDataParallel(model())
    optimizer = torch.optim.SGD(network.parameters(), 0.01)

    def step() -> bool:
        optimizer.zero_grad()
        x, y = batch()
        functional.cross_entropy(network(x), y).backward()
        optimizer.step()
        return True

    return step


def by_torchft(rank: int, size: int, lighthouse: str) -> Train:
    from torchft import Manager, Optimizer, ProcessGroupGloo

    network = model()
    inner = torch.optim.SGD(network.parameters(), 0.01)

    def load(state: dict) -> None:
        network.load_state_dict(state["model"])
        inner.load_state_dict(state["optimizer"])

    store = torch.distributed.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    patience = datetime.timedelta(seconds=10)
    manager = Manager(
        pg=ProcessGroupGloo(timeout=datetime.timedelta(seconds=5)),
        load_state_dict=load,
        state_dict=lambda: {"model": network.state_dict(), "optimizer": inner.state_dict()},
        min_replica_size=max(1, size // 2),
        timeout=patience,
        quorum_timeout=patience,
        rank=0,
        world_size=1,
        store_addr="127.0.0.1",
        store_port=store.port,
        lighthouse_addr=lighthouse,
        replica_id=f"node{rank}_",
        hostname="127.0.0.1",
    )
    optimizer = Optimizer(manager, inner)
    parameters = list(network.parameters())

    def step() -> bool:
        before = manager.current_step()
        optimizer.zero_grad()
        x, y = batch()
        functional.cross_entropy(network(x), y).backward()
        # Not by its DistributedDataParallel, whose hook ends some survivors with an AssertionError.
        flat = torch.cat([one.grad.flatten() for one in parameters])
        manager.allreduce(flat).wait()
        for one, mean in zip(parameters, flat.split([one.numel() for one in parameters]), strict=True):
            one.grad.copy_(mean.view_as(one))
        optimizer.step()
        return manager.current_step() > before

    step.keep = (store, manager)  # both end with the process
    return step


def wait_for_all(rank: int, size: int, folder: str) -> None:
    """Until all have imported their packages: where processes share cores, that takes longer than a quorum waits."""
    (Path(folder) / f"imported{rank}").touch()
    limit = time.monotonic() + 80
    while len(list(Path(folder).glob("imported*"))) < size and time.monotonic() < limit:
        time.sleep(0.02)


def main() -> int:
    kind, rank, size, folder = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    pad, seconds = float(sys.argv[5]) / 1000, float(sys.argv[6])
    torch.set_num_threads(1)
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    if kind == "torchft":
        import torchft  # noqa: F401
    wait_for_all(rank, size, folder)
    step = by_ddp(rank, size, folder) if kind == "ddp" else by_torchft(rank, size, sys.argv[7])
    end, number = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        began = time.monotonic()
        changed = step()
        time.sleep(max(0.0, began + pad - time.monotonic()))
        if changed:
            number += 1
            print(json.dumps({"at": time.monotonic(), "step": number}), flush=True)
    os._exit(0)  # threads of the engine may still wait for nodes that have gone


if __name__ == "__main__":
    sys.exit(main())
