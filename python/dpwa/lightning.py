"""A callback for Lightning: Trainer(callbacks=[dpwa.lightning.Callback("cluster.yaml", "w1")]). For modules with one
optimizer, in host memory."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from os import PathLike
from typing import Any

try:
    import lightning.pytorch as pl
except ImportError:
    import pytorch_lightning as pl

from dpwa import _core
from dpwa.node import show_metrics
from dpwa.reports import StepReport
from dpwa.torch_node import TorchNode, attach


class Callback(pl.Callback):
    """Attaches the module when training starts, and ends with the run. `node` is there while it trains; `report` is that
    of the last step. Gradients are averaged before Lightning clips them; batches that accumulate stay on this node."""

    def __init__(self, file: str | PathLike[str] | None = None, name: str | None = None, *, join: Sequence[str] = (),
                 threads: int | None = None) -> None:  # fmt: skip
        super().__init__()
        self._attach = {"file": file, "name": name, "join": join, "threads": threads}
        self.node: TorchNode | None = None
        self.report: StepReport | None = None
        self._loss: Any = None
        self._hook: Any = None
        self._passes = contextlib.ExitStack()

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        if len(trainer.optimizers) != 1:
            raise _core.UsageError(f"the module has {len(trainer.optimizers)} optimizers; accepted: one")
        self.node = attach(pl_module, **self._attach)  # type: ignore[arg-type]
        self._hook = trainer.optimizers[0].register_step_post_hook(lambda *_: self._end_step())
        self.node.start()  # last: where it fails, on_exception() takes back all of this

    def on_before_backward(self, trainer: Any, pl_module: Any, loss: Any) -> None:
        self._loss = loss.detach()
        assert self.node
        if trainer.fit_loop._should_accumulate():
            self._passes.enter_context(self.node.accumulate())

    def on_after_backward(self, trainer: Any, pl_module: Any) -> None:
        self._passes.close()

    def on_before_optimizer_step(self, trainer: Any, pl_module: Any, optimizer: Any) -> None:
        assert self.node
        self.node.average_gradients()
        self.node.update_send(self._loss)

    def _end_step(self) -> None:
        if self.node and self.node.is_in_step:
            self.report = self.node.update_wait()

    def on_train_batch_end(self, *_: Any) -> None:
        self._end_step()  # a GradScaler has skipped that of the optimizer

    def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
        show_metrics(self.node, trainer.callback_metrics)

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        if self.node:
            self._hook.remove()
            self.node.finish()

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        if self.node:
            self._hook.remove()
            self.node.leave()
