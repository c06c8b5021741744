"""Judges a report of `pip install --dry-run --no-deps --report`: is the torch in it a CPU build?

A CUDA (or ROCm) build is known by its local version (+cu130, +rocm7.0) or by what it requires on this
machine: the nvidia-*, cuda-* and triton packages. Exit code 0: CPU build; 1: not; says which.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

from pip._vendor.packaging.requirements import Requirement

GPU_PACKAGE = re.compile(r"(nvidia|cuda|triton|pytorch[-_]triton|rocm)([-_].*)?$", re.IGNORECASE)
GPU_VERSION = re.compile(r"\+(cu|rocm|xpu)")


def gpu_reason(metadata: dict[str, Any]) -> str | None:
    """What makes this torch a GPU build; None for a CPU build."""
    if GPU_VERSION.search(metadata["version"]):
        return f"its version is {metadata['version']}"
    for text in metadata.get("requires_dist", []):
        requirement = Requirement(text)
        applies = requirement.marker is None or requirement.marker.evaluate({"extra": ""})
        if applies and GPU_PACKAGE.match(requirement.name):
            return f"it requires {requirement.name}"
    return None


def main() -> int:
    report = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    found = [item["metadata"] for item in report["install"] if item["metadata"]["name"] == "torch"]
    if not found:
        print("   the report names no torch", file=sys.stderr)
        return 1
    reason = gpu_reason(found[0])
    version = found[0]["version"]
    print(f"   torch {version}: " + (f"not a CPU build, {reason}" if reason else "a CPU build"), file=sys.stderr)
    return 1 if reason else 0


if __name__ == "__main__":
    sys.exit(main())
