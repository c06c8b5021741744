"""dpwa: trains one model on many machines without a barrier.

    node = dpwa.attach(model, "cluster.yaml", "w1")
    with node:                                            # start() ... finish()
        for x, y in loader:
            loss = F.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            report = node.step(optimizer, loss)

`attach_arrays` does the same for NumPy and JAX. This version has the back ends `gossip`, `collective` and `null`.
"""

from dpwa._core import ConfigError, Error, ModelError, UsageError, version as __version__
from dpwa.arrays import ArraysNode, attach_arrays
from dpwa.reports import FinishReport, StepReport
from dpwa.torch_node import TorchNode, attach

__all__ = ["ArraysNode", "ConfigError", "Error", "FinishReport", "ModelError", "StepReport", "TorchNode", "UsageError",
           "__version__", "attach", "attach_arrays"]  # fmt: skip
