#!/usr/bin/env python3
"""One node that trains by DistributedDataParallel, for comparison with the back ends: over Gloo, or over NCCL when it
is alone on a GPU.

usage: ddp_step.py < COMMANDS

The node is told what to do, and answers, as TrainingNode (bench/train/training_node.h): a job, then commands, one JSON
document a line, until the input ends. The same models, weights and data by the same seed.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from typing import Any

import torch
import torch.distributed as dist
from serving import processor_seconds, serve
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel

CLASSES, PIXELS, HIDDEN, WIDE = 10, 784, 1072, 4096
LEARNING_RATE = 0.001


def mlp() -> nn.Module:
    layers = (nn.Linear(PIXELS, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, CLASSES))
    return nn.Sequential(*layers)


def cnn() -> nn.Module:
    layers: list[nn.Module] = []
    for before, after in ((1, 16), (16, 32)):
        layers += [convolution(before, after, 3, 1), nn.BatchNorm2d(after), nn.ReLU(), nn.MaxPool2d(2)]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(32 * 7 * 7, 64), nn.ReLU(), nn.Linear(64, CLASSES))


def wide() -> nn.Module:
    layers = [layer for _ in range(4) for layer in (nn.Linear(WIDE, WIDE), nn.ReLU())]
    return nn.Sequential(*layers, nn.Linear(WIDE, CLASSES))


def convolution(before: int, after: int, kernel: int, stride: int) -> nn.Conv2d:
    return nn.Conv2d(before, after, kernel, stride, kernel // 2, bias=False)


class Block(nn.Module):
    def __init__(self, before: int, after: int, stride: int) -> None:
        super().__init__()
        self.conv1, self.bn1 = convolution(before, after, 3, stride), nn.BatchNorm2d(after)
        self.conv2, self.bn2 = convolution(after, after, 3, 1), nn.BatchNorm2d(after)
        self.short: nn.Module | None = None
        if stride != 1 or before != after:
            self.short = nn.Sequential(convolution(before, after, 1, stride), nn.BatchNorm2d(after))

    def forward(self, x: Tensor) -> Tensor:
        inner = self.bn2(self.conv2(functional.relu(self.bn1(self.conv1(x)))))
        return functional.relu(inner + (self.short(x) if self.short is not None else x))


class ResNet18(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem, self.stem_bn = convolution(3, 64, 3, 1), nn.BatchNorm2d(64)
        blocks, width = [], 64
        for after in (64, 128, 256, 512):
            for stride in (1 if after == 64 else 2, 1):
                blocks.append(Block(width, after, stride))
                width = after
        self.blocks = nn.Sequential(*blocks)
        self.scores = nn.Linear(width, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        x = self.blocks(functional.relu(self.stem_bn(self.stem(x))))
        return self.scores(x.mean((2, 3)))


MODELS = {
    **{"cnn": (cnn, (1, 28, 28)), "mlp": (mlp, (PIXELS,))},
    **{"wide": (wide, (WIDE,)), "resnet18": (ResNet18, (3, 32, 32))},
}


class Node:
    def __init__(self, job: dict[str, Any]) -> None:
        self.job = job
        self.device = torch.device(job.get("device", "cpu"))
        torch.set_num_threads(job["threads"])
        torch.manual_seed(job["seed"])
        model = MODELS[job["model"]][0]().to(self.device)
        self.parameters = sum(one.numel() for one in model.parameters())
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
        place = {"rank": job["rank"], "world_size": job["nodes"]}
        self.engine = "nccl" if self.device.type == "cuda" and job["nodes"] == 1 else "gloo"
        dist.init_process_group(self.engine, init_method=f"file://{job['store']}", **place)
        self.model = DistributedDataParallel(model)
        self.optimizer = torch.optim.SGD(model.parameters(), LEARNING_RATE)
        self.set_batch(job["batch"])

    def set_batch(self, samples: int) -> None:
        torch.manual_seed(self.job["seed"] + 1 + self.job["rank"])
        self.input = torch.randn((samples, *MODELS[self.job["model"]][1])).to(self.device)
        self.labels = torch.randint(0, CLASSES, (samples,)).to(self.device)

    def step(self, communicate: bool) -> Tensor:
        self.optimizer.zero_grad()
        with contextlib.nullcontext() if communicate else self.model.no_sync():
            loss = functional.cross_entropy(self.model(self.input), self.labels)
            loss.backward()
        self.optimizer.step()
        return loss

    def finish(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)

    def ready(self) -> dict[str, Any]:
        facts = {"parameters": self.parameters, "torch": torch.__version__.partition("+")[0]}
        return {**facts, "engine": self.engine}

    def answer(self, command: dict[str, Any]) -> dict[str, Any]:
        if command["do"] == "batch":
            self.set_batch(command["batch"])
            return {"cpu_s": processor_seconds()}
        communicate = command["loop"] == "exchange"
        for group in self.optimizer.param_groups:
            group["lr"] = LEARNING_RATE if communicate else 0.0
        loss, times = self.step(communicate), []  # the first brings the nodes together
        self.finish()
        first = time.perf_counter_ns()
        for _ in range(command["count"]):
            began = time.perf_counter_ns()
            loss = self.step(communicate)
            times.append(time.perf_counter_ns() - began)
        self.finish()
        took = {"times_ns": times, "ns": time.perf_counter_ns() - first}
        return {**took, "cpu_s": processor_seconds(), "loss": loss.item()}


if __name__ == "__main__":
    sys.exit(serve(Node, "DistributedDataParallel"))
