"""A node behind an ordinary optimizer, for frameworks that call optimizer.step() themselves."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from dpwa import _core

if TYPE_CHECKING:
    from dpwa.reports import StepReport
    from dpwa.torch_node import TorchNode


class Optimizer(torch.optim.Optimizer):
    """The optimizer `optimizer` whose step() is node.step(): for Lightning, the Trainer of Hugging Face (optimizers=),
    Accelerate and plain loops. Its groups, state and state_dict() are those of `optimizer`, so schedulers and
    checkpoints work as before. The node is started and finished by the program.

    step(closure) calls the closure once, before the exchange: not for optimizers that call it again, such as LBFGS.
    `report` is that of the last step.

    Where the back end averages gradients, each backward pass ends with that, so that they may be clipped or unscaled
    afterwards: all nodes then skip the same steps. Batches that Accelerate accumulates stay on this node; other loops
    put node.accumulate() around them.
    """

    def __init__(self, optimizer: torch.optim.Optimizer, node: TorchNode) -> None:
        # Not that of the base: groups, state and hooks are those of the optimizer.
        self.__dict__["optimizer"], self.__dict__["node"] = optimizer, node
        self.report: StepReport | None = None
        node.average_in_backward(optimizer)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["optimizer"], name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in ("param_groups", "state", "defaults"):
            setattr(self.optimizer, name, value)
        else:
            super().__setattr__(name, value)

    def __getstate__(self) -> dict[str, Any]:
        raise TypeError("an optimizer of a node cannot be copied or pickled; accepted: its state_dict()")

    def __repr__(self) -> str:
        return f"dpwa.Optimizer of {self.node.name}: {self.optimizer!r}"

    @property
    def _step_supports_amp_scaling(self) -> bool:
        """Asked by a scaler, which then leaves the gradients as they are: those of the other nodes are scaled."""
        return bool(self.node.averages_gradients and self.node.is_before_average)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        if self.__dict__.pop("found_inf", None) is not None:
            del self.grad_scale
            raise _core.UsageError("scaler.step() before average_gradients(): the gradients of all nodes are still scaled")
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        self.report = self.node.step(self.optimizer, loss)
        return loss

    def zero_grad(self, set_to_none: bool = True) -> None:
        if self.node.is_averaged:  # and a scaler has skipped the step
            self.node.leave_out_step(self.optimizer)
        self.optimizer.zero_grad(set_to_none)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        self.optimizer.add_param_group(param_group)

    def state_dict(self) -> dict[str, Any]:
        return self.optimizer.state_dict()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.optimizer.load_state_dict(state_dict)

    def register_step_pre_hook(self, hook: Any) -> Any:
        return self.optimizer.register_step_pre_hook(hook)

    def register_step_post_hook(self, hook: Any) -> Any:
        return self.optimizer.register_step_post_hook(hook)
