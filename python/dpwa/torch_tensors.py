"""The tensors of a module of PyTorch: which there are, and what a node does with each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from dpwa import _core

if TYPE_CHECKING:
    import torch


def tensors_of(model: torch.nn.Module) -> list[tuple[str, torch.Tensor, bool]]:
    """Name, tensor, whether it is a parameter: module by module, its parameters and then its buffers. A tensor that is
    registered twice (tied weights) comes once, under its first name. The order is that of the C++ adapters."""
    found: dict[int, tuple[str, torch.Tensor, bool]] = {}
    parameters = {id(parameter) for parameter in model.parameters()}
    for prefix, module in model.named_modules():
        for own in (module._parameters, module._buffers):
            for name, tensor in own.items():
                if tensor is not None:
                    full = f"{prefix}.{name}" if prefix else name
                    found.setdefault(id(tensor), (full, tensor, id(tensor) in parameters))
    return list(found.values())


def rule_of(tensor: torch.Tensor, is_parameter: bool) -> str:
    if (is_parameter and not tensor.requires_grad) or str(tensor.dtype) == "torch.bool":
        return "carry"
    return "interpolate" if tensor.is_floating_point() else "maximum"


def is_sharded(tensor: torch.Tensor) -> bool:
    return hasattr(tensor, "placements") and hasattr(tensor, "to_local")


def local(tensor: Any) -> torch.Tensor:
    """What this process has of it."""
    return tensor.detach().to_local() if is_sharded(tensor) else tensor  # type: ignore[no-any-return]


def shard_of(tensor: Any) -> str:
    mesh = tensor.device_mesh
    return f"{list(tensor.shape)} as {list(tensor.placements)}, part {mesh.get_coordinate()} of {list(mesh.shape)}"


def refuse(name: str, why: str) -> NoReturn:
    raise _core.ModelError(f"tensor '{name}' cannot be shared: {why}")
