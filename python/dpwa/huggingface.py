"""A callback for the Trainer of Hugging Face: Trainer(..., callbacks=[dpwa.huggingface.Callback("cluster.yaml", "w1")]).
For models in host memory."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import Any

from transformers import TrainerCallback

from dpwa.node import show_metrics
from dpwa.reports import StepReport
from dpwa.torch_node import TorchNode, attach


class Callback(TrainerCallback):
    """Attaches the model when training starts, and ends with the run. `node` is there while it trains; `report` is that
    of the last step. Gradients are averaged in the backward pass, before the Trainer clips them; batches that it
    accumulates stay on this node."""

    def __init__(self, file: str | PathLike[str] | None = None, name: str | None = None, *, join: Sequence[str] = (),
                 threads: int | None = None) -> None:  # fmt: skip
        self._attach = {"file": file, "name": name, "join": join, "threads": threads}
        self.node: TorchNode | None = None
        self.report: StepReport | None = None

    def on_train_begin(self, args: Any, state: Any, control: Any, model: Any = None, optimizer: Any = None, **_: Any) -> None:
        self.node = attach(model, **self._attach)
        self.node.average_in_backward(getattr(optimizer, "optimizer", optimizer))  # as Accelerate has wrapped it
        self.node.start()

    def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        assert self.node
        self.node.update_send()

    def on_optimizer_step(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        assert self.node
        self.report = self.node.update_wait()

    def on_evaluate(self, args: Any, state: Any, control: Any, metrics: dict[str, float] | None = None, **_: Any) -> None:
        show_metrics(self.node, metrics or {})

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        assert self.node
        self.node.finish()
