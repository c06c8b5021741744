"""The gradients of a node whose back end averages them, on their way to the buckets of the core and back."""

from __future__ import annotations

import io
import math
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from dpwa import _core

if TYPE_CHECKING:
    import torch

    from dpwa.backward_average import BackwardAverage


class Places:
    """Where the core wants the gradients: arrays that change when the nodes form another group."""

    def __init__(self, core: Any, make: Callable[[Any, int], Any], sizes: Sequence[int]) -> None:
        self._core, self._make, self._sizes = core, make, sizes
        self._groups = 0
        self._made: list[Any] = []

    def __getitem__(self, index: int) -> Any:
        if self._core.groups != self._groups:
            self._made = [self._make(self._core.gradient(i, size), i) for i, size in enumerate(self._sizes)]
            self._groups = self._core.groups
        return self._made[index]


def strides_of(tensor: torch.Tensor) -> tuple[int, ...]:
    """Those of its gradient: without gaps."""
    dense = 1
    for stride, size in sorted(zip(tensor.stride(), tensor.shape)):
        if size > 1 and stride != dense:
            return tuple(math.prod(tensor.shape[axis + 1 :]) for axis in range(tensor.dim()))
        dense *= size
    return tensor.stride()


def checksum_of(tensors: Iterable[torch.Tensor], before: int = 0) -> int:
    import torch

    for tensor in tensors:
        content = tensor.detach().cpu().contiguous().view(-1).view(torch.uint8)
        before = zlib.crc32(content.numpy(), before)
    return before


Noted = tuple["torch.Tensor | None", int]  # a gradient, and the count of its writes


def noted(parameters: Iterable[torch.Tensor]) -> list[Noted]:
    return [(one.grad, 0 if one.grad is None else one.grad._version) for one in parameters]


def require_unchanged(name: str, gradient: torch.Tensor | None, given: tuple[torch.Tensor, int]) -> None:
    """Since backward() has given it, with the count of its writes then."""
    before, version = given
    if gradient is not before or gradient._version != version:
        raise _core.UsageError(f"parameter '{name}': its gradient was changed after it had left in backward(): call "
                               "average_gradients() first")  # fmt: skip


class TorchGradients:
    """Of the parameters of a module that are trained. backward() hands each to the core as soon as it is complete."""

    def __init__(self, core: Any, names: Sequence[str], parameters: Sequence[torch.Tensor]) -> None:
        import torch

        self._core, self._names, self._parameters = core, names, parameters
        self.average: BackwardAverage | None = None
        self._strided = torch.strided
        self._places = Places(
            core,
            lambda memory, i: (memory if isinstance(memory, torch.Tensor) else torch.from_numpy(memory))
            .view(parameters[i].dtype).as_strided(parameters[i].shape, strides_of(parameters[i])),
            [parameter.numel() * parameter.element_size() for parameter in parameters],
        )
        core.set_source(self)
        self._given: dict[int, tuple[torch.Tensor, int]] = {}  # by backward(), with the count of their writes
        self._note()
        self.hooks = [parameter.register_post_accumulate_grad_hook(partial(self._come, index))
                      for index, parameter in enumerate(parameters)]  # fmt: skip

    def _come(self, index: int, parameter: torch.Tensor) -> None:
        """In backward()."""
        if self.average:
            self.average.begin(index)
        self._complete(index, parameter)

    def _complete(self, index: int, parameter: torch.Tensor) -> None:
        if parameter.grad.layout is not self._strided:
            raise _core.ModelError(f"the gradient of '{self._names[index]}' is sparse, which this back end does not "
                                   "average; accepted: dense ones, as of an embedding with sparse=False")  # fmt: skip
        full = self._core.come(index)
        if full is not None:
            indices, weight = full
            self.give(indices, weight)
            self._core.send(indices)
        self._given[index] = parameter.grad, parameter.grad._version

    def _note(self) -> None:
        """What the gradients are between two steps."""
        self._before = noted(self._parameters)

    def prepare(self, is_averaged: bool = False) -> None:
        """Before the core takes the gradients of a step. Those that the program itself has assigned come now; what it has
        changed after backward() would be lost."""
        if is_averaged:
            return
        for index, parameter in enumerate(self._parameters):
            gradient = parameter.grad
            if index in self._given:
                require_unchanged(self._names[index], gradient, self._given[index])
            elif gradient is not None:
                before, version = self._before[index]
                if gradient is not before or gradient._version != version:
                    self._complete(index, parameter)

    @property
    def has_none(self) -> bool:
        """After prepare(): nothing has come since the last step."""
        return not self._given

    def settle(self, _: Any = None) -> None:
        self._given.clear()
        self._note()

    def optimizer(self, optimizer: torch.optim.Optimizer, step: Callable[[], Any]) -> OptimizerState:
        return OptimizerState(optimizer, step)

    # The core asks for gradients, and gives the means, by itself.
    def check(self) -> None: ...

    # The functions of several tensors take a tenth of the time of one call for each.
    def give(self, indices: Sequence[int], weight: float) -> None:
        import torch

        places = [self._places[index] for index in indices]
        gradients = [self._parameters[index].grad for index in indices]
        with torch.no_grad():
            if weight == 0:  # they may be no numbers
                torch._foreach_zero_(places)
                return
            torch._foreach_copy_(places, [place.zero_() if gradient is None else gradient
                                          for place, gradient in zip(places, gradients)])  # fmt: skip
            if weight != 1:
                torch._foreach_mul_(places, weight)

    def take(self, indices: Sequence[int], divisor: float) -> None:
        import torch

        if not indices:
            return
        places = [self._places[index] for index in indices]
        with torch.no_grad():
            for index in indices:
                if self._parameters[index].grad is None:
                    self._parameters[index].grad = torch.empty_like(self._parameters[index])
            gradients = [self._parameters[index].grad for index in indices]
            torch._foreach_copy_(gradients, places)
            if divisor != 1:
                torch._foreach_div_(gradients, divisor)

    def clear(self) -> None:
        for parameter in self._parameters:
            parameter.grad = None


class ArrayGradients:
    """Of arrays: those that the program gives with a step, and their means over the nodes."""

    def __init__(self, core: Any, values: Mapping[str, np.ndarray[Any, Any]]) -> None:
        self._core, self._names = core, list(values)
        trained = list(values.values())
        self._places = Places(
            core,
            lambda memory, i: memory.view(trained[i].dtype).reshape(trained[i].shape),
            [value.nbytes for value in trained],
        )
        self._own: dict[int, np.ndarray[Any, Any]] = {}
        self._values = trained
        self.means: dict[str, np.ndarray[Any, Any]] = {}
        core.set_source(self)

    def set(self, gradients: Mapping[str, Any]) -> None:
        unknown = [name for name in gradients if name not in self._names]
        if unknown:
            raise _core.UsageError(f"gradient of '{unknown[0]}'; accepted: {', '.join(self._names)}")
        own = {self._names.index(name): np.asarray(gradient) for name, gradient in gradients.items()}
        for index, gradient in own.items():  # before any of them leaves
            value = self._values[index]
            if gradient.shape != value.shape or not np.can_cast(gradient.dtype, value.dtype, "same_kind"):
                raise _core.UsageError(f"the gradient of '{self._names[index]}' is {gradient.dtype} {list(gradient.shape)}; "
                                       f"accepted: {value.dtype} {list(value.shape)}")  # fmt: skip
        self.means = dict(gradients)  # until the core gives others: a node that trains apart keeps its own
        self._own = own
        for index in sorted(self._own, reverse=True):  # in the order in which they are sent
            full = self._core.come(index)
            if full is not None:
                self.give(*full)
                self._core.send(full[0])

    def update(self, update: Callable[[], None]) -> ProgramUpdate:
        return ProgramUpdate(update)

    def prepare(self) -> None: ...
    def settle(self) -> None: ...

    def _write(self, index: int, weight: float) -> None:
        place, gradient = self._places[index], self._own[index]
        if weight == 0:  # they may be no numbers
            place[...] = 0
        else:
            np.multiply(gradient, np.asarray(weight, place.dtype), out=place, casting="same_kind")

    # Called by the core.
    def give(self, indices: Sequence[int], weight: float) -> None:
        for index in indices:
            self._write(index, weight)

    def take(self, indices: Sequence[int], divisor: float) -> None:
        for index in indices:
            place = self._places[index]
            self.means[self._names[index]] = place / np.asarray(divisor, place.dtype)

    def clear(self) -> None:
        self._own = {}


class OptimizerState:
    """What a step of an optimizer of torch asks of it: nodes that step together compare it, and hand it over."""

    def __init__(self, optimizer: torch.optim.Optimizer, step: Callable[[], Any]) -> None:
        self._optimizer, self.step = optimizer, step

    def words(self) -> tuple[str, list[tuple[str, str]]]:
        kind = type(self._optimizer)
        groups = []
        for number, group in enumerate(self._optimizer.param_groups, 1):
            settings = [f"{key} {plain(value)}" for key, value in sorted(group.items()) if plain(value)]
            groups.append((f"parameter group {number}", f"{len(group['params'])} parameters, {', '.join(settings)}"))
        return f"step with {kind.__module__}.{kind.__qualname__}", groups

    def state_words(self) -> str:
        import torch

        checksum = 0
        for group in self._optimizer.param_groups:
            for parameter in group["params"]:
                for key, value in sorted(self._optimizer.state.get(parameter, {}).items()):
                    if isinstance(value, torch.Tensor):
                        checksum = checksum_of([value], zlib.crc32(key.encode(), checksum))
                    elif plain(value):
                        checksum = zlib.crc32(plain(value).encode(), zlib.crc32(key.encode(), checksum))
                    else:
                        return "not compared"
        return f"checksum {checksum:08x}"

    def save(self) -> bytes:
        import torch

        saved = io.BytesIO()
        torch.save(self._optimizer.state_dict(), saved)
        return saved.getvalue()

    def load(self, saved: bytes) -> None:
        import torch

        self._optimizer.load_state_dict(torch.load(io.BytesIO(saved), map_location="cpu", weights_only=True))


class ProgramUpdate:
    """The update that a program with arrays makes by itself, in place of an optimizer."""

    def __init__(self, step: Callable[[], None]) -> None:
        self.step = step

    def words(self) -> tuple[str, list[tuple[str, str]]]:
        return "step with an update by the program", []

    def state_words(self) -> str:
        return "not compared"

    def save(self) -> bytes:
        return b""

    def load(self, saved: bytes) -> None: ...


def plain(value: Any) -> str:
    """Of a number, a text, or a few of them; '' of anything else."""
    if hasattr(value, "item") and getattr(value, "ndim", 1) == 0:
        value = value.item()
    if isinstance(value, (tuple, list)):
        parts = [plain(one) for one in value]
        return f"({', '.join(parts)})" if all(parts) else ""
    return repr(value) if value is None or isinstance(value, (bool, int, float, str)) else ""
