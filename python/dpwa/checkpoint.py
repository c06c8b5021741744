"""Models that dpwa-train has written."""

from __future__ import annotations

import io
import json
import os
import struct
import warnings
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from dpwa import _core

if TYPE_CHECKING:
    import torch

DTYPES = {"F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16", "I64": "int64", "I32": "int32",
          "I16": "int16", "I8": "int8", "U8": "uint8", "BOOL": "bool"}  # fmt: skip
MAGIC = b"DPWACKPT"
HEADER = struct.Struct("<8sIIQ")  # magic, version, CRC32C of the body, bytes of the body


def load_checkpoint(path: str | PathLike[str]) -> dict[str, torch.Tensor]:
    """The parameters and buffers, by name, of a file of dpwa-train: a saved model (--save) or a checkpoint (NODE.STEP.ckpt).
    For model.load_state_dict(). Raises Error that names the file where it is damaged, or neither."""
    name = os.fspath(path)
    with open(name, "rb") as stream:
        content = stream.read()
    try:
        return of_checkpoint(content) if content.startswith(MAGIC) else of_safetensors(content)
    except (ValueError, KeyError, RuntimeError, struct.error) as error:
        reason = str(error).strip().partition("\n")[0]
        raise _core.Error(f"{name}: neither a saved model nor a checkpoint of dpwa-train, or damaged: {reason}") from None


def of_safetensors(content: bytes) -> dict[str, torch.Tensor]:
    import torch

    (size,) = struct.unpack_from("<Q", content)
    if size > len(content) - 8:
        raise ValueError("its header is cut short")
    header, begin = json.loads(content[8 : 8 + size]), 8 + size
    tensors = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        first, last = entry["data_offsets"]
        data = np.frombuffer(content, np.uint8, last - first, begin + first).copy()
        tensors[name] = torch.from_numpy(data).view(getattr(torch, DTYPES[entry["dtype"]])).view(entry["shape"])
    return tensors


def of_checkpoint(content: bytes) -> dict[str, torch.Tensor]:
    import torch

    _, version, checksum, size = HEADER.unpack_from(content)
    body = content[HEADER.size :]
    if version != 1:
        raise ValueError(f"version {version}; accepted: 1")
    if len(body) != size or _core.crc32c(body) != checksum:
        raise ValueError("its checksum is wrong")
    (state_bytes,) = struct.unpack_from("<Q", body)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of the one reader of LibTorch's archives
        archive: Any = torch.jit.load(io.BytesIO(body[8 + state_bytes :]), map_location="cpu")
    return dict(archive.model.named_buffers())
