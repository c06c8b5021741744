#!/usr/bin/env python3
"""Trains four nodes of which one is four times slower, under each back end for the same time, and prints a table.

The slow node is emulated with `--step-time`: every step of it is extended by a sleep, so the result hardly depends on
the number of processors. All back ends have the same data, model, seeds and time; back ends whose nodes wait for one
another make fewer steps in it. Where each push is an update (dist_ssp, dist_async) the learning rate is divided by the
number of nodes, so that the pushes of all move the weights as far as one step of their mean does; not with --same-rate.
Needs the data of DPWA_DATA_DIR (or --data synthetic) and a build.

usage: scripts/compare_straggler.py --runs FOLDER [--seeds 1 2 3] [--back-ends gossip collective dist_sync ...]

Every run leaves a folder FOLDER/BACK_END.SEED; one that is complete is not run again, and counts in the table.
"""

from __future__ import annotations

from lib import interrupts

if __name__ == "__main__":
    interrupts.end_at_once()  # also during the imports below

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from lib.messages import say
from lib.metrics import read_metrics, read_results
from lib.output import checked
from lib.ports import first_free_port

REPOSITORY = Path(__file__).resolve().parents[1]
NODES = 4
SERVERS = 2
SLOW = f"w{NODES}"
BACK_ENDS = ("gossip", "collective", "dist_sync", "dist_ssp", "dist_async")


def pace_ms(chosen: argparse.Namespace, node: str) -> int:
    return chosen.step_ms * (chosen.factor if node == SLOW else 1)


def steps_of(chosen: argparse.Namespace, back_end: str, node: str) -> int:
    """Steps that `node` can make in the time of a run."""
    own = round(1000 * chosen.seconds / pace_ms(chosen, node))
    slowest = round(1000 * chosen.seconds / pace_ms(chosen, SLOW))
    if back_end in ("collective", "dist_sync"):
        return slowest
    return min(own, slowest + chosen.staleness) if back_end == "dist_ssp" else own


def cluster_file(chosen: argparse.Namespace, back_end: str, folder: Path) -> Path:
    servers = 0 if back_end in ("gossip", "collective") else SERVERS
    port = first_free_port(NODES + servers)

    def entries(kind: str, count: int, first: int) -> list[str]:
        return [f"  - {{name: {kind}{i + 1}, host: 127.0.0.1, port: {first + i}}}" for i in range(count)]

    lines = [f"cluster: straggler\nbackend: {'kvstore' if servers else back_end}\nnodes:", *entries("w", NODES, port)]
    if servers:
        lines += [f"kvstore:\n  type: {back_end}"]
        lines += [f"  staleness: {chosen.staleness}"] if back_end == "dist_ssp" else []
        lines += ["  servers:", *("  " + line for line in entries("s", servers, port + NODES))]
    path = folder / "cluster.yaml"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def wait_for(nodes: dict[str, subprocess.Popen[bytes]], words: str, period: float = 15) -> dict[str, int]:
    """Their exit codes. Until they have ended, a line on stderr in each period says for how long they have run."""
    began = told = time.monotonic()
    for process in nodes.values():
        while True:
            try:
                process.wait(max(0, told + period - time.monotonic()))
                break
            except subprocess.TimeoutExpired:
                told = time.monotonic()
                say(words.format(told - began))
    return {node: process.returncode for node, process in nodes.items()}


def train(chosen: argparse.Namespace, back_end: str, seed: int, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    config = cluster_file(chosen, back_end, folder)
    servers = [f"s{i + 1}" for i in range(SERVERS)] if "kvstore" in config.read_text(encoding="utf-8") else []
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    running: dict[str, subprocess.Popen[bytes]] = {}

    def start(name: str, *command: Any) -> None:
        with (folder / f"{name}.log").open("wb") as log:
            running[name] = subprocess.Popen([str(part) for part in command], stdout=log, stderr=log, env=environment)

    single = back_end in ("dist_ssp", "dist_async") and not chosen.same_rate
    rate = chosen.lr / NODES if single else chosen.lr
    began = time.time()
    load = os.getloadavg()[0]
    try:
        for name in servers:
            start(name, chosen.cli, "kvserver", "--config", config, "--name", name)
        for node in (f"w{i + 1}" for i in range(NODES)):
            waits = steps_of(chosen, back_end, node) == steps_of(chosen, back_end, SLOW)
            pace = pace_ms(chosen, SLOW if waits else node)
            evaluations = ("--eval-every", max(1, round(1000 * chosen.every / pace))) if node == "w1" else ()
            start(node, chosen.trainer, "--config", config, "--name", node, "--data", chosen.data, "--model", "mlp",
                  "--optimizer", chosen.optimizer, "--schedule", "constant", "--lr", rate, "--threads", 1,
                  "--steps", steps_of(chosen, back_end, node), "--step-time", pace_ms(chosen, node), "--seed", seed,
                  "--run-dir", folder, "--quiet", *evaluations)  # fmt: skip
        nodes = {node: process for node, process in running.items() if node not in servers}
        codes = wait_for(nodes, f"{folder.name}: {{:.0f}} s of about {chosen.seconds:g}")
    finally:
        for process in running.values():
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
        for process in running.values():
            process.wait()
    if any(codes.values()):
        raise SystemExit(f"{back_end}, seed {seed}: exit codes {codes}; see {folder}/*.log")
    note = {"seconds": round(time.time() - began, 1), "load": [load, os.getloadavg()[0]]}
    (folder / "run.json").write_text(json.dumps(note) + "\n", encoding="utf-8")


def figures(chosen: argparse.Namespace, folder: Path) -> dict[str, float | None]:
    results = {result["node"]: result for result in read_results(folder)}
    _, evaluations = read_metrics(folder / "w1.metrics.jsonl")
    reached = [e["t"] for e in evaluations if e["test_accuracy"] >= chosen.accuracy]
    models = [r["averaged_model"] for r in results.values() if r["averaged_model"]]
    shared = [model["test_accuracy"] for model in models if model["test_accuracy"] is not None]
    return {
        "model": max(shared) if shared else results["w1"]["test_accuracy"],
        "worst": min(result["test_accuracy"] for result in results.values()),
        "reached": reached[0] if reached else None,
        "fast": statistics.mean(result["steps"] for node, result in results.items() if node != SLOW),
        "slow": results[SLOW]["steps"],
        "load": statistics.mean(json.loads((folder / "run.json").read_text(encoding="utf-8"))["load"]),
    }


def row(chosen: argparse.Namespace, back_end: str, runs: list[dict[str, Any]]) -> str:
    def spread(key: str) -> str:
        values = [100 * run[key] for run in runs]
        return f"{statistics.mean(values):.2f} ({min(values):.2f} to {max(values):.2f})"

    times = [run["reached"] for run in runs if run["reached"] is not None]
    reached = f"{statistics.mean(times):.1f} ({min(times):.1f} to {max(times):.1f})" if times else "–"
    if 0 < len(times) < len(runs):
        reached += f", {len(times)} of {len(runs)}"
    name = f"`{back_end}`, s = {chosen.staleness}" if back_end == "dist_ssp" else f"`{back_end}`"
    steps = [statistics.mean(run[key] for run in runs) for key in ("slow", "fast")]
    return f"| {name} | {spread('model')} | {spread('worst')} | {reached} | {steps[0]:.0f}, {steps[1]:.0f} |"


def print_table(chosen: argparse.Namespace) -> None:
    print(f"| back end | accuracy of the model, % | worst node, % | s to {100 * chosen.accuracy:g} % at a fast node | "
          "steps: slow, others |")  # fmt: skip
    print("|---|---|---|---|---|")
    loads = []
    for back_end in BACK_ENDS:
        folders = sorted(chosen.runs.glob(f"{back_end}.*"))
        runs = [figures(chosen, folder) for folder in folders if (folder / "run.json").exists()]
        if runs:
            print(row(chosen, back_end, runs))
        loads += [run["load"] for run in runs]
    if loads:
        print(f"\nload of the machine: {statistics.mean(loads):.1f} ({min(loads):.1f} to {max(loads):.1f})")


def main() -> int:
    interrupts.raise_again()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--seeds", type=int, nargs="*", default=[1, 2, 3])
    parser.add_argument("--back-ends", nargs="*", choices=BACK_ENDS, default=BACK_ENDS)
    parser.add_argument("--seconds", type=float, default=36, help="of training in each run")
    parser.add_argument("--step-ms", type=int, default=30, help="of the fast nodes")
    parser.add_argument("--factor", type=int, default=4, help="by which the slow node is slower")
    parser.add_argument("--staleness", type=int, default=8, help="of dist_ssp")
    parser.add_argument("--every", type=float, default=1, help="seconds between evaluations at a fast node")
    parser.add_argument("--accuracy", type=float, default=0.95, help="that the time is taken to")
    parser.add_argument("--optimizer", default="sgd")
    parser.add_argument("--lr", type=float, default=0.3)
    parser.add_argument("--same-rate", action="store_true", help="--lr also where each push is an update")
    parser.add_argument("--data", choices=("mnist", "synthetic"), default="mnist" if "DPWA_DATA_DIR" in os.environ
                        else "synthetic")
    parser.add_argument("--trainer", type=Path, default=REPOSITORY / "build" / "release" / "bin" / "dpwa-train")
    parser.add_argument("--cli", type=Path, default=REPOSITORY / "build" / "release" / "bin" / "dpwa")
    chosen = parser.parse_args()
    for seed in chosen.seeds:
        for back_end in chosen.back_ends:
            folder = chosen.runs / f"{back_end}.{seed}"
            if not (folder / "run.json").exists():
                train(chosen, back_end, seed, folder)
    print_table(chosen)
    return 0


if __name__ == "__main__":
    sys.exit(checked(main))
