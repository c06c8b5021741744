#!/usr/bin/env python3
"""Kills and freezes processes of a cluster at random moments, under every back end, and checks what docs promise.

usage: kills.py [--only NAME]... [--seeds 1..30] [--processes 8] [--steps 120] [--step-ms 50] [--build build/release]
                [--json FILE] [--keep FOLDER]

Each run has eight processes, of a parameter server two of them servers, all of kill_trainer.py and the core alone. The
seed draws one or two victims, and for each of them a moment and a fault: SIGKILL, with a new start after up to 4 s, or
SIGSTOP for 0.05 to 5 s. Then

- every process that was not killed ends with 0, and those that were started again in time do, too;
- collective: nodes at the same step have equal weights, and all end with one model;
- gossip: all that took the average of the same nodes at the end have the same;
- kvstore: each push counts once: the value, to which every push adds 1, is in the end the number of pushes that were
  acknowledged and not dropped, but for the ones that a process had under way when it was killed or left out.

--only: gossip, shrink, apart (collective with on_lost_rank: gossip), dist_sync, dist_ssp, dist_async. Prints for each
the gaps between the steps of a survivor after the first fault, which has been a step of --step-ms before. Exit code 1:
a promise was broken; the folder of that run is kept.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT / "scripts"))
from lib.ports import free_ports  # noqa: E402

BACK_ENDS = {
    "gossip": ["backend: gossip"],
    "shrink": ["backend: collective", "collective: {on_lost_rank: shrink}"],
    "apart": ["backend: collective", "collective: {on_lost_rank: gossip}"],
    **{kind: ["backend: kvstore", f"kvstore: {{type: {kind}, replicas: 1, servers: [SERVERS]}}"]
       for kind in ("dist_sync", "dist_ssp", "dist_async")},
}  # fmt: skip
START_LIMIT, END_LIMIT = 60.0, 60.0  # seconds
LATE = 1.0  # seconds before the first one ends

Line = dict[str, Any]


@dataclass
class Fault:
    at: float  # seconds after all have begun
    victim: int
    kills: bool
    lasts: float  # until it is started again, or goes on


def draw(seed: int, processes: int, servers: int, seconds: float) -> list[Fault]:
    """One or two faults; of two servers at most one is hit, and no process twice."""
    rng = random.Random(seed)
    victims = rng.sample(range(processes), 2)
    if sum(victim >= processes - servers for victim in victims) > 1:
        victims[1] = rng.randrange(processes - servers)
    faults = []
    for victim in victims[: rng.randint(1, 2)]:
        kills = rng.random() < 0.6
        faults.append(Fault(rng.uniform(0.2, 0.6 * seconds), victim, kills,
                            rng.uniform(0.0, 4.0) if kills else rng.choice([0.05, 0.3, 1.0, 2.5, 5.0])))  # fmt: skip
    if len(faults) == 2 and rng.random() < 0.5:
        faults[1].at = faults[0].at + rng.uniform(0.0, 0.05)
    return sorted(faults, key=lambda fault: fault.at)


@dataclass
class Process:
    name: str
    command: list[str]
    folder: Path
    environment: dict[str, str]
    starts: list[float] = field(default_factory=list)
    running: subprocess.Popen[bytes] | None = None
    killed: list[float] = field(default_factory=list)
    frozen: list[tuple[float, float]] = field(default_factory=list)

    def start(self) -> None:
        self.starts.append(time.monotonic())
        output = self.folder / f"{self.name}.{len(self.starts)}.jsonl"
        with output.open("wb") as lines, (self.folder / f"{self.name}.log").open("ab") as log:
            self.running = subprocess.Popen(self.command, stdout=lines, stderr=log, env=self.environment)

    def send(self, number: int) -> None:
        if self.running and self.running.poll() is None:
            os.kill(self.running.pid, number)

    def lines(self, life: int) -> list[Line]:
        """Of its n-th life, from 1 on; a last line that was cut off is left out."""
        text = (self.folder / f"{self.name}.{life}.jsonl").read_text(encoding="utf-8")
        return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]

    def all_lines(self) -> list[Line]:
        return [line for life in range(1, len(self.starts) + 1) for line in self.lines(life)]


def cluster_file(folder: Path, name: str, workers: list[str], servers: list[str]) -> Path:
    entries = [f"{{name: {process}, host: 127.0.0.1, port: {port}}}"
               for process, port in zip(workers + servers, free_ports(len(workers) + len(servers)))]  # fmt: skip
    lists = ["nodes:", *(f"  - {entry}" for entry in entries[: len(workers)])]
    settings = [line.replace("SERVERS", ", ".join(entries[len(workers) :])) for line in BACK_ENDS[name]]
    path = folder / "cluster.yaml"
    path.write_text("\n".join(["cluster: kills", *settings, *lists, ""]), encoding="utf-8")
    return path


def wait_for(condition: Callable[[], str], limit: float, what: str) -> None:
    """condition(): for whom it has to wait."""
    ends = time.monotonic() + limit
    while whom := condition():
        if time.monotonic() > ends:
            raise Broken(f"{what}: {whom}")
        time.sleep(0.02)


class Broken(Exception):
    """A promise, with what is broken."""


# --- what must hold after a run


def is_late(process: Process, first_end: float) -> bool:
    """Started again, and not back before the others ended: it may find nobody."""
    lines = process.lines(len(process.starts)) if len(process.starts) > 1 else [{"at": 0.0}]
    return not lines or lines[0]["at"] > first_end - LATE


def check_ends(workers: list[Process], first_end: float) -> None:
    for process in workers:
        assert process.running
        if process.running.poll() != 0 and not is_late(process, first_end):
            raise Broken(f"{process.name} ended with {process.running.returncode}")


def check_steps(workers: list[Process], collective: bool) -> None:
    """Weights by step where all step together; a step that ended alone, `skipped`, has others."""
    weights: dict[int, tuple[str, int]] = {}
    for process in workers if collective else []:
        for line in process.all_lines():
            if "step" not in line or line["outcome"] != "averaged":
                continue
            who, crc = weights.setdefault(line["step"], (process.name, line["crc"]))
            if crc != line["crc"]:
                raise Broken(f"{who} and {process.name} have different weights after step {line['step']}")


def check_models(workers: list[Process], first_end: float) -> None:
    ends = [(process.name, line) for process in workers for line in process.lines(len(process.starts))
            if line.get("finished") and line["averaged"] and not is_late(process, first_end)]  # fmt: skip
    models: dict[int, tuple[str, int]] = {}
    for name, line in ends:
        other, crc = models.setdefault(line["participants"], (name, line["crc"]))
        if crc != line["crc"]:
            raise Broken(f"{other} and {name} end with different models of {line['participants']} nodes")
    if len(ends) < len(workers) // 2:
        raise Broken(f"only {len(ends)} took the model of all")


def check_pushes(workers: list[Process]) -> None:
    certain = possible = 0
    values = []
    for process in workers:
        for life in range(1, len(process.starts) + 1):
            lines = process.lines(life)
            begun = sum("begins" in line for line in lines)
            steps = [line for line in lines if "step" in line]
            dropped = steps[-1]["dropped"] if steps else 0
            for line in lines:
                if line.get("finished"):
                    values.append(line["value"])
                    dropped = line["dropped"]
                    if not line["even"]:
                        raise Broken(f"{process.name}: slices of one value have counted different pushes")
            certain += len(steps) - dropped
            possible += begun if process.frozen else begun - dropped
    if not certain <= max(values) <= possible:  # of the worker that ended last
        raise Broken(f"{certain} to {possible} pushes have counted by the workers' lines, {max(values):.0f} by the value")


def gaps_of(workers: list[Process], since: float, until: float) -> list[float]:
    """Between two steps of a process that was not hit, in seconds."""
    gaps = []
    for process in workers:
        if process.killed or process.frozen:
            continue
        at = [line["at"] for line in process.lines(1) if "step" in line]
        gaps += [later - at[i] for i, later in enumerate(at[1:]) if later > since and at[i] < until]
    return gaps


# --- a run


def play(name: str, seed: int, options: argparse.Namespace, folder: Path) -> list[float]:
    kvstore = name.startswith("dist_")
    servers = ["s1", "s2"] if kvstore else []
    names = [f"w{i + 1}" for i in range(options.processes - len(servers))]
    file = str(cluster_file(folder, name, names, servers))
    build = Path(options.build).resolve()
    environment = {**os.environ, "DPWA_PYTHON_PACKAGE": str(build / "python"), "OMP_NUM_THREADS": "1"}
    kind = "kvstore" if kvstore else "vector"
    steps = [str(options.steps), str(options.step_ms)]
    workers = [Process(each, [sys.executable, str(HERE / "kill_trainer.py"), kind, file, each, *steps], folder, environment)
               for each in names]  # fmt: skip
    stores = [Process(each, [str(build / "bin/dpwa"), "kvserver", "--config", file, "--name", each], folder, environment)
              for each in servers]  # fmt: skip
    everyone = workers + stores
    seconds = options.steps * options.step_ms / 1000
    faults = draw(seed, len(everyone), len(stores), seconds)
    for fault in faults:
        print(f"    {fault.at:5.2f} s  {'kill' if fault.kills else 'freeze'} {everyone[fault.victim].name}"
              f" for {fault.lasts:.2f} s", file=sys.stderr)  # fmt: skip
    try:
        for process in everyone:
            process.start()

        def not_begun() -> str:
            for process in everyone:
                if process.running and process.running.poll() is not None:
                    raise Broken(f"{process.name} ended at the start")
            return ", ".join(process.name for process in workers if not any("step" in line for line in process.lines(1)))

        wait_for(not_begun, START_LIMIT, "not all have begun")
        begun = time.monotonic()
        events = [(fault.at, fault, True) for fault in faults]
        events += [(fault.at + fault.lasts, fault, False) for fault in faults]
        for at, fault, begins in sorted(events, key=lambda event: event[0]):
            time.sleep(max(0.0, begun + at - time.monotonic()))
            victim = everyone[fault.victim]
            if begins:
                victim.send(signal.SIGKILL if fault.kills else signal.SIGSTOP)
                if fault.kills:
                    victim.killed.append(time.monotonic())
                    assert victim.running
                    victim.running.wait()
                else:
                    victim.frozen.append((time.monotonic(), time.monotonic() + fault.lasts))
            elif fault.kills:
                victim.start()
            else:
                victim.send(signal.SIGCONT)
        first_end = 0.0

        def not_ended() -> str:
            nonlocal first_end
            there = [process for process in workers if process.running and process.running.poll() is None]
            if len(there) < len(workers):
                first_end = first_end or time.monotonic()
            # Servers stay: whoever comes back late trains alone.
            return ", ".join(process.name for process in there
                             if kvstore or not (first_end and is_late(process, first_end)))  # fmt: skip

        wait_for(not_ended, END_LIMIT, "not all have ended")
        check_ends(workers, first_end)
        if kvstore:
            check_pushes(workers)
        else:
            check_steps(workers, collective=name != "gossip")
            check_models(workers, first_end)
        return gaps_of(workers, begun + faults[0].at, first_end)
    finally:
        for process in everyone:
            process.send(signal.SIGKILL)
            if process.running:
                process.running.wait()


def quantile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", choices=sorted(BACK_ENDS))
    parser.add_argument("--seeds", default="1..30")
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--steps", type=int, default=120)
    parser.add_argument("--step-ms", type=int, default=50)
    parser.add_argument("--build", default=str(ROOT / "build/release"))
    parser.add_argument("--json")
    parser.add_argument("--keep")
    options = parser.parse_args()
    first, _, last = options.seeds.partition("..")
    seeds = range(int(first), int(last or first) + 1)
    rows, broken = [], 0
    for name in options.only or BACK_ENDS:
        gaps: list[float] = []
        held = 0
        for seed in seeds:
            print(f"{name}, seed {seed}", file=sys.stderr)
            folder = Path(tempfile.mkdtemp(prefix=f"kills-{name}-{seed}-", dir=options.keep))
            try:
                gaps += play(name, seed, options, folder)
                held += 1
                if not options.keep:
                    shutil.rmtree(folder)
            except Broken as problem:
                broken += 1
                print(f"  broken: {problem} ({folder})", file=sys.stderr)
        if gaps:
            rows.append({"back end": name, "runs": len(seeds), "held": held,
                         **{f"gap {label} ms": round(1000 * quantile(gaps, share))
                            for label, share in (("p50", 0.5), ("p99", 0.99), ("longest", 1.0))}})  # fmt: skip
            print(json.dumps(rows[-1]), flush=True)
    if options.json:
        Path(options.json).write_text(json.dumps(rows, indent=1), encoding="utf-8")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
