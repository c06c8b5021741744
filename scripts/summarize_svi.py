#!/usr/bin/env python3
"""Compares runs of dpwa-svi: prints a table for each data set, and writes tables and pictures into the folder.

usage: summarize_svi.py FOLDER

FOLDER has a folder for each data set, and that one a folder for each run with its NODE.result.json. Writes
svi.md, and for data with one input DATA.png: the predictive mean and its band of two standard deviations.
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
from lib.metrics import Record, read_results  # noqa: E402
from lib.output import checked, fail  # noqa: E402

# Folder of a run -> how it is called, in this order.
RUNS = {
    "one_process": "one process, all rows",
    "collective": "collective",
    "kvstore": "kvstore",
    "gossip_parameters": "gossip, (m, log s)",
    "gossip_natural": "gossip, natural parameters",
}
HEAD = ("run", "nodes", "log likelihood", "RMSE", "in 50 %", "in 80 %", "in 95 %", "seconds")
NOTES = (
    "log likelihood, RMSE, in 50 / 80 / 95 %: of the rows to test; seconds: of training, the slowest node.",
    "Rows of gossip differ from run to run, as what the nodes blend depends on timing: compare several runs.",
)


def runs_of(folder: Path) -> dict[str, list[Record]]:
    """The results of the runs of one data set, in the order of RUNS; others follow."""
    found = {path.name: read_results(path) for path in sorted(folder.iterdir()) if path.is_dir()}
    order = [*RUNS, *(name for name in found if name not in RUNS)]
    return {name: found[name] for name in order if found.get(name)}


def table(runs: dict[str, list[Record]]) -> list[tuple[str, ...]]:
    """The final posterior of the first node, as all nodes have the same one, and the longest training time."""
    rows = []
    for name, results in runs.items():
        final = results[0]["final"]
        rows.append((RUNS.get(name, name), str(len(results)), f"{final['log_likelihood']:.4f}", f"{final['rmse']:.2f}",
                     *(f"{100 * final[key]:.0f}" for key in ("within_50", "within_80", "within_95")),
                     f"{max(result['train_seconds'] for result in results):.1f}"))  # fmt: skip
    return rows


def markdown(title: str, rows: list[tuple[str, ...]]) -> str:
    lines = [HEAD, ("---",) * len(HEAD), *rows]
    return f"## {title}\n\n" + "".join(f"| {' | '.join(line)} |\n" for line in lines)


def plain(title: str, rows: list[tuple[str, ...]]) -> str:
    """At most 80 columns: a head of several words has two lines."""
    parts = [head.partition(" ")[::2] for head in HEAD]
    shown = [tuple(first if last else "" for first, last in parts), tuple(last or first for first, last in parts), *rows]
    widths = [max(len(row[i]) for row in shown) for i in range(len(HEAD))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in shown]
    return "\n".join([title, *lines])


def draw(runs: dict[str, list[Record]], title: str, target: Path) -> None:
    plt.rcParams.update({"axes.spines.top": False, "axes.spines.right": False, "axes.grid": True, "grid.alpha": 0.25})
    columns = min(2, len(runs))
    lines = -(-len(runs) // columns)
    figure, grid = plt.subplots(lines, columns, figsize=(5.5 * columns, 4 * lines), sharex=True, sharey=True,
                                squeeze=False, layout="constrained")  # fmt: skip
    figure.suptitle(title)
    for axes, (name, results) in zip(grid.flat, runs.items(), strict=False):
        curve: dict[str, Any] = {key: np.array(values) for key, values in results[0]["curve"].items()}
        axes.set(xlabel=curve["columns"][0], ylabel=curve["columns"][1])
        axes.set_title(RUNS.get(name, name))
        for key, alpha, label in (("sd", 0.2, "± 2 σ of y"), ("model_sd", 0.45, "± 2 σ of the mean")):
            axes.fill_between(curve["x"], curve["mean"] - 2 * curve[key], curve["mean"] + 2 * curve[key],
                              alpha=alpha, color="tab:blue", linewidth=0, label=label)  # fmt: skip
        axes.plot(curve["x"], curve["mean"], color="tab:blue", label="predictive mean")
        axes.plot(curve["train_x"], curve["train_y"], ".", color="black", markersize=3, label="rows to train")
        axes.plot(curve["test_x"], curve["test_y"], "x", color="tab:red", markersize=4, label="rows to test")
    for axes in grid.flat:
        axes.label_outer()
    for axes in list(grid.flat)[len(runs) :]:
        axes.set_visible(False)
    grid[0, 0].legend(frameon=False, fontsize="small")
    figure.savefig(target, dpi=120)
    plt.close(figure)


def summarize(folder: Path) -> str:
    parts = []
    for data in sorted(path for path in folder.iterdir() if path.is_dir()):
        runs = runs_of(data)
        if not runs:
            continue
        first = next(iter(runs.values()))[0]
        title = f"{data.name}: {first['train_rows']} rows to train, {first['test_rows']} to test"
        rows = table(runs)
        parts.append(markdown(title, rows))
        print(plain(title, rows) + "\n")
        if first["curve"]:
            draw(runs, title, folder / f"{data.name}.png")
    if not parts:
        raise FileNotFoundError(f"{folder} holds no results of dpwa-svi")
    notes = NOTES if any("gossip" in part for part in parts) else NOTES[:1]
    print("\n".join(notes))
    return "\n".join([*parts, *(f"{note}\n" for note in notes)])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, metavar="FOLDER")
    folder = parser.parse_args().folder
    try:
        folder.joinpath("svi.md").write_text(summarize(folder), encoding="utf-8")
    except (OSError, KeyError, json.JSONDecodeError) as error:
        return fail("no summary", error)
    return 0


if __name__ == "__main__":
    sys.exit(checked(main))
