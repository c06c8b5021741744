"""Reads the metrics of a node, NODE.metrics.jsonl: one JSON object per line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

Record = dict[str, Any]


class MetricsTail:
    """The records that a growing metrics file has gained since the last look."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._offset = 0
        self._rest = b""

    def read(self) -> list[Record]:
        """New complete lines; none while the file is not there yet."""
        try:
            with self._file.open("rb") as stream:
                stream.seek(self._offset)
                content = stream.read()
        except FileNotFoundError:
            return []
        self._offset += len(content)
        *lines, self._rest = (self._rest + content).split(b"\n")
        return [json.loads(line) for line in lines if line]


def is_evaluation(record: Record) -> bool:
    """Of the test set; else a step."""
    return record.get("test_accuracy") is not None


def read_metrics(file: Path) -> tuple[list[Record], list[Record]]:
    """Steps and evaluations of one node, in the order of the file."""
    records = MetricsTail(file).read()
    steps = [record for record in records if not is_evaluation(record)]
    return steps, [record for record in records if is_evaluation(record)]


def read_results(folder: Path) -> list[Record]:
    """NODE.result.json of every node of a run, in natural order of the names (w2 before w10)."""
    results = [json.loads(file.read_text(encoding="utf-8")) for file in folder.glob("*.result.json")]
    return sorted(results, key=lambda result: (len(result["node"]), result["node"]))
