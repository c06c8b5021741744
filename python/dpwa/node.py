"""A node, whatever its parameters are: the order of calls, and what all kinds share."""

from __future__ import annotations

import math
from collections.abc import Sequence
from os import PathLike, fspath
from types import TracebackType
from typing import Any

from dpwa import _core
from dpwa.reports import FinishReport, StepReport

Tensors = list[tuple[str, str, str, list[int]]]  # name, dtype, rule, shape


def number(loss: Any) -> float:
    """Of a number, or of a tensor or array with one element; NaN: unknown."""
    if loss is None:
        return math.nan
    return float(loss.item() if hasattr(loss, "item") else loss)


class Node:
    """One training process of the cluster. Made by attach() or attach_arrays(); used by one thread at a time, and only
    by the process that made it: workers of a DataLoader may be forked from it."""

    def __init__(self, file: str | PathLike[str], name: str | None, join: Sequence[str], threads: int | None,
                 tensors: Tensors) -> None:  # fmt: skip
        self._config = _core.load_config(fspath(file), name or "", list(join))
        self._core = _core.Trainer(self._config, tensors, threads or self._config.threads)
        self._phase = "made"
        self._given_up = False  # its start has failed: the core is not asked any more
        self._skipped = 0
        self._finished = FinishReport(False, 1, float("nan"), True)

    @property
    def name(self) -> str:
        return str(self._config.name)

    @property
    def rank(self) -> int:
        """The position of this node in the cluster file."""
        return int(self._config.rank)

    @property
    def size(self) -> int:
        """The number of nodes in the cluster file."""
        return int(self._config.size)

    @property
    def threads(self) -> int:
        """As many as this node should compute with: torch.set_num_threads(node.threads)."""
        return int(self._config.threads)

    def require_same(self, what: str, value: object) -> None:
        """Before start(): a setting that should be the same on all nodes. Nodes that differ warn, and train on."""
        self._must_be("made", "require_same()")
        self._core.require_same(what, str(value))

    def mark_model(self, what: str, value: object) -> None:
        """Before start(): what the numbers of the model mean. Nodes that differ in it exchange nothing."""
        self._must_be("made", "mark_model()")
        self._core.mark(what, str(value))

    def start(self) -> None:
        """Joins the network and brings the parameters to common weights. Bounded by gossip.start_wait_ms."""
        self._must_be("made", "start()")
        self._phase = "between steps"
        self._take_in()
        try:
            self._core.start()
        except BaseException:  # after Ctrl-C the start goes on elsewhere, and then leaves
            self._phase, self._given_up = "left", True
            raise
        self._give_back()

    def finish(self) -> FinishReport:
        """Takes the final average where gossip.final_average is on, and leaves. A second call does nothing."""
        if self._phase == "between steps":
            self._phase = "left"
            self._take_in()
            self._finished = FinishReport(**self._core.finish())
            self._give_back()
            self._core.leave()
        self._phase = "left"
        return self._finished

    def leave(self) -> None:
        """Leaves at once, at any moment."""
        if self._phase not in ("made", "left"):
            self._core.leave()
        self._phase = "left"

    def reload(self) -> None:
        """Between two steps: takes over the keys of the cluster file that may change while the node runs."""
        self._must_run("reload()")
        self._core.reload(_core.load_config(self._config.file, self._config.name, []))

    def should_stop(self, wanted: bool = False) -> bool:
        """Whether the loop ends now. Under gossip every node decides for itself."""
        return wanted

    def state_dict(self) -> dict[str, Any]:
        """For a checkpoint, beside those of model and optimizer; torch.distributed.checkpoint takes it as it is."""
        if self._given_up:
            raise _core.UsageError("state_dict() of a node whose start has failed")
        clock, lineage, incarnation = self._core.resume_state()
        return {"clock": clock, "lineage": lineage, "incarnation": incarnation}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Before start(): the node keeps the weights that it has now unless a peer is ahead of this clock."""
        self._must_be("made", "load_state_dict()")
        self._core.restore((float(state["clock"]), int(state["lineage"]), int(state["incarnation"])))

    def __enter__(self) -> Node:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None) -> None:
        if kind is None:
            self.finish()
        else:
            self.leave()

    # What a kind of node does where the memory of its parameters is not that of the node.
    def _take_in(self) -> None: ...
    def _give_back(self) -> None: ...

    def _wait_for(self, loss: float | None) -> StepReport:
        if self._given_up:
            return StepReport("skipped", "", 0, 0, 0, False, 0, 0, 0, 0, 0, 1, False, 0, 0, self._skipped)
        return StepReport(**self._core.update_wait(loss), skipped_steps=self._skipped)

    def _must_be(self, phase: str, call: str) -> None:
        if self._phase == phase:
            return
        where = {"made": "before start()", "between steps": "between two steps", "in a step": "after update_send()"}
        raise _core.UsageError(f"{call} belongs {where[phase]}; the node is {self._phase}")

    def _must_run(self, call: str) -> None:
        if self._phase == "made":
            raise _core.UsageError(f"{call} before start()")
