"""One order of samples for all nodes: each sample once, though nodes come and go."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from dpwa import _core
from dpwa.node import Node


class Sampler:
    """batch_sampler= of a DataLoader, made before node.start(). In each step `size` nodes take the next size x
    batch_size samples of a common order, each its part (docs/PARALLEL.md). Where nodes step together a node that joins
    later takes over the position, so every sample is taken once. Gives lists of indices of [0, samples), and tells
    node.set_batch_size() their number.

    The position counts batches that were asked for: with num_workers > 0 a DataLoader asks for some before their step,
    and these are lost where the number of nodes changes. The number of samples is then that of a later batch, and the
    loop calls node.set_batch_size(len(batch)) itself. least: samples of a batch but none; 2 for BatchNorm.
    """

    def __init__(self, samples: int, batch_size: int, node: Node, *, epochs: int = 1, seed: int = 0,
                 shuffle: bool = True, least: int = 1) -> None:  # fmt: skip
        if samples < 1 or batch_size < 1:
            raise _core.UsageError(f"Sampler({samples}, {batch_size}); accepted: 1 or more of each")
        self._samples, self._batch_size, self._node = samples, batch_size, node
        self._seed, self._shuffle = seed, shuffle
        self._cursor = _core.SharedCursor(batch_size, samples * epochs, least)
        self._position = np.zeros(1, np.int64)
        self._epoch, self._order = -1, np.arange(samples)
        node.share(self._position)
        node.require_same("data", f"{samples} samples, {epochs} times, in batches of {batch_size}, "
                                  f"{f'shuffled by {seed}' if shuffle else 'in order'}")  # fmt: skip

    def __iter__(self) -> Iterator[list[int]]:
        while True:
            self._cursor.seek(int(self._position[0]))
            begin, count = self._cursor.part(self._node.rank, self._node.size)
            if not count:  # in the last step there may be too few for all
                return
            self._cursor.advance(self._node.size)
            self._position[0] = self._cursor.position
            self._node._weigh(count)  # a program may look at a batch before start()
            yield [self._index(place) for place in range(begin, begin + count)]

    def __len__(self) -> int:
        """Batches to come, if the number of nodes stays."""
        left = self._cursor.end - int(self._position[0])
        return -(-left // (self._batch_size * self._node.size))

    def _index(self, place: int) -> int:
        epoch, index = divmod(place, self._samples)
        if self._shuffle and epoch != self._epoch:
            self._epoch, self._order = epoch, np.random.default_rng([self._seed, epoch]).permutation(self._samples)
        return int(self._order[index])

    def state_dict(self) -> dict[str, Any]:
        return {"position": int(self._position[0])}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._position[0] = state["position"]
