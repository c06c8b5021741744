"""A model of PyTorch on a device: where its parameters lie, and the passes over them that the core asks for."""

from __future__ import annotations

import contextlib
import math
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from dpwa import _core

if TYPE_CHECKING:
    import torch

HostBytes = np.ndarray[Any, Any]  # of the core; lent for the copy that begins in the call


def api_of(device: torch.device) -> Any:
    """Its streams and events; none: it has none."""
    import torch

    return None if device.type == "cpu" else torch.get_device_module(device)


def require_no_capture(api: Any) -> None:
    captures = getattr(api, "is_current_stream_capturing", None)
    if captures and captures():
        raise _core.UsageError("a call of the node while a CUDA graph is captured, whose replays would exchange nothing with "
                               "other nodes; accepted: capture other work, and call it after each replay")  # fmt: skip


class Region:
    """Tensors of one type and rule, side by side: `offset` and `bytes` in a snapshot."""

    def __init__(self, device: torch.device, offset: int, size: int, dtype: str, is_blended: bool) -> None:
        import torch

        self.offset, self.bytes, self.is_blended = offset, size, is_blended
        self.dtype = torch.bool if dtype == "boolean" else getattr(torch, dtype)
        self.values = torch.zeros(size // self.dtype.itemsize, dtype=self.dtype, device=device)
        self.staged = torch.empty_like(self.values)
        self.landed = torch.empty_like(self.values) if is_blended else None


class DevicePasses:
    """The memory of a model on a device. Publishing copies it there on the training stream, so that the optimizer may go
    on at once, and from there to the host on a stream of its own. What has landed comes on another one; a blend is one
    kernel a type, on the training stream behind that copy. `api`: the streams and events of the device."""

    def __init__(self, device: torch.device, api: Any = None) -> None:
        import torch

        self.device = device
        self._api = api or torch.get_device_module(device)
        with self._on_device():
            self._out, self._in = self._api.Stream(), self._api.Stream()
        self._regions: list[Region] = []
        self._leaving: deque[Any] = deque()  # events: of each snapshot under way
        self._fetched: Any = None  # the event behind what is to be blended; none: it is not fetched
        self._arrival: Any = None  # the event behind the last copy from landing memory
        self._blended: Any = None
        self._losses: deque[tuple[int, Any, Any]] = deque(maxlen=10_000)  # step, on the host, event
        self._steps = 0

    def lay_out(self, regions: list[tuple[int, int, str, bool]]) -> None:
        self._regions = [Region(self.device, *region) for region in regions]

    def place(self, offset: int, size: int) -> torch.Tensor:
        """The memory of a tensor, flat and of its type, by its place in a snapshot."""
        region = next(one for one in self._regions if one.offset <= offset < one.offset + max(one.bytes, 1))
        begin = (offset - region.offset) // region.dtype.itemsize
        return region.values[begin : begin + size // region.dtype.itemsize]

    def require_no_capture(self) -> None:
        require_no_capture(self._api)

    def note_loss(self, loss: Any) -> None:
        """Of the step that is sent now: it is read on the host once the device has computed it."""
        import torch

        self._steps += 1
        if not isinstance(loss, torch.Tensor) or loss.device != self.device or loss.numel() != 1:
            value = math.nan if loss is None else float(loss)
            self._losses.append((self._steps, value, None))
            return
        with torch.no_grad(), self._on_device():
            host = torch.empty((), dtype=loss.dtype, pin_memory=self.device.type != "cpu")
            value = loss.detach().reshape(())
            self._out.wait_event(self._event())
            with self._api.stream(self._out):
                host.copy_(value, non_blocking=True)
                self._losses.append((self._steps, host, self._event(self._out)))
            if self.device.type != "cpu":
                value.record_stream(self._out)

    # --- asked by the core

    def here(self, work: Callable[[], None]) -> None:
        """With the device of the model as the current one."""
        with self._on_device():
            work()

    def loss(self, step: int) -> float:
        """Steps come in their order, some of them never: a program may run ahead of its device by many."""
        while self._losses and self._losses[0][0] < step:
            self._losses.popleft()
        if not self._losses or self._losses[0][0] != step:
            return math.nan
        _, value, event = self._losses[0]
        if event is not None:
            event.synchronize()
        return float(value)

    def copy_out(self, snapshot: HostBytes) -> None:
        import torch

        with torch.no_grad(), self._on_device():
            if self.copies_under_way():  # the staging memory is still read
                self._api.current_stream().wait_event(self._leaving[-1])
            for region in self._regions:
                region.staged.copy_(region.values, non_blocking=True)
            self._out.wait_event(self._event())
            with self._api.stream(self._out):
                for region in self._regions:
                    self._host(snapshot, region.offset, region.bytes, region).copy_(region.staged, non_blocking=True)
                self._leaving.append(self._event(self._out))

    def copies_under_way(self) -> int:
        while self._leaving and self._leaving[0].query():
            self._leaving.popleft()
        return len(self._leaving)

    def fetch(self, landed: HostBytes, offset: int) -> None:
        import torch

        with torch.no_grad(), self._on_device():
            if self._blended is not None:
                self._in.wait_event(self._blended)
            with self._api.stream(self._in):
                for region, at, first, last in self._parts(offset, len(landed)):
                    to = region.landed[first:last]
                    to.copy_(self._host(landed, at, to.nbytes, region), non_blocking=True)
                self._fetched = self._arrival = self._event(self._in)

    def is_fetched(self) -> bool:
        return self._fetched is not None and bool(self._fetched.query())

    def landing_is_free(self) -> bool:
        return self._arrival is None or bool(self._arrival.query())

    def blend(self, landed: HostBytes, offset: int, is_difference: bool, factor: float) -> None:
        import torch

        if self._fetched is None:
            self.fetch(landed, offset)
        with torch.no_grad(), self._on_device():
            self._api.current_stream().wait_event(self._fetched)
            self._fetched = None
            for region, _, first, last in self._parts(offset, len(landed)):
                own, other = region.values[first:last], region.landed[first:last]
                if is_difference:
                    own.add_(other, alpha=factor)
                else:
                    own.lerp_(other, factor)
            self._blended = self._event()

    def assign(self, snapshot: HostBytes) -> None:
        import torch

        with torch.no_grad():
            for region in self._regions:
                region.values.copy_(self._host(snapshot, region.offset, region.bytes, region))

    def synchronize(self) -> None:
        """What the program has queued, on whatever stream, and all copies are over: other threads may use the memory."""
        with self._on_device():
            self._api.synchronize()

    # ---

    def _on_device(self) -> Any:
        """Streams and events are those of the current device."""
        choose = getattr(self._api, "device", None)
        return choose(self.device) if choose else contextlib.nullcontext()

    def _event(self, stream: Any = None) -> Any:
        event = self._api.Event()
        event.record(stream or self._api.current_stream())
        return event

    def _parts(self, offset: int, length: int) -> list[tuple[Region, int, int, int]]:
        """Of the blended regions: where the elements [first, last) of each begin in the bytes from `offset` on."""
        found = []
        for region in self._regions:
            if region.is_blended and region.offset < offset + length and offset < region.offset + region.bytes:
                begin = max(offset, region.offset)
                end = min(offset + length, region.offset + region.bytes)
                size = region.dtype.itemsize
                found.append((region, begin - offset, (begin - region.offset) // size, (end - region.offset) // size))
        return found

    def _host(self, memory: HostBytes, at: int, size: int, region: Region) -> torch.Tensor:
        import torch

        return torch.from_numpy(memory[at : at + size]).view(region.dtype)
