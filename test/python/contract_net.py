"""What the tests of the contract train: a small net on each node, and a node's part in a test."""

from __future__ import annotations

import threading
from typing import Any, NamedTuple

import torch
from nodes import PATIENCE
from torch import nn


class Net(nn.Module):
    """Is a point in the circle? With what models have: statistics, a tied layer, a frozen tensor."""

    def __init__(self, seed: int, dtype: Any) -> None:
        super().__init__()
        torch.manual_seed(seed)
        self.hidden, self.norm, self.scores = nn.Linear(2, 32), nn.BatchNorm1d(32), nn.Linear(32, 2)
        self.tied = self.scores
        self.spare = nn.Linear(2, 1)  # which the loss does not use
        self.fixed = nn.Parameter(torch.full((3,), float(seed)), requires_grad=False)
        self.to(dtype)

    def forward(self, x: Any) -> Any:
        return self.tied(torch.relu(self.norm(self.hidden(x))))


class Data:
    def __init__(self, seed: int, dtype: Any) -> None:
        self._draw, self._dtype = torch.Generator().manual_seed(seed), dtype

    def loss(self, model: Any) -> Any:
        x = torch.rand(32, 2, generator=self._draw) * 2 - 1
        return nn.functional.cross_entropy(model(x.to(self._dtype)).float(), (x.square().sum(1) < 0.6).long())


def equal(one: Any, other: Any) -> bool:
    return all(torch.equal(mine, its) for mine, its in zip(one.state_dict().values(), other.state_dict().values()))


def sgd(model: Any) -> Any:
    return torch.optim.SGD([one for one in model.parameters() if one.requires_grad], lr=0.05, momentum=0.9)


class Participant(NamedTuple):
    rank: int
    model: Any
    optimizer: Any
    data: Data
    node: Any
    together: threading.Barrier

    def backward(self) -> Any:
        loss = self.data.loss(self.model)
        self.optimizer.zero_grad()
        loss.backward()
        return loss

    def step(self, loss: Any = None) -> Any:
        own = self.backward()
        return self.node.step(self.optimizer, own if loss is None else loss)

    def meet(self) -> None:
        self.together.wait(PATIENCE)
