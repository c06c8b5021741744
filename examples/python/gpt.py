#!/usr/bin/env python3
"""A tiny GPT that learns the characters of a text: DPWA_TRAIN=examples/python/gpt.py dpwa run cluster.yaml -- --text FILE,
where FILE is any text, also packed by gzip. The six lines of dpwa are marked."""

from __future__ import annotations

import argparse
import gzip
from pathlib import Path
from typing import Any

import dpwa
import torch
from torch import nn
from torch.nn import functional


class Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.wide = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        parts = self.attention(self.before(x)).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(*parts, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
        return x + self.wide(self.between(x))


class Gpt(nn.Module):
    def __init__(self, letters: int, context: int, width: int, layers: int, heads: int) -> None:
        super().__init__()
        self.letters, self.places = nn.Embedding(letters, width), nn.Embedding(context, width)
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(layers)), nn.LayerNorm(width))
        self.scores = nn.Linear(width, letters, bias=False)
        self.scores.weight = self.letters.weight  # tied

    def forward(self, text: torch.Tensor) -> Any:
        return self.scores(self.blocks(self.letters(text) + self.places.weight[: text.shape[1]]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--config")
    parser.add_argument("--name")
    parser.add_argument("--text", type=Path, required=True)
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--context", type=int, default=64)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--layers", type=int, default=2)
    options, _ = parser.parse_known_args()  # `dpwa run` gives --run-dir and --threads, too
    content = options.text.read_bytes()
    text = (gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content).decode()
    letters = sorted(set(text))
    number_of = {letter: number for number, letter in enumerate(letters)}
    data = torch.tensor([number_of[letter] for letter in text])
    train, test = data[: -len(data) // 10], data[-len(data) // 10 :]

    torch.manual_seed(0)
    model = Gpt(len(letters), options.context, options.width, options.layers, heads=4)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    node = dpwa.attach(model, options.config, options.name)  # dpwa 1
    torch.set_num_threads(node.threads)  # dpwa 2
    generator = torch.Generator().manual_seed(node.rank)  # dpwa 3: other places of the text on each node

    def loss_of(part: torch.Tensor, own: torch.Generator) -> torch.Tensor:
        begins = torch.randint(len(part) - options.context, (16, 1), generator=own)
        window = part[begins + torch.arange(options.context + 1)]
        return functional.cross_entropy(model(window[:, :-1]).flatten(0, 1), window[:, 1:].flatten())

    with node:  # dpwa 4
        for step in range(1, options.steps + 1):
            loss = loss_of(train, generator)
            optimizer.zero_grad()
            loss.backward()
            node.average_gradients()  # dpwa 5: they are final, where they are averaged
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            report = node.step(optimizer, loss)  # dpwa 6
            if step % 100 == 0:
                print(f"{node.name}: step {step}, loss {loss.item():.3f}, {report.outcome} {report.peer}", flush=True)
    with torch.no_grad():
        losses = [loss_of(test, torch.Generator().manual_seed(seed)).item() for seed in range(20)]
    print(f"{node.name}: test loss {sum(losses) / len(losses):.3f} of the model of {node.finish().participants}", flush=True)


if __name__ == "__main__":
    main()
