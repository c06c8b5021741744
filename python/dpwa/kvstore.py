"""Values by key on the servers of a cluster, with the operations of MXNet's KVStore under the same names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from os import PathLike, fspath
from types import TracebackType
from typing import TYPE_CHECKING, Any, Union

import numpy as np

from dpwa import _core
from dpwa.launch import meet
from dpwa.store_worker import name_of, words_of

if TYPE_CHECKING:
    import torch

Key = Union[int, str]
Keys = Union[Key, Sequence[Key]]
Plain = tuple[Key, int, str, list[int]]  # as the core takes an array


def is_tensor(value: Any) -> bool:
    return type(value).__module__.partition(".")[0] == "torch"


def plain(key: Key, value: Any) -> Plain:
    """Of a contiguous array or tensor in host memory."""
    if is_tensor(value):
        return key, value.data_ptr(), str(value.dtype).removeprefix("torch."), list(value.shape)
    return key, value.ctypes.data, str(value.dtype), list(value.shape)


def on_host(value: Any) -> Any:
    """The values, contiguous, in host memory; the rows of a sparse tensor are summed."""
    if not is_tensor(value):
        return np.asarray(value, order="C")
    tensor = value.detach()
    return (tensor.to_dense() if tensor.is_sparse else tensor).cpu().contiguous()


def sum_of(values: Sequence[Any]) -> Any:
    """Of the values of several devices, in fp32, or fp64 for fp64."""
    hosts = [on_host(value) for value in values]
    if len(hosts) == 1:
        return hosts[0]
    if any(is_tensor(one) for one in hosts):
        import torch

        tensors = [one if is_tensor(one) else torch.from_numpy(one) for one in hosts]
        wide = torch.float64 if tensors[0].dtype is torch.float64 else torch.float32
        return torch.stack([tensor.to(wide) for tensor in tensors]).sum(0).to(tensors[0].dtype)
    wide_type = np.float64 if hosts[0].dtype == np.float64 else np.float32
    return np.sum([host.astype(wide_type) for host in hosts], axis=0, dtype=wide_type).astype(hosts[0].dtype)


def by_key(keys: Keys, values: Any, call: str) -> list[tuple[Key, list[Any]]]:
    """A key with a value, or with one for each device; or a list of such keys. A repeated key comes once."""
    if isinstance(keys, (int, str)):
        keys, values = [keys], [values]
    if len(keys) != len(values):
        raise _core.UsageError(f"{call}: {len(keys)} keys and {len(values)} values")
    once: dict[Key, list[Any]] = {}
    for key, value in zip(keys, values):
        once.setdefault(key, []).extend(value if isinstance(value, (list, tuple)) else [value])
    return list(once.items())


class Outs:
    """Where pulled values go: into the arrays themselves where they are contiguous and of the host."""

    def __init__(self, keys: Keys, outs: Any) -> None:
        self._lists = by_key(keys, outs, "pull")
        self._hosts: list[Any] = []
        for key, values in self._lists:
            first = values[0]
            if not (is_tensor(first) or (isinstance(first, np.ndarray) and first.flags.writeable)):
                raise _core.UsageError(f"pull of key {key!r}: out is an array of NumPy that can be written, or a tensor")
            in_place = (first.is_contiguous() and first.device.type == "cpu" and not first.is_sparse
                        if is_tensor(first) else first.flags.c_contiguous)  # fmt: skip
            self._hosts.append(first if in_place else on_host(first).copy() if not is_tensor(first)
                               else on_host(first).clone())  # fmt: skip

    def plain(self) -> list[Plain]:
        return [plain(key, host) for (key, _), host in zip(self._lists, self._hosts)]

    def fill(self) -> None:
        for (_, values), host in zip(self._lists, self._hosts):
            for value in values:
                if value is host:
                    continue
                if is_tensor(value):
                    import torch

                    with torch.no_grad():
                        value.copy_(host if is_tensor(host) else torch.from_numpy(host))
                else:
                    value[...] = host


class Handle:
    """A push or a pull that has begun."""

    def __init__(self, core: Any, store: KVStore, kept: Any, fill: Callable[[], None] | None = None) -> None:
        self._core, self._store, self._kept, self._fill = core, store, kept, fill

    def done(self) -> bool:
        """Whether wait() returns at once."""
        return bool(self._core.done())

    def wait(self) -> list[int]:
        """Of a push: until the servers have acknowledged it; of a pull: fills the arrays, which are left alone until
        then. Returns for each key the number of updates that the value holds."""
        versions = list(self._core.wait())
        if self._fill:
            self._fill()
        return versions


class KVStore:
    """A worker of the servers of the cluster file, without attach(): the types dist_sync, dist_async and dist_ssp. Keys
    are integers or texts; values are arrays of NumPy or tensors of torch in fp32, fp64, fp16 or bf16. A list of values
    of one key is summed. Wherever a key stands, a list of keys with a list of values may stand.

    Calls that do not fit raise Error with the key and both shapes; they have changed nothing. Ctrl-C ends a wait, and
    the store is not used afterwards.
    """

    def __init__(self, file: str | PathLike[str], name: str | None = None) -> None:
        """Returns once the servers and kvstore.min_workers workers are there, within kvstore.start_wait_ms."""
        self._core = _core.Store(_core.LaunchedConfig(fspath(file), name or "", [], meet).config)
        self._core.open()

    def __enter__(self) -> KVStore:
        return self

    def __exit__(self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Tells the servers that this worker leaves. Wait for the last pushes before it."""
        self._core.leave()

    @property
    def type(self) -> str:
        return str(self._core.type)

    @property
    def rank(self) -> int:
        """Among the workers that take part now, in the order of their names."""
        return int(self._core.rank)

    @property
    def num_workers(self) -> int:
        return int(self._core.num_workers)

    def num_dead_node(self, silent_for: float = 60) -> int:
        """Workers that were left out, and servers that are down, for so many seconds."""
        return int(self._core.num_dead_node(silent_for))

    def dropped_pushes(self) -> int:
        """Pushes of this worker that did not count: not finite, dropped, or made while it was left out; and those that
        were under way then, which may have counted."""
        return int(self._core.dropped_pushes())

    def barrier(self) -> None:
        """Returns once all workers that take part have called it as often as this one."""
        self._core.barrier()

    def reload_security(self) -> None:
        self._core.reload_security()

    def init(self, key: Keys, value: Any) -> None:
        """Once for each key, by every worker: the value of rank 0 counts, and who comes later finds the current one."""
        pairs = by_key(key, value, "init")
        for one, values in pairs:
            if len(values) != 1:
                raise _core.UsageError(f"init of key {one!r}: one value is needed")
        hosts = [(one, on_host(values[0])) for one, values in pairs]
        self._core.init([plain(one, host) for one, host in hosts])

    def push(self, key: Keys, value: Any, priority: int = 0) -> None:
        """The next step of this worker for the key. The arrays are free when it returns; the push is then under way."""
        self.push_async(key, value, priority)

    def push_async(self, key: Keys, value: Any, priority: int = 0) -> Handle:
        sums = [(one, sum_of(values)) for one, values in by_key(key, value, "push")]
        return Handle(self._core.push([plain(one, total) for one, total in sums], priority), self, None)

    def pull(self, key: Keys, out: Any, priority: int = 0) -> list[int]:
        """Writes the stored value into `out`, or into each of its arrays. Returns for each key the number of updates."""
        return self.pull_async(key, out, priority).wait()

    def pull_async(self, key: Keys, out: Any, priority: int = 0) -> Handle:
        outs = Outs(key, out)
        return Handle(self._core.pull(outs.plain(), priority), self, outs, outs.fill)

    def pushpull(self, key: Keys, value: Any, out: Any = None, priority: int = 0) -> list[int]:
        """push, then pull, into `value` where there is no `out`."""
        return self.pushpull_async(key, value, out, priority).wait()

    def pushpull_async(self, key: Keys, value: Any, out: Any = None, priority: int = 0) -> Handle:
        outs = Outs(key, value if out is None else out)
        sums = [(one, sum_of(values)) for one, values in by_key(key, value, "push")]
        begun = self._core.pushpull([plain(one, total) for one, total in sums], outs.plain(), priority)
        return Handle(begun, self, outs, outs.fill)

    def broadcast(self, key: Keys, value: Any, out: Any, priority: int = 0) -> None:
        """init, then pull."""
        self.init(key, value)
        self.pull(key, out, priority)

    def row_sparse_pull(self, key: Key, row_ids: Any, priority: int = 0) -> tuple[np.ndarray[Any, Any], Any]:
        """The rows `row_ids` of a value, each once and in order: their numbers, and the rows: an array, or a tensor if
        row_ids is one."""
        rows = np.unique(on_host(row_ids).astype(np.int64) if not is_tensor(row_ids) else row_ids.cpu().numpy())
        dtype, shape = self._core.spec(key)
        if len(rows):
            self._core.check_rows(key, int(rows[0]), int(rows[-1]))
        if is_tensor(row_ids):
            import torch

            whole: Any = torch.empty(shape, dtype=getattr(torch, dtype))
        else:
            whole = np.empty(shape, dtype)
        self.pull(key, whole, priority)
        return rows, whole[rows]

    def set_optimizer(self, optimizer: str | torch.optim.Optimizer, **numbers: float) -> None:
        """The optimizer that the servers run from now on: one of torch.optim with one set of numbers, or a name (sgd,
        momentum, nesterov, adam, adamw, adagrad, rmsprop) with numbers, such as learning_rate and rescale, as MXNet's
        rescale_grad. By every worker; that of rank 0 counts in a step of dist_sync."""
        if isinstance(optimizer, str):
            words = (optimizer, {name: float(value) for name, value in numbers.items()})
        else:
            groups = [words_of(name_of(optimizer), group) for group in optimizer.param_groups]
            if any(group != groups[0] for group in groups):
                raise _core.UsageError(f"the optimizer has {len(groups)} parameter groups with different options; a store "
                                       "has one set")  # fmt: skip
            words = (groups[0][0], {**groups[0][1], **numbers})
        self._core.set_optimizer(words)

    def set_gradient_compression(self, compression: dict[str, Any]) -> None:
        """{"type": "2bit", "threshold": 0.5}, {"type": "fp16"} or {"type": "none"}."""
        self._core.set_compression(str(compression.get("type", "none")), float(compression.get("threshold", 0)))

    def save_optimizer_states(self, file: str | PathLike[str]) -> None:
        """Of all keys that this worker has initialised. One worker calls it, between two barriers."""
        self._core.save_optimizer_states(fspath(file))

    def load_optimizer_states(self, file: str | PathLike[str]) -> None:
        """One worker calls it, before a barrier, once the keys are initialised."""
        self._core.load_optimizer_states(fspath(file))
