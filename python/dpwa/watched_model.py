"""What a program may not do to the tensors of a model while they are exchanged."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

from dpwa import _core

if TYPE_CHECKING:
    import torch

SHAPE_OF = operator.attrgetter("shape")
IS_TRAINED = operator.attrgetter("requires_grad")
AGAIN = "; call attach() once the model has its layers, device and dtype, what is not to be trained is frozen, and its "
AGAIN += "checkpoint is loaded"


AT_ONCE = 32  # tensors that one step looks at: to look at each costs as much as a small step
FROZEN_AT_ONCE = 10  # of those that must stay frozen: 0.7 µs


def in_turns(all_of_them: Sequence[Any], turns: int) -> list[list[Any]]:
    """One part a turn."""
    return [list(all_of_them[turn::turns]) for turn in range(turns)]


class WatchedModel:
    """A model, and those of its tensors that keep their places."""

    def __init__(self, model: torch.nn.Module, names: Sequence[str], tensors: Sequence[torch.Tensor], is_sharded: bool) -> None:
        import torch

        self._model, self._names, self._tensors = model, names, tensors
        self._is_sharded = is_sharded  # FSDP puts whole parameters in their places, and takes them away
        self._place_of = torch.Tensor.data_ptr
        self._step, self._turns = 0, max(1, -(-len(tensors) // AT_ONCE))
        self._kept = [(part, [tensor.data_ptr() for tensor in part], [tensor.shape for tensor in part])
                      for part in in_turns(tensors, self._turns)]  # fmt: skip
        frozen = [(name, one) for name, one in model.named_parameters() if not one.requires_grad]
        self._frozen = [dict(part) for part in in_turns(frozen, max(1, -(-len(frozen) // FROZEN_AT_ONCE)))]
        self._registered = self._list_up()

    def _list_up(self) -> list[torch.Tensor]:
        """The model's tensors. Notes where modules list them, and other modules: as long as nothing changes there, the
        model has these."""
        modules = list(self._model.modules())
        lists = [own for module in modules for own in (module._parameters, module._buffers, module._modules)]
        self._lists = []
        for part in in_turns(lists, self._turns):
            full = [own.values() for own in part if own]
            self._lists.append((part, list(map(len, part)), full, list(chain.from_iterable(full))))
        return [one for module in modules for own in (module._parameters, module._buffers) for one in own.values()
                if one is not None]  # fmt: skip

    def check(self) -> None:
        """What would silently train apart from the memory that is exchanged. In every step, so loops run in C, what a
        module lists is looked up once, and a large model is looked at in turns."""
        turn = self._step % self._turns
        tensors, places, shapes = self._kept[turn]
        if list(map(self._place_of, tensors)) != places or list(map(SHAPE_OF, tensors)) != shapes:
            for tensor, place, shape in zip(tensors, places, shapes):
                if tensor.data_ptr() != place or tensor.shape != shape:
                    raise _core.UsageError(f"the model's tensor '{self._name_of(tensor)}' is no longer what it was{AGAIN}")
        frozen = self._frozen[self._step % len(self._frozen)]
        if any(map(IS_TRAINED, frozen.values())):  # what it learns would stay on this node
            name = next(name for name, one in frozen.items() if one.requires_grad)
            raise _core.UsageError(f"the model's tensor '{name}' is no longer frozen{AGAIN}")
        if not self._is_sharded:
            lists, lengths, full, held = self._lists[turn]
            if list(map(len, lists)) != lengths or not all(map(operator.is_, held, chain.from_iterable(full))):
                self._check_lists()
        self._step += 1

    def check_all(self) -> None:
        for _ in range(max(self._turns, len(self._frozen))):
            self.check()

    def _check_lists(self) -> None:
        """A layer without tensors may come; a compiled layer may take the place of the layer."""
        before, lists = self._registered, self._lists
        now = self._list_up()
        if len(now) == len(before) and all(map(operator.is_, before, now)):
            return
        self._lists = lists  # the next step finds it too
        if len(now) != len(before):
            raise _core.UsageError(f"the model's list of parameters and buffers has changed{AGAIN}")
        other = next(had for had, has in zip(before, now) if has is not had)
        raise _core.UsageError(f"the model has another tensor in place of '{self._name_of(other)}'{AGAIN}")

    def _name_of(self, held: torch.Tensor) -> str:
        return next((name for name, tensor in zip(self._names, self._tensors) if tensor is held), "a buffer")
