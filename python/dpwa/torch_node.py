"""A module of PyTorch as a node. Any version of torch: the core does not link it."""

from __future__ import annotations

import contextlib
import math
import weakref
from collections.abc import Callable, Iterator, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any

from dpwa import _core
from dpwa.device import DevicePasses
from dpwa.gradients import TorchGradients
from dpwa.node import Node, Tensors, number
from dpwa.reports import FinishReport, StepReport
from dpwa.store_worker import TorchStoreGradients
from dpwa.torch_tensors import is_sharded, local, refuse, rule_of, shard_of, tensors_of
from dpwa.watched_model import WatchedModel

if TYPE_CHECKING:
    import torch


def attach(model: torch.nn.Module, file: str | PathLike[str] | None = None, name: str | None = None, *, join: Sequence[str] = (),
           threads: int | None = None, group: torch.distributed.ProcessGroup | None = None) -> TorchNode:  # fmt: skip
    """Makes this process the node `name` (or $DPWA_NAME) of the cluster file, with the parameters and buffers of
    `model`, in host memory or on one device. Without a file the processes of a launcher are the nodes.

    They become views of one flat block of memory and keep their identity: an optimizer made before or after sees the
    same tensors. Afterwards the model may be trained and frozen, and values may be copied into it; it may not be moved,
    converted or given other layers, and what is frozen now stays so. Sharded parameters (DTensors, as of FSDP2) keep
    their own memory, under gossip: each rank exchanges its shards with the same rank of other groups, by a cluster file
    of its own.

    join: HOST:PORT of running nodes, for a name that the file lacks. threads: of the passes over a large model; the
    default is this node's part of its host.

    group: of torch.distributed. Back end collective averages gradients on it, of models on any device that it serves;
    parameters stay where they are. Without a file its ranks are the nodes.

    Raises ConfigError with the line of the cluster file, and ModelError that names the tensor.
    """
    import torch

    if not isinstance(model, torch.nn.Module):
        raise _core.ModelError(f"attach() takes a torch.nn.Module, not {type(model).__name__}; arrays: attach_arrays()")
    if group is None:
        return TorchNode(model, file, name, join, threads)
    from dpwa.process_group import GroupNode

    return GroupNode(model, file, name, join, group)


def is_on_host(device: torch.device) -> bool:
    return device.type == "cpu"


class TorchNode(Node):
    """See attach()."""

    def __init__(self, model: torch.nn.Module, file: str | PathLike[str] | None, name: str | None, join: Sequence[str],
                 threads: int | None) -> None:  # fmt: skip
        import torch

        listed = tensors_of(model)
        device = self._check_model(listed)
        described: Tensors = []
        for full, tensor, is_parameter in listed:
            dtype = str(tensor.dtype).removeprefix("torch.")
            described.append((full, "boolean" if dtype == "bool" else dtype, rule_of(tensor, is_parameter),
                              list(local(tensor).shape)))  # fmt: skip
        trained = [is_parameter and tensor.requires_grad for _, tensor, is_parameter in listed]
        super().__init__(file, name, join, threads, described, trained, self._reach(device))
        self._model, self._copies = model, []
        self._is_sharded = any(is_sharded(tensor) for _, tensor, _ in listed)
        # The core works in host memory, which has copies of what lies on a device.
        self._is_apart = self._passes is not None and self._averages
        self._names, self._tensors = [], []  # of the tensors that keep their places
        self._move_in(listed)
        self._accumulates = False
        self._optimizer: Callable[[], torch.optim.Optimizer | None] = lambda: None  # of the last step
        self._has_told = False  # that the loss is not finite
        self._gradients: TorchGradients | TorchStoreGradients | None = None
        names = [full for (full, _, _), is_one in zip(listed, trained) if is_one]
        self._trained = parameters = [tensor for (_, tensor, _), is_one in zip(listed, trained) if is_one]
        if self._together:
            self._gradients = TorchGradients(self._core, names, parameters)
        elif self._averages:
            all_parameters = [(full, tensor) for full, tensor, is_parameter in listed if is_parameter]
            self._gradients = TorchStoreGradients(self._core, names, parameters, all_parameters, self._is_apart)
        self._hooks = self._gradients.hooks if self._gradients else []

    def _reach(self, device: torch.device) -> DevicePasses | None:
        return None if is_on_host(device) else DevicePasses(device)

    def start(self) -> None:
        import torch

        if self._phase == "made" and torch.get_num_threads() > self.threads:
            _core.warn(f"{torch.get_num_threads()} threads compute, and this node's part of its host is {self.threads}: "
                       "call torch.set_num_threads(node.threads)")  # fmt: skip
        super().start()

    @staticmethod
    def _check_model(listed: list[tuple[str, torch.Tensor, bool]]) -> torch.device:
        import torch

        if not any(is_parameter for _, _, is_parameter in listed):
            raise _core.ModelError("the model has no parameters to share")
        if not any(tensor.requires_grad for _, tensor, _ in listed):
            raise _core.ModelError("all parameters of the model are frozen")
        ends: list[tuple[int, int, str]] = []
        device = local(listed[0][1]).device
        for name, given, _ in listed:
            tensor = local(given)
            if tensor.layout is not torch.strided or type(tensor.data) is not torch.Tensor:
                refuse(name, "it is not a plain dense tensor")
            if tensor.device != device:
                refuse(name, f"it is on {tensor.device}, others on {device}: a model must be on one device")
            if device.type == "meta":
                refuse(name, "it is on meta, without memory")
            if tensor.numel() and not is_sharded(given):
                last = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride()))
                ends.append((tensor.data_ptr(), tensor.data_ptr() + (last + 1) * tensor.element_size(), name))
        ends.sort()
        for (_, end, before), (begin, _, name) in zip(ends, ends[1:]):
            if begin < end:
                refuse(name, f"its memory is also that of '{before}'; to tie parameters, register one tensor in both "
                             "places")  # fmt: skip
        return device

    def _memory_of(self, offset: int, tensor: torch.Tensor) -> torch.Tensor:
        """Flat, by its place in a snapshot."""
        import torch

        size = tensor.numel() * tensor.element_size()
        if self._passes and not self._is_apart:
            return self._passes.place(offset, size)
        # Each with a storage of its own: torch.save() refuses one that holds several types.
        return torch.from_numpy(self._core.memory()[offset : offset + size]).view(tensor.dtype)

    def _move_in(self, listed: list[tuple[str, torch.Tensor, bool]]) -> None:
        import torch

        if self._passes and not self._is_apart:
            self._passes.lay_out(self._core.regions())
        last = {4: torch.channels_last, 5: torch.channels_last_3d}
        reordered, shards = [], []
        for (name, given, _), offset in zip(listed, self._core.offsets()):
            tensor = local(given)
            flat = self._memory_of(offset, tensor)
            if is_sharded(given):
                if self._averages:
                    refuse(name, f"it is sharded; accepted with backend gossip, not {self._config.backend}")
                self._copies.append((flat.view(tensor.shape), given))
                shards.append(shard_of(given))
                continue
            self._names.append(name)
            self._tensors.append(tensor)
            # The values of a store are contiguous.
            order = last.get(tensor.dim()) if self._config.backend != "kvstore" else None
            if order and tensor.is_contiguous(memory_format=order) and not tensor.is_contiguous():
                n, c, *rest = tensor.shape
                view = flat.view(n, *rest, c).movedim(-1, 1)
                reordered.append(name)
            else:
                view = flat.view(tensor.shape)
            if self._is_apart:
                self._copies.append((view, tensor))
                continue
            view.copy_(tensor.data)
            tensor.data = view
        if reordered:
            self._core.mark("channels_last", f"{len(reordered)} tensors: {', '.join(reordered)}")
        if shards:
            self._core.mark("shards", "; ".join(dict.fromkeys(shards)))
        self._watch()

    def _watch(self) -> None:
        self._watched = WatchedModel(self._model, self._names, self._tensors, self._is_sharded)

    def _check(self) -> None:
        if self._passes:
            self._passes.require_no_capture()
        self._watched.check()

    def _check_all(self) -> None:
        self._check()
        self._watched.check_all()

    def _copy_in(self, after_program: bool = False) -> None:
        """Before a call of the core. What lies on a device has also come from it, and gone to it, then. after_program:
        the program has made its step, which counts where servers have the weights, too."""
        if not self._copies:
            return
        import torch

        has_theirs = (self._is_apart and not after_program and self._phase != "made"
                      and self._core.updates_on_servers)  # fmt: skip
        with torch.no_grad():
            for copy, tensor in self._copies:
                if not (has_theirs and isinstance(tensor, torch.nn.Parameter)):
                    copy.copy_(local(tensor), non_blocking=self._is_apart)
        if self._is_apart and self._passes:
            self._passes.synchronize()

    def _copy_back(self) -> None:
        if not self._copies:
            return
        import torch

        with torch.no_grad():
            for copy, tensor in self._copies:
                local(tensor).copy_(copy, non_blocking=self._is_apart)

    def _stepping(self, step: Callable[[], Any]) -> Callable[[], None]:
        """The step of an optimizer, in a call of the core."""

        def steps() -> None:
            self._copy_back()
            step()
            self._copy_in()

        return steps if self._is_apart else step

    def _take_in(self) -> None:
        self._check_all()
        if self._passes:
            self._passes.synchronize()
        self._copy_in()
        if self._gradients and self._phase != "made":
            self._gradients.check()

    def _give_back(self) -> None:
        self._copy_back()
        if self._gradients:
            self._gradients.settle()

    def step(self, optimizer: torch.optim.Optimizer, loss: torch.Tensor | float | None = None, *,
             closure: Callable[[], Any] | None = None, scaler: Any = None) -> StepReport:  # fmt: skip
        """One step of the optimizer, with the exchange before and after it. loss: that of this node.

        closure: as torch's optimizers take it. scaler: a torch.amp.GradScaler; a step that it skips publishes nothing,
        and is counted in skipped_steps; one that is off does nothing. After finish() or leave() this is the step of the
        optimizer alone.
        """
        self._must_run("step()")
        if scaler is not None and scaler.is_enabled():
            if closure is not None:
                raise _core.UsageError("step() with a closure and a scaler; accepted: one of them")
            return self._scaled_step(optimizer, loss, scaler)
        if self._gradients and self._phase != "left":
            if closure is not None:
                raise _core.UsageError(f"step(closure=...) under backend {self._config.backend}: gradients that the "
                                       "closure computes would stay on this node")  # fmt: skip
            return self._averaged_step(optimizer, optimizer.step, loss)
        self.update_send(loss)
        try:
            if closure is None:
                optimizer.step()
            else:
                optimizer.step(closure)
        except BaseException:
            if self._phase == "in a step":
                self._phase = "between steps"
            raise
        return self.update_wait()

    def _averaged_step(self, optimizer: torch.optim.Optimizer, step: Callable[[], Any], loss: Any,
                       skips: bool = False) -> StepReport:  # fmt: skip
        assert self._gradients
        state = self._gradients.optimizer(optimizer, self._stepping(step))
        self._begin_step("step()")
        self._check()
        told = self._told(loss)  # one that is refused leaves the step to be made
        self._prepare(optimizer)
        return self._core_step(state, told, skips)

    def _core_step(self, state: Any, told: float, skips: bool) -> StepReport:
        self._copy_in()
        self._phase = "between steps"
        with self._call, self._heeding_failures(ends=True):
            report = self._report(self._core.step(state, told, skips))
        self._copy_back()
        self._settle(state)
        return report

    @staticmethod
    def _number(loss: Any) -> float:
        return number(loss)

    def _told(self, loss: Any) -> float:
        """Where all have one model, one that is not a number any more is not refused by a peer."""
        value = number(loss)
        if loss is not None and not math.isfinite(value) and not self._has_told:
            self._has_told = True
            _core.warn(f"the loss is {value:g}: the model of all nodes may be lost")
        return value

    def _prepare(self, optimizer: torch.optim.Optimizer | None = None) -> None:
        """optimizer: of the step, where it is known."""
        if not self._gradients:
            return
        self._gradients.check()
        self._gradients.prepare(self._phase == "averaged")
        if optimizer is None:
            return
        last = self._optimizer()
        is_second = self._phase != "averaged" and self._together and last is not None and last is not optimizer
        if is_second and isinstance(self._gradients, TorchGradients) and self._gradients.has_none and any(
                one.grad is not None for group in optimizer.param_groups for one in group["params"]):  # fmt: skip
            raise _core.UsageError("step() of a second optimizer after one backward pass, whose gradients have been taken; "
                                   "accepted: one optimizer, or one whose step() makes the steps of both")  # fmt: skip
        self._optimizer = weakref.ref(optimizer)

    def _settle(self, known: Any = None) -> None:
        if self._gradients:
            self._gradients.settle(known)

    def _scaled_step(self, optimizer: torch.optim.Optimizer, loss: Any, scaler: Any) -> StepReport:
        if self._phase == "between steps":
            if self._averages and scaler._per_optimizer_states[id(optimizer)]["stage"].name == "UNSCALED":
                raise _core.UsageError("scaler.unscale_() before average_gradients(): the gradients of all nodes are still "
                                       "scaled")  # fmt: skip
            self._average(optimizer)  # all nodes find an overflow in the same ones
        with contextlib.suppress(RuntimeError):  # the program has done it, to clip
            scaler.unscale_(optimizer)
        found = scaler._found_inf_per_device(optimizer)
        # Servers take no gradient that is not finite: where those of all workers overflowed there is none.
        has_none = self._averages and not found
        skips = has_none or any(one.item() for one in found.values())
        runs = self._phase != "left"
        self._skipped += skips and runs
        if runs and self._gradients:
            report = self._averaged_step(optimizer, lambda: scaler.step(optimizer), loss, skips)
            if skips and self._together:
                scaler.step(optimizer)  # which notes it, and does nothing
            scaler.update(scaler.get_scale() * scaler.get_backoff_factor() if has_none else None)
            return report
        if not skips:
            self.update_send(loss)
        elif runs:
            self._check()
            self._phase = "between steps"
        scaler.step(optimizer)
        scaler.update()
        return self._wait(loss) if skips else self.update_wait()

    def update_send(self, loss: torch.Tensor | float | None = None) -> None:
        """The first half of step(): publishes the parameters, and begins a pull. optimizer.step() follows."""
        self._must_run("update_send()")
        if self._phase == "left":
            return
        self._begin_step("update_send()")
        self._check()
        is_later = self._passes is not None and not self._is_apart
        told = math.nan if is_later else self._number(loss)  # one that is refused leaves the step to be made
        self._prepare()
        self._copy_in()
        with self._call, self._heeding_failures():
            if self._passes and is_later:
                self._passes.note_loss(loss)
            self._core.update_send(told)
        if self._is_apart:
            self._copy_back()
        self._settle()
        self._phase = "in a step"

    def update_wait(self, loss: torch.Tensor | float | None = None) -> StepReport:
        """The second half: blends what has arrived. loss: the loss now; none: that of update_send()."""
        self._must_run("update_wait()")
        if self._phase != "left":
            self._must_be("in a step", "update_wait()")
            self._phase = "between steps"
        return self._wait(loss)

    def _wait(self, loss: Any) -> StepReport:
        self._copy_in(after_program=True)
        report = self._wait_for(None if loss is None else self._number(loss))
        self._copy_back()
        if self._phase != "left":
            self._settle()
        return report

    def average_gradients(self) -> None:
        """Before clipping: .grad holds the means over all nodes from now on. Without this call step() does it. No
        effect where gradients stay on the node, or backward() has done it."""
        self._must_run("average_gradients()")
        self._average()

    def _average(self, optimizer: torch.optim.Optimizer | None = None) -> None:
        is_done = self._phase == "averaged" and self._gradients and self._gradients.average
        if is_done or self._phase == "left":
            return
        self._must_be("between steps", "average_gradients()")
        self._check()
        self._prepare(optimizer)
        self._phase = "averaged"
        if self._averages:
            self._copy_in()
            with self._call, self._heeding_failures():
                self._core.average_gradients()
            self._settle()

    def set_optimizer(self, optimizer: torch.optim.Optimizer) -> None:
        """Before backward(), after a change of its numbers, such as the learning rate: where servers run the optimizer,
        gradients then leave during backward(). No effect elsewhere."""
        self._must_run("set_optimizer()")
        if isinstance(self._gradients, TorchStoreGradients) and self._phase != "left":
            self._gradients.tell(optimizer)

    def take_optimizer_state(self, optimizer: torch.optim.Optimizer) -> bool:
        """Before a checkpoint, between two steps: brings to the optimizer its state where servers run it. False: it
        could not be had, which is logged; the optimizer has no state then."""
        self._must_run("take_optimizer_state()")
        if not isinstance(self._gradients, TorchStoreGradients) or self._phase == "left":
            return True
        with self._call, self._heeding_failures():
            return bool(self._core.take_optimizer_state(self._gradients.optimizer(optimizer, optimizer.step)))

    def average_in_backward(self, optimizer: torch.optim.Optimizer) -> None:
        """From now on each backward pass ends with average_gradients(), for frameworks that clip gradients themselves;
        one that they accumulate is left to this node. optimizer: that of step(). No effect where gradients stay on the
        node."""
        if self._gradients:
            from dpwa.backward_average import BackwardAverage

            self._gradients.average = BackwardAverage(self, optimizer, self._trained)

    @property
    def is_averaged(self) -> bool:
        """Whether .grad has the means of the step that comes."""
        return self._phase == "averaged"

    def leave_out_step(self, optimizer: torch.optim.Optimizer) -> None:
        """In place of step(), after average_gradients(): the program makes no step of these gradients. On all nodes."""
        if self._phase == "averaged" and self._gradients:
            self._averaged_step(optimizer, lambda: None, None, skips=True)
            self._skipped += 1
        elif self._phase == "averaged":
            self._phase = "between steps"

    def finish(self) -> FinishReport:
        store = self._gradients if isinstance(self._gradients, TorchStoreGradients) else None
        if store and store.begun_with and self._phase == "between steps" and self._core.updates_on_servers:
            # The program has left out the step after a backward pass: the servers make it, and others wait for the rest.
            self._check()
            self._prepare()
            self._core_step(store.begun_with, math.nan, False)
        return super().finish()

    def _forget_average(self) -> None:
        if self._gradients and self._gradients.average:
            self._gradients.average.drop()
        elif self._phase == "averaged" and not self._gradients:  # then the average was none
            self._phase = "between steps"

    @property
    def is_accumulating(self) -> bool:
        """Whether backward passes add to the gradients of this node alone."""
        return self._accumulates

    def set_accumulating(self, accumulates: bool) -> None:
        """As accumulate() does."""
        self._accumulates = accumulates
        if self._averages:
            self._core.set_accumulating(accumulates)

    @contextlib.contextmanager
    def accumulate(self) -> Iterator[None]:
        """Around the backward passes of a step but the last: they add to the gradients of this node alone."""
        self._must_run("accumulate()")
        self.set_accumulating(True)
        try:
            yield
        finally:
            self.set_accumulating(False)
