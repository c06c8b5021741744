"""What the ranks of a process group of torch.distributed send one another: sums of gradients, and short messages."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from dpwa import _core

if TYPE_CHECKING:
    import torch

CHUNK_BYTES = 25 << 20  # of a model, in one broadcast
JOINED, STOPPING, LEFT = 1, 2, 4  # flags of a rank


class Lost(Exception):
    """A rank is gone, or has not come."""


def reason_of(error: BaseException) -> str:
    """Of Gloo: without its source file, and without advice."""
    line = (str(error).strip() or type(error).__name__).partition("\n")[0]
    return (line.partition("] ")[2] if line.startswith("[/") else line).partition(". ")[0].rstrip(".")


class Ranks:
    """The operations of all ranks. Waits end with Ctrl-C; a failure is Lost. Gradients are on `device`; messages go
    through host memory where the group takes it."""

    def __init__(self, group: Any, device: torch.device) -> None:
        import torch

        if not hasattr(group, "allreduce"):
            raise _core.ConfigError(f"group={group!r} is no process group that this process is in; accepted: one of "
                                    "torch.distributed, such as torch.distributed.group.WORLD")  # fmt: skip
        self._group, self.device = group, device
        self.rank, self.size = int(group.rank()), int(group.size())
        kinds = sorted({str(one.type) for one in getattr(group, "_device_types", ())})
        if kinds and device.type not in kinds:
            raise _core.ModelError(f"the model is on {device}, and the process group is for {', '.join(kinds)}; "
                                   "accepted: a group with a back end for that device")  # fmt: skip
        self.near = torch.device("cpu") if "cpu" in kinds else device
        self._last: deque[Any] = deque(maxlen=4)  # operations that are over

    def let_go(self) -> None:
        """Once the program destroys the group its connections close, and others hear of it. Gloo's threads have dropped
        the last operations by then: one that did so while the process ends, for what torch keeps of Python in them, would
        end it by SIGABRT."""
        self._group = None
        time.sleep(0.02)
        self._last.clear()

    def begin_sum(self, tensor: torch.Tensor) -> Any:
        return self._begin(lambda: self._group.allreduce([tensor]))

    def begin_broadcast(self, tensor: torch.Tensor, root: int) -> Any:
        return self._begin(lambda: self._group.broadcast(tensor, root))

    def begin_gather(self, value: torch.Tensor) -> tuple[list[torch.Tensor], Any]:
        import torch

        values = [torch.empty_like(value) for _ in range(self.size)]
        return values, self._begin(lambda: self._group.allgather([values], [value]))

    @staticmethod
    def _begin(operation: Callable[[], Any]) -> Any:
        try:
            return operation()
        except RuntimeError as error:
            raise Lost(reason_of(error)) from None

    def wait(self, work: Any, limit: float | None = None) -> None:
        self._last.append(work)
        over = threading.Event()
        try:
            work.get_future().add_done_callback(lambda _: over.set())
            if not over.wait(limit):  # as work.wait() does not, this ends with a signal
                raise Lost(f"not all ranks have come within {limit:g} s")
            work.wait()
        except RuntimeError as error:
            raise Lost(reason_of(error)) from None

    def gather_numbers(self, own: int, limit: float | None = None) -> list[int]:
        import torch

        numbers, work = self.begin_gather(torch.tensor([own], dtype=torch.int64, device=self.near))
        self.wait(work, limit)
        return [int(one) for one in torch.cat(numbers).tolist()]

    def gather(self, own: bytes, limit: float | None = None) -> list[bytes]:
        import torch

        sizes = self.gather_numbers(len(own), limit)
        padded = torch.zeros(max(sizes), dtype=torch.uint8)
        if own:
            padded[: len(own)] = torch.frombuffer(bytearray(own), dtype=torch.uint8)
        contents, work = self.begin_gather(padded.to(self.near))
        self.wait(work, limit)
        return [one.cpu().numpy().tobytes()[:size] for one, size in zip(contents, sizes)]

    def broadcast(self, own: bytes, root: int) -> bytes:
        import torch

        size = torch.tensor([len(own)], dtype=torch.int64, device=self.near)
        self.wait(self.begin_broadcast(size, root))
        content = torch.zeros(int(size.item()), dtype=torch.uint8)
        if self.rank == root:
            content = torch.frombuffer(bytearray(own), dtype=torch.uint8)
        content = content.to(self.near)
        self.wait(self.begin_broadcast(content, root))
        return content.cpu().numpy().tobytes()

    def broadcast_tensors(self, tensors: Iterable[torch.Tensor], root: int) -> None:
        chunk: list[torch.Tensor] = []
        for tensor in [*by_size(tensors), None]:
            if tensor is not None:
                chunk.append(tensor)
            if chunk and (tensor is None or sum(one.numel() * one.element_size() for one in chunk) >= CHUNK_BYTES):
                flat = bytes_of(chunk)
                self.wait(self.begin_broadcast(flat, root))
                write(flat, chunk)
                chunk = []


def by_size(tensors: Iterable[torch.Tensor]) -> list[torch.Tensor]:
    """Side by side in this order, each lies where its type may."""
    return sorted((one for one in tensors if one.numel()), key=lambda one: -one.element_size())


def bytes_of(tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    """A copy, one after the other."""
    import torch

    return torch.cat([one.detach().reshape(-1).view(torch.uint8) for one in tensors])


def write(flat: torch.Tensor, tensors: Sequence[torch.Tensor]) -> None:
    import torch

    with torch.no_grad():
        for part, tensor in zip(flat.split([one.numel() * one.element_size() for one in tensors]), tensors):
            tensor.copy_(part.view(tensor.dtype).view(tensor.shape))


class Bucket:
    """Of gradients of one type."""

    def __init__(self, parameters: list[int], memory: torch.Tensor) -> None:
        self.parameters, self.memory = parameters, memory
        self.to_come = self.missing = 0  # gradients: in this step; in the memory
        self.work: Any = None


class GradientSums:
    """The gradients of a step in buckets of one type. A bucket that is full leaves as soon as those before it have left:
    in one order on all ranks, whichever gradients there are. Parameters are numbered as those that are trained are."""

    def __init__(self, ranks: Ranks, parameters: Sequence[torch.Tensor], bucket_bytes: int) -> None:
        self._ranks = ranks
        self._buckets: list[Bucket] = []
        self._bucket_of: dict[int, Bucket] = {}
        self.places: dict[int, torch.Tensor] = {}  # flat
        kinds = [(str(one.dtype).removeprefix("torch."), one.numel()) for one in parameters]
        for indices in _core.plan_buckets(kinds, bucket_bytes):
            self._add_bucket(indices, parameters)
        self.has_begun = False
        self._came: set[int] = set()
        self._added: set[int] = set()
        self._sent = 0
        # In float16 a sum may overflow where the mean is far from it; a power of two rounds nothing.
        has_halves = any(kind == "float16" for kind, _ in kinds)
        self._share = float(1 << (ranks.size - 1).bit_length()) if has_halves else 1.0
        self.samples, self.unit = 0.0, self._share

    def _add_bucket(self, indices: list[int], parameters: Sequence[torch.Tensor]) -> None:
        import torch

        sizes = [parameters[index].numel() for index in indices]
        bucket = Bucket(indices, torch.zeros(sum(sizes), dtype=parameters[indices[0]].dtype, device=self._ranks.device))
        self._buckets.append(bucket)
        for index, place in zip(indices, bucket.memory.split(sizes)):
            self._bucket_of[index], self.places[index] = bucket, place

    @property
    def weight(self) -> float:
        return self.samples / self.unit

    def set_unit(self, samples: float) -> None:
        """Of a rank at work in the step before, on the average."""
        self.unit = samples * self._share

    def begin(self, samples: float) -> None:
        self.has_begun, self.samples, self._sent = True, samples, 0
        self._came, self._added = set(), set()
        for bucket in self._buckets:
            bucket.to_come = bucket.missing = len(bucket.parameters)

    def come(self, index: int) -> list[int] | None:
        """The parameters of a bucket, once all of its gradients have come: they are to be written and added now."""
        self._came.add(index)
        bucket = self._bucket_of[index]
        bucket.to_come -= 1
        return None if bucket.to_come else bucket.parameters

    def has_come(self, index: int) -> bool:
        return index in self._came

    def lacks(self, index: int) -> bool:
        return index not in self._added

    def add(self, indices: Iterable[int]) -> None:
        for index in indices:
            self._added.add(index)
            self._bucket_of[index].missing -= 1
        while self._sent < len(self._buckets) and not self._buckets[self._sent].missing:
            bucket = self._buckets[self._sent]
            bucket.work = self._ranks.begin_sum(bucket.memory)
            self._sent += 1

    def let_go(self) -> None:
        for bucket in self._buckets:
            bucket.work = None

    def send_rest(self) -> None:
        """Zeros in place of gradients that are not there."""
        rest = [index for index in self.places if index not in self._added]
        for index in rest:
            self.places[index].zero_()
        self.add(rest)

    def wait(self) -> int:
        """Until the sums are there: their bytes."""
        self.has_begun = False
        for bucket in self._buckets:
            self._ranks.wait(bucket.work)
            bucket.work = None
        return sum(bucket.memory.numel() * bucket.memory.element_size() for bucket in self._buckets)


class Tally(NamedTuple):
    """What all ranks have said with the gradients of a step."""

    samples: float
    joined: list[int]  # ranks that had no batch any more
    stopping: list[int]
    left: list[int]
    at_work: list[int]
    checksums: list[int | None]  # of their weights
    used: list[int]  # parameters that got a gradient on any


def message(ranks: Ranks, samples: float, flags: int, checksum: int | None, used: Sequence[bool]) -> torch.Tensor:
    """Numbers of which all get the sums: samples; the flags of each rank; for each, the checksum of its weights plus 1,
    or 0; for each parameter, how many ranks have a gradient of it."""
    import torch

    words = [0.0] * (1 + 2 * ranks.size)
    words[0], words[1 + ranks.rank] = samples, flags
    words[1 + ranks.size + ranks.rank] = 0 if checksum is None else 1 + checksum
    return torch.tensor([*words, *map(float, used)], dtype=torch.float64, device=ranks.near)


def tally_of(sums: torch.Tensor, ranks: int) -> Tally:
    samples, *words = sums.tolist()
    flags = [int(one) for one in words[:ranks]]

    def those(flag: int) -> list[int]:
        return [rank for rank, one in enumerate(flags) if one & flag]

    return Tally(samples, those(JOINED), those(STOPPING), those(LEFT),
                 [rank for rank, one in enumerate(flags) if not one & JOINED],
                 [int(one) - 1 if one else None for one in words[ranks : 2 * ranks]],
                 [index for index, count in enumerate(words[2 * ranks :]) if count])  # fmt: skip


def shown(ranks: Sequence[int], names: Sequence[str]) -> str:
    return ", ".join(f"'{names[rank]}'" for rank in ranks)


def difference(values: Sequence[str], names: Sequence[str]) -> str:
    """'w1', 'w3': one; 'w2': another"""
    return "; ".join(f"{shown([rank for rank, one in enumerate(values) if one == value], names)}: {value or 'nothing'}"
                     for value in dict.fromkeys(values))  # fmt: skip


def compares_weights_at(step: int) -> bool:
    """As dpwa/rules/compared_steps.h."""
    return step % 100 == 0 or (step < 100 and step & (step - 1) == 0)
