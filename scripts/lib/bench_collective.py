"""dpwa-bench collective: training steps of backend collective beside DistributedDataParallel; or its engines."""

from __future__ import annotations

import argparse
import contextlib
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from lib import bench_engines, bench_train
from lib.bench_cluster import entry, node_name
from lib.bench_options import SECONDS, Failure, WrongUsage, count, size, within
from lib.bench_processes import Json, closing, machine_settings, program, say
from lib.bench_results import time_text
from lib.bench_statistics import NoiseWatch, median, quantiles, range_of, ratios, spread_of, warn_when_noisy
from lib.bench_step_peers import StepGroup, count_for
from lib.bench_windows import print_result, spread_text
from lib.ports import free_ports

HELP = (
    "A step of backend collective beside Python's DistributedDataParallel, window by window, and beside a bare "
    "all-reduce; or the engines beside one another (needs LibTorch)"
)
WARM_UP = 5  # steps: buckets are rearranged after the first
FEWEST, MOST = 4, 100_000  # steps of a window
NAMES = {"dpwa": "backend collective", "ddp": "DistributedDataParallel"}


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--model", choices=bench_train.MODELS, metavar="|".join(bench_train.MODELS),
                        default="mlp", help="Model to train (mlp)")  # fmt: skip
    parser.add_argument("--nodes", type=within(int, 1, 64), default=2, help="Nodes, each a process (2)")
    parser.add_argument("--batch", type=count, default=32, metavar="COUNT", help="Samples in the batch of a node (32)")
    parser.add_argument("--threads", type=within(int, 1, 256), default=1,
                        help="Threads of torch in a node, on both sides (1)")  # fmt: skip
    parser.add_argument("--seed", type=within(int, 0, 2**53), default=1,
                        help="Seed of weights and data, on both sides (1)")  # fmt: skip
    parser.add_argument("--torch-python", help="A Python that has torch, for DistributedDataParallel")
    bench_train.add_device(parser)
    parser.add_argument("--engines", action="store_true",
                        help="Measures an all-reduce of --bytes by each engine of this build, instead of a step")  # fmt: skip
    parser.add_argument("--bytes", type=size, default=10**8, metavar="SIZE",
                        help="Size of the float32 vector that --engines reduces (100MB)")  # fmt: skip
    parser.add_argument("--seconds", type=SECONDS, default=5, help="How long to measure each of those in turn (5)")
    parser.add_argument("--windows", type=within(int, 1, 1000), default=9,
                        help="Windows of a measurement (9; at most 5 with --engines)")  # fmt: skip
    parser.add_argument("--attempts", type=within(int, 1, 100), default=3,
                        help="Measure again while the machine is noisy (3)")  # fmt: skip
    parser.add_argument("--json", action="store_true", help="Print one JSON document instead of text")


def hidden_share(step: float, local: float, allreduce: float) -> float:
    """The share of an all-reduce that does not show in the step, as it runs beside the backward pass: 1 when a step
    takes no longer than without communication, 0 when it takes as much longer as the bare all-reduce takes; less when
    it costs more than that."""
    return 0.0 if allreduce <= 0 else min(1.0, 1 - (step - local) / allreduce)


@dataclass
class Side:
    """The nodes of one side, and what was measured of them by window, in microseconds."""

    nodes: StepGroup
    loss: float = 0.0  # of rank 0, after as many steps of both
    steps_us: list[float] = field(default_factory=list)  # of all windows and nodes
    step: list[float] = field(default_factory=list)
    local: list[float] = field(default_factory=list)  # the same step without communication
    cpu: list[float] = field(default_factory=list)  # processor time of a step and node

    def warm_up(self) -> float:
        answers = self.nodes.ask({"do": "steps", "count": WARM_UP, "loop": "exchange"})
        self.loss = answers[0]["loss"]
        return median([ns / 1000 for answer in answers for ns in answer["times_ns"]])

    def run_steps(self, count: int) -> None:
        before = self.nodes.cpu_s()
        times = self.nodes.times("steps", count, loop="exchange")
        self.steps_us += times
        self.step.append(median(times))
        # One step more than was timed.
        self.cpu.append(1e6 * (self.nodes.cpu_s() - before) / (len(self.nodes.processes) * (count + 1)))

    def run_local(self, count: int) -> None:
        self.local.append(median(self.nodes.times("steps", count, loop="plain")))

    def added(self) -> list[float]:
        """What communication adds to a step; noise makes it no less than 1 us."""
        return [max(1.0, step - local) for step, local in zip(self.step, self.local)]

    def figures(self, allreduce: list[float]) -> Json:
        hidden = [hidden_share(*window) for window in zip(self.step, self.local, allreduce)]
        return {
            **{"steps": len(self.steps_us), "step_us": quantiles(self.steps_us), "cpu_us": range_of(self.cpu)},
            **{"local_step_us": range_of(self.local), "hidden_share": range_of(hidden)},
            **{"added_us": range_of(self.added())},
            **{"windows": {"count": len(self.step), "step_us": range_of(self.step)}, "loss": self.loss},
        }


def cluster_text(nodes: int) -> str:
    entries = [entry(node_name(rank), port) for rank, port in enumerate(free_ports(nodes))]
    return "\n".join(["cluster: bench", "backend: collective", "log: {level: warn}", "nodes:", *entries, ""])


def start_sides(options: argparse.Namespace, folder: str) -> tuple[Side, Side | None, str]:
    """Of dpwa, and of DistributedDataParallel or why there is none."""
    cluster = Path(folder, "cluster.yaml")
    cluster.write_text(cluster_text(options.nodes), encoding="utf-8")
    job = {key: getattr(options, key) for key in ("nodes", "model", "batch", "threads", "seed")}
    jobs = [{**job, "rank": rank} for rank in range(options.nodes)]
    place = {"kind": "collective", "config": str(cluster), "store_port": free_ports(1)[0]}
    mine = [{**one, **place, "name": node_name(rank)} for rank, one in enumerate(jobs)]
    ours = Side(StepGroup([program("dpwa-measure-collective")], mine))
    if not options.torch_python:
        return ours, None, "no Python with torch was named (--torch-python)"
    try:
        theirs = [{**one, "store": f"{folder}/store"} for one in jobs]
        return ours, Side(StepGroup([options.torch_python, options.ddp_script], theirs)), ""
    except Failure as error:
        return ours, None, str(error)


def measure(options: argparse.Namespace) -> Json:
    with tempfile.TemporaryDirectory(prefix="dpwa-bench-") as folder, contextlib.ExitStack() as stack:
        ours, ddp, absent = start_sides(options, folder)
        sides = {"dpwa": ours, **({"ddp": ddp} if ddp else {})}
        stack.enter_context(closing(*(side.nodes for side in sides.values())))
        # A comparison of the losses shows that both do the same: after the same number of steps.
        first = [side.warm_up() for side in sides.values()][0]
        count = count_for(options.seconds / options.windows, first, FEWEST, MOST)
        ours.nodes.times("allreduce", count)
        allreduce: list[float] = []
        watch = NoiseWatch()
        watch.also_used(-sum(side.nodes.cpu_s() for side in sides.values()))
        for index in range(options.windows):
            for side in sides.values():
                side.run_steps(count)
            for side in sides.values():
                side.run_local(count)
            allreduce.append(median(ours.nodes.times("allreduce", count)))
            line = f"   window {index + 1}/{options.windows}  collective {time_text(ours.step[-1])}"
            line += f"  DDP {time_text(ddp.step[-1])}" if ddp else ""
            say(f"{line}  alone {time_text(ours.local[-1])}  all-reduce {time_text(allreduce[-1])}")
        watch.also_used(sum(side.nodes.cpu_s() for side in sides.values()))
        noise = watch.judge(max(spread_of(range_of(side.step)) for side in sides.values()))
        return document_of(options, ours, ddp, absent, allreduce) | {"noise": noise}


def document_of(
    options: argparse.Namespace, ours: Side, ddp: Side | None, absent: str, allreduce: list[float]
) -> Json:
    facts = ours.nodes.facts[-1]
    found: Json = {"kind": "collective", "model": options.model, "parameters": facts["parameters"]}
    found |= {"bytes": 4 * facts["parameters"], "nodes": options.nodes}
    found |= {"threads": options.threads, "batch": options.batch, "seed": options.seed, "torch": facts["torch"]}
    found |= {"dpwa": ours.figures(allreduce), "allreduce_us": range_of(allreduce)}
    if ddp:
        found["ddp"] = {**ddp.figures(allreduce), "torch": ddp.nodes.facts[-1]["torch"]}
        found["ratio_to_ddp"] = ratios(ours.step, ddp.step)
        found["added_ratio_to_ddp"] = ratios(ours.added(), ddp.added())
    else:
        found |= {"ddp": {"absent": absent}, "ratio_to_ddp": None, "added_ratio_to_ddp": None}
    return found | {"settings": machine_settings(facts)}


def until_quiet(attempts: int, measure: Callable[[], Json]) -> Json:
    """Measures until the machine was quiet, `attempts` times at most; the last, where it never was."""
    for attempt in range(2, attempts + 1):
        document = measure()
        if not document["noise"]["noisy"]:
            return document
        warn_when_noisy(document["noise"])
        say(f"   attempt {attempt} of {attempts}")
    return measure()


def lines_of(document: Json) -> list[str]:
    lines = []
    for key, name in NAMES.items():
        one = document[key]
        lines.append(name)
        if "absent" in one:
            lines.append(f"  absent            {one['absent']}")
            continue
        lines.append(f"  step              {spread_text(one['windows']['step_us'], time_text)}, {one['steps']} steps")
        lines.append(f"  processor time    {spread_text(one['cpu_us'], time_text)} a node")
        lines.append(f"  without exchange  {spread_text(one['local_step_us'], time_text)}")
        lines.append(f"  exchange adds     {spread_text(one['added_us'], time_text)}")
        lines.append(f"  exchange hidden   {spread_text(one['hidden_share'])}")
    lines.append(f"all-reduce alone    {spread_text(document['allreduce_us'], time_text)}")
    if document["ratio_to_ddp"]:
        lines.append(f"collective / DDP    {spread_text(document['ratio_to_ddp'])}")
        lines.append(f"  what is added     {spread_text(document['added_ratio_to_ddp'])}")
    return lines


def run(options: argparse.Namespace) -> int:
    if bool(options.torch_python) != bool(options.ddp_script):
        raise WrongUsage("--torch-python and --ddp-script need each other")
    bench_train.check_peer(options)
    if options.device:
        roles = bench_train.Roles("collective", cluster_text(options.nodes), options.nodes)
        return bench_train.run(options, roles)
    program("dpwa-measure-collective")
    one, lines = (bench_engines.measure, bench_engines.lines_of) if options.engines else (measure, lines_of)
    return print_result(until_quiet(options.attempts, lambda: one(options)), options.json, lines)
