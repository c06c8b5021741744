"""Back end collective on the program's own process group of torch.distributed, in place of the core's all-reduce."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any

from dpwa import _core
from dpwa.group_exchange import Ranks
from dpwa.group_trainer import GroupTrainer
from dpwa.node import Tensors
from dpwa.torch_node import TorchNode
from dpwa.torch_tensors import is_sharded, refuse, tensors_of

if TYPE_CHECKING:
    import torch

TRAINED = ("torch.float16", "torch.bfloat16", "torch.float32", "torch.float64")
NEEDED = {"engine": "auto", "compression": "none", "on_lost_rank": "stop"}


class Unlisted:
    """The configuration where there is no file: the ranks of the group are the nodes, with the default of each key."""

    def __init__(self, ranks: Ranks) -> None:
        self.name, self.rank, self.size = f"rank{ranks.rank}", ranks.rank, ranks.size
        self.file, self.backend, self.security_mode, self.min_nodes = "", "collective", "", 1
        self.collective = _core.CollectiveConfig()
        here = int(os.environ.get("LOCAL_WORLD_SIZE") or 1)  # of torchrun
        self.threads = max(1, len(os.sched_getaffinity(0)) // here)
        self.config = self

    def reload(self) -> Unlisted:
        return self


class GroupNode(TorchNode):
    """A node of attach(group=...). Parameters and buffers stay where they are."""

    def __init__(self, model: torch.nn.Module, file: str | PathLike[str] | None, name: str | None, join: Sequence[str],
                 group: Any) -> None:  # fmt: skip
        self._group = group
        self._listed = tensors_of(model)
        super().__init__(model, file, name, join, None)
        if file is None:
            self._key = (f"model {id(model)}", self.name)  # another model is another node

    def _reach(self, device: torch.device) -> None:
        self._ranks, self._group = Ranks(self._group, device), None

    def _load(self, file: str | PathLike[str] | None, name: str | None, join: Sequence[str]) -> Any:
        if file is None:
            if name or join:
                raise _core.ConfigError("attach() with group, without a file: the ranks of the group are the nodes; "
                                        "accepted: neither name nor join")  # fmt: skip
            return Unlisted(self._ranks)
        launched = super()._load(file, name, join)
        config = launched.config
        if config.backend != "collective":
            config.refuse("backend", f"'{config.backend}' does not train on a process group; accepted: collective, or "
                          "attach() without group")  # fmt: skip
        for key, accepted in NEEDED.items():
            value = getattr(config.collective, key)
            if value != accepted:
                config.refuse(f"collective.{key}", f"{value} is not offered on a process group; accepted: {accepted}, or "
                              "attach() without group")  # fmt: skip
        if config.size != self._ranks.size:
            config.refuse("nodes", f"{config.size}, and the process group has {self._ranks.size} ranks; accepted: as many "
                          "nodes as ranks")  # fmt: skip
        return launched

    def _make_core(self, tensors: Tensors, trained: list[bool], threads: int | None) -> GroupTrainer:
        for name, tensor, is_parameter in self._listed:
            if is_parameter and tensor.requires_grad and str(tensor.dtype) not in TRAINED:
                refuse(name, f"it is trained, and of type {tensor.dtype}; accepted: real numbers of 16, 32 or 64 "
                       "bits, in floating point")  # fmt: skip
            if is_sharded(tensor):
                refuse(name, "it is sharded; accepted with backend gossip, not on a process group")
        core = None
        if self._config.file:  # it checks the rest of the file, and opens the log
            core = _core.make_trainer(self._config, [("none", "float32", "interpolate", [1])], [True], 1, None)
        return GroupTrainer(self._ranks, self._config, core, self._listed)

    def _move_in(self, listed: list[tuple[str, torch.Tensor, bool]]) -> None:
        self._names = [name for name, _, _ in listed]
        self._tensors = [tensor for _, tensor, _ in listed]
        self._watch()

    @staticmethod
    def _number(_: Any) -> float:
        return math.nan  # nobody reads it: no wait for the device

    def _told(self, loss: Any) -> float:
        return self._number(loss)
