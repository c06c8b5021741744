#!/usr/bin/env python3
"""Trains MNIST beside a straggler, without the pair ledger and with it, and prints a table in Markdown.

usage: straggler.py [--seeds 1 2 3 4 5] [--splits iid dirichlet:0.1] [--nodes 4] [--slowdown 4] [--steps 480]
                    [--step-ms 20] [--target 0.95] [--eval-every 20] [--build build/release] [--keep FOLDER]

One of the nodes takes --slowdown times as long for a step, and makes as many steps fewer. Steps are padded by sleeping
(emulated). The two runs of a seed train at the same time, so that other work on the machine meets both. The data is
read as dpwa-train reads it (DPWA_DATA_DIR or data/mnist).

averaged: the model of the final average. nodes, worst: the mean and the least of the nodes' own models before it. s to
target: seconds of training until the mean of the nodes that are not slow passes --target, as each measures it every
--eval-every steps; with a count where not every run reached it. Cells are means and standard deviations over the
seeds. The third row of a split is the difference of the paired runs, with its standard error.
--keep FOLDER: the runs' files and rows.jsonl go there; rows that are there already are not measured again.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
from lib.metrics import read_metrics, read_results  # noqa: E402
from lib.ports import free_ports  # noqa: E402

LIMIT = 300.0  # seconds of a run
COLUMNS = {"rate": "clock / steps", "averaged": "averaged model", "nodes": "mean of the nodes",
           "worst": "worst node", "to_target": "s to target"}  # fmt: skip


Process = subprocess.Popen[bytes]


def start(options: argparse.Namespace, split: str, seed: int, ledger: bool, folder: Path) -> list[Process]:
    shutil.rmtree(folder, ignore_errors=True)  # of a run that was ended
    folder.mkdir(parents=True)
    names = [f"w{k + 1}" for k in range(options.nodes)]
    lines = ["cluster: straggler", "nodes:"]
    lines += [f"  - {{name: {n}, host: 127.0.0.1, port: {p}}}" for n, p in zip(names, free_ports(options.nodes))]
    lines += [f"gossip: {{ledger: {'true' if ledger else 'false'}, start_wait_ms: 60s, finish_wait_ms: 60s}}"]
    (folder / "cluster.yaml").write_text("\n".join(lines) + "\n", encoding="utf-8")
    processes = []
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    for name in names:
        slower = options.slowdown if name == names[-1] else 1
        command = [str(options.build / "bin/dpwa-train"), "--config", str(folder / "cluster.yaml"), "--name", name]
        command += ["--split", split, "--seed", str(seed), "--steps", str(options.steps // slower), "--threads", "1"]
        command += ["--step-time", str(options.step_ms * slower), "--run-dir", str(folder), "--quiet"]
        command += ["--eval-every", str(max(1, options.eval_every // slower))]
        with (folder / f"{name}.log").open("wb") as log:
            processes.append(subprocess.Popen(command, stdout=log, stderr=log, env=environment))
    return processes


def time_to(target: float, courses: list[list[tuple[float, float]]]) -> float | None:
    """Seconds until the mean accuracy of the nodes, each as it measured it last, passes `target`."""
    latest: dict[int, float] = {}
    events = sorted((t, k, accuracy) for k, course in enumerate(courses) for t, accuracy in course)
    for t, k, accuracy in events:
        latest[k] = accuracy
        if len(latest) == len(courses) and statistics.mean(latest.values()) >= target:
            return t
    return None


def row_of(options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    results = read_results(folder)
    if len(results) != options.nodes:
        raise SystemExit(f"straggler.py: a node has no result; its log is in {folder}")
    courses = []
    for result in results[:-1]:
        _, evaluations = read_metrics(folder / f"{result['node']}.metrics.jsonl")
        courses.append([(one["t"], one["test_accuracy"]) for one in evaluations])
    own = [result["test_accuracy"] for result in results]
    return {
        "rate": sum(r["clock"] for r in results) / sum(r["steps"] for r in results),
        "averaged": max(r["averaged_model"]["test_accuracy"] for r in results if r["averaged_model"]),
        "nodes": statistics.mean(own),
        "worst": min(own),
        "to_target": time_to(options.target, courses),
    }


def pair(options: argparse.Namespace, split: str, seed: int, folder: Path) -> list[dict[str, Any]]:
    name = f"{split.replace(':', '-')}-{seed}"
    runs = {False: folder / f"{name}-off", True: folder / f"{name}-on"}
    processes = [p for ledger, place in runs.items() for p in start(options, split, seed, ledger, place)]
    try:
        codes = [process.wait(LIMIT) for process in processes]
    finally:
        for process in processes:
            process.kill()
    if any(codes):
        raise SystemExit(f"straggler.py: a node ended with {max(codes)}; the logs are in {folder}")
    return [{"split": split, "seed": seed, "ledger": on, **row_of(options, place)} for on, place in runs.items()]


def cell(values: list[float | None], digits: int) -> str:
    known = [value for value in values if value is not None]
    text = f"{statistics.mean(known):.{digits}f} ± {statistics.pstdev(known):.{digits}f}" if known else "–"
    return text if len(known) == len(values) else f"{text} ({len(known)} of {len(values)})"


def difference(off: list[float | None], on: list[float | None], digits: int) -> str:
    gains = [b - a for a, b in zip(off, on) if a is not None and b is not None]
    if len(gains) < 2:
        return "–"
    return f"{statistics.mean(gains):+.{digits}f} ± {statistics.stdev(gains) / len(gains) ** 0.5:.{digits}f}"


def table(rows: list[dict[str, Any]]) -> str:
    lines = ["| split | ledger | " + " | ".join(COLUMNS.values()) + " |", "|---" * (2 + len(COLUMNS)) + "|"]
    for split in dict.fromkeys(row["split"] for row in rows):
        chosen = sorted((row for row in rows if row["split"] == split), key=lambda row: row["seed"])
        of = {on: [row for row in chosen if row["ledger"] == on] for on in (False, True)}
        digits = {key: 1 if key == "to_target" else 3 for key in COLUMNS}
        for on in (False, True):
            cells = [cell([row[key] for row in of[on]], digits[key]) for key in COLUMNS]
            lines.append(f"| `{split}` | {'on' if on else 'off'} | " + " | ".join(cells) + " |")
        gains = [difference([r[key] for r in of[False]], [r[key] for r in of[True]], digits[key]) for key in COLUMNS]
        lines.append(f"| `{split}` | on − off | " + " | ".join(gains) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3, 4, 5])
    parser.add_argument("--splits", nargs="+", default=["iid", "dirichlet:0.1"])
    parser.add_argument("--nodes", type=int, default=4)
    parser.add_argument("--slowdown", type=int, default=4)
    parser.add_argument("--steps", type=int, default=480)
    parser.add_argument("--step-ms", type=int, default=20)
    parser.add_argument("--target", type=float, default=0.95)
    parser.add_argument("--eval-every", type=int, default=20)
    parser.add_argument("--build", type=Path, default=ROOT / "build/release")
    parser.add_argument("--keep", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        kept = folder / "rows.jsonl"
        rows = [json.loads(line) for line in kept.read_text().splitlines()] if kept.exists() else []
        for seed in options.seeds:
            for split in options.splits:
                if any(row["seed"] == seed and row["split"] == split for row in rows):
                    continue
                fresh = pair(options, split, seed, folder)
                rows += fresh
                with kept.open("a", encoding="utf-8") as file:
                    file.write("".join(json.dumps(row) + "\n" for row in fresh))
                print(f"{split}, seed {seed}: done; load {os.getloadavg()[0]:.1f}", file=sys.stderr, flush=True)
    print(table(rows))


if __name__ == "__main__":
    main()
