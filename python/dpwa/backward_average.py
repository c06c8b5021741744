"""Averages of gradients at the end of a backward pass, for frameworks that clip them themselves."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from types import FrameType, FunctionType
from typing import TYPE_CHECKING

import torch
from torch.autograd.function import BackwardCFunction

from dpwa import _core
from dpwa.gradients import Noted, noted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dpwa.torch_node import TorchNode


def more_follow() -> bool:
    """Whether Accelerate, which the Trainer of Hugging Face uses, accumulates this pass."""
    if "accelerate" not in sys.modules:
        return False
    from accelerate.state import GradientState

    return not GradientState().sync_gradients


# On the stack while a backward pass runs the backward() of a torch.autograd.Function.
IN_A_PASS = {id(own.__code__) for own in vars(BackwardCFunction).values() if isinstance(own, FunctionType)}


def is_nested() -> bool:
    """Whether this pass runs within another one. The numbers of passes do not tell: one that has failed looks like one
    that goes on."""
    frame: FrameType | None = sys._getframe()
    while frame and id(frame.f_code) not in IN_A_PASS:
        frame = frame.f_back
    return frame is not None


class BackwardAverage:
    """After each backward pass .grad has the means over all nodes, as under DistributedDataParallel. A step that the
    program then leaves out, as a GradScaler does, is left out by all nodes: their gradients are the same.

    The hooks of the gradients call begin() before they hand one over.
    """

    def __init__(self, node: TorchNode, optimizer: torch.optim.Optimizer, parameters: Sequence[torch.Tensor]) -> None:
        self._node, self._optimizer, self._parameters = node, optimizer, parameters
        self._pass = -1  # torch's number of the last one
        self._holds = False
        self._averaged: list[Noted] = []

    def begin(self, index: int) -> None:
        number = torch._C._current_graph_task_id()
        if number == self._pass or not self._node.is_before_average and not self._node.is_averaged:
            return
        self._pass = number
        if self._node.is_averaged:
            self._require_new(index)
            self.drop()
        if self._holds:  # an exception has ended that pass
            self._hold(False)
        if self._node.is_accumulating:
            return
        at_the_end: Callable[[], None] = self._average
        if more_follow():
            self._hold(True)
            at_the_end = partial(self._hold, False)
        elif is_nested():  # its end is not that of the gradients
            raise _core.UsageError("a backward pass within another one, as of activation checkpointing with "
                                   "use_reentrant=True, averages only a part of the gradients; accepted: "
                                   "use_reentrant=False")  # fmt: skip
        torch.autograd.Variable._execution_engine.queue_callback(at_the_end)

    def _hold(self, holds: bool) -> None:
        """What this pass gives stays on the node."""
        self._holds = holds
        self._node.set_accumulating(holds)

    def _average(self) -> None:
        self._node.average_gradients()
        self._averaged = noted(self._parameters)

    def _require_new(self, index: int) -> None:
        if not self._averaged:  # by the program itself
            return
        before, version = self._averaged[index]
        gradient = self._parameters[index].grad
        if gradient is not None and gradient is before and gradient._version == version + 1:
            raise _core.UsageError("a second backward pass adds to gradients that were averaged; accepted: node.accumulate() "
                                   "around all passes of a step but the last")  # fmt: skip

    def drop(self) -> None:
        """The program has left out the step of the gradients that were averaged."""
        self._node.leave_out_step(self._optimizer)
