"""A worker of back end kvstore: its gradients, and its optimizer as the servers and other workers need it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from dpwa import _core
from dpwa.gradients import require_unchanged

if TYPE_CHECKING:
    import torch

    from dpwa.backward_average import BackwardAverage

Words = tuple[str, dict[str, float]]  # the kind of an optimizer, and its numbers by the names of the core

# The numbers of a group of torch, by those names.
NUMBERS = {
    "SGD": {"momentum": "momentum", "dampening": "dampening"},
    "Adam": {"epsilon": "eps", "amsgrad": "amsgrad"},
    "AdamW": {"epsilon": "eps", "amsgrad": "amsgrad"},
    "Adagrad": {"rate_decay": "lr_decay", "accumulator": "initial_accumulator_value", "epsilon": "eps"},
    "RMSprop": {"alpha": "alpha", "epsilon": "eps", "momentum": "momentum", "centered": "centered"},
}


def name_of(optimizer: torch.optim.Optimizer) -> str:
    """That of a class of torch.optim; one that is derived from it may step otherwise."""
    import torch

    kind = type(optimizer)
    known = kind.__name__ in NUMBERS and getattr(torch.optim, kind.__name__) is kind
    return kind.__name__ if known else f"{kind.__module__}.{kind.__qualname__}"


def words_of(name: str, group: Mapping[str, Any]) -> Words:
    if name not in NUMBERS:
        return name, {}
    if group.get("maximize"):
        return f"{name} with maximize", {}
    kind = name.lower()
    if name == "SGD" and group["momentum"] != 0:
        kind = "nesterov" if group["nesterov"] else "momentum"
    if group.get("decoupled_weight_decay"):
        kind = "adamw"
    numbers = {"learning_rate": float(group["lr"]), "weight_decay": float(group["weight_decay"])}
    numbers.update((own, float(group[key])) for own, key in NUMBERS[name].items())
    if "betas" in group:
        numbers["beta1"], numbers["beta2"] = (float(beta) for beta in group["betas"])
    return kind, numbers


def remembered(name: str, group: Mapping[str, Any]) -> list[str]:
    """What the optimizer keeps of a parameter, in the order of the servers."""
    if name == "SGD":
        return ["momentum_buffer"] if group["momentum"] else []
    if name == "Adagrad":
        return ["sum"]
    if name == "RMSprop":
        return (["square_avg"] + ["grad_avg"] * bool(group["centered"])
                + ["momentum_buffer"] * (group["momentum"] > 0))  # fmt: skip
    return ["exp_avg", "exp_avg_sq"] + ["max_exp_avg_sq"] * bool(group["amsgrad"])


class StoreOptimizer:
    """What a step asks of an optimizer of torch. `parameters`: those that are trained."""

    def __init__(self, optimizer: torch.optim.Optimizer, parameters: Sequence[torch.Tensor],
                 step: Callable[[], Any]) -> None:  # fmt: skip
        self._optimizer, self._parameters, self.step = optimizer, parameters, step
        self._name = name_of(optimizer)

    def words(self) -> tuple[list[Words], list[int], list[int]]:
        groups = self._optimizer.param_groups
        group_of = {id(one): number for number, group in enumerate(groups) for one in group["params"]}
        return ([words_of(self._name, group) for group in groups],
                [group_of.get(id(one), -1) for one in self._parameters], list(group_of))  # fmt: skip

    def _kept(self, parameter: torch.Tensor) -> list[str]:
        return next(remembered(self._name, group) for group in self._optimizer.param_groups
                    if any(one is parameter for one in group["params"]))  # fmt: skip

    def state(self, trained: int, used: bool) -> tuple[int, bytes, str, int]:
        """Steps, the arrays one after the other, the type of the parameter, its size."""
        import torch

        parameter = self._parameters[trained]
        state = self._optimizer.state.get(parameter, {})
        keys = self._kept(parameter)
        steps = int(state["step"]) if "step" in state else int(used if not keys else bool(state))
        wide = torch.float64 if parameter.dtype is torch.float64 else torch.float32
        arrays = [torch.zeros_like(parameter) if state.get(key) is None else state[key] for key in keys]
        content = b"".join(one.detach().to("cpu", wide).contiguous().numpy().tobytes() for one in arrays)
        return steps, content if steps else b"", str(parameter.dtype).removeprefix("torch."), parameter.numel()

    def give(self, trained: int, steps: int, content: bytes) -> None:
        import torch

        parameter = self._parameters[trained]
        keys = self._kept(parameter)
        if not content or not keys or (not steps and self._name != "Adagrad"):  # which has one from the beginning
            self._optimizer.state.pop(parameter, None)
            return
        wide = torch.float64 if parameter.dtype is torch.float64 else torch.float32
        arrays = torch.frombuffer(bytearray(content), dtype=wide).view(len(keys), *parameter.shape)
        own: dict[str, Any] = {} if self._name == "SGD" else {"step": torch.tensor(float(steps))}
        own.update((key, array.to(parameter.device, parameter.dtype, copy=True)) for key, array in zip(keys, arrays))
        self._optimizer.state[parameter] = own

    def forget(self) -> None:
        self._optimizer.state.clear()


class TorchStoreGradients:
    """Of the parameters of a module that are trained. backward() hands each to the core as soon as it is complete.
    `is_apart`: they are on a device, and the core gets copies, all of them after backward()."""

    def __init__(self, core: Any, names: Sequence[str], parameters: Sequence[torch.Tensor],
                 held: Sequence[tuple[str, torch.Tensor]], is_apart: bool) -> None:  # fmt: skip
        self._core, self._names, self._parameters, self._held = core, names, parameters, held
        import torch

        self.average: BackwardAverage | None = None
        self._strided = torch.strided
        self._is_apart = is_apart
        self._frozen = [False] * len(parameters)
        self._on_host: dict[int, torch.Tensor] = {}  # what the core reads of gradients that are on a device
        self._lent: list[Any] = [None] * len(parameters)  # what the core reads, by index
        self._leaving: list[Any] = []  # what the core may read until the end of the step
        self._sent: dict[int, tuple[torch.Tensor, int]] = {}  # in backward(): with the count of its writes
        # Which the core may ask: that of the step before, and that of set_optimizer() before the first one.
        self._known: StoreOptimizer | None = None
        self._told: StoreOptimizer | None = None
        self._know()
        self.hooks = [parameter.register_post_accumulate_grad_hook(partial(self._complete, index))
                      for index, parameter in enumerate(parameters)]  # fmt: skip

    def optimizer(self, optimizer: torch.optim.Optimizer, step: Callable[[], Any]) -> StoreOptimizer:
        def settled() -> None:
            self.settle()
            step()

        return StoreOptimizer(optimizer, self._parameters, settled)

    @property
    def begun_with(self) -> StoreOptimizer | None:
        """Where backward() has given gradients to the servers: the optimizer of their step."""
        return (self._told or self._known) if self._sent else None

    def tell(self, optimizer: torch.optim.Optimizer) -> None:
        told = self.optimizer(optimizer, lambda: None)
        self._core.set_optimizer(told)
        self._told = told

    def _place(self, index: int) -> int:
        gradient = self._parameters[index].grad
        if gradient is not None and not (gradient.layout is self._strided and gradient.is_contiguous()):
            gradient = gradient.detach().to_dense().contiguous()
        if self._is_apart and gradient is not None:
            gradient = self._copied(index, gradient)
        self._lent[index] = gradient
        return 0 if gradient is None else int(gradient.data_ptr())

    def _copied(self, index: int, gradient: torch.Tensor) -> torch.Tensor:
        """It is there once the device is idle."""
        import torch

        if index not in self._on_host:
            self._on_host[index] = torch.empty(gradient.shape, dtype=gradient.dtype, pin_memory=gradient.device.type != "cpu")
        return self._on_host[index].copy_(gradient.detach(), non_blocking=True)

    def _complete(self, index: int, parameter: torch.Tensor) -> None:
        if self.average:
            self.average.begin(index)
        if self._is_apart:
            return
        before = self._lent[index]
        try:
            left = self._core.fired(index, self._place(index))
        except _core.UsageError:
            self._leaving += [before, *self._lent]
            self._sent.clear()  # step() takes what has left
            raise
        if left:
            self._sent[index] = (parameter.grad, parameter.grad._version)

    def _know(self) -> None:
        self._versions = [tensor._version for _, tensor in self._held]

    def check(self) -> None:
        """What is written where the servers would not hear of it."""
        if self._core.updates_on_servers:
            for (name, tensor), version in zip(self._held, self._versions):
                if tensor._version != version:
                    raise _core.UsageError(f"the model's tensor '{name}' was written by the program; with kvstore.update "
                                           "'server' the servers have the weights; accepted: kvstore.update 'worker'")  # fmt: skip
        for index, given in self._sent.items():
            require_unchanged(self._names[index], self._parameters[index].grad, given)

    def prepare(self, _: bool = False) -> None:
        """Before the core takes the gradients of a step."""
        frozen = [not one.requires_grad for one in self._parameters]
        if frozen != self._frozen:
            self._core.set_frozen(frozen)
            self._frozen = frozen
        self._core.set_gradients({index: self._place(index) for index in range(len(self._parameters))
                                  if index not in self._sent})  # fmt: skip

    def settle(self, known: StoreOptimizer | None = None) -> None:
        """After that: what has become of them."""
        self._known = known or self._known
        are_means, dropped, made = self._core.take_changes()
        if are_means:
            for parameter, lent in zip(self._parameters, self._lent):
                if lent is None or parameter.grad is None or parameter.grad is lent:
                    continue
                if parameter.grad.layout is self._strided:
                    parameter.grad.copy_(lent)
                else:
                    parameter.grad = lent.to(parameter.device, copy=self._is_apart)
            for index in made:
                import torch

                parameter = self._parameters[index]
                mean = torch.from_numpy(self._core.made(index)).view(parameter.dtype).view(parameter.shape)
                parameter.grad = mean.to(parameter.device, copy=True)
            for index in dropped:
                self._parameters[index].grad = None
        self._sent.clear()
        self._leaving.clear()
        self._know()


class ArrayStoreGradients:
    """Of arrays: those that the program gives with a step, and their means over the workers."""

    def __init__(self, core: Any, values: Mapping[str, np.ndarray[Any, Any]]) -> None:
        self._core, self._names, self._values = core, list(values), list(values.values())
        self._lent: dict[int, np.ndarray[Any, Any]] = {}
        self.means: dict[str, np.ndarray[Any, Any]] = {}

    def set(self, gradients: Mapping[str, Any]) -> None:
        self._lent = {}
        for name, gradient in gradients.items():
            if name not in self._names:
                raise _core.UsageError(f"gradient of '{name}'; accepted: {', '.join(self._names)}")
            index = self._names.index(name)
            value, given = self._values[index], np.asarray(gradient)
            if given.shape != value.shape:
                raise _core.UsageError(f"the gradient of '{name}' has the shape {given.shape}; accepted: {value.shape}")
            self._lent[index] = np.array(given, value.dtype, order="C")

    def prepare(self) -> None:
        self._core.set_gradients({index: self._lent[index].ctypes.data if index in self._lent else 0
                                  for index in range(len(self._names))})  # fmt: skip

    def settle(self) -> None:
        _, dropped, made = self._core.take_changes()
        means = {index: gradient for index, gradient in self._lent.items() if index not in dropped}
        for index in made:
            value = self._values[index]
            means[index] = self._core.made(index).view(value.dtype).reshape(value.shape).copy()
        self.means = {self._names[index]: mean for index, mean in means.items()}

    def update(self, update: Callable[[], None]) -> StoreUpdate:
        def settled() -> None:
            self.settle()
            update()

        return StoreUpdate(settled, len(self._names), ("an update by the program", {}))

    def by_servers(self, words: Words | None) -> StoreUpdate:
        return StoreUpdate(self.settle, len(self._names), words or ("no optimizer", {}))


class StoreUpdate:
    """The update that a program with arrays makes by itself, or that servers make: an optimizer without state here."""

    def __init__(self, step: Callable[[], None], trained: int, words: Words) -> None:
        self.step, self._trained, self._words = step, trained, words

    def words(self) -> tuple[list[Words], list[int], list[int]]:
        return [self._words], [0] * self._trained, list(range(1, self._trained + 1))
