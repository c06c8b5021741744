"""Process groups of torch.distributed over Gloo for the ranks of a test: processes, or threads of this one."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from nodes import PATIENCE


def group_of(store: str, rank: int, size: int) -> Any:
    """Ranks meet at the file `store`, which is not there yet."""
    backend = dist.ProcessGroupGloo(dist.FileStore(store, size), rank, size, timedelta(seconds=PATIENCE))
    group = dist.ProcessGroup(dist.FileStore(f"{store}.group", size), rank, size)
    group._register_backend(torch.device("cpu"), dist.ProcessGroup.BackendType.GLOO, backend)
    return group
