"""dpwa-bench kvstore: workers that push to the servers of a store, in turn with bare sockets and other programs."""

from __future__ import annotations

import argparse
import contextlib
import os
import tempfile
from pathlib import Path

from lib import bench_train
from lib.bench_cluster import cluster_file, entry, node_name, same_host
from lib.bench_options import SECONDS, WrongUsage, add_choice, size, within
from lib.bench_processes import Group, Json, closing, machine_settings, require_memory, say
from lib.bench_pull import Topology, raw_group
from lib.bench_results import size_text, time_text
from lib.bench_statistics import NoiseWatch, ratios, spread_of
from lib.bench_step_peers import StepPeer, count_for, gloo, ps_lite
from lib.bench_windows import (
    SHORTEST,
    Series,
    add_common,
    figure_lines,
    latency_text,
    print_result,
    spread_text,
    window_count,
)
from lib.ports import free_ports

HELP = "Workers that push to the servers of a store, and take the value that comes back"
WARM_UP = 3  # pushes
OPTIMIZERS = ("none", "sgd", "momentum", "nesterov", "adam", "adamw")
PEERS = {"gloo": "c10d Gloo", "ps_lite": "ps-lite"}
IDENTITY = ("bytes", "workers", "servers", "type", "transport", "optimizer", "compression", "ping_pong")


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--bytes", type=size, default=10**8, metavar="SIZE",
                        help="Size of the float32 value, or of all (100MB)")  # fmt: skip
    parser.add_argument("--workers", type=within(int, 1, 64), default=1, help="Workers, each a process (1)")
    parser.add_argument("--servers", type=within(int, 1, 64), default=1, help="Servers, each a process (1)")
    parser.add_argument("--keys", type=within(int, 1, 100_000), default=1,
                        help="Parts of the value that are keys of their own, and grow in equal steps (1)")  # fmt: skip
    parser.add_argument("--replicas", type=within(int, 0, 1), default=0, help="kvstore.replicas (0)")
    add_choice(parser, "--type", ("dist_sync", "dist_async", "local"), "kvstore.type; local: with --device alone")
    add_choice(parser, "--transport", ("tcp", "same_host"), "How values travel")
    add_choice(parser, "--optimizer", OPTIMIZERS, "Optimizer of the servers")
    add_choice(parser, "--compression", ("none", "fp16", "2bit"), "kvstore.compression.type of the pushes")
    parser.add_argument("--ping-pong", action="store_true",
                        help="For the latency of small sizes: each process on a core of its own, in turn with bare "
                        "sockets")  # fmt: skip
    parser.add_argument("--torch-python",
                        help="A Python that has torch, for the same step by Gloo's all-reduce; with --device for "
                        "DistributedDataParallel")  # fmt: skip
    parser.add_argument("--gloo-script", help="Script for that Python: bench/peers/c10d_step.py")
    bench_train.add_model(parser)
    bench_train.add_device(parser)
    parser.add_argument("--threads", type=within(int, 1, 256), default=1,
                        help="With --device: threads of torch in a worker (1)")  # fmt: skip
    parser.add_argument("--ps-lite", default=os.environ.get("DPWA_PS_LITE"),
                        help="The built bench/peers/ps_lite_push_pull.cpp ($DPWA_PS_LITE)")  # fmt: skip
    add_common(parser, SECONDS)


def problem_of(options: argparse.Namespace) -> str:
    """What is wrong with them; empty: nothing."""
    if options.type == "local":
        return "--type local needs --device: it has no servers to push to"
    if options.type == "dist_async" and options.optimizer == "none":
        return "dist_async needs --optimizer: an update at each push is made by one"
    if options.replicas and options.servers < 2:
        return "--replicas needs two servers: the other holder of a value is another server"
    if 4 * options.keys > options.bytes:
        return "--keys is above the number of elements in --bytes"
    if bool(options.torch_python) != bool(options.gloo_script):
        return "--torch-python and --gloo-script need each other"
    files = (file for file in (options.gloo_script, options.ps_lite) if file and not Path(file).is_file())
    return next((f"there is no file {file}" for file in files), "")


def elements_of_keys(size: int, keys: int) -> list[int]:
    """One element each, and what is left in parts of 1, 3, 5 and so on: the last key is about twice as large as they
    are on average, as the parameters of a model differ."""
    left = size // 4 - keys
    ends = [left * i * i // keys**2 for i in range(keys + 1)]
    return [1 + end - before for before, end in zip(ends, ends[1:])]


def store_text(options: argparse.Namespace, ports: list[int]) -> str:
    """`ports`: of the workers and then of the servers."""
    lines = ["cluster: bench", "backend: kvstore", "nodes:"]
    lines += [entry(node_name(i), ports[i]) for i in range(options.workers)]
    lines += ["kvstore:", f"  type: {options.type}", f"  replicas: {options.replicas}"]
    lines += ["  lost_after_ms: 30s"]  # a machine that is busy with other things is no reason to leave a process out
    lines += [f"  compression: {{type: {options.compression}}}"] if options.compression != "none" else []
    lines += ["  servers:"] if options.servers else []
    lines += [f"  {entry(f's{i + 1}', ports[options.workers + i])}" for i in range(options.servers)]
    lines += [f"transport: {{same_host: {same_host(options.transport)}}}", "security: {mode: insecure}"]
    return "\n".join([*lines, "log: {level: warn}", ""])


def store_group(options: argparse.Namespace, file: str) -> Group:
    """Servers last, so that workers end before them."""
    elements = elements_of_keys(options.bytes, options.keys)
    names = [node_name(i) for i in range(options.workers)] + [f"s{i + 1}" for i in range(options.servers)]
    jobs = []
    for core, name in enumerate(names):
        works = core < options.workers
        job: Json = {"kind": "store_worker" if works else "store_server", "config": file, "name": name}
        job |= {"elements": elements, "optimizer": options.optimizer} if works else {}
        job |= {"core": core} if options.ping_pong else {}
        jobs.append((job, works))
    return Group(jobs)


def start_peers(options: argparse.Namespace, folder: str) -> list[StepPeer]:
    peers = []
    if options.torch_python:
        peers.append(gloo(options.torch_python, options.gloo_script, options.workers, options.bytes, folder))
    if options.ps_lite:
        peers.append(ps_lite(options.ps_lite, options.workers, options.servers, options.bytes))
    return peers


def measure_in_turn(store: Series, raw: list[Series], peers: list[StepPeer], seconds: float) -> Json:
    """Store, bare sockets and peers in windows that take turns. Returns the noise."""
    for one in raw:
        one.group.run(seconds=0.05)
    first = store.group.run(count=WARM_UP).latency_us
    windows = window_count(seconds)
    length = seconds / windows
    count = count_for(min(length, SHORTEST), first)
    count = count_for(length, store.group.run(count=count).latency_us)
    watch = NoiseWatch()
    for index in range(windows):
        store.windows.append(store.group.run(count=count))
        watch.also_used(store.windows[-1].cpu_s)
        line = f"   window {index + 1}/{windows}  store {time_text(store.windows[-1].latency_us)}"
        for one in raw:
            one.windows.append(one.group.run(seconds=length))
            watch.also_used(one.windows[-1].cpu_s)
            line += f"  bare sockets {time_text(one.windows[-1].latency_us)}"
        for peer in (peer for peer in peers if peer.group):
            peer.run_window(length, watch)
            line += f"  {peer.name} {time_text(peer.windows_us[-1])}"
        if seconds > 1:
            say(line)
    noise = watch.judge(spread_of(store.range("latency_us")))
    for one in (store, *raw):
        one.memory = one.group.memory()
    return noise


def document_of(options: argparse.Namespace, store: Series, raw: list[Series], peers: list[StepPeer]) -> Json:
    """A "pull" of it is a push and the pull of the value after it; GB/s and CPU s/GB count the bytes of both."""
    found: Json = {"kind": "kvstore", **{key: getattr(options, key) for key in IDENTITY}}
    # Known by the same settings as documents that have neither.
    found |= {"keys": options.keys} if options.keys != 1 else {}
    found |= {"replicas": options.replicas} if options.replicas else {}
    found |= store.figures()
    # Medians, as a push that a busy machine let fail is sent again.
    pushes = store.values("pulls")
    found["pushed_bytes"] = ratios(store.values("bytes"), pushes)["median"] - options.bytes
    found["tcp_bytes"] = ratios(store.values("tcp_bytes"), pushes)["median"]
    for one in raw:
        found["raw"] = one.figures()
        found["latency_ratio_to_raw"] = ratios(store.values("latency_us"), one.values("latency_us"))
    for peer in peers:
        found[peer.key] = peer.figures()
        speed = None if peer.absent else ratios(peer.windows_us, store.values("latency_us"))
        found[f"ratio_to_{peer.key}"] = speed
    settings = machine_settings(store.group.facts[0])
    return {**found, "settings": {**settings, "congestion_control": store.memory[0]["congestion_control"]}}


def title_of(options: argparse.Namespace) -> str:
    def counted(number: int, thing: str) -> str:
        return f"{number} {thing}{'' if number == 1 else 's'}"

    words = [f"kvstore {size_text(options.bytes)}{f' in {options.keys} keys' if options.keys != 1 else ''}"]
    words += [counted(options.workers, "worker")]
    words += [counted(options.servers, "server") + (" with replicas" if options.replicas else "")]
    words += [options.type, options.transport]
    words += [one for one in (options.optimizer, options.compression) if one != "none"]
    return ", ".join(words + ["ping-pong"] * options.ping_pong)


def lines_of(document: Json) -> list[str]:
    sizes = [size_text(round(document[key])) for key in ("pushed_bytes", "tcp_bytes")]
    lines = [*figure_lines(document)]
    lines.append(f"  pushed            {sizes[0]} a push, {sizes[1]} of TCP for it and its answer")
    if "raw" in document:
        lines += ["bare-socket ping-pong in the same windows", *figure_lines(document["raw"])]
        lines.append(f"times its latency   {spread_text(document['latency_ratio_to_raw'])}")
    for key in (key for key in PEERS if key in document):
        peer = document[key]
        if "absent" in peer:
            lines.append(f"{PEERS[key]}: absent: {peer['absent']}")
            continue
        speed = f"speed of the store in its units {spread_text(document[f'ratio_to_{key}'])}"
        lines.append(f"{peer['name']}: {latency_text(peer['step_us'])}; {speed}")
    return lines


def run(options: argparse.Namespace) -> int:
    if options.device:
        options.servers = 0 if options.type == "local" else options.servers
        text = store_text(options, free_ports(options.workers + options.servers))
        roles = bench_train.Roles("kvstore", text, options.workers, servers=options.servers, type=options.type)
        return bench_train.run(options, roles)
    options.bytes = max(options.bytes // 4 * 4, 4)
    if problem := problem_of(options):
        raise WrongUsage(problem)
    # A worker has parameters, a gradient and a value that arrives; the servers together have values, sums, the state of
    # the optimizer and what is being received and sent, and replicas of it.
    require_memory((3 * options.workers + 5 * (1 + options.replicas)) * options.bytes)
    title = title_of(options)
    say(title)
    text = store_text(options, free_ports(options.workers + options.servers))
    with tempfile.TemporaryDirectory(prefix="dpwa-bench-") as folder, contextlib.ExitStack() as stack:
        file = stack.enter_context(cluster_file(text))
        store = Series("store", store_group(options, file))
        stack.enter_context(closing(store.group))
        raw = []
        if options.ping_pong:
            raw.append(Series("raw", raw_group(Topology(options.bytes, ping_pong=True), "ping_pong")))
            stack.enter_context(closing(raw[0].group))
        peers = start_peers(options, folder)
        stack.enter_context(closing(*peers))
        noise = measure_in_turn(store, raw, peers, options.seconds)
        document = {**document_of(options, store, raw, peers), "noise": noise}
    return print_result(document, options.json, lambda one: [title, *lines_of(one)])
