#!/usr/bin/env python3
"""Kills some of the nodes of a run by SIGKILL, and says how long the survivors stood still.

usage: longest_gap.py [--systems collective,ddp,torchft] [--nodes 8] [--kill 2] [--step-time 20] [--rounds 3]
                      [--on-lost-rank gossip] [--store type=dist_sync,replicas=1] [--kill-server] [--no-restart]
                      [--build build/release] [--torch-python PYTHON] [--torchft FOLDER] [--keep FOLDER] [--json FILE]

Each round starts the nodes on loopback, lets them train for some seconds, kills some at a random moment, and starts
them again three seconds later, where the system takes them back. A step is padded to --step-time ms.

collective   dpwa-train with backend collective and --on-lost-rank
kvstore      dpwa-train with backend kvstore and two servers; --store: its keys; --kill-server: the first server is
             killed instead of nodes
ddp          Python's DistributedDataParallel over Gloo
torchft      torchft 0.2.0, one replica a node, with a lighthouse; --torchft: a folder with its packages, made by
             PYTHON -m pip install --target FOLDER --no-deps torchft==0.2.0
             PYTHON -m pip install --target FOLDER opentelemetry-api opentelemetry-sdk opentelemetry-exporter-otlp-proto-http

longest gap: between two steps of any survivor, in milliseconds and steps, from the kill on; the one before the kill
tells what of it is the machine. back: from the restart of the processes to their first averaged step.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gaps import Step, first_averaged, longest_gap, origin, went_on

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))
from lib.ports import free_ports  # noqa: E402

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
CALM, BEFORE_RESTART, AFTERWARDS = 3.0, 3.0, 14.0  # seconds
START_LIMIT = 90.0
WARM = 25  # steps that do not count


@dataclass
class Node:
    name: str
    command: list[str]
    steps_file: Path
    log: Path
    environment: dict[str, str] = field(default_factory=dict)
    own_clock: bool = False  # its file counts from the start of its training loop
    trains: bool = True
    process: subprocess.Popen[bytes] | None = None
    readings: list[tuple[float, float]] = field(default_factory=list)
    ended: float | None = None
    code: int | None = None

    def start(self) -> None:
        self.readings, self.ended, self.code = [], None, None
        with self.log.open("ab") as log:
            to_file = subprocess.DEVNULL if self.own_clock else self.steps_file.open("wb")
            environment = {**os.environ, "OMP_NUM_THREADS": "1", **self.environment}
            self.process = subprocess.Popen(self.command, stdout=to_file, stderr=log, env=environment)

    def look(self) -> None:
        """Notes its end, and what its clock shows."""
        if self.process and self.ended is None and self.process.poll() is not None:
            self.ended, self.code = time.monotonic(), self.process.returncode
        if self.own_clock and self.ended is None and (last := self.last()):
            self.readings.append((time.monotonic(), last["t"]))

    def last(self) -> dict[str, Any] | None:
        """The last step so far, from the end of the file: to look costs the nodes next to nothing."""
        try:
            with self.steps_file.open("rb") as file:
                file.seek(max(0, file.seek(0, os.SEEK_END) - 1500))
                lines = file.read().split(b"\n")[1:-1]
        except FileNotFoundError:
            return None
        return json.loads(lines[-1]) if lines else None

    def documents(self) -> list[dict[str, Any]]:
        try:
            lines = self.steps_file.read_text(encoding="utf-8").split("\n")[:-1]
        except FileNotFoundError:
            return []
        return [one for one in map(json.loads, lines) if "loss" in one or "at" in one]

    def steps(self) -> list[Step]:
        if not self.own_clock:
            return [Step(one["at"]) for one in self.documents()]
        if not self.readings:
            return []
        began = origin(self.readings)
        return [Step(began + one["t"], one["outcome"] in ("averaged", "updated")) for one in self.documents()]

    def kill(self) -> None:
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
        if self.process:
            self.process.wait()


class System:
    """What is measured: its nodes, and which of its processes a round kills."""

    takes_back = True
    options: argparse.Namespace

    def victims(self, nodes: list[Node], chance: random.Random) -> list[Node]:
        return chance.sample(nodes, self.options.kill)

    def close(self) -> None:
        """Ends what runs beside the nodes."""


class Trainers(System):
    """Processes of dpwa-train. `settings`: lines of their cluster file."""

    def __init__(self, options: argparse.Namespace, folder: Path, settings: list[str], ports: list[int]) -> None:
        self.options, self.folder = options, folder
        lines = ["cluster: gap", *settings, "log: {level: info}", "nodes:"]
        lines += [f"  - {{name: w{k + 1}, host: 127.0.0.1, port: {port}}}" for k, port in enumerate(ports)]
        (folder / "cluster.yaml").write_text("\n".join(lines) + "\n", encoding="utf-8")

    def node(self, rank: int) -> Node:
        name = f"w{rank + 1}"
        train = [str(self.options.build / "bin/dpwa-train"), "--config", str(self.folder / "cluster.yaml")]
        train += ["--name", name, "--data", "synthetic", "--batch-size", "32", "--threads", "1", "--quiet"]
        train += ["--step-time", str(self.options.step_time), "--steps", "1000000", "--run-dir", str(self.folder)]
        return Node(name, train, self.folder / f"{name}.metrics.jsonl", self.folder / f"{name}.log", own_clock=True)


class Collective(Trainers):
    def __init__(self, options: argparse.Namespace, folder: Path) -> None:
        settings = ["backend: collective", f"collective: {{on_lost_rank: {options.on_lost_rank}}}"]
        super().__init__(options, folder, settings, free_ports(options.nodes))
        self.takes_back = options.on_lost_rank != "stop"


class Kvstore(Trainers):
    def __init__(self, options: argparse.Namespace, folder: Path) -> None:
        *ports, one, two = free_ports(options.nodes + 2)
        servers = f"servers: [{{name: s1, port: {one}}}, {{name: s2, port: {two}}}]"
        keys = [pair.replace("=", ": ", 1) for pair in options.store.split(",")]
        settings = ["backend: kvstore", f"kvstore: {{{', '.join([*keys, servers])}}}"]
        super().__init__(options, folder, settings, ports)
        self.servers = [self.server(name) for name in ("s1", "s2")]
        for server in self.servers:
            server.start()

    def server(self, name: str) -> Node:
        command = [str(self.options.build / "bin/dpwa"), "kvserver", "--config", str(self.folder / "cluster.yaml")]
        files = (self.folder / f"{name}.out", self.folder / f"{name}.log")
        return Node(name, [*command, "--name", name], *files, trains=False)

    def victims(self, nodes: list[Node], chance: random.Random) -> list[Node]:
        return self.servers[:1] if self.options.kill_server else super().victims(nodes, chance)

    def close(self) -> None:
        for server in self.servers:
            server.kill()


class Peer(System):
    kind, takes_back = "ddp", False

    def __init__(self, options: argparse.Namespace, folder: Path) -> None:
        self.options, self.folder = options, folder

    def extra(self) -> tuple[list[str], dict[str, str]]:
        return [], {}

    def node(self, rank: int) -> Node:
        arguments, environment = self.extra()
        command = [self.options.torch_python, str(HERE / "peer_trainer.py"), self.kind, str(rank)]
        command += [str(self.options.nodes), str(self.folder), str(self.options.step_time), "3600", *arguments]
        name = f"{self.kind}{rank}"
        return Node(name, command, self.folder / f"{name}.jsonl", self.folder / f"{name}.log", environment)


class TorchFt(Peer):
    kind, takes_back = "torchft", True

    def __init__(self, options: argparse.Namespace, folder: Path) -> None:
        super().__init__(options, folder)
        self.environment = {"PYTHONPATH": str(options.torchft)} if options.torchft else {}
        self.port = free_ports(1)[0]
        # Faster than its defaults (heartbeats missed for 5 s, joining for 60 s), so that it is shown at its best.
        text = (
            "import time, torchft.coordination as c\n"
            f"s = c.LighthouseServer(bind='127.0.0.1:{self.port}', min_replicas={max(1, options.nodes // 2)},"
            " join_timeout_ms=200, quorum_tick_ms=10, heartbeat_timeout_ms=1000)\n"
            "time.sleep(3600)\n"
        )
        with (folder / "lighthouse.log").open("wb") as log:
            environment = {**os.environ, **self.environment}
            command = [options.torch_python, "-c", text]
            self.lighthouse = subprocess.Popen(command, stdout=log, stderr=log, env=environment)

    def extra(self) -> tuple[list[str], dict[str, str]]:
        return [f"http://127.0.0.1:{self.port}"], self.environment

    def close(self) -> None:
        self.lighthouse.kill()
        self.lighthouse.wait()


SYSTEMS = {"collective": Collective, "kvstore": Kvstore, "ddp": Peer, "torchft": TorchFt}


def wait(nodes: list[Node], seconds: float) -> None:
    end = time.monotonic() + seconds
    while (now := time.monotonic()) < end:
        for node in nodes:
            node.look()
        time.sleep(min(0.05, end - now))


def await_training(nodes: list[Node]) -> None:
    end = time.monotonic() + START_LIMIT
    while any((node.last() or {"step": 0})["step"] < WARM for node in nodes):
        wait(nodes, 0.2)
        lost = next((node for node in nodes if node.ended is not None), None)
        if lost or time.monotonic() > end:
            name = (lost or nodes[0]).log
            last = (name.read_text(encoding="utf-8", errors="replace").strip().splitlines() or ["no step"])[-1]
            raise RuntimeError(f"the run did not start: {last}")


def play(system: str, options: argparse.Namespace, chance: random.Random) -> dict[str, Any]:
    """One round, and what came of it; times in seconds."""
    with tempfile.TemporaryDirectory(prefix="dpwa-gap-") as folder:
        cluster = SYSTEMS[system](options, Path(folder))
        nodes = [cluster.node(rank) for rank in range(options.nodes)]
        try:
            for node in nodes:
                node.start()
            await_training(nodes)
            calm = time.monotonic()
            wait(nodes, CALM + chance.uniform(0, 10 * options.step_time / 1000))
            victims = cluster.victims(nodes, chance)
            survivors = [node for node in nodes if node not in victims]
            killed = time.monotonic()
            for node in victims:
                node.process.send_signal(signal.SIGKILL)
            wait(nodes, BEFORE_RESTART)
            restarted = None
            if cluster.takes_back and not options.no_restart:
                for node in victims:
                    node.kill()
                    node.steps_file.unlink(missing_ok=True)
                restarted = time.monotonic()
                for node in victims:
                    node.start()
            wait(nodes, AFTERWARDS)
            return verdict(survivors, victims, calm, killed, restarted, options)
        finally:
            for node in nodes:
                node.kill()
            cluster.close()
            if options.keep:
                shutil.copytree(folder, options.keep / f"{system}-{time.monotonic_ns()}")


def verdict(
    survivors: list[Node],
    victims: list[Node],
    calm: float,
    killed: float,
    restarted: float | None,
    options: argparse.Namespace,
) -> dict[str, Any]:
    grace = max(0.5, 4 * options.step_time / 1000)
    steps = [node.steps() for node in survivors]
    before = [longest_gap(one, calm, killed) for one in steps]
    result: dict[str, Any] = {
        "went_on": sum(went_on(one, killed, grace) for one in steps),
        "survivors": len(survivors),
        "before_s": max((gap for gap in before if gap is not None), default=None),
        "ended_after_s": [node.ended - killed for node in survivors if node.ended is not None],
        "codes": sorted({node.code for node in survivors if node.code is not None}),
    }
    alive = [one for one in steps if went_on(one, killed, grace)]
    until = restarted if restarted is not None else killed + BEFORE_RESTART + AFTERWARDS
    gaps = [longest_gap(one, killed, until) for one in alive]
    result["gap_s"] = max((gap for gap in gaps if gap is not None), default=None)
    if restarted is not None:
        gaps = [longest_gap(one, restarted, float("inf")) for one in alive]
        result["gap_at_return_s"] = max((gap for gap in gaps if gap is not None), default=None)
        back = [first_averaged(node.steps(), restarted) for node in victims if node.trains]
        result["back_s"] = None if None in back else max(back, default=None)
        result["returned"] = sum(one is not None for one in back)
    return result


def milliseconds(rounds: list[dict[str, Any]], key: str) -> str:
    """The median and the worst of the rounds."""
    values = [1000 * one[key] for one in rounds if one.get(key) is not None]
    if not values:
        return "-"
    return f"{statistics.median(values):.0f}" + (f" (worst {max(values):.0f})" if len(values) > 1 else "") + " ms"


def row(system: str, rounds: list[dict[str, Any]], step_ms: float) -> list[str]:
    ended = [seconds for one in rounds for seconds in one["ended_after_s"]]
    survivors = sum(one["survivors"] for one in rounds)
    words = f"{sum(one['went_on'] for one in rounds)} of {survivors} continued"
    if ended:
        codes = sorted({code for one in rounds for code in one["codes"]})
        words += f", {len(ended)} ended after {min(ended):.1f} to {max(ended):.1f} s ({', '.join(map(str, codes))})"
    gaps = [one["gap_s"] for one in rounds if one["gap_s"] is not None]
    in_steps = f"{1000 * max(gaps) / step_ms:.1f}" if gaps else "-"
    cells = [milliseconds(rounds, key) for key in ("before_s", "gap_s")]
    return [system, words, *cells, in_steps, *(milliseconds(rounds, key) for key in ("gap_at_return_s", "back_s"))]


HEADER = ["", "survivors", "gap before", "longest gap", "in steps", "gap at return", "back after"]


def print_table(rows: list[list[str]]) -> None:
    widths = [max(len(line[column]) for line in [HEADER, *rows]) for column in range(len(HEADER))]
    for line in [HEADER, *rows]:
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--systems", default="collective,ddp,torchft")
    parser.add_argument("--nodes", type=int, default=8)
    parser.add_argument("--kill", type=int, default=2)
    parser.add_argument("--step-time", type=float, default=20, help="milliseconds")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--on-lost-rank", choices=("stop", "shrink", "gossip"), default="gossip")
    parser.add_argument("--store", default="type=dist_sync,replicas=1", metavar="KEY=VALUE,...")
    parser.add_argument("--kill-server", action="store_true", help="under kvstore the first server is killed")
    parser.add_argument("--no-restart", action="store_true")
    parser.add_argument("--build", type=Path, default=ROOT / "build/release")
    parser.add_argument("--torch-python", default=sys.executable)
    parser.add_argument("--torchft", type=Path, help="a folder with the packages of torchft")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="where the files of every round are kept")
    parser.add_argument("--json", type=Path, metavar="FILE")
    options = parser.parse_args()
    wanted = options.systems.split(",")
    if unknown := set(wanted) - SYSTEMS.keys():
        parser.error(f"--systems: unknown: {', '.join(sorted(unknown))}; accepted: {', '.join(SYSTEMS)}")
    chance = random.Random(options.seed)
    rows, document = [], {"nodes": options.nodes, "killed": options.kill, "step_ms": options.step_time, "systems": {}}
    document["on_lost_rank"] = options.on_lost_rank
    for system in wanted:
        rounds: list[dict[str, Any]] = []
        detail = {"collective": options.on_lost_rank, "kvstore": options.store}.get(system)
        name = f"{system}, {detail}" if detail else system
        try:
            for number in range(1, options.rounds + 1):
                print(f"   {name}: round {number} of {options.rounds}", file=sys.stderr, flush=True)
                rounds.append(play(system, options, chance))
        except (OSError, RuntimeError) as error:
            print(f"!! {name}: {error}", file=sys.stderr)
            document["systems"][system] = {"absent": str(error)}
            continue
        document["systems"][system] = {"rounds": rounds}
        rows.append(row(name, rounds, options.step_time))
    print_table(rows)
    if options.json:
        options.json.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    return 0 if rows else 1


if __name__ == "__main__":
    sys.exit(main())
