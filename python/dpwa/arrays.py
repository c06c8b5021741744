"""Arrays of NumPy, JAX or anything that NumPy can read, as a node."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from typing import Any

import numpy as np

from dpwa import _core
from dpwa.gradients import ArrayGradients
from dpwa.node import Node, number
from dpwa.reports import StepReport
from dpwa.store_worker import ArrayStoreGradients, Words


def attach_arrays(arrays: Mapping[str, Any], file: str | PathLike[str] | None = None, name: str | None = None, *,
                  join: Sequence[str] = (), threads: int | None = None) -> ArraysNode:  # fmt: skip
    """Makes this process the node `name` (or $DPWA_NAME) of the cluster file, with these arrays as its parameters.
    Floating-point ones are averaged; of integers the larger is kept. The order and the names are those of the model on
    every node."""
    if not isinstance(arrays, Mapping) or not arrays or not all(isinstance(key, str) for key in arrays):
        raise _core.ModelError("attach_arrays() takes arrays by their names, such as {'w': w}")
    return ArraysNode(arrays, file, name, join, threads)


def described(name: str, array: np.ndarray[Any, Any]) -> tuple[str, str, str, list[int]]:
    kind = str(array.dtype)  # ml_dtypes, as of JAX, call theirs bfloat16
    rule = "carry" if kind == "bool" else "interpolate" if "float" in kind else "maximum"
    return name, "boolean" if kind == "bool" else kind, rule, list(array.shape)


def refuse_overlaps(arrays: Mapping[str, np.ndarray[Any, Any]]) -> None:
    by_place = sorted((value.__array_interface__["data"][0], key) for key, value in arrays.items() if value.size)
    for (_, before), (_, name) in zip(by_place, by_place[1:]):
        if np.may_share_memory(arrays[before], arrays[name]):
            raise _core.ModelError(f"the memory of array '{name}' is also that of '{before}'; accepted: arrays of their own")


class ArraysNode(Node):
    """See attach_arrays(). `values` are the parameters of this node, as views of the memory that it exchanges."""

    def __init__(self, arrays: Mapping[str, Any], file: str | PathLike[str] | None, name: str | None, join: Sequence[str],
                 threads: int | None) -> None:  # fmt: skip
        given = {key: np.asarray(value) for key, value in arrays.items()}
        tensors = [described(key, value) for key, value in given.items()]
        trained = [rule == "interpolate" for _, _, rule, _ in tensors]
        # NumPy's own arrays are written in place.
        self._own = {key: value for key, value in arrays.items() if isinstance(value, np.ndarray)
                     and value.flags.writeable}  # fmt: skip
        refuse_overlaps(self._own)
        super().__init__(file, name, join, threads, tensors, trained)
        memory = self._core.memory()
        self.values: dict[str, np.ndarray[Any, Any]] = {}
        for (key, value), offset in zip(given.items(), self._core.offsets()):
            self.values[key] = memory[offset : offset + value.nbytes].view(value.dtype).reshape(value.shape)
        self._set(given)
        self._steps_to_look_at = 2  # whether the program writes the arrays: a copy would train apart
        self._gradients: ArrayGradients | ArrayStoreGradients | None = None
        self._optimizer: Words | None = None  # of servers
        averaged = {key: value for (key, value), is_one in zip(self.values.items(), trained) if is_one}
        if self._together:
            self._gradients = ArrayGradients(self._core, averaged)
        elif self._averages:
            self._gradients = ArrayStoreGradients(self._core, averaged)

    def _set(self, values: Mapping[str, Any]) -> None:
        if values.keys() != self.values.keys():
            raise _core.UsageError(f"the arrays are {', '.join(values)}; they were {', '.join(self.values)}")
        for key, value in values.items():
            if np.shape(value) != self.values[key].shape:
                raise _core.UsageError(f"array '{key}' has the shape {np.shape(value)}; it had {self.values[key].shape}")
            self.values[key][...] = value

    def _take_in(self) -> None:
        if self._by_servers and self._phase != "made":
            if changed := [key for key, array in self._own.items() if array.tobytes() != self.values[key].tobytes()]:
                raise _core.UsageError(f"array '{changed[0]}' was written by the program; with kvstore.update 'server' the "
                                       "servers have the weights; accepted: kvstore.update 'worker'")  # fmt: skip
            return
        for key, array in self._own.items():
            self.values[key][...] = array

    def _look_for_writes(self) -> None:
        self._steps_to_look_at -= 1
        if all(np.array_equal(array, self.values[key]) for key, array in self._own.items()):
            self._steps_to_look_at = 0
            _core.warn("step(): no array was written since the step before; accepted: arrays that are written in place, as by "
                       "w -= ..., not w = w - ...")  # fmt: skip

    @property
    def _by_servers(self) -> bool:
        return bool(isinstance(self._gradients, ArrayStoreGradients) and self._core.updates_on_servers)

    def set_optimizer(self, optimizer: str, **numbers: float) -> None:
        """Before step(), where servers run the optimizer: its name and numbers, as of KVStore.set_optimizer()."""
        self._optimizer = (optimizer, {name: float(value) for name, value in numbers.items()})

    def _give_back(self) -> None:
        for key, array in self._own.items():
            array[...] = self.values[key]

    def step(self, loss: float | None = None, values: Mapping[str, Any] | None = None, *,
             gradients: Mapping[str, Any] | None = None,
             update: Callable[[Mapping[str, Any]], Mapping[str, Any] | None] | None = None) -> StepReport:  # fmt: skip
        """A step, under every back end: update(gradients) makes that of the program, with the means of the gradients
        over all nodes where the back end averages them (by name, with the shapes of the arrays). It writes into the
        arrays of NumPy, or returns all arrays as they are now, where they cannot be written (JAX): go on with
        node.values then. Where this node takes over the state of another one, update() is not called.

        With kvstore.update: server the servers make the step, by set_optimizer(), and update() is not called.

        Without gradients, after a step that the program has made by itself, back ends that average none publish the
        arrays, or `values`, and blend what has arrived into them.
        """
        self._must_run("step()")
        told = number(loss)
        if self._by_servers:
            if values is not None or self._optimizer is None:
                raise _core.UsageError("step() with kvstore.update 'server': the servers make the update; accepted: "
                                       "set_optimizer(name, ...) before, and no values")  # fmt: skip
        elif (gradients is None) != (update is None):
            raise _core.UsageError("step(): gradients and update come together")
        elif values is None and update is None and len(self._own) < len(self.values):
            fixed = next(key for key in self.values if key not in self._own)
            raise _core.UsageError(f"step() without values: array '{fixed}' cannot be written; accepted: values=, with all "
                                   "arrays as they are now, or gradients and update")  # fmt: skip
        if self._phase == "left":
            if gradients is not None and update is not None:
                self._update(update, gradients)
                self._give_back()
            return self._wait_for(None)
        if values is not None:
            self._set(values)
        else:
            if self._steps_to_look_at and update is None and not self._by_servers:
                self._look_for_writes()
            self._take_in()
        report = self._averaged_step(told, gradients, update) if self._gradients else None
        if report is None:
            self._must_be("between steps", "step()")
            self._phase = "in a step"
            try:
                with self._call:
                    self._core.update_send(told)
                if gradients is not None and update is not None:
                    self._give_back()  # what update_send() has blended
                    self._update(update, gradients)
            finally:
                self._phase = "between steps"
            report = self._wait_for(None)
        self._give_back()
        return report

    def _averaged_step(self, loss: float, gradients: Mapping[str, Any] | None, update: Any) -> StepReport:
        if gradients is None or self._gradients is None:
            raise _core.UsageError(f"step() under backend {self._config.backend}: it averages gradients; accepted: "
                                   "step(loss, gradients=..., update=...)")  # fmt: skip
        averaged = self._gradients
        averaged.set(gradients)
        averaged.prepare()
        with self._call, self._heeding_failures(ends=True):
            if isinstance(averaged, ArrayStoreGradients) and self._by_servers:
                state: Any = averaged.by_servers(self._optimizer)
            else:
                state = averaged.update(lambda: self._update(update, averaged.means))
            report = self._report(self._core.step(state, loss, False))
        self._known = state  # the core may ask it in the next step
        return report

    def _update(self, update: Callable[[Mapping[str, Any]], Mapping[str, Any] | None],
                gradients: Mapping[str, Any]) -> None:  # fmt: skip
        values = update(gradients)
        if values is None:
            self._take_in()
        else:
            self._set(values)
