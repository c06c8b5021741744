"""A node, whatever its parameters are: the order of calls, and what all kinds share."""

from __future__ import annotations

import contextlib
import math
import re
import weakref
from collections.abc import Iterator, Mapping, Sequence
from numbers import Integral
from os import PathLike, fspath
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from dpwa import _core
from dpwa.device import DevicePasses
from dpwa.launch import meet
from dpwa.reports import FinishReport, StepReport

# Of attach() without a file.
LAUNCHED = Path(__file__).parent / "launched.yaml"

STARTED: weakref.WeakValueDictionary[tuple[str, str], Node] = weakref.WeakValueDictionary()  # file, name

Tensors = list[tuple[str, str, str, list[int]]]  # name, dtype, rule, shape


def number(loss: Any) -> float:
    """Of a number, or of a tensor or array with one element; NaN: unknown."""
    if loss is None:
        return math.nan
    try:
        return float(loss.item() if hasattr(loss, "item") else loss)
    except (TypeError, ValueError, RuntimeError) as error:
        has_several = hasattr(loss, "numel") and loss.numel() != 1
        if isinstance(error, RuntimeError) and not has_several:  # as of a device
            raise
        raise _core.UsageError(f"{type(loss).__name__} in place of a number; accepted: a number, or an array or a tensor with "
                               "one element") from None  # fmt: skip


def show_metrics(node: Node | None, metrics: Mapping[str, Any]) -> None:
    """Those of a framework that are numbers of the model, as far as there is room."""
    for name, value in metrics.items():
        if not node or name.endswith(("_runtime", "_per_second", "epoch", "step")) or isinstance(value, (str, bytes)):
            continue
        try:
            shown = number(value)
        except RuntimeError:  # a list, a dict, an array, a tensor of several elements
            continue
        with contextlib.suppress(_core.UsageError):
            node.show(re.sub(r"[^\w./ -]", "_", name, flags=re.ASCII)[:40], shown)


def leave_behind(core: Any, hooks: list[Any], passes: DevicePasses | None) -> None:
    """Of a node that the program has dropped while it ran."""
    for hook in hooks:
        hook.remove()
    with contextlib.suppress(_core.Error):  # as in a process that was forked
        core.leave()
        if passes:
            passes.synchronize()  # the core frees the memory of copies that are under way


class Node:
    """One training process of the cluster. Made by attach() or attach_arrays(); used by one thread at a time, and only
    by the process that made it: workers of a DataLoader may be forked from it."""

    def __init__(self, file: str | PathLike[str] | None, name: str | None, join: Sequence[str], threads: int | None,
                 tensors: Tensors, trained: list[bool], passes: DevicePasses | None = None) -> None:  # fmt: skip
        if not isinstance(name, (str, type(None))):
            raise _core.ConfigError(f"attach(): name {name!r}; accepted: the name of a node, such as 'w1'")
        if isinstance(join, str) or not all(isinstance(one, str) for one in join):
            raise _core.ConfigError(f"attach(): join {join!r}; accepted: a list, such as ['10.0.0.1:4000']")
        if threads is not None and (not isinstance(threads, Integral) or threads < 1):
            raise _core.ConfigError(f"attach(): threads {threads!r}; accepted: a number from 1 on")
        self._launched = self._load(file, name, join)
        self._config = self._launched.config
        self._key = (str(self._config.file), self.name)  # of STARTED
        if passes and self._config.backend == "collective":
            raise _core.ModelError(f"the model is on {passes.device}, and the back end collective; accepted on a device: "
                                   "gossip, kvstore, null, and collective with attach(group=...), a process group of "
                                   "torch.distributed")  # fmt: skip
        self._passes = passes  # of a model on a device
        self._core = self._make_core(tensors, trained, threads)
        self._together = self._config.backend == "collective"  # all nodes make the same steps
        self._averages = self._core.averages_gradients  # over all nodes
        self._phase = "made"
        self._call = _core.OneCall()  # around a call of the core that lets other threads run
        self._hooks: list[Any] = []  # of the gradients
        self._dropped: weakref.finalize[..., Node] | None = None
        self._given_up = False  # its start has failed: the core is not asked any more
        self._skipped = 0
        self._shared: list[Any] = []  # memory of the program
        self._shown = _core.ShownNumbers()
        self._finished = FinishReport(False, 1, float("nan"), True)

    def _load(self, file: str | PathLike[str] | None, name: str | None, join: Sequence[str]) -> Any:
        if file is None and not _core.is_launched():
            raise _core.ConfigError("attach() without a file: no launcher has started this process; accepted: a cluster "
                                    "file, or torchrun, srun, mpirun, or RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT")  # fmt: skip
        return _core.LaunchedConfig(fspath(file or LAUNCHED), name or "", list(join), meet)

    def _make_core(self, tensors: Tensors, trained: list[bool], threads: int | None) -> Any:
        return _core.make_trainer(self._config, tensors, trained, int(threads or self._config.threads), self._passes)

    @property
    def name(self) -> str:
        return str(self._config.name)

    @property
    def rank(self) -> int:
        """Of this node among those that make the next step: its position in the cluster file, unless nodes step
        together and some are gone. Changes only in step()."""
        return int(self._core.place[0])

    @property
    def size(self) -> int:
        """The number of these nodes."""
        return int(self._core.place[1])

    @property
    def threads(self) -> int:
        """As many as this node should compute with: torch.set_num_threads(node.threads)."""
        return int(self._config.threads)

    @property
    def averages_gradients(self) -> bool:
        """Over all nodes, in each step: back ends collective and kvstore."""
        return bool(self._averages)

    @property
    def is_in_step(self) -> bool:
        """Whether update_wait() comes next."""
        return self._phase == "in a step"

    @property
    def is_before_average(self) -> bool:
        """Whether average_gradients() may come next."""
        return self._phase == "between steps"

    def require_same(self, what: str, value: object) -> None:
        """Before start(): a setting that should be the same on all nodes. Nodes that differ warn, and train on; where
        they step together start() fails."""
        self._must_be("made", "require_same()")
        self._core.require_same(what, str(value))

    def mark_model(self, what: str, value: object) -> None:
        """Before start(): what the numbers of the model mean. Nodes that differ in it exchange nothing."""
        self._must_be("made", "mark_model()")
        self._core.mark(what, str(value))

    def share(self, state: Any) -> None:
        """Before start(): a small array of NumPy or tensor in host memory with what the program knows in common with
        the others where they step together, such as its position in the data. The program advances it before step();
        a node that joins later takes it over. It may be called for several: a Sampler shares its position."""
        self._must_be("made", "share()")
        if not (isinstance(state, np.ndarray) or hasattr(state, "numpy")):
            raise _core.UsageError(f"share() of a {type(state).__name__}; accepted: an array of NumPy or a tensor, which the "
                                   "node may write")  # fmt: skip
        array = np.asarray(state)
        if not (array.flags.c_contiguous and array.flags.writeable):
            raise _core.UsageError("share() of an array that is not contiguous, or not to be written")
        memory = array.reshape(-1).view(np.uint8)
        self._shared.append(memory)  # the core writes into it
        if self._together:
            self._core.share(f"{array.dtype} [{', '.join(str(size) for size in array.shape)}]", memory)

    def start(self) -> None:
        """Joins the network and brings the parameters to common weights. Bounded by start_wait_ms of the back end. A node
        of this process that was started before under the same name of the same file leaves."""
        if self._phase != "made":
            raise _core.UsageError("start() a second time; accepted: once, and attach() again for another run")
        if before := STARTED.get(self._key):  # as of a cell of a notebook that runs twice
            before.leave()
        STARTED[self._key] = self
        self._dropped = weakref.finalize(self, leave_behind, self._core, self._hooks, self._passes)
        self._dropped.atexit = False
        self._take_in()
        self._phase = "between steps"
        try:
            with self._call:
                self._core.start()
        except BaseException:  # after Ctrl-C the start goes on elsewhere, and then leaves
            self._end_failed()
            self._given_up = True
            raise
        self._give_back()

    def finish(self) -> FinishReport:
        """Takes the final average where gossip.final_average is on, and leaves. Under collective a node without data
        goes on with zeros until all have finished. A second call does nothing."""
        self._forget_average()
        if self._phase in ("averaged", "in a step"):
            self._phase = "between steps"  # the step is not ended
        if self._phase == "between steps":
            self._take_in()
            with self._call, self._heeding_failures():
                self._finished = FinishReport(**self._core.finish())
            self._give_back()
        self.leave()
        return self._finished

    def leave(self) -> None:
        """Leaves at once, at any moment."""
        if self._phase not in ("made", "left"):
            with self._call:
                self._core.leave()
            self._await_copies()
        self._end()
        for hook in self._hooks:
            hook.remove()

    def show(self, name: str, value: Any) -> None:
        """Between two steps: a number of the program, such as ("accuracy", 0.97), for the status of the node, its metrics
        and the page of `dpwa dashboard`: the latest under each name, of which there are at most 16. None: none yet."""
        self._must_run("show()")
        if self.is_in_step:
            self._must_be("between steps", "show()")
        if self._phase != "left":
            with self._call:
                self._shown.set(name, number(value))  # refuses the same with every back end
                self._core.show(name, number(value))

    def reload(self) -> None:
        """Between two steps: takes over the keys of the cluster file that may change while the node runs."""
        self._must_run("reload()")
        fresh = self._launched.reload()
        with self._call:
            self._core.reload(fresh)

    def set_batch_size(self, samples: int) -> None:
        """Samples in the batch of the next gradients, or in all of a step: the weight of its gradients in the mean over
        all nodes. 0: they do not count. No effect where gradients stay on the node."""
        self._must_run("set_batch_size()")
        self._weigh(samples)

    def _weigh(self, samples: int) -> None:
        count = number(samples)
        if not count.is_integer() or count < 0:
            raise _core.UsageError(f"set_batch_size({samples}); accepted: 0 or more")
        if self._averages:
            self._core.set_samples(count)

    def should_stop(self, wanted: bool = False) -> bool:
        """After a step: whether the loop ends now. Under gossip every node decides for itself; where all step together
        and one wants to, all end after the same step, the next one."""
        self._must_run("should_stop()")
        return bool(self._core.should_stop(wanted)) if self._together and self._phase != "left" else wanted

    def state_dict(self) -> dict[str, Any]:
        """For a checkpoint, beside those of model and optimizer; torch.distributed.checkpoint takes it as it is."""
        if self._given_up:
            raise _core.UsageError("state_dict() of a node that was given up, as by Ctrl-C in a call")
        clock, own = self._core.resume_state()
        return {"clock": clock, **own}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Before start(): the node keeps the weights that it has now unless a peer is ahead of this clock."""
        self._must_be("made", "load_state_dict()")
        if not isinstance(state.get("clock"), (int, float)) or not 0 <= state["clock"] < math.inf:
            raise _core.UsageError("load_state_dict() of what is not the state_dict() of a node")
        own = {key: int(value) for key, value in state.items() if key != "clock"}
        self._core.restore((float(state["clock"]), own))

    def __enter__(self) -> Node:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None) -> None:
        if kind is None:
            self.finish()
            return
        with contextlib.suppress(_core.UsageError):  # of a process that was forked: the cause is another one
            self.leave()

    def _forget_average(self) -> None:
        """Of a step that the program has left out."""

    # What a kind of node does where the memory of its parameters is not that of the node.
    def _take_in(self) -> None: ...
    def _give_back(self) -> None: ...

    def _await_copies(self) -> None:
        """The core frees the memory of copies that are under way."""
        if self._passes:
            self._passes.synchronize()

    def _end_failed(self) -> None:
        with contextlib.suppress(RuntimeError):  # as in a process that was forked
            self._await_copies()
        self._end()

    def _end(self) -> None:
        self._phase = "left"
        if self._dropped:
            self._dropped.detach()

    @contextlib.contextmanager
    def _heeding_failures(self, ends: bool = False) -> Iterator[None]:
        """Around a call of the core that may wait for other nodes, or end the run of this one. ends: so does an exception
        of the program in it, as the gradients of that step have been exchanged, and would count as those of the next."""
        try:
            yield
        except BaseException as error:
            self._given_up = self._core.given_up  # after Ctrl-C the call goes on elsewhere, and then leaves
            if self._given_up:
                self._core.keep(self)  # it may read the memory of the gradients
            fails = ends and not self._given_up and not isinstance(error, _core.Error)
            if fails:
                _core.warn(f"this node leaves: {type(error).__name__} in the update of a step")
                with contextlib.suppress(_core.Error):
                    self._core.leave()
                    self._core.update_wait(None)  # what that step would have reported
            if self._given_up or fails or type(error) is _core.Error:
                self._end_failed()
            raise

    def _wait_for(self, loss: float | None) -> StepReport:
        if self._given_up:
            return StepReport("skipped", False, "", 0, 0, 0, False, 0, 0, 0, 0, 1, 0, 1, False, 0, 0, self._skipped)
        with self._call, self._heeding_failures():
            return self._report(self._core.update_wait(loss))

    def _report(self, words: dict[str, Any]) -> StepReport:
        return StepReport(**words, skipped_steps=self._skipped)

    def _must_be(self, phase: str, call: str) -> None:
        if self._phase == phase:
            return
        where = {"made": "before start()", "between steps": "between two steps", "in a step": "after update_send()"}
        raise _core.UsageError(f"{call} belongs {where[phase]}; the node is {self._phase}")

    def _begin_step(self, call: str) -> None:
        if self._phase != "averaged":
            self._must_be("between steps", call)

    def _must_run(self, call: str) -> None:
        if self._phase == "made":
            raise _core.UsageError(f"{call} before start()")
