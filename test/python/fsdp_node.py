"""One process of a group that shards a model by FSDP2, and exchanges its shards with the same rank of the other group."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

from nodes import PACKAGE  # noqa: F401  its path

import dpwa
import torch
from torch import nn
from torch.distributed.fsdp import fully_shard


def train(file: str, name: str, group: int) -> None:
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo")
    rank = torch.distributed.get_rank()
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 7), nn.ReLU(), nn.Linear(7, 1))  # 7: of unequal shards
    for layer in (model[0], model[2], model):
        fully_shard(layer, mesh=torch.distributed.device_mesh.init_device_mesh("cpu", (2,)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    generator = torch.Generator().manual_seed(10 * group + rank)
    node = dpwa.attach(model, file, name)

    def step() -> Any:
        x = torch.randn(16, 6, generator=generator)
        loss = nn.functional.mse_loss(model(x), x[:, :1])
        optimizer.zero_grad()
        loss.backward()
        return node.step(optimizer, loss), float(loss.detach())

    def all_have(condition: bool) -> bool:
        votes = torch.tensor([int(condition)])
        torch.distributed.all_reduce(votes, op=torch.distributed.ReduceOp.MIN)
        return bool(votes.item())

    blended = Path(file).parent.parent / "blended"
    blends, alone, losses = 0, 0, []
    with node:
        while not all_have(blends > 3 and (group == 0 or blended.exists())):
            report, _ = step()
            if report.outcome == "mixed":
                assert report.distance >= 0
                blends += 1
        blended.touch()  # by group 0 first, which will have nobody to blend with
        if (group, rank) == (1, 1):
            os.kill(os.getpid(), signal.SIGKILL)
        while group == 1:
            step()  # until the other rank is missed
        while not all_have(alone > 50 and len(losses) >= 100):
            report, loss = step()
            alone = 0 if report.outcome == "mixed" else alone + 1  # once the peer counts as dead, nobody is asked
            losses.append(loss)
    early, late = sum(losses[:20]), sum(losses[-20:])
    print("blended; went on alone;", "learnt" if late < 20 * 0.2 else f"{early} to {late}", flush=True)
    torch.distributed.destroy_process_group()
