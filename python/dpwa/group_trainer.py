"""The trainer of back end collective on a process group of torch.distributed, in place of that of the core."""

from __future__ import annotations

import contextlib
import json
import math
import os
import socket
import time
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from dpwa import _core
from dpwa.device import api_of, require_no_capture
from dpwa.gradients import checksum_of, strides_of
from dpwa.group_exchange import (JOINED, LEFT, STOPPING, GradientSums, Lost, Ranks, Tally, by_size, bytes_of,
                                 compares_weights_at, difference, message, shown, tally_of, write)  # fmt: skip

if TYPE_CHECKING:
    import torch


NEEDS_ALL = "because backend collective needs every rank of the process group"


class GroupTrainer:
    """What _core.make_trainer() gives, on a process group. Its calls, and what they do, are those of back end collective
    with on_lost_rank stop (dpwa/collective/collective_node.h), but that a rank that leaves tells the others. `core`: the
    trainer of the file, which is not started; none: there is no file. One thread at a time, hooks on that of backward()."""

    averages_gradients = True
    groups = 1  # the places of gradients never change

    def __init__(self, ranks: Ranks, config: Any, core: Any,
                 listed: Sequence[tuple[str, torch.Tensor, bool]]) -> None:  # fmt: skip
        self._ranks, self._config, self._core = ranks, config, core
        self._process = os.getpid()
        self._api = api_of(ranks.device)
        self._tensors = [tensor for _, tensor, _ in listed]
        self._trained = [one for _, one, is_parameter in listed if is_parameter and one.requires_grad]
        self._buffers = by_size(one for _, one, is_parameter in listed if not is_parameter and one.is_floating_point())
        self._terms: dict[str, str] = {f"collective.{key}": str(getattr(config.collective, key)).lower()
                                       for key in ("bucket_bytes", "average_buffers")}  # fmt: skip
        for name, tensor, is_parameter in listed:
            trained = "" if is_parameter and tensor.requires_grad else ", not trained"
            form = f"{str(tensor.dtype).removeprefix('torch.')} {list(tensor.shape)}"
            self._terms[f"tensor '{name}'"] = f"{form} with strides {list(strides_of(tensor))}{trained}"
        self._sums = GradientSums(ranks, self._trained, config.collective.bucket_bytes)
        self._averages_buffers = config.collective.average_buffers
        self._works: list[Any] = []  # beside those of the sums
        self._moved: list[tuple[torch.Tensor, list[torch.Tensor]]] = []  # buffers on their way, and whose they are
        self._names = [config.name]
        self._clock = 0.0
        self._shared: list[Any] = []
        self._runs = self._compared = self._exchanged = self._all_stop = self._stopping = self._accumulating = False
        self.given_up = False  # after Ctrl-C
        self._behind: list[int] = []  # at the start
        self._source = 0
        self._samples = 1.0
        self._used = [False] * len(self._trained)
        self._steps = 0  # exchanges
        self._last: Tally | None = None
        self._last_at_work, self._uneven = 0, False
        self._next = "exchange"  # what the others wait for next; "": they have to wait
        self._report: dict[str, Any] = {}
        self._begin_report()

    # --- before start()

    @property
    def place(self) -> tuple[int, int]:
        return self._ranks.rank, self._ranks.size

    def require_same(self, what: str, value: str) -> None:
        self._terms[what] = value

    mark = require_same

    def share(self, form: str, memory: Any) -> None:
        self._shared.append(memory)
        part = f", part {len(self._shared)}" if len(self._shared) > 1 else ""
        self._terms[f"the state of the program{part}"] = form

    def set_source(self, source: Any) -> None:
        self._gradients = source

    def restore(self, state: tuple[float, dict[str, int]]) -> None:
        self._clock = state[0]

    def resume_state(self) -> tuple[float, dict[str, int]]:
        return self._clock, {}

    def show(self, name: str, value: float) -> None:
        """Nobody asks: a process group has no status."""

    def reload(self, fresh: Any) -> None:
        if self._core:
            self._core.reload(fresh)

    def start(self) -> None:
        import torch

        self._require_usable()
        limit = self._config.collective.start_wait_s
        own = {"name": self._config.name, "clock": self._clock, "host": socket.gethostname(), "terms": self._terms}
        self._runs, self._next = True, ""
        with self._waiting():
            said = [json.loads(one) for one in self._ranks.gather(json.dumps(own).encode(), limit)]
            self._names = [one["name"] for one in said]
            self._require_alike(said)
            clocks = [float(one["clock"]) for one in said]
            self._clock = max(clocks)
            self._source = clocks.index(self._clock)
            self._behind = [rank for rank, clock in enumerate(clocks) if clock != self._clock]
            self._ranks.broadcast_tensors(self._tensors, self._source)
            for memory in self._shared:
                content = self._ranks.broadcast(memory.tobytes(), self._source)
                torch.from_numpy(memory).copy_(torch.frombuffer(bytearray(content), dtype=torch.uint8))
        self._next = "exchange"

    def _require_alike(self, said: Sequence[dict[str, Any]]) -> None:
        if len(set(self._names)) < len(self._names):
            twice = next(one for one in self._names if self._names.count(one) > 1)
            raise self._end(f"because several ranks of the process group are '{twice}'; accepted: one")
        for term in dict.fromkeys(term for one in said for term in one["terms"]):
            values = [str(one["terms"].get(term, "")) for one in said]
            if len(set(values)) > 1:
                raise self._end(f"because the ranks differ in {term}: {difference(values, self._names)}")
        mode = self._config.security_mode
        if (mode in ("psk", "mtls") and not self._config.collective.plaintext
                and len({one["host"] for one in said}) > 1):  # fmt: skip
            raise self._end(f"because gradients on a process group travel unencrypted, which security.mode {mode} does "
                            "not allow beyond this machine; accepted: collective.plaintext: true, or attach() without "
                            "group")  # fmt: skip

    # --- gradients, asked by TorchGradients

    def set_samples(self, samples: float) -> None:
        self._samples = samples

    def set_accumulating(self, on: bool) -> None:
        self._accumulating = on

    def gradient(self, index: int, _: int) -> torch.Tensor:
        return self._sums.places[index]

    def come(self, index: int) -> tuple[list[int], float] | None:
        if not self._runs:
            return None
        self._require_usable()
        sums = self._sums
        if sums.has_begun and sums.has_come(index):
            raise _core.UsageError("a second backward pass before step(): its gradients would stay on this node; "
                                   "accepted: step() of the node in place of that of the optimizer, and accumulate() "
                                   "around all but the last pass of a step")  # fmt: skip
        self._used[index] = True
        if self._accumulating:
            return None
        if not sums.has_begun:
            sums.begin(self._samples)
        full = sums.come(index)
        return None if full is None else (full, sums.weight)

    def send(self, indices: Sequence[int]) -> None:
        with contextlib.suppress(Lost):  # of which the step will hear
            self._sums.add(indices)

    # --- a step

    def average_gradients(self) -> None:
        if self._runs:
            self._exchange()

    def step(self, optimizer: Any, loss: float, skips: bool) -> dict[str, Any]:
        self.update_send(loss)
        if self._runs:
            self._compare(optimizer)
        if not skips:
            optimizer.step()
        return self.update_wait(loss)

    def update_send(self, _: float) -> None:
        if self._runs and not self._exchanged:
            self._exchange()

    def update_wait(self, _: float | None) -> dict[str, Any]:
        if self._runs:
            self._compare(None)  # in halves the optimizer is not known
            self._clock += 1
        self._exchanged = False
        return self._begin_report()

    def should_stop(self, wanted: bool) -> bool:
        self._stopping = self._stopping or wanted
        return self._all_stop

    def _begin_report(self) -> dict[str, Any]:
        before = {**self._report, "clock": self._clock}
        self._report = {"outcome": "skipped", "made": True, "peer": "", "factor": 0.0, "staleness": 0.0,
                        "distance": 0.0, "clipped": False, "refused": 0, "bytes": 0, "waited": 0.0, "participants": 1,
                        "block": 0, "blocks": 1, "same_host": False, "pulls_ok": 0, "pulls_failed": 0,
                        "sent": 0}  # fmt: skip
        return before

    def _exchange(self, joins: bool = False) -> Tally:
        """Ends what the backward pass has begun; without one sends what passes under accumulate() have left, or zeros."""
        self._require_usable()
        sums, ranks = self._sums, self._ranks
        if not sums.has_begun:
            if not any(self._used):
                self._gradients.clear()
            sums.begin(self._samples if any(self._used) else 0)
        with self._waiting():
            if rest := [index for index, is_used in enumerate(self._used) if is_used and sums.lacks(index)]:
                self._gradients.give(rest, sums.weight)
                sums.add(rest)
            told = self._send_rest(JOINED if joins else 0)
            from_now = time.perf_counter()
            size = sums.wait()
            for work in self._works:
                ranks.wait(work)
            self._take_buffers()
            tally = self._last = tally_of(told, ranks.size)
            self._report["waited"] += time.perf_counter() - from_now
        self._take(tally, size if ranks.size > 1 else 0, joins)
        return tally

    def _send_rest(self, flags: int) -> torch.Tensor:
        """Whatever the others wait for in an exchange, but what has left."""
        sums, ranks = self._sums, self._ranks
        sums.send_rest()
        checksum = None
        if not flags and compares_weights_at(self._steps):
            checksum = checksum_of(self._trained)
        told = message(ranks, sums.samples, flags | (STOPPING if self._stopping else 0), checksum, self._used)
        self._works = [ranks.begin_sum(told)]
        self._begin_buffers()
        self._steps += 1
        self._used = [False] * len(self._trained)
        self._next = "exchange" if self._compared else "compare"
        return told

    def _begin_buffers(self) -> None:
        """Their mean, or those of the first rank that was at work in the step before."""
        self._moved = []
        for dtype in dict.fromkeys(one.dtype for one in self._buffers):
            those = [one for one in self._buffers if one.dtype == dtype]
            flat = bytes_of(those)
            self._moved.append((flat, those))
            if self._averages_buffers:
                self._works.append(self._ranks.begin_sum(flat.view(dtype)))
            else:
                first = self._last.at_work[0] if self._last and self._last.at_work else 0
                self._works.append(self._ranks.begin_broadcast(flat, first))

    def _take_buffers(self) -> None:
        for flat, buffers in self._moved:
            if self._averages_buffers:
                flat.view(buffers[0].dtype).div_(self._ranks.size)
            write(flat, buffers)

    def _take(self, tally: Tally, size: int, joins: bool) -> None:
        sums = self._sums
        if tally.left and not (joins and self._all_stop):
            raise self._end(f"{NEEDS_ALL}: {shown(tally.left, self._names)} has left")
        total = tally.samples / sums.unit
        self._gradients.take(tally.used, total if total > 0 else 1)
        self._exchanged = True
        self._report["bytes"] += size
        self._report["participants"] = self._ranks.size - len(tally.joined)
        if self._ranks.size > 1:
            self._report["outcome"] = "averaged"
        self._all_stop = self._all_stop or bool(tally.stopping)
        if tally.at_work:
            self._last_at_work, self._uneven = tally.at_work[0], self._uneven or bool(tally.joined)
            if tally.samples > 0:
                sums.set_unit(tally.samples / len(tally.at_work))
        counts = Counter(one for one in tally.checksums if one is not None)
        if len(counts) > 1:
            usual = counts.most_common(1)[0][0]
            others = [rank for rank, one in enumerate(tally.checksums) if one not in (None, usual)]
            raise self._end(f"because the weights of {shown(others, self._names)} differ from those of the other nodes, "
                            "and must be equal after each step; look for code that changes weights, gradients or the "
                            "optimizer on some nodes only")  # fmt: skip

    # --- the optimizers of all

    def _compare(self, optimizer: Any) -> None:
        """In the first step, before the update. None: this rank makes no step, or has no optimizer that is known."""
        if self._compared:
            return
        text = ""
        if optimizer:
            operation, settings = optimizer.words()
            text = json.dumps([operation, *(f"{name}: {value}" for name, value in settings)])
        with self._waiting():
            if self._behind:
                known = self._require_same_optimizer(text)
                self._next = ""
                if known:
                    self._hand_over(optimizer, self._source if self._source in known else known[0])
            if optimizer:
                text = json.dumps([*json.loads(text), f"state: {optimizer.state_words()}"])
            self._require_same_optimizer(text)
        self._compared, self._next = True, "exchange"

    def _require_same_optimizer(self, own: str) -> list[int]:
        """The ranks with one."""
        numbers = self._ranks.gather_numbers(1 + zlib.crc32(own.encode()) if own else 0)
        left = [rank for rank, one in enumerate(numbers) if one < 0]
        if left:
            raise self._end(f"{NEEDS_ALL}: {shown(left, self._names)} has left")
        known = [rank for rank, one in enumerate(numbers) if one]
        if len({numbers[rank] for rank in known}) > 1:
            self._next = ""
            texts = [json.loads(one) if one else [] for one in self._ranks.gather(own.encode())]
            lines = max(len(one) for one in texts)
            rows = ([one[line] if line < len(one) else "" for one in texts] for line in range(lines))
            row = next(one for one in rows if len({one[rank] for rank in known}) > 1)
            raise self._end(f"because the ranks differ in their optimizers: {difference(row, self._names)}")
        return known

    def _hand_over(self, optimizer: Any, owner: int) -> None:
        saved = self._ranks.broadcast(optimizer.save() if self._ranks.rank == owner else b"", owner)
        if optimizer and self._ranks.rank in self._behind and self._ranks.rank != owner:
            optimizer.load(saved)

    # --- the end

    def finish(self) -> dict[str, Any]:
        size = self._ranks.size
        while self._runs:
            tally = self._exchange(joins=not self._sums.has_begun)
            if tally.left:  # as all were about to
                break
            if len(tally.joined) < size:
                self._compare(None)
                continue
            if self._uneven:
                self._next = ""
                with self._waiting():
                    self._ranks.broadcast_tensors(self._tensors, self._last_at_work)
            break
        self._runs = False
        self._let_go()
        self._begin_report()  # those exchanges were no steps
        self._exchanged = False
        return {"averaged": size > 1, "participants": size, "distance_to_average": 0.0 if size == 1 else math.nan,
                "enough": size >= self._config.min_nodes, "lost_final_model": False}  # fmt: skip

    def leave(self) -> None:
        """The others hear of it in place of what they wait for next from this rank. Waits for nobody."""
        if not self._runs:
            return
        self._runs = False
        if os.getpid() != self._process:
            return
        with contextlib.suppress(Lost, RuntimeError):
            if self._ranks.size == 1:
                pass
            elif self._next == "compare":
                import torch

                self._ranks.begin_gather(torch.tensor([-1], dtype=torch.int64, device=self._ranks.near))
            elif self._next == "exchange":
                if not self._sums.has_begun:
                    self._sums.begin(0)
                self._send_rest(LEFT)
        self._let_go()

    def keep(self, _: Any) -> None:
        """The group keeps what its operations need."""

    def _let_go(self) -> None:
        self._works, self._moved = [], []
        self._sums.let_go()
        self._ranks.let_go()

    def _end(self, why: str) -> _core.Error:
        self._runs = False
        self._let_go()
        return _core.Error(f"node '{self._config.name}' ends at clock {self._clock:.10g}, {why}")

    @contextlib.contextmanager
    def _waiting(self) -> Iterator[None]:
        """Around what waits for others."""
        try:
            yield
        except Lost as lost:
            lost.__traceback__ = lost.__context__ = None  # they keep the operation, and it the group
            raise self._end(f"{NEEDS_ALL}: {lost}") from None
        except Exception:
            raise
        except BaseException:
            self.given_up = True
            self.leave()
            raise

    def _require_usable(self) -> None:
        if os.getpid() != self._process:
            raise _core.UsageError("this process was forked from the one that is the node: only that one may use it")
        require_no_capture(self._api)
