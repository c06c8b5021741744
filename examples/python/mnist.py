#!/usr/bin/env python3
"""MNIST: DPWA_TRAIN=examples/python/mnist.py dpwa run cluster.yaml -- --data data/mnist, once scripts/prepare_data.sh mnist
has run. With torchrun, without --config and --name: torchrun --nproc-per-node 2 examples/python/mnist.py --data data/mnist.
Prints one line of JSON. Each node has its part of the training set."""

from __future__ import annotations

import argparse
import gzip
import json
from pathlib import Path

import dpwa
import numpy as np
import torch
from torch import nn
from torch.nn import functional


def load(folder: Path, name: str) -> torch.Tensor:
    path = folder / name
    content = path.read_bytes() if path.exists() else gzip.decompress((folder / f"{name}.gz").read_bytes())
    shape = [int.from_bytes(content[4 + 4 * axis : 8 + 4 * axis], "big") for axis in range(content[3])]
    return torch.from_numpy(np.frombuffer(content, np.uint8, offset=4 + 4 * len(shape)).reshape(shape).copy())


def images(folder: Path, name: str) -> torch.Tensor:
    return (load(folder, name).float() / 255 - 0.1307).div_(0.3081).flatten(1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--config")
    parser.add_argument("--name")
    parser.add_argument("--data", type=Path, default=Path("data/mnist"))
    parser.add_argument("--epochs", type=float, default=1)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--lr", type=float, default=0.05)
    options, _ = parser.parse_known_args()  # `dpwa run` gives --run-dir and --threads, too
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=options.lr, momentum=0.9)
    node = dpwa.attach(model, options.config, options.name)  # dpwa
    torch.set_num_threads(node.threads)  # dpwa
    own = slice(node.rank, None, node.size)
    x = images(options.data, "train-images-idx3-ubyte")[own]
    y = load(options.data, "train-labels-idx1-ubyte")[own].long()
    steps = int(options.epochs * len(x) / options.batch)
    generator = torch.Generator().manual_seed(node.rank)
    blends = 0
    with node:  # dpwa: common weights everywhere ... the average of all
        for _ in range(steps):
            batch = torch.randint(len(x), (options.batch,), generator=generator)
            loss = functional.cross_entropy(model(x[batch]), y[batch])
            optimizer.zero_grad()
            loss.backward()
            report = node.step(optimizer, loss)  # dpwa: in place of optimizer.step()
            blends += report.outcome == "mixed"
    with torch.no_grad():
        scores = model(images(options.data, "t10k-images-idx3-ubyte"))
    right = scores.argmax(1) == load(options.data, "t10k-labels-idx1-ubyte")
    found = {"name": node.name, "accuracy": round(float(right.double().mean()), 4), "steps": steps, "blends": blends}
    print(json.dumps({**found, "clock": report.clock, "participants": node.finish().participants}), flush=True)


if __name__ == "__main__":
    main()
