#!/usr/bin/env python3
"""Draws training.png of a run: loss, test accuracy and, with gossip, consensus distance over time, one line per node.

usage: plot_training.py RUN_FOLDER

Reads NODE.metrics.jsonl, and summary.json for the title and the baselines when it is there.
"""

from __future__ import annotations

from lib import interrupts

if __name__ == "__main__":
    interrupts.end_at_once()  # also during the imports below

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402
import numpy as np  # noqa: E402
from lib.output import fail  # noqa: E402
from lib.metrics import Record, read_metrics  # noqa: E402
from lib.output import checked  # noqa: E402
from matplotlib.axes import Axes  # noqa: E402

BINS = 60  # points a curve has at most
BASELINES = {
    "one process, all data": ("single_process", "test_accuracy", "-."),
    "alone on its shard": ("alone", "test_accuracy", ":"),
}
Curve = tuple[np.ndarray, np.ndarray]


def column(records: list[Record], key: str) -> np.ndarray:
    return np.array([np.nan if record.get(key) is None else record[key] for record in records], dtype=float)


def binned(times: np.ndarray, values: np.ndarray, edges: np.ndarray) -> Curve:
    """Means of `values` in the bins between `edges`; empty bins are left out."""
    kept = np.isfinite(values)
    times, values = times[kept], values[kept]
    counts, _ = np.histogram(times, edges)
    sums, _ = np.histogram(times, edges, weights=values)
    filled = counts > 0
    return ((edges[:-1] + edges[1:]) / 2)[filled], sums[filled] / counts[filled]


def has_distance(step: Record) -> bool:
    return step["outcome"] == "mixed" and bool(step.get("distance"))


def consensus(steps: list[Record], nodes: int, edges: np.ndarray) -> Curve:
    """Distance to the average, from the distances d to the peers blended with.

    Over all ordered pairs the mean of d^2 is 2 N / (N - 1) times the mean square distance to the
    average; the pairs of one bin are taken as a sample of all.
    """
    mixed = [step for step in steps if has_distance(step)]
    times, squares = binned(column(mixed, "t"), column(mixed, "distance") ** 2, edges)
    return times, np.sqrt(squares * (nodes - 1) / (2 * nodes))


def draw_loss(axes: Axes, steps: dict[str, list[Record]], edges: np.ndarray) -> None:
    for node, records in steps.items():
        axes.plot(*binned(column(records, "t"), column(records, "loss"), edges), label=node)
    axes.set_yscale("log")
    axes.set_ylabel("training loss")


def draw_accuracy(axes: Axes, evaluations: dict[str, list[Record]], summary: dict[str, Any]) -> None:
    for node, records in evaluations.items():
        axes.plot(column(records, "t"), 100 * column(records, "test_accuracy"), marker=".", label=node)
    average = (summary.get("averaged_model") or {}).get("test_accuracy")
    if average is not None:
        axes.axhline(100 * average, color="black", linewidth=1, label="averaged model")
    for label, (name, key, style) in BASELINES.items():
        value = summary.get("baselines", {}).get(name, {}).get(key)
        if value is not None:
            axes.axhline(100 * value, color="grey", linestyle=style, linewidth=1.2, label=label)
    axes.set_ylabel("test accuracy, %")


def draw_consensus(axes: Axes, steps: dict[str, list[Record]], edges: np.ndarray) -> None:
    for node, records in steps.items():
        axes.plot(*consensus(records, len(steps), edges), linewidth=1, alpha=0.6, label=node)
    everything = [record for records in steps.values() for record in records]
    axes.plot(*consensus(everything, len(steps), edges), color="black", label="all nodes")
    axes.set_ylim(bottom=0)
    axes.set_ylabel("consensus distance")


def title(summary: dict[str, Any], nodes: int) -> str:
    if not summary:
        return f"{nodes} nodes"
    return f"{nodes} nodes, {summary['model']} on {summary['source']}, split {summary['split']}, seed {summary['seed']}"


def draw(folder: Path) -> Path:
    files = sorted(folder.glob("*.metrics.jsonl"), key=lambda file: (len(file.name), file.name))
    read = {file.name.removesuffix(".metrics.jsonl"): read_metrics(file) for file in files}
    steps = {node: records for node, (records, _) in read.items() if records}
    if not steps:
        raise FileNotFoundError(f"there are no metrics (NODE.metrics.jsonl) of any step in {folder}")
    evaluations = {node: records for node, (_, records) in read.items() if records}
    summary_file = folder / "summary.json"
    summary = json.loads(summary_file.read_text(encoding="utf-8")) if summary_file.exists() else {}
    edges = np.linspace(0, max(records[-1]["t"] for records in steps.values()) + 1e-9, BINS + 1)

    plt.rcParams.update({"axes.spines.top": False, "axes.spines.right": False, "axes.grid": True, "grid.alpha": 0.25})
    # Only with gossip do nodes see how far others are.
    rows = 3 if any(has_distance(step) for records in steps.values() for step in records) else 2
    figure, panels = plt.subplots(rows, 1, figsize=(9, 1 + 3 * rows), sharex=True, layout="constrained")
    figure.suptitle(title(summary, len(steps)))
    draw_loss(panels[0], steps, edges)
    draw_accuracy(panels[1], evaluations, summary)
    if rows == 3:
        draw_consensus(panels[2], steps, edges)
    panels[-1].set_xlabel("seconds of training")
    for axes in panels:
        axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False)
    target = folder / "training.png"
    figure.savefig(target, dpi=130)
    return target


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, metavar="RUN_FOLDER")
    options = parser.parse_args()
    try:
        target = draw(options.folder)
    except (OSError, KeyError, json.JSONDecodeError) as error:
        return fail("no plot", error)
    print(f"   plot: {target}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(checked(main))
