"""What a program may not do to the tensors of a model while they are exchanged."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING

from dpwa import _core

if TYPE_CHECKING:
    import torch

SHAPE_OF = operator.attrgetter("shape")
AGAIN = "; call attach() once the model has its layers, device and dtype, what is not to be trained is frozen, and its "
AGAIN += "checkpoint is loaded"


class WatchedModel:
    """A model, and those of its tensors that keep their places."""

    def __init__(self, model: torch.nn.Module, names: Sequence[str], tensors: Sequence[torch.Tensor], is_sharded: bool) -> None:
        import torch

        self._model, self._names, self._tensors = model, names, tensors
        self._is_sharded = is_sharded  # FSDP puts whole parameters in their places, and takes them away
        self._place_of = torch.Tensor.data_ptr
        self._places = [tensor.data_ptr() for tensor in tensors]
        self._shapes = [tensor.shape for tensor in tensors]
        self._registered = self._list_up()

    def _list_up(self) -> list[torch.Tensor]:
        """The model's tensors. Notes where modules list them, and other modules: as long as nothing changes there, the
        model has these."""
        modules = list(self._model.modules())
        self._lists = [own for module in modules for own in (module._parameters, module._buffers, module._modules)]
        self._lengths = list(map(len, self._lists))
        self._full = [own.values() for own in self._lists if own]
        self._held = list(chain.from_iterable(self._full))
        return [one for module in modules for own in (module._parameters, module._buffers) for one in own.values()
                if one is not None]  # fmt: skip

    def check(self) -> None:
        """What would silently train apart from the memory that is exchanged. In every step, so loops run in C, and what a
        module lists is looked up once."""
        tensors = self._tensors
        if list(map(self._place_of, tensors)) != self._places or list(map(SHAPE_OF, tensors)) != self._shapes:
            for i, tensor in enumerate(tensors):
                if tensor.data_ptr() != self._places[i] or tensor.shape != self._shapes[i]:
                    raise _core.UsageError(f"the model's tensor '{self._names[i]}' is no longer what it was{AGAIN}")
        if self._is_sharded:
            return
        is_same = map(operator.is_, self._held, chain.from_iterable(self._full))
        if list(map(len, self._lists)) != self._lengths or not all(is_same):
            self._check_lists()

    def _check_lists(self) -> None:
        """A layer without tensors may come; a compiled layer may take the place of the layer."""
        now, before = self._list_up(), self._registered
        if len(now) == len(before) and all(map(operator.is_, before, now)):
            return
        self._lengths = []  # the next step finds it too
        if len(now) != len(before):
            raise _core.UsageError(f"the model's list of parameters and buffers has changed{AGAIN}")
        other = next(had for had, has in zip(before, now) if has is not had)
        raise _core.UsageError(f"the model has another tensor in place of '{self._name_of(other)}'{AGAIN}")

    def _name_of(self, held: torch.Tensor) -> str:
        return next((name for name, tensor in zip(self._names, self._tensors) if tensor is held), "a buffer")
