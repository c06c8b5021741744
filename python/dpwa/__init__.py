"""dpwa: trains one model on many machines without a barrier.

    node = dpwa.attach(model, "cluster.yaml", "w1")
    with node:                                            # start() ... finish()
        for x, y in loader:
            loss = F.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            report = node.step(optimizer, loss)

`attach_arrays` does the same for NumPy and JAX; `KVStore` has the keys of a parameter server.
"""

from typing import TYPE_CHECKING, Any

from dpwa._core import ConfigError, Error, ModelError, UsageError, version as __version__
from dpwa.arrays import ArraysNode, attach_arrays
from dpwa.checkpoint import load_checkpoint
from dpwa.kvstore import KVStore
from dpwa.reports import FinishReport, StepReport
from dpwa.sampler import Sampler
from dpwa.torch_node import TorchNode, attach

if TYPE_CHECKING:
    from dpwa.torch_optimizer import Optimizer

__all__ = ["ArraysNode", "ConfigError", "Error", "FinishReport", "KVStore", "ModelError", "Optimizer", "Sampler", "StepReport",
           "TorchNode", "UsageError", "__version__", "attach", "attach_arrays", "load_checkpoint"]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name == "Optimizer":  # of a class of torch, which is imported for it alone
        from dpwa.torch_optimizer import Optimizer

        return Optimizer
    raise AttributeError(f"module 'dpwa' has no attribute '{name}'")
