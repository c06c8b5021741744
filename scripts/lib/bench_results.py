"""The bench.json of a benchmark run: one document of dpwa-bench, or of a peer, for each measurement."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

Document = dict[str, Any]

KB, MB, GB = 1000, 1000**2, 1000**3


def size_text(size: int) -> str:
    for unit, name in ((GB, "GB"), (MB, "MB"), (KB, "KB")):
        if size >= unit:
            return f"{size / unit:g} {name}"
    return f"{size} B"


def time_text(microseconds: float) -> str:
    if microseconds >= 1e6:
        return f"{microseconds / 1e6:.3g} s"
    if microseconds >= 1000:
        return f"{microseconds / 1000:.3g} ms"
    return f"{microseconds:.3g} µs"


def rate_text(gb_per_s: float) -> str:
    return f"{1000 * gb_per_s:.2f} MB/s" if gb_per_s < 0.1 else f"{gb_per_s:.2f} GB/s"


def nodes_text(nodes: int, pulling_nodes: int) -> str:
    return "1 pair" if (nodes, pulling_nodes) == (2, 1) else f"{nodes} nodes"


def fell_back(pull: Document) -> bool:
    """Whether the path in use differs from the requested one."""
    return pull["settings"].get("requested_transport", pull["transport"]) != pull["transport"]


def relative(one: Document | None, other: Document | None) -> float | None:
    """Throughput of one, of the other's. Where both ran in turn with bare sockets: by those, so that a machine that
    drifts does not count."""
    if one is None or other is None:
        return None
    if "ratio_to_raw" in one and "ratio_to_raw" in other:
        return one["ratio_to_raw"]["median"] / other["ratio_to_raw"]["median"]
    return one["gb_per_s"] / other["gb_per_s"]


class Results:
    """The measurements of a run, found by what they measured."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.all: list[Document] = document["results"]

    @classmethod
    def read(cls, folder: Path) -> Results:
        return cls(json.loads(folder.joinpath("bench.json").read_text(encoding="utf-8")))

    def select(self, **wanted: Any) -> list[Document]:
        """Those whose fields have the wanted values."""
        return [one for one in self.all if all(one.get(key) == value for key, value in wanted.items())]

    def first(self, **wanted: Any) -> Document | None:
        found = self.select(**wanted)
        return found[0] if found else None

    def pull(self, **wanted: Any) -> Document | None:
        """A pull with dpwa's defaults but for what is wanted; of two nodes one pulls, of more all do."""
        ping_pong = wanted.pop("ping_pong", False)
        defaults = {"kind": "pull", "transport": "tcp", "encoding": "fp32", "checksum": "on", "security": "insecure"}
        if "nodes" in wanted:
            defaults["pulling_nodes"] = 1 if wanted["nodes"] == 2 else wanted["nodes"]
        found = self.select(**{**defaults, "blend": False, **wanted})
        return next((one for one in found if not fell_back(one) and one.get("ping_pong", False) == ping_pong), None)

    def all_pulling(self, **wanted: Any) -> Document | None:
        """A pull of all nodes at once, as peers exchange."""
        return self.pull(**{**wanted, "pulling_nodes": wanted["nodes"]})

    @property
    def pulls(self) -> list[Document]:
        return [one for one in self.select(kind="pull") if not fell_back(one) and not one.get("ping_pong")]

    @property
    def settings(self) -> Document:
        """Of the machine; those of the pull of the most bytes by default settings, where there is one."""
        pulls = sorted(self.pulls, key=lambda one: (-one["bytes"], one["transport"] != "tcp"))
        with_settings = [*pulls, *(one for one in self.all if "settings" in one)]
        return with_settings[0]["settings"] if with_settings else {}

    @property
    def skipped(self) -> list[Document]:
        return self.document.get("skipped", [])

    @property
    def noisy(self) -> list[Document]:
        return [one for one in self.all if one.get("noise", {}).get("noisy")]
