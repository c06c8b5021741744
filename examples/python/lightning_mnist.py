#!/usr/bin/env python3
"""Lightning: DPWA_TRAIN=examples/python/lightning_mnist.py dpwa run cluster.yaml -- --data data/mnist."""

from __future__ import annotations

import argparse
from pathlib import Path

import dpwa.lightning
import lightning.pytorch as pl
import torch
from mnist import images, load
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset


class Digits(pl.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10))

    def training_step(self, batch: list[torch.Tensor], _: int) -> torch.Tensor:
        return functional.cross_entropy(self.net(batch[0]), batch[1])

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), lr=0.05, momentum=0.9)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--config")
    parser.add_argument("--name")
    parser.add_argument("--data", type=Path, default=Path("data/mnist"))
    parser.add_argument("--epochs", type=int, default=1)
    options, _ = parser.parse_known_args()  # `dpwa run` gives --run-dir and --threads, too
    pl.seed_everything(0, verbose=False)
    model = Digits()
    train = TensorDataset(images(options.data, "train-images-idx3-ubyte"), load(options.data, "train-labels-idx1-ubyte").long())
    callback = dpwa.lightning.Callback(options.config, options.name)
    trainer = pl.Trainer(max_epochs=options.epochs, accelerator="cpu", callbacks=[callback], logger=False,
                         enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False)  # fmt: skip
    trainer.fit(model, DataLoader(train, batch_size=64, shuffle=True))
    with torch.no_grad():
        right = model.net(images(options.data, "t10k-images-idx3-ubyte")).argmax(1) == load(options.data, "t10k-labels-idx1-ubyte")
    print(f"{callback.node.name}: accuracy {right.double().mean():.4f}", flush=True)


if __name__ == "__main__":
    main()
