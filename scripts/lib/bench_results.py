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
    if microseconds >= 1000:
        return f"{microseconds / 1000:.3g} ms"
    return f"{microseconds:.3g} µs"


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
        """A pull with dpwa's defaults but for what is wanted."""
        defaults = {"kind": "pull", "transport": "tcp", "encoding": "fp32", "checksum": "on", "security": "insecure"}
        return self.first(**{**defaults, "blend": False, **wanted})

    @property
    def settings(self) -> Document:
        return next((one["settings"] for one in self.all if "settings" in one), {})

    @property
    def noisy(self) -> list[Document]:
        return [one for one in self.all if one.get("noise", {}).get("noisy")]
