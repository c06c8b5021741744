"""Arrays of NumPy, JAX or anything that NumPy can read, as a node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any

import numpy as np

from dpwa import _core
from dpwa.node import Node, number
from dpwa.reports import StepReport


def attach_arrays(arrays: Mapping[str, Any], file: str | PathLike[str], name: str | None = None, *,
                  join: Sequence[str] = (), threads: int | None = None) -> ArraysNode:  # fmt: skip
    """Makes this process the node `name` (or $DPWA_NAME) of the cluster file, with these arrays as its parameters.
    Floating-point ones are averaged; of integers the larger is kept. The order and the names are those of the model on
    every node."""
    return ArraysNode(arrays, file, name, join, threads)


def described(name: str, array: np.ndarray[Any, Any]) -> tuple[str, str, str, list[int]]:
    kind = str(array.dtype)  # ml_dtypes, as of JAX, call theirs bfloat16
    rule = "carry" if kind == "bool" else "interpolate" if "float" in kind else "maximum"
    return name, "boolean" if kind == "bool" else kind, rule, list(array.shape)


class ArraysNode(Node):
    """See attach_arrays(). `values` are the parameters of this node, as views of the memory that it exchanges."""

    def __init__(self, arrays: Mapping[str, Any], file: str | PathLike[str], name: str | None, join: Sequence[str],
                 threads: int | None) -> None:  # fmt: skip
        given = {key: np.asarray(value) for key, value in arrays.items()}
        super().__init__(file, name, join, threads, [described(key, value) for key, value in given.items()])
        memory = self._core.memory()
        self.values: dict[str, np.ndarray[Any, Any]] = {}
        for (key, value), offset in zip(given.items(), self._core.offsets()):
            self.values[key] = memory[offset : offset + value.nbytes].view(value.dtype).reshape(value.shape)
        # NumPy's own arrays are written in place.
        self._own = {key: value for key, value in arrays.items() if isinstance(value, np.ndarray)
                     and value.flags.writeable}  # fmt: skip
        self._set(given)

    def _set(self, values: Mapping[str, Any]) -> None:
        if values.keys() != self.values.keys():
            raise _core.UsageError(f"the arrays are {', '.join(values)}; they were {', '.join(self.values)}")
        for key, value in values.items():
            if np.shape(value) != self.values[key].shape:
                raise _core.UsageError(f"array '{key}' has the shape {np.shape(value)}; it had {self.values[key].shape}")
            self.values[key][...] = value

    def _take_in(self) -> None:
        for key, array in self._own.items():
            self.values[key][...] = array

    def _give_back(self) -> None:
        for key, array in self._own.items():
            array[...] = self.values[key]

    def step(self, loss: float | None = None, values: Mapping[str, Any] | None = None) -> StepReport:
        """After a step of the program: publishes the arrays, and blends what has arrived into them.

        Writable arrays of NumPy are read and written in place. Others cannot be: pass all as they are now as `values`,
        and go on with node.values.
        """
        self._must_run("step()")
        if self._phase == "left":
            return self._wait_for(None)
        if values is None:
            self._take_in()
        else:
            self._set(values)
        self._core.update_send(number(loss))
        report = self._wait_for(None)
        self._give_back()
        return report
