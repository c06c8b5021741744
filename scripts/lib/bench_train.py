"""Whole training steps on a device: by a back end, beside the plain loop, one that copies all parameters to the host
after each step, and DistributedDataParallel."""

from __future__ import annotations

import argparse
import contextlib
import re
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from lib.bench_cluster import cluster_file, node_name
from lib.bench_options import Failure, WrongUsage, count, text_table
from lib.bench_processes import Group, Json, Process, Processes, closing, machine_settings, program, say
from lib.bench_results import size_text, time_text
from lib.bench_statistics import NoiseWatch, range_of, ratios, spread_of
from lib.bench_step_peers import count_for
from lib.bench_windows import print_result, spread_text, window_count

MODELS = ("cnn", "mlp", "resnet18", "wide")
LOOPS = {"plain": "plain loop", "blocking": "blocking copy", "exchange": "dpwa", "ddp": "DistributedDataParallel"}
WARM_UP, FEWEST, MOST = 5, 4, 100_000  # steps


@dataclass
class Roles:
    """Who takes part in a measurement, and the cluster file that says so."""

    backend: str
    text: str
    nodes: int  # that train
    peers: int = 0  # that exchange only, with the model in host memory
    servers: int = 0
    type: str = ""  # kvstore.type


def device(text: str) -> str:
    if not re.fullmatch("cpu|cuda(:[0-9]{1,2})?", text):
        raise argparse.ArgumentTypeError(f"'{text}' is not accepted; accepted: cpu, cuda, cuda:N")
    return text


def add_device(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--device", type=device, metavar="cpu|cuda|cuda:N",
                        help="Times whole training steps on it instead, beside the plain loop, one that copies all "
                        "parameters to the host after each step, and DistributedDataParallel")  # fmt: skip
    parser.add_argument("--ddp-script", help="Script for that Python: bench/peers/ddp_step.py")


def add_model(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--model", choices=MODELS, metavar="|".join(MODELS), default="mlp",
                        help="With --device: model to train (mlp)")  # fmt: skip
    parser.add_argument("--batch", type=count, default=32, metavar="COUNT",
                        help="With --device: samples in the batch of a node (32)")  # fmt: skip


def check_peer(options: argparse.Namespace) -> None:
    if options.ddp_script and not options.torch_python:
        raise WrongUsage("--ddp-script needs --torch-python")
    if options.ddp_script and not Path(options.ddp_script).is_file():
        raise WrongUsage(f"there is no file {options.ddp_script}")


class Trainers(Processes):
    """Processes that train, and peers that exchange with them meanwhile."""

    def __init__(self, command: list[str], jobs: list[Json], nodes: int) -> None:
        self.cpu: dict[Process, float] = {}
        super().__init__(command, jobs)
        self.training, self.peers = self.processes[:nodes], self.processes[nodes:]

    def ask(self, command: Json, of: list[Process] | None = None) -> list[Json]:
        answers = super().ask(command, of)
        self.cpu |= {one: answer["cpu_s"] for one, answer in zip(of or self.processes, answers)}
        return answers

    def steps(self, loop: str, count: int, expected_us: float = 0) -> list[Json]:
        """`expected_us`: for so long per step the peers exchange."""
        for peer in self.peers if loop == "exchange" else []:
            peer.send({"do": "serve", "seconds": count * expected_us / 1e6})
        answers = self.ask({"do": "steps", "count": count, "loop": loop}, self.training)
        for peer in self.peers if loop == "exchange" else []:
            self.cpu[peer] = peer.receive()["cpu_s"]
        return answers

    def cpu_s(self) -> float:
        return sum(self.cpu.values())


@dataclass
class Loop:
    """One way to train, and its windows."""

    name: str
    trainers: Trainers
    step_us: list[float] = field(default_factory=list)  # of each window: the mean of a step on the slowest node
    steps: int = 0  # of all nodes
    published: int = 0
    exchanged: int = 0

    @property
    def asked(self) -> str:
        return "exchange" if self.name == "ddp" else self.name

    def warm_up(self) -> None:
        self.run(WARM_UP)
        self.run(count_for(0.1, self.step_us[-1], FEWEST, MOST))
        self.step_us, self.steps, self.published, self.exchanged = [self.step_us[-1]], 0, 0, 0

    def run(self, count: int) -> None:
        answers = self.trainers.steps(self.asked, count, self.step_us[-1] if self.step_us else 0)
        self.step_us.append(max(one["ns"] for one in answers) / count / 1000)
        self.steps += count * len(answers)
        self.published += sum(one.get("published", 0) for one in answers)
        self.exchanged += sum(one.get("exchanged", 0) for one in answers)

    def figures(self) -> Json:
        found: Json = {"name": LOOPS[self.name], "steps": self.steps, "step_us": range_of(self.step_us)}
        if self.name == "exchange":
            found |= {"published": self.published / self.steps, "exchanged": self.exchanged / self.steps}
        if self.name == "ddp":
            found["engine"] = self.trainers.facts[0]["engine"]
        return found | {"windows": {"count": len(self.step_us), "step_us": range_of(self.step_us)}}


def jobs_of(options: argparse.Namespace, roles: Roles, file: str) -> list[Json]:
    """Of the nodes that train, then of peers."""
    job: Json = {"kind": "train", "config": file, "model": options.model, "seed": 1, "nodes": roles.nodes}
    ours = {"device": options.device, "batch": options.batch, "threads": options.threads or 1}
    theirs = {"device": "cpu", "batch": 1, "threads": 1}
    return [{**job, "rank": rank, "name": node_name(rank), **(ours if rank < roles.nodes else theirs)}
            for rank in range(roles.nodes + roles.peers)]  # fmt: skip


def start_ddp(options: argparse.Namespace, jobs: list[Json], folder: str) -> tuple[Trainers | None, str]:
    """Or why there is none."""
    if not options.ddp_script:
        return None, "no Python with torch was named (--torch-python, --ddp-script)"
    try:
        command = [options.torch_python, options.ddp_script]
        return Trainers(command, [{**job, "store": f"{folder}/store"} for job in jobs], len(jobs)), ""
    except Failure as error:
        return None, str(error)


def fit_batch(loops: list[Loop], batch: int, wanted_us: float) -> int:
    """The batch with which a step of the first loop takes about so long; all loops then use it."""
    for _ in range(5):
        loops[0].run(WARM_UP)
        loops[0].run(WARM_UP)
        fitting = max(1, round(batch * wanted_us / loops[0].step_us[-1]))
        if abs(fitting - batch) <= 0.03 * batch:
            break
        batch = fitting
        for trainers in {id(loop.trainers): loop.trainers for loop in loops}.values():
            trainers.ask({"do": "batch", "batch": batch}, trainers.training)
    return batch


def measure(options: argparse.Namespace, roles: Roles) -> Json:
    with tempfile.TemporaryDirectory(prefix="dpwa-bench-") as folder, contextlib.ExitStack() as stack:
        file = stack.enter_context(cluster_file(roles.text))
        if roles.servers:
            names = [f"s{index + 1}" for index in range(roles.servers)]
            servers = [({"kind": "store_server", "config": file, "name": name}, False) for name in names]
            stack.enter_context(closing(Group(servers)))
        jobs = jobs_of(options, roles, file)
        ours = Trainers([str(program("dpwa-measure-step"))], jobs, roles.nodes)
        stack.enter_context(closing(ours))
        loops = [Loop(name, ours) for name in ("plain", "blocking", "exchange")]
        ddp, absent = start_ddp(options, jobs[: roles.nodes], folder)
        if ddp:
            stack.enter_context(closing(ddp))
            loops.append(Loop("ddp", ddp))
        step_time = getattr(options, "step_time", 0)
        batch = fit_batch(loops, options.batch, 1000 * step_time) if step_time else options.batch
        for loop in loops:
            loop.warm_up()
        windows = window_count(options.seconds)
        watch = NoiseWatch()
        watch.also_used(-sum(one.cpu_s() for one in (ours, ddp) if one))
        for index in range(windows):
            for loop in loops:
                loop.run(count_for(options.seconds / windows, loop.step_us[-1], FEWEST, MOST))
            words = "  ".join(f"{LOOPS[loop.name]} {time_text(loop.step_us[-1])}" for loop in loops)
            say(f"   window {index + 1}/{windows}  {words}")
        watch.also_used(sum(one.cpu_s() for one in (ours, ddp) if one))
        for loop in loops:
            del loop.step_us[0]  # of the warm-up
        noise = watch.judge(spread_of(range_of(loops[0].step_us)))
        return document_of(options, roles, batch, loops, absent, ours.facts[0]) | {"noise": noise}


def document_of(
    options: argparse.Namespace, roles: Roles, batch: int, loops: list[Loop], absent: str, facts: Json
) -> Json:
    found: Json = {"kind": "train", "backend": roles.backend, **({"type": roles.type} if roles.type else {})}
    found |= {"model": options.model, "parameters": facts["parameters"], "bytes": 4 * facts["parameters"]}
    found |= {"device": options.device, "batch": batch, "nodes": roles.nodes, "peers": roles.peers}
    found |= {"threads": options.threads or 1, "torch": facts["torch"]}
    found |= {loop.name: loop.figures() for loop in loops}
    if absent:
        found["ddp"] = {"absent": absent}
    beside = {loop.name: ratios(loop.step_us, loops[0].step_us) for loop in loops[1:]}
    return found | {"times_the_plain_step": beside, "settings": machine_settings(facts)}


def lines_of(document: Json) -> list[str]:
    words = [document["backend"], document.get("type", ""), "on", document["device"]]
    words += [f"{document['model']} of {size_text(document['bytes'])}, batch {document['batch']}"]
    lines = [" ".join(word for word in words if word)]
    for name in (name for name in LOOPS if name in document):
        one = document[name]
        if "absent" in one:
            lines.append(f"  {LOOPS[name]}: absent: {one['absent']}")
            continue
        line = f"  {LOOPS[name]:<24}{spread_text(one['step_us'], time_text)} a step"
        if name != "plain":
            line += f", {document['times_the_plain_step'][name]['median']:.3f} of the plain one"
        if name == "exchange":
            line += f"; {one['published']:.2f} publishes and {one['exchanged']:.2f} exchanges a step"
        lines.append(line)
    return lines


def table(documents: list[Json]) -> str:
    """One line for each loop of each measurement."""
    rows = []
    for document in documents:
        what = " ".join(str(document[key]) for key in ("backend", "type", "nodes") if key in document)
        for name in (name for name in LOOPS if "step_us" in document.get(name, {})):
            one = document[name]
            beside = document["times_the_plain_step"].get(name)
            cells = [what, document["model"], str(document["batch"]), one["name"]]
            cells.append(f"{one['step_us']['median'] / 1000:.3f}")
            cells.append(f"{beside['median']:.3f}" if beside else "1")
            cells += [f"{one[key]:.2f}" if key in one else "-" for key in ("published", "exchanged")]
            rows.append(cells)
    heads = ["back end, nodes", "model", "batch", "loop", "ms a step", "of plain", "publishes", "exchanges"]
    return text_table(heads, rows)


def run(options: argparse.Namespace, roles: Roles) -> int:
    check_peer(options)
    program("dpwa-measure-step")
    return print_result(measure(options, roles), options.json, lines_of)
