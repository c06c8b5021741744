#!/usr/bin/env python3
"""Runs the measurements of a benchmark one after the other and gathers them in bench.json.

usage: bench_suite.py RUN_FOLDER --bench DPWA_BENCH [--mode quick|default|full] [--seconds S]
                      [--mpi PROGRAM] [--torch-python PYTHON] [--reno-sockets LIBRARY] [--ps-lite PROGRAM]
       bench_suite.py RUN_FOLDER --bench DPWA_BENCH --device cpu|cuda [--mode quick|default] [--within S]
                      [--torch-python PYTHON]

With --device: whole training steps on it, and a table of them on standard output and in table.txt. --within: what does
not fit into so many seconds is left out. A measurement that this build or machine refuses is noted with its reason and
left out.
"""

from __future__ import annotations

from lib import interrupts

if __name__ == "__main__":
    interrupts.end_at_once()  # also during the imports below

import argparse
import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

from lib import bench_train
from lib.bench_processes import first_line
from lib.bench_results import GB, KB, MB, Document, size_text, time_text
from lib.bench_statistics import NoiseWatch, range_of, spread_of
from lib.output import checked

ROOT = Path(__file__).resolve().parent.parent
LONGEST = 300  # seconds for one measurement
LONGEST_COLLECTIVE = 900  # with several attempts until the machine is quiet
LONGEST_TRAINING = 120  # on a device
SECONDS = {"quick": 1, "default": 3, "full": 5}  # of the windows of one measurement, by mode
SECONDS_TRAINING = {"quick": 0.1, "default": 3}


@dataclass
class Measurement:
    title: str
    command: list[str]
    environment: dict[str, str] = field(default_factory=dict)
    longest: float = LONGEST


@dataclass
class Plan:
    """What to run, by mode."""

    bench: str
    mode: str
    mpi: str | None = None
    torch_python: str | None = None
    shorter: float | None = None
    reno_sockets: str | None = None
    ps_lite: str | None = None
    device: str | None = None

    @property
    def seconds(self) -> str:
        return f"{self.shorter or (SECONDS_TRAINING if self.device else SECONDS)[self.mode]:g}"

    @property
    def sizes(self) -> list[int]:
        sizes = [200, 10 * KB, MB, 10 * MB, 100 * MB]
        return sizes + [GB] if self.mode == "full" else sizes

    def pull(self, size: int, nodes: int, *options: str, both: bool = False) -> Measurement:
        who = ["--pairs", "1"] if nodes == 2 and not both else ["--all-pull", str(nodes)]
        command = [self.bench, "pull", "--bytes", str(size), *who, "--seconds", self.seconds, "--json", *options]
        # At 1 GB the nodes of both kinds together would not fit into the memory of a small machine.
        if size < GB or nodes == 2:
            command.append("--with-raw")
        title = f"pull {size_text(size)}, {nodes} nodes{' both pulling' if both else ''} {' '.join(options)}"
        return Measurement(title.replace("--", "").strip(), command)

    def step(self, parameters: str, tensors: int) -> Measurement:
        command = [self.bench, "step", "--parameters", parameters, "--tensors", str(tensors)]
        if (parameters, tensors) == ("100k", 100):
            command.append("--attached")
        if tensors == 100 and parameters in ("100k", "10M") and self.torch_python:
            command += ["--in-python", "--torch-python", self.torch_python]
        seconds = f"{2 * float(self.seconds):g}" if parameters == "100M" else self.seconds
        return Measurement(f"step {parameters} in {tensors} tensors", [*command, "--seconds", seconds, "--json"])

    @property
    def with_reno(self) -> dict[str, str]:
        """The environment in which programs that use Gloo get the congestion control that dpwa uses."""
        return {"LD_PRELOAD": self.reno_sockets} if self.reno_sockets else {}

    def collective(self, model: str, nodes: int) -> Measurement:
        batch, longer = (8, 3) if model == "resnet18" else (32, 1)
        command = [self.bench, "collective", "--model", model, "--nodes", str(nodes), "--batch", str(batch)]
        command += ["--seconds", f"{longer * float(self.seconds):g}", "--json"]
        if self.torch_python:
            script = str(ROOT / "bench/peers/ddp_step.py")
            command += ["--torch-python", self.torch_python, "--ddp-script", script]
        return Measurement(f"collective {model}, {nodes} nodes", command, self.with_reno, LONGEST_COLLECTIVE)

    def collectives(self) -> list[Measurement]:
        models = ("cnn", "mlp") if self.mode == "quick" else ("cnn", "mlp", "resnet18")
        plan = [self.collective(model, nodes) for model in models for nodes in (2, 4)]
        for size in (4_000, 400_000, 100 * MB):
            command = [self.bench, "collective", "--engines", "--bytes", str(size), "--nodes", "4"]
            command += ["--seconds", self.seconds, "--json"]
            title = f"engines {size_text(size)}, 4 nodes"
            plan.append(Measurement(title, command, self.with_reno, LONGEST_COLLECTIVE))
        return plan

    def store(self, size: int, workers: int, servers: int, *options: str) -> Measurement:
        """Pushes and pulls of a key of the parameter server."""
        count = ["--workers", str(workers), "--servers", str(servers)]
        command = [self.bench, "kvstore", "--bytes", str(size), *count, "--seconds", self.seconds, "--json", *options]
        names = " ".join(one for one in options if not one.startswith("/")).replace("--", "")
        return Measurement(f"kvstore {size_text(size)}, {workers} workers, {servers} servers {names}", command)

    def stores(self) -> list[Measurement]:
        all_of_them = self.mode != "quick"
        transports = {"tcp": (), "same_host": ("--transport", "same_host")}
        types = {"dist_sync": (), "dist_async": ("--type", "dist_async", "--optimizer", "sgd")}
        plan = []
        for path in transports.values():
            small = [self.store(200, 1, 1, "--ping-pong", *path)]
            groups = [(workers, servers) for workers in (1, 4) for servers in (1, 2)]
            sizes = (MB, 10 * MB, 100 * MB) if all_of_them else (100 * MB,)
            for kind, type_ in types.items():
                for size in sizes:
                    for workers, servers in groups if all_of_them else [(1, 1)]:
                        one = self.store(size, workers, servers, *type_, *path)
                        if self.ps_lite and kind == "dist_sync" and size == 100 * MB:
                            one.command += ["--ps-lite", self.ps_lite]
                            one.environment.update(self.with_reno)
                        small.append(one)
            plan += small
            step = self.store(100 * MB, 4, 2, "--optimizer", "momentum", *path)
            if self.torch_python:
                step.command += ["--torch-python", self.torch_python]
                step.command += ["--gloo-script", str(ROOT / "bench/peers/c10d_step.py")]
                step.environment.update(self.with_reno)
            plan.append(step)
        plan.append(self.store(100 * MB, 1, 1, "--compression", "2bit"))
        return plan

    def peers(self, size: int, nodes: int) -> list[Measurement]:
        found = []
        arguments = ["--nodes", str(nodes), "--bytes", str(size), "--seconds", self.seconds]
        environment = self.with_reno
        if self.torch_python:
            script = str(ROOT / "bench/peers/c10d_allreduce.py")
            title = f"c10d Gloo all-reduce {size_text(size)}, {nodes} nodes"
            found.append(Measurement(title, [self.torch_python, script, *arguments], environment))
        # Its shared memory is called sm or vader by version; a name that a version lacks may not be asked for.
        layers = (("tcp", "tcp,self"), ("shared memory", "^tcp,openib,ofi,uct,usnic"))
        for name, layer in layers if self.mpi else ():
            as_root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
            options = ["--mca", "pml", "ob1", "--mca", "btl", layer, "--mca", "btl_base_warn_component_unused", "0"]
            options += ["--mca", "btl_tcp_if_include", "lo"] if name == "tcp" else []
            command = ["mpirun", "-np", str(nodes), "--oversubscribe", "--bind-to", "none", *options, str(self.mpi)]
            command += [name, str(size), self.seconds]
            title = f"Open MPI {name} {size_text(size)}, {nodes} nodes"
            found.append(Measurement(title, command, {**environment, **as_root}))
        if found and nodes == 2:  # peers exchange both ways
            same_host = ["--transport", "same_host"]
            found += [self.pull(size, 2, both=True), self.pull(size, 2, *same_host, both=True)]
        return found

    def pulls(self) -> list[Measurement]:
        large, all_of_them = [10 * MB, 100 * MB], self.mode != "quick"
        plan = []
        for size in self.sizes:
            for nodes in (2, 4) if all_of_them or size == 100 * MB else (2,):
                plan.append(self.pull(size, nodes))
                if size >= MB or nodes == 2:
                    plan.append(self.pull(size, nodes, "--transport", "same_host"))
                if size in large and (all_of_them or size == 100 * MB):
                    plan += self.peers(size, nodes)
        for size in large if all_of_them else large[1:]:
            plan += [self.pull(size, nodes, "--checksum", "off") for nodes in (2, 4)]
            for nodes in (2, 4) if all_of_them else (2,):
                plan += [self.pull(size, nodes, "--encoding", one) for one in ("fp16", "bf16", "int8")]
        plan += [self.pull(100 * MB, nodes, "--security", "psk") for nodes in ((2, 4) if all_of_them else (2,))]
        plan.append(self.pull(100 * MB, 2, "--blend"))
        return plan

    def training(self, command: str, model: str, batch: int, *options: str, ddp: bool = False) -> Measurement:
        words = [self.bench, command, "--device", str(self.device), "--model", model, "--batch", str(batch), *options]
        if ddp and self.torch_python:
            words += ["--torch-python", self.torch_python, "--ddp-script", str(ROOT / "bench/peers/ddp_step.py")]
        title = " ".join([command, model, str(batch), *options]).replace("--", "")
        return Measurement(title, [*words, "--seconds", self.seconds, "--json"], longest=LONGEST_TRAINING)

    def trainings(self) -> list[Measurement]:
        """Whole training steps on a device."""
        quick = self.mode == "quick"
        model, batch = ("mlp", 8) if quick else ("resnet18", 128)
        plan = [self.training("step", model, batch, ddp=True)]
        if not quick:
            plan.insert(0, self.training("step", "wide", 256, "--step-time", "3.5", ddp=True))
            plan.append(self.training("step", "resnet18", 512, ddp=True))
        plan.append(self.training("step", model, batch, "--nodes", "2"))
        plan += [self.training("kvstore", model, batch, "--type", one) for one in ("dist_sync", "dist_async", "local")]
        return plan + [self.training("collective", model, batch, "--nodes", str(nodes), ddp=True) for nodes in (1, 2)]

    def measurements(self) -> list[Measurement]:
        if self.device:
            return self.trainings()
        plan = [Measurement("memory", [self.bench, "memory", "--bytes", "100MB", "--json"])]
        plan += [self.pull(200, 2, "--ping-pong"), self.pull(10 * KB, 2, "--ping-pong")]
        plan += self.pulls()
        steps = [("100k", 2), ("100k", 100), ("10M", 2), ("10M", 100)]
        if self.mode == "quick":
            steps = [("100k", 100), ("10M", 100)]
        if self.mode == "full":
            steps += [("100M", 2), ("100M", 100)]
        choice = Measurement("choice of a peer", [self.bench, "choice", "--json"])
        return [*plan, choice] + [self.step(*one) for one in steps] + self.collectives() + self.stores()


def figures_of_peer(peer: Document, watch: NoiseWatch) -> Document:
    """Throughput and its cost, and the noise, of the raw windows of a peer."""
    rates = range_of([window["bytes"] / window["ns"] for window in peer["windows"]])
    costs = range_of([1e9 * window["cpu_s"] / window["bytes"] for window in peer["windows"]])
    windows = {"count": len(peer["windows"]), "gb_per_s": rates}
    figures = {"gb_per_s": rates["median"], "cpu_s_per_gb": costs["median"], "windows": windows}
    control = first_line("/proc/sys/net/ipv4/tcp_congestion_control")
    return {**peer, **figures, "congestion_control": control, "noise": watch.judge(spread_of(rates))}


def run(one: Measurement, left: float = float("inf")) -> tuple[Document | None, str]:
    """The document, or why there is none. `left`: seconds that it may take."""
    if left <= 0:
        return None, "no time was left"
    environment = {**os.environ, **one.environment}
    watch = NoiseWatch()
    longest = min(one.longest, left)
    try:
        done = subprocess.run(one.command, capture_output=True, text=True, timeout=longest, env=environment, check=False)
    except OSError as error:
        return None, str(error)
    except subprocess.TimeoutExpired:
        return None, f"it took longer than {longest:.0f} s"
    last = (done.stderr.strip().splitlines() or [""])[-1]
    if done.returncode != 0:
        return None, last or f"exit code {done.returncode}"
    try:
        document = json.loads(done.stdout[done.stdout.index("{") :])
    except ValueError:
        return None, "its output is no JSON document"
    if document["kind"] == "peer":
        document = figures_of_peer(document, watch)
    if "LD_PRELOAD" in one.environment:
        document["congestion_control"] = "reno"
    return document, ""


def brief(document: Document) -> str:
    """The result in a few words, for the progress line."""
    if document["kind"] == "step":
        arrived = document["arrived"].get("step_us", {}).get("median")
        return "no pull arrived" if arrived is None else f"{time_text(arrived)} a step with a pull"
    if document["kind"] == "train":
        beside = document["times_the_plain_step"]["exchange"]["median"]
        return f"{time_text(document['exchange']['step_us']['median'])} a step, {beside:.2f} of the plain one"
    if document["kind"] == "collective":
        words = f"{time_text(document['dpwa']['step_us']['median'])} a step"
        ratio = document["ratio_to_ddp"]
        return f"{words}, {ratio['median']:.2f} of DDP's" if ratio else words
    if document["kind"] == "engines":
        return ", ".join(
            f"{one['name']} {'absent' if 'absent' in one else format(one['gb_per_s'], '.2f') + ' GB/s'}"
            for one in document["engines"]
        )
    if document["kind"] == "choice":
        most = max(document["results"], key=lambda one: one["nodes"])
        return f"{most['choose_ns']:.0f} ns among {most['nodes']} nodes, {size_text(int(most['bytes_per_node']))} a node"
    if document["kind"] == "kvstore":
        others = {"latency_ratio_to_raw": "times bare sockets", "ratio_to_gloo": "times Gloo's speed"}
        others["ratio_to_ps_lite"] = "times ps-lite's speed"
        ratios = [f", {document[key]['median']:.2f} {name}" for key, name in others.items() if document.get(key)]
        return f"{time_text(document['latency_us']['median'])} a push and pull{''.join(ratios)}"
    if document["kind"] == "memory":
        return f"{len(document['results'])} rates"
    if document["bytes"] < MB:
        words = f"{time_text(document['latency_us']['median'])} a pull"
        if "latency_ratio_to_raw" in document:
            words += f", {document['latency_ratio_to_raw']['median']:.2f} times that of bare sockets"
        return words
    words = f"{document['gb_per_s']:.2f} GB/s"
    if "ratio_to_raw" in document:
        words += f", {document['ratio_to_raw']['median']:.2f} of bare sockets"
    return words


def main() -> int:
    interrupts.raise_again()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, metavar="RUN_FOLDER")
    parser.add_argument("--bench", required=True)
    parser.add_argument("--mode", choices=tuple(SECONDS), default="default")
    parser.add_argument("--seconds", type=float, help="of the windows of one measurement, instead of the mode's")
    parser.add_argument("--mpi", help="the built bench/peers/mpi_sendrecv.cpp")
    parser.add_argument("--torch-python", help="a Python that has torch")
    parser.add_argument("--ps-lite", help="the built bench/peers/ps_lite_push_pull.cpp")
    parser.add_argument("--reno-sockets", help="the built bench/peers/reno_sockets.cpp: peers use reno, as dpwa does")
    parser.add_argument("--device", help="measure whole training steps on it, and nothing else")
    parser.add_argument("--within", type=float, default=float("inf"), help="seconds for all of it")
    options = parser.parse_args()
    if options.device and options.mode == "full":
        parser.error("--device has no --mode full")
    peers = (options.mpi, options.torch_python)
    ways = (options.seconds, options.reno_sockets, options.ps_lite, options.device)
    plan = Plan(options.bench, options.mode, *peers, *ways).measurements()
    began = time.monotonic()
    results: list[Document] = []
    skipped: list[Document] = []
    for index, one in enumerate(plan, start=1):
        document, reason = run(one, options.within - (time.monotonic() - began))
        place = f"   {index:2}/{len(plan)} {time.monotonic() - began:4.0f} s  {one.title}"
        if document is None:
            skipped.append({"title": one.title, "reason": reason})
            print(f"{place}: left out: {reason}", file=sys.stderr, flush=True)
            continue
        results.append(document)
        noisy = " (the machine was noisy)" if document.get("noise", {}).get("noisy") else ""
        print(f"{place}: {brief(document)}{noisy}", file=sys.stderr, flush=True)
    output = {
        "schema": 1,
        "time": time.strftime("%Y-%m-%d %H:%M"),
        "plan": options.mode,
        "seconds": round(time.monotonic() - began),
        "results": results,
        "skipped": skipped,
    }
    options.folder.joinpath("bench.json").write_text(json.dumps(output, indent=1) + "\n", encoding="utf-8")
    if options.device:
        table = bench_train.table(results)
        options.folder.joinpath("table.txt").write_text(f"{table}\n", encoding="utf-8")
        print(table)
    return 0 if results else 1


if __name__ == "__main__":
    sys.exit(checked(main))
