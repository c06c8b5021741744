"""dpwa-bench step: what adapter->step adds to a training step, beside hand-written passes over the same memory."""

from __future__ import annotations

import argparse
import contextlib
import time
from dataclasses import dataclass

from lib import bench_train
from lib.bench_cluster import NodeSettings, cluster_text, node_file, node_name
from lib.bench_options import SECONDS, Failure, WrongUsage, add_choice, count, within
from lib.bench_processes import ROOT, Group, Json, Process, closing, cores, machine_settings, program, require_memory, say
from lib.bench_results import time_text
from lib.bench_statistics import NoiseWatch, median, quantiles, range_of, spread_of
from lib.bench_windows import add_common, latency_text, print_result
from lib.ports import free_ports

HELP = "What adapter->step adds to a training step, beside a hand-written loop (needs LibTorch)"
WINDOWS = 5
WARM_UP = 3  # steps
LEAST_ARRIVALS = 10
OTHERS = {"attached": "with a node process, ", "in_python": "in Python, "}
PASSES = ("copy", "copy_and_blend", "blend_and_copy")


@dataclass
class Step:
    """Times in microseconds."""

    send_us: float  # update_send
    wait_us: float  # update_wait
    arrived: bool  # a pull was blended in
    waited_us: float  # for the network
    allocations: int  # by the trainer's thread, in the two halves
    all_allocations: int  # by all threads meanwhile

    @classmethod
    def of(cls, raw: list[int]) -> Step:
        send, wait, arrived, waited, *allocations = raw
        return cls(send / 1000, wait / 1000, bool(arrived), waited / 1000, *allocations)

    @property
    def step_us(self) -> float:
        return self.send_us + self.wait_us


Hand = list[dict[str, list[float]]]  # microseconds by pass, of each number of threads


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--parameters", type=count, default=10**7, metavar="COUNT",
                        help="float32 parameters of the model (10M)")  # fmt: skip
    parser.add_argument("--tensors", type=count, default=100, metavar="COUNT", help="Tensors that hold them (100)")
    parser.add_argument("--peers", type=within(int, 1, 16), default=1, help="Nodes that serve, each a process (1)")
    parser.add_argument("--nodes", type=within(int, 1, 16), default=1,
                        help="With --device: nodes that train on it, each a process; with more than one they exchange "
                        "with each other alone (1)")  # fmt: skip
    add_choice(parser, "--transport", ("tcp", "same_host"), "How parameters travel")
    parser.add_argument("--threads", type=within(int, 1, 256),
                        help="Threads of torch and of the hand-written loop (one for each core)")  # fmt: skip
    parser.add_argument("--step-time", type=within(float, 0, 60_000), default=0,
                        help="Compute time of a step in ms, as a busy wait (the longest time of a pull); with "
                        "--device the batch is chosen so that a plain step takes about so long")  # fmt: skip
    parser.add_argument("--attached", action="store_true",
                        help="Also, step by step in turn, a trainer that is attached to a node process")  # fmt: skip
    bench_train.add_model(parser)
    parser.add_argument("--in-python", action="store_true",
                        help="Also, second by second in turn, a trainer in Python; from a checkout, with --torch-python")
    parser.add_argument("--torch-python",
                        help="A Python that has torch, for DistributedDataParallel and for --in-python")  # fmt: skip
    bench_train.add_device(parser)
    add_common(parser, SECONDS)


def tensor_sizes(parameters: int, tensors: int) -> list[tuple[str, int]]:
    """In parts as equal as they can be."""
    return [(f"p{i}", parameters // tensors + (i < parameters % tensors)) for i in range(tensors)]


def peers_of(file: str, tensors: list[tuple[str, int]], peers: int) -> Group:
    """The peers of trainer w1, which serve that model and publish a new version whenever one was served."""
    facts = {"kind": "pull", "config": file, "tensors": tensors, "blend": False, "peer": None}
    return Group([({**facts, "name": node_name(index)}, False) for index in range(1, 1 + peers)])


def range_over_time(values: list[float]) -> dict[str, float]:
    """Of the medians of consecutive parts of a course."""
    parts = min(WINDOWS, len(values))
    return range_of([median(values[len(values) * i // parts : len(values) * (i + 1) // parts]) for i in range(parts)])


def group_of(every: list[Step], arrived: bool) -> Json:
    steps = [step for step in every if step.arrived == arrived]
    if not steps:
        return {"steps": 0}
    columns = {key: [getattr(step, key) for step in steps] for key in ("send_us", "wait_us", "step_us")}
    windows = {"count": min(WINDOWS, len(steps)), "step_us": range_over_time(columns["step_us"])}
    return {"steps": len(steps), **{key: quantiles(values) for key, values in columns.items()}, "windows": windows}


def groups_of(steps: list[Step]) -> Json:
    return {"arrived": group_of(steps, True), "not_arrived": group_of(steps, False)}


def compared(steps: list[Step], embedded: Json) -> Json:
    """What the same step takes with a node process, or in Python, and how much longer that is."""
    found = groups_of(steps)
    for key, group in found.items():
        if "step_us" in group and "step_us" in embedded[key]:
            own, other = group["step_us"]["median"], embedded[key]["step_us"]["median"]
            group |= {"beyond_embedded_us": own - other, "times_embedded": own / other}
    return found


def figures_of(steps: dict[str, list[Step]], hand: Hand, threads: list[int]) -> Json:
    """`steps`: of the "embedded" trainer, and maybe of an "attached" one and one "in_python"."""
    ours = steps["embedded"]
    found = groups_of(ours)
    found["hand_written"] = [
        {"threads": count, **{f"{name}_us": quantiles(times[name]) for name in PASSES}}
        for count, times in zip(threads, hand)
    ]
    for key in OTHERS:
        if key in steps:
            found[key] = compared(steps[key], found)
    ratios = {
        "ratio_to_hand_written": ("arrived", "copy_and_blend"),
        "ratio_to_one_pass": ("arrived", "blend_and_copy"),
        "publish_ratio_to_copy": ("not_arrived", "copy"),
    }
    for key, (group, name) in ratios.items():
        best = min(median(times[name]) for times in hand)  # the fastest of the thread counts
        found[key] = best / found[group]["step_us"]["median"] if "step_us" in found[group] else None
    found["waited_us_max"] = max((step.waited_us for step in ours), default=0.0)
    counts = {"trainer": [step.allocations for step in ours], "process": [step.all_allocations for step in ours]}
    found["allocations_per_step"] = {
        key: {"median": median(values), "max": max(values, default=0)} for key, values in counts.items()
    }
    return found


def run_steps(trainers: list[tuple[Process, tuple[str, ...]]], seconds: float) -> tuple[dict[str, list[Step]], Hand]:
    """Of processes that take turns, with the names of their trainers."""
    for process, _ in trainers:
        process.ask({"do": "steps", "count": WARM_UP})
    steps: dict[str, list[Step]] = {name: [] for _, names in trainers for name in names}
    hand: Hand = []
    began = time.monotonic()
    while True:
        for process, names in trainers:
            answer = process.ask({"do": "steps", "seconds": min(seconds, 1)})
            for name, more in zip(names, answer["steps"]):
                steps[name] += [Step.of(raw) for raw in more]
            hand = hand or [{name: [] for name in PASSES} for _ in answer["hand"]]
            for times, more in zip(hand, answer["hand"]):
                for name, column in zip(PASSES, zip(*more)):
                    times[name] += [ns / 1000 for ns in column]
        say(f"   {len(steps['embedded'])} steps")
        # A machine on which pulls hardly ever arrive must not hold this up for ever.
        enough = min(sum(step.arrived for step in every) for every in steps.values()) >= LEAST_ARRIVALS
        elapsed = time.monotonic() - began
        if elapsed >= seconds * len(trainers) and (enough or elapsed >= 4 * seconds * len(trainers)):
            return steps, hand


def lines_of(document: Json) -> list[str]:
    def group_lines(group: Json, words: str) -> list[str]:
        lines = [f"{words}{group['steps']} steps"]
        for key, name in (("send_us", "update_send"), ("wait_us", "update_wait"), ("step_us", "both")):
            lines += [f"  {name:<18}{latency_text(group[key])}"] if key in group else []
        beyond = "beyond_embedded_us"
        return lines + ([f"  beyond embedded   {group[beyond]:.1f} µs"] if beyond in group else [])

    lines = []
    for key, words in (("arrived", "a pull had arrived: "), ("not_arrived", "none had arrived: ")):
        lines += group_lines(document[key], words)
        for other, where in OTHERS.items():
            lines += group_lines(document[other][key], where + words) if other in document else []
    for hand in document["hand_written"]:
        lines.append(f"by hand, {hand['threads']} thread(s)")
        for name, words in zip(PASSES, ("copy", "copy, then blend", "both in one pass")):
            lines.append(f"  {words:<18}{latency_text(hand[f'{name}_us'])}")
    keys = ("ratio_to_hand_written", "ratio_to_one_pass", "publish_ratio_to_copy")
    ratios = ["-" if document[key] is None else f"{document[key]:.2f}" for key in keys]
    lines.append(f"by hand / step      {ratios[0]} with a pull (one pass {ratios[1]}), {ratios[2]} without")
    trainer, process = (document["allocations_per_step"][key]["median"] for key in ("trainer", "process"))
    return [*lines, f"allocations a step  {trainer} by the trainer, {process} in the process"]


def run(options: argparse.Namespace) -> int:
    if options.device:
        peers = options.peers if options.nodes == 1 else 0
        text = cluster_text(NodeSettings(transport=options.transport), free_ports(options.nodes + peers))
        return bench_train.run(options, bench_train.Roles("gossip", text, options.nodes, peers))
    if options.tensors > options.parameters:
        raise WrongUsage("--tensors: more tensors than parameters")
    if options.in_python and not options.torch_python:
        raise WrongUsage("--in-python: needs --torch-python")
    tool = program("dpwa-measure-step")
    trainers = ["embedded", *(["attached"] if options.attached else []), *(["in_python"] if options.in_python else [])]
    # Copies of the model: the adapter's flat memory, three snapshots, the landing, five by hand for each of two thread
    # counts; and four a peer. With a node process, or in Python, another node with peers.
    require_memory(4 * options.parameters * (10 + len(trainers) * (6 + 4 * options.peers)))
    threads = options.threads or cores()
    hand_threads = sorted({1, threads})
    # By default a pull of this size fits into the busy wait on a machine with next to nothing to spare.
    compute_us = 1000 * options.step_time or 2000 + 4 * options.parameters / 1e9 * 1e6
    words = f"step {options.parameters} parameters in {options.tensors} tensors, {threads} thread(s)"
    say(f"{words}, {time_text(compute_us)} of computing a step")
    tensors = tensor_sizes(options.parameters, options.tensors)
    with contextlib.ExitStack() as stack:
        files, used = {}, []
        for trainer in trainers:
            settings = NodeSettings(transport=options.transport, daemon=trainer == "attached")
            file = files[trainer] = stack.enter_context(node_file(settings, free_ports(1 + options.peers)))
            if trainer == "attached":  # the network side of its w1
                node = Process([program("dpwa"), "node", "--config", file, "--name", node_name(0)])
                stack.enter_context(closing(node))
                used.append(node.cpu_s)
            group = peers_of(file, tensors, options.peers)
            stack.enter_context(closing(group))
            used.append(group.cpu_s)
        job: Json = {"name": node_name(0), "tensors": tensors, "threads": threads, "compute_ns": round(1000 * compute_us)}
        in_one = tuple(name for name in trainers if name != "in_python")
        more = {"kind": "step", "configs": [files[name] for name in in_one], "hand_threads": hand_threads}
        processes = [(Process([tool], {**job, **more}), in_one)]
        if options.in_python:
            command = [options.torch_python, ROOT / "bench/step/python_trainer.py"]
            processes.append((Process(command, {**job, "config": files["in_python"]}), ("in_python",)))
        for process, _ in processes:
            stack.enter_context(closing(process))
        facts = processes[0][0].receive()
        if options.in_python:
            try:
                processes[1][0].receive()
            except Failure as error:  # the rest is measured all the same
                say(f"   in Python: {error}")
                del processes[1]
        used += [process.cpu_s for process, _ in processes]
        watch = NoiseWatch()
        watch.also_used(-sum(cpu_s() for cpu_s in used))
        steps, hand = run_steps(processes, options.seconds)
        watch.also_used(sum(cpu_s() for cpu_s in used))
        # The work of the hand-written copy is the same throughout.
        noise = watch.judge(spread_of(range_over_time(hand[0]["copy"])))
        for process, _ in processes:
            process.await_end()
    head = {"kind": "step", "parameters": options.parameters, "tensors": options.tensors}
    head |= {"bytes": 4 * options.parameters, "nodes": options.peers + 1, "transport": options.transport}
    head |= {"threads": threads, "compute_us": compute_us, "steps": len(steps["embedded"])}
    document = {**head, **figures_of(steps, hand, hand_threads), "noise": noise, "settings": machine_settings(facts)}
    return print_result(document, options.json, lines_of)
