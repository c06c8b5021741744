#!/usr/bin/env python3
"""Shows the progress of the nodes of a run, one line per node, from their metrics files.

usage: watch.py RUN_FOLDER --nodes w1,w2,... --pid PID

A table that is redrawn on a terminal. Ends when process PID does.
"""

from __future__ import annotations

from lib import interrupts

if __name__ == "__main__":
    interrupts.end_at_once()  # also during the imports below

import argparse
import signal
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

from lib.metrics import MetricsTail, Record, is_evaluation
from lib.output import checked
from lib.tables import add_columns, new_table
from rich.console import Console
from rich.live import Live
from rich.table import Table

INTERVAL = 0.25  # seconds
SMOOTHING = 0.05  # weight of the newest step in the loss shown
COLUMNS = ("node", "step", "loss", "accuracy\n%", "clock", "pulls\nok", "pulls\nfailed", "peer", "factor", "waited\nms")
OF_PULLS = {"clock", "pulls\nok", "pulls\nfailed", "peer", "factor"}
WITHOUT_PULLS = {"averaged", "updated", "dropped"}  # outcomes of the back ends collective and kvstore


@dataclass
class NodeView:
    """What one node's line shows."""

    name: str
    tail: MetricsTail
    step: int = 0
    loss: float | None = None
    accuracy: float | None = None
    latest: Record = field(default_factory=dict)
    mixed: Record = field(default_factory=dict)
    waited_ms: float = 0.0

    def update(self) -> None:
        for record in self.tail.read():
            self.step = record["step"]
            if is_evaluation(record):
                self.accuracy = record["test_accuracy"]
            else:
                self._add_step(record)

    def _add_step(self, record: Record) -> None:
        self.latest = record
        self.waited_ms += record["waited_ms"] or 0
        if record["outcome"] == "mixed":
            self.mixed = record
        loss = record["loss"]
        if loss is not None:
            self.loss = loss if self.loss is None else self.loss + SMOOTHING * (loss - self.loss)

    def pulls(self) -> bool:
        return self.latest.get("outcome") not in WITHOUT_PULLS

    def cells(self) -> tuple[str, ...]:
        return (
            self.name,
            str(self.step),
            "-" if self.loss is None else f"{self.loss:.4f}",
            "-" if self.accuracy is None else f"{100 * self.accuracy:.2f}",
            f"{self.latest.get('clock') or 0:.0f}",
            str(self.latest.get("pulls_ok") or 0),
            str(self.latest.get("pulls_failed") or 0),
            self.mixed.get("peer", "-"),
            f"{self.mixed['factor']:.2f}" if self.mixed else "-",
            f"{self.waited_ms:.1f}",
        )


def table(views: list[NodeView], seconds: float) -> Table:
    result = new_table(f"{seconds:.0f} s")
    hidden = set() if any(view.pulls() for view in views) else OF_PULLS
    add_columns(result, *(column for column in COLUMNS if column not in hidden), left=("node", "peer"))
    for view in views:
        result.add_row(*(cell for column, cell in zip(COLUMNS, view.cells()) if column not in hidden))
    return result


def runs(pid: int) -> bool:
    """True while the process is there and has not ended."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"


def watch(console: Console, views: list[NodeView], pid: int) -> None:
    began = time.monotonic()
    with Live(console=console, auto_refresh=False) as live:
        going = True
        while going:
            going = runs(pid)
            for view in views:
                view.update()
            live.update(table(views, time.monotonic() - began), refresh=True)
            if going:
                time.sleep(INTERVAL)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, metavar="RUN_FOLDER")
    parser.add_argument("--nodes", required=True, help="names, separated by commas")
    parser.add_argument("--pid", type=int, required=True, help="process id of the run.sh to watch")
    options = parser.parse_args()
    views = [NodeView(name, MetricsTail(options.folder / f"{name}.metrics.jsonl")) for name in options.nodes.split(",")]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    signal.signal(signal.SIGINT, lambda *_: sys.exit(130))
    watch(Console(stderr=True), views, options.pid)  # follows NO_COLOR
    return 0


if __name__ == "__main__":
    sys.exit(checked(main))
