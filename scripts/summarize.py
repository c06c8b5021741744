#!/usr/bin/env python3
"""Sums up a run: writes summary.json into its folder and prints the table of nodes and baselines.

usage: summarize.py RUN_FOLDER [--source TEXT]

Reads NODE.result.json of the run and of baselines/single_process, baselines/alone and
baselines/no_communication as far as they are there.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from pathlib import Path
from typing import Any

from lib.metrics import Record, read_results
from lib.output import checked
from rich.console import Console
from rich.table import Table

NODE_KEYS = ("test_accuracy", "test_loss", "steps", "samples", "clock", "pulls_ok", "pulls_failed",
             "waited_ms_total", "waited_ms_max", "step_ms_median", "bytes_received")  # fmt: skip
# What the nodes of a back end have in the end.
AVERAGED_MODELS = {
    "gossip": "averaged model of the gossip nodes",
    "collective": "model that the synchronous nodes share",
    "kvstore": "model of the parameter servers",
}
WITHOUT_PULLS = {"collective", "kvstore"}  # back ends


def average_of(results: list[Record]) -> Record | None:
    """The averaged model, as the node saw it that averaged with the most others."""
    taken = [r["averaged_model"] for r in results if r["averaged_model"]]
    taken = [model for model in taken if model["test_accuracy"] is not None]
    return max(taken, key=lambda model: model["participants"] or 0, default=None)


def other_averages(results: list[Record], chosen: Record | None) -> list[dict[str, Any]]:
    """What nodes have that averaged with fewer others than those of `chosen`, or with none: each with its nodes."""
    if chosen is None:
        return []
    found: dict[int, dict[str, Any]] = {}
    for result in results:
        model = result["averaged_model"] or {"participants": 0, "test_accuracy": None}
        if model["participants"] in (None, chosen["participants"]):
            continue
        other = {"participants": model["participants"], "test_accuracy": model["test_accuracy"], "nodes": []}
        found.setdefault(model["participants"], other)["nodes"].append(result["node"])
    return [found[count] for count in sorted(found, reverse=True)]


def consensus_distance(results: list[Record]) -> float | None:
    """Root mean square over the nodes of the distance from a node's model to the average."""
    distances = [r["averaged_model"]["distance"] for r in results if r["averaged_model"]]
    return math.sqrt(sum(d * d for d in distances) / len(distances)) if distances else None


def effective_rate(nodes: list[Record]) -> float | None:
    """Of the learning rate: the nodes' clocks, which gossip averages as it does their weights, by their own steps."""
    steps = sum(node["steps"] or 0 for node in nodes)
    return sum(node["clock"] or 0 for node in nodes) / steps if steps else None


def mean_accuracy(results: list[Record]) -> float | None:
    values = [r["test_accuracy"] for r in results if r["test_accuracy"] is not None]
    return sum(values) / len(values) if values else None


def baselines(folder: Path) -> dict[str, Any]:
    """The results of the three baselines; those that were not run are left out."""
    found: dict[str, Any] = {}
    for name in ("single_process", "alone"):
        if results := read_results(folder / name):
            found[name] = {"test_accuracy": results[0]["test_accuracy"], "samples": results[0]["samples"]}
    if results := read_results(folder / "no_communication"):
        average = average_of(results)
        found["no_communication"] = {
            "node_mean_accuracy": mean_accuracy(results),
            "averaged_model_accuracy": average["test_accuracy"] if average else None,
        }
    return found


def summary(folder: Path, source: str) -> dict[str, Any]:
    results = read_results(folder)
    if not results:
        raise FileNotFoundError(f"{folder} holds no NODE.result.json")
    first = results[0]
    average = average_of(results)
    result: dict[str, Any] = {"schema": 1}
    result.update({key: first[key] for key in ("dataset", "split", "model", "seed")})
    result["source"] = source or first["dataset"]
    result["nodes"] = [{"name": r["node"], **{key: r[key] for key in NODE_KEYS}} for r in results]
    result["averaged_model"] = average and {key: average[key] for key in ("test_accuracy", "test_loss", "participants")}
    result["other_averages"] = other_averages(results, average)
    result["consensus_distance"] = consensus_distance(results)
    result["baselines"] = baselines(folder / "baselines")
    return result


def percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.2f} %"


def number(value: float | None, digits: int) -> str:
    return "-" if value is None else f"{value:,.{digits}f}"


def node_table(data: dict[str, Any], backend: str) -> Table:
    table = Table(title=f"{data['source']}, {data['model']}, split {data['split']}, seed {data['seed']}", min_width=76)
    pulls = ("pulls ok", "failed") if backend not in WITHOUT_PULLS else ()
    for column in ("node", "accuracy", "loss", "steps", "samples", *pulls, "waited", "step", "MB in"):
        table.add_column(column, justify="left" if column == "node" else "right")
    for node in data["nodes"]:
        table.add_row(
            node["name"],
            percent(node["test_accuracy"]),
            number(node["test_loss"], 4),
            str(node["steps"]),
            f"{node['samples']:,}",
            *((str(node["pulls_ok"]), str(node["pulls_failed"])) if pulls else ()),
            number(node["waited_ms_total"], 1) + " ms",
            number(node["step_ms_median"], 2) + " ms",
            number(node["bytes_received"] / 1e6, 1),
        )
    return table


def comparison_table(data: dict[str, Any], backend: str) -> Table:
    table = Table(min_width=76)
    table.add_column("compared, with the same budget")
    table.add_column("result", justify="right")
    average, others = data["averaged_model"], data["baselines"]
    title = AVERAGED_MODELS.get(backend, "averaged model of the nodes")
    table.add_row(title, percent(average and average["test_accuracy"]), style="bold")
    for other in data["other_averages"]:
        names, count = " ".join(other["nodes"]), other["participants"]
        what = f"averaged over {count} of {len(data['nodes'])} nodes" if count else "without an averaged model"
        table.add_row(f"  {names}: {what}", percent(other["test_accuracy"]))
    table.add_row("consensus distance (root mean square to the average)", number(data["consensus_distance"], 4))
    if backend not in WITHOUT_PULLS:
        table.add_row("effective learning rate (clock / steps)", number(effective_rate(data["nodes"]), 3))
    if others:
        silent = others.get("no_communication", {})
        rows = {
            "one process, all the data, as many samples": others.get("single_process", {}).get("test_accuracy"),
            "one node alone on its shard": others.get("alone", {}).get("test_accuracy"),
            "nodes that never talk: their mean": silent.get("node_mean_accuracy"),
            "nodes that never talk: their averaged model": silent.get("averaged_model_accuracy"),
        }
        for title, accuracy in rows.items():
            table.add_row(title, percent(accuracy))
    return table


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, metavar="RUN_FOLDER")
    parser.add_argument("--source", default="", help="source of the data, as text for people")
    options = parser.parse_args()
    try:
        data = summary(options.folder, options.source)
    except (OSError, KeyError, json.JSONDecodeError) as error:
        print(f"failed: no summary: {error!r}", file=sys.stderr)
        return 1
    options.folder.joinpath("summary.json").write_text(json.dumps(data, indent=2) + "\n", encoding="utf-8")
    console = Console()
    console = console if console.is_terminal else Console(width=110)
    backend = read_results(options.folder)[0].get("backend", "")
    console.print(node_table(data, backend), comparison_table(data, backend))
    return 0


if __name__ == "__main__":
    sys.exit(checked(main))
