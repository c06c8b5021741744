#!/usr/bin/env python3
"""Sums up a run: writes summary.json into its folder and prints the table of nodes and baselines.

usage: summarize.py RUN_FOLDER [--source TEXT]

Reads NODE.result.json of the run and of baselines/single_process, baselines/alone and
baselines/no_communication as far as they are there.
"""

from __future__ import annotations

from lib import interrupts

if __name__ == "__main__":
    interrupts.end_at_once()  # also during the imports below

import argparse
import json
import math
import re
import sys
from pathlib import Path
from typing import Any

from lib.metrics import Record, read_results
from lib.output import checked, fail
from lib.tables import add_columns, console_for_tables, new_table
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
FEW_BLENDS = 0.1  # a step
FEW_BLENDS_WORDS = (
    "!! {rate:.2f} blends a step: the nodes trained almost without one another.",
    "   Pulls fail, or the network threads get too little processor time. Look at:",
    "   - pulls that failed, and why: the logs of the nodes",
    "   - other load (uptime), and more nodes or threads than cores",
    "   - kernel.sched_autogroup_enabled, where each node has a session of its own,",
    "     as under torchrun (docs/LAUNCHERS.md)",
)


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


def blends_a_step(results: list[Record]) -> float | None:
    """Pulls that were blended, by the steps of all nodes; both of the processes that wrote the results."""
    steps = sum(result.get("steps_made") or 0 for result in results)
    return sum(result["pulls_ok"] or 0 for result in results) / steps if steps else None


def pull_probability(folder: Path) -> float:
    """As the cluster file of the run gives it; else the default."""
    try:
        text = (folder / "cluster.yaml").read_text(encoding="utf-8")
    except OSError:
        text = ""
    found = re.search(r"^[^#\n]*pull_probability:\s*([0-9.]+)", text, flags=re.MULTILINE)
    return float(found[1]) if found else 1.0


def few_blends(results: list[Record], probability: float) -> list[str]:
    """Lines that say what to look at where nodes that gossip have blended seldom; none otherwise."""
    rate = blends_a_step(results)
    if results[0].get("backend") != "gossip" or len(results) < 2 or rate is None or rate >= FEW_BLENDS * probability:
        return []
    return [line.format(rate=rate) for line in FEW_BLENDS_WORDS]


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


def short(value: float | None, digits: int) -> str:
    """From a thousand on without digits after the point, which say nothing there."""
    return number(value, digits if abs(value or 0) < 1000 else 0)


def node_table(data: dict[str, Any], backend: str) -> Table:
    table = new_table()
    pulls = ("pulls\nok", "pulls\nfailed") if backend not in WITHOUT_PULLS else ()
    add_columns(table, "node", "accuracy\n%", "loss", "steps", "samples", *pulls, "waited\nms", "step\nms", "MB in")
    for node in data["nodes"]:
        table.add_row(
            node["name"],
            percent(node["test_accuracy"]).removesuffix(" %"),
            number(node["test_loss"], 4),
            str(node["steps"]),
            f"{node['samples']:,}",
            *((str(node["pulls_ok"]), str(node["pulls_failed"])) if pulls else ()),
            short(node["waited_ms_total"], 1),
            short(node["step_ms_median"], 2),
            short(node["bytes_received"] / 1e6, 1),
        )
    return table


def comparison_table(data: dict[str, Any], backend: str, blends: float | None = None) -> Table:
    table = new_table()
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
        table.add_row("blends a step (pulls ok / steps)", number(blends, 3))
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
        return fail("no summary", error)
    options.folder.joinpath("summary.json").write_text(json.dumps(data, indent=2) + "\n", encoding="utf-8")
    results = read_results(options.folder)
    backend = results[0].get("backend", "")
    console = console_for_tables()
    comparison = comparison_table(data, backend, blends_a_step(results))
    title = f"{data['source']}, {data['model']}, split {data['split']}, seed {data['seed']}"
    console.print(title, markup=False, highlight=False, soft_wrap=True)  # the title of a table is padded with blanks
    console.print(node_table(data, backend), "", comparison, sep="\n", crop=False)
    for line in few_blends(results, pull_probability(options.folder)):
        console.print(line, markup=False, highlight=False, soft_wrap=True)
    return 0


if __name__ == "__main__":
    sys.exit(checked(main))
