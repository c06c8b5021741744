#!/usr/bin/env python3
"""What real processes of different paces make of the mean: kept, and clock / steps.

usage: pace_table.py VECTOR_TRAINER [--runs 3] [--step-ms 5] [--firewall warn] [--plain]
                     [--method constant] [--nodes 4 8] [--slowdowns 2 4 16]

Each run starts processes of dpwa_vector_trainer on loopback, one of them slower. After 100 of its steps the slow one
adds a unit to sixteen elements, one every ten steps. Kept is the sum of such an element over all nodes at the end; 1 is
right. The table gives mean and standard deviation over the runs' sixteen units (kept), and over the runs (clock /
steps, blends per step). docs/ALGORITHMS.md quotes it.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))
from lib.ports import free_ports  # noqa: E402

UNITS = 16
FIRST = 100
NEVER = 10**9


def last_step(path: Path) -> dict:
    lines = path.read_text().splitlines() if path.exists() else []
    for line in reversed(lines):
        try:
            entry = json.loads(line)
        except ValueError:
            continue  # half written
        if "step" in entry:
            return entry
    return {"step": 0}


def run(arguments: argparse.Namespace, nodes: int, slowdown: int, folder: Path) -> tuple[list[float], float, float]:
    names = [f"w{i}" for i in range(1, nodes + 1)]
    entries = "".join(f"  - {{name: {n}, host: 127.0.0.1, port: {p}}}\n" for n, p in zip(names, free_ports(nodes)))
    settings = f"gossip:\n  ledger: {'false' if arguments.plain else 'true'}\n  final_average: false\n"
    settings += f"  firewall: {{distance: {arguments.firewall}}}\n"
    file = folder / "cluster.yaml"
    settings += f"interpolation: {{method: {arguments.method}}}\n"
    file.write_text(f"cluster: pace\nnodes:\n{entries}{settings}log: {{level: error}}\n")
    until = folder / "until"
    processes = []
    for name in names:
        slow = name == names[0]
        step_ms = arguments.step_ms * (slowdown if slow else 1)
        command = [arguments.trainer, file, name, folder / name, "--elements", 2 * UNITS, "--until", until]
        command += ["--step-ms", step_ms, "--units-from", FIRST if slow else NEVER]
        processes.append(subprocess.Popen([str(word) for word in command]))
    slow_steps = FIRST + 10 * UNITS + 20
    while last_step(folder / names[0])["step"] < slow_steps:
        if any(process.poll() is not None for process in processes):
            raise SystemExit("a trainer has ended")
        time.sleep(0.2)
    until.touch()
    for process in processes:
        process.wait()
    start = json.loads((folder / names[0]).read_text().splitlines()[0])["x"]
    ends = [last_step(folder / name) for name in names]
    kept = [sum(end["probe"][unit] - start for end in ends) for unit in range(UNITS)]
    steps = sum(end["step"] for end in ends)
    return kept, sum(end["clock"] for end in ends) / steps, sum(end["ok"] for end in ends) / steps


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trainer")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--step-ms", type=int, default=5)
    parser.add_argument("--firewall", default="warn", choices=["off", "warn", "clip", "refuse"])
    parser.add_argument("--plain", action="store_true", help="without the pair ledger")
    parser.add_argument("--method", default="constant", help="the interpolation policy")
    parser.add_argument("--nodes", type=int, nargs="+", default=[4, 8])
    parser.add_argument("--slowdowns", type=int, nargs="+", default=[2, 4, 16])
    arguments = parser.parse_args()
    print("| nodes | slower | kept | clock / steps | blends a step |\n|---|---|---|---|---|", flush=True)
    for nodes in arguments.nodes:
        for slowdown in arguments.slowdowns:
            kept, rates, blends = [], [], []
            for _ in range(arguments.runs):
                with tempfile.TemporaryDirectory() as folder:
                    units, rate, blended = run(arguments, nodes, slowdown, Path(folder))
                kept += units
                rates.append(rate)
                blends.append(blended)
            spread = statistics.pstdev(rates)
            print(f"| {nodes} | ×{slowdown} | {statistics.mean(kept):.2f} ± {statistics.pstdev(kept):.2f} | "
                  f"{statistics.mean(rates):.3f} ± {spread:.3f} | {statistics.mean(blends):.2f} |", flush=True)


if __name__ == "__main__":
    main()
