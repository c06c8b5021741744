"""dpwa-bench pull: nodes that pull as training does, in turn with bare sockets."""

from __future__ import annotations

import argparse
import contextlib
from dataclasses import dataclass
from typing import Any

from lib.bench_cluster import NodeSettings, node_file, node_name
from lib.bench_options import SECONDS, WrongUsage, add_choice, size, within
from lib.bench_processes import Group, Json, closing, machine_settings, require_memory, say
from lib.bench_results import size_text
from lib.bench_statistics import ratios
from lib.bench_windows import Series, add_common, figure_lines, measure, print_result, spread_text
from lib.ports import free_ports

HELP = "Node processes on loopback that pull through the code that training uses"
MIB = 1024.0 * 1024.0
LEAST_FOR_MEMORY = 1_000_000  # bytes of parameters
SMALL_MODEL = 200
LEAST_TCP_SHARE = 0.2  # int8 moves a quarter of the float32 bytes, and a handover of memory next to none
BARE = {"raw": "bare sockets", "checked_raw": "bare sockets that check and land new versions"}


@dataclass
class Topology:
    """Which node pulls from which."""

    bytes: int
    pairs: int = 1  # one node of a pair pulls, the other serves
    all_pull: int = 0  # instead of pairs: nodes that all pull, each from a random one
    ping_pong: bool = False  # measure latency alone: node i keeps to core i

    @property
    def nodes(self) -> int:
        return self.all_pull or 2 * self.pairs

    @property
    def pulling_nodes(self) -> int:
        return self.all_pull or self.pairs

    def pulls(self, node: int) -> bool:
        return bool(self.all_pull) or node % 2 == 0

    def partner(self, node: int) -> int | None:
        """The node that `node` always pulls from; None: any."""
        return None if self.all_pull else node ^ 1

    def job(self, node: int, **more: Any) -> tuple[Json, bool]:
        return {**more, **({"core": node} if self.ping_pong else {})}, self.pulls(node)


def pull_group(topology: Topology, file: str, blend: bool, instruction_set: str | None) -> Group:
    jobs = []
    for node in range(topology.nodes):
        partner = topology.partner(node)
        # A PeerId counts the other nodes of the file in their order.
        peer = None if partner is None else partner if partner < node else partner - 1
        facts = {"name": node_name(node), "tensors": [["x", topology.bytes // 4]], "blend": blend, "peer": peer}
        jobs.append(topology.job(node, kind="pull", config=file, **facts))
    return Group(jobs, instruction_set)


def raw_group(topology: Topology, mode: str, instruction_set: str | None = None) -> Group:
    ports = free_ports(topology.nodes)
    jobs = []
    for node in range(topology.nodes):
        facts = {"bytes": topology.bytes, "index": node, "ports": ports, "peer": topology.partner(node)}
        jobs.append(topology.job(node, kind="raw", mode=mode, pulls=topology.pulls(node), **facts))
    return Group(jobs, instruction_set)


def raw_memory(topology: Topology, mode: str) -> int:
    served = 3 if mode == "checked" else 1
    return topology.bytes * sum(served + topology.pulls(node) for node in range(topology.nodes))


def buffers(blend: bool) -> int:
    """Full-size buffers of a node: three snapshots, the landing, and the parameters when it blends."""
    return 5 if blend else 4


def memory_beyond(nodes: list[Json], small: list[Json], in_buffers: int, chunk_bytes: int) -> float:
    """Bytes that a node takes beside its full-size buffers, most of all nodes: its peak without the pages that it maps
    of its peers' snapshots, less the buffers, less the same of a node with a model of 200 bytes (so that the code does
    not count), plus the staging buffer, which both have."""
    own = [[one["peak_kib"] - one["peers_kib"] for one in each] for each in (nodes, small)]
    return max(1024 * (one - other) for one, other in zip(*own)) - in_buffers + chunk_bytes


def transport_in_force(tcp_bytes: float, parameter_bytes: float) -> str:
    """The path that the parameters took, by what the kernel counted on TCP connections."""
    return "tcp" if tcp_bytes >= LEAST_TCP_SHARE * parameter_bytes else "same_host"


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--bytes", type=size, default=10**8, metavar="SIZE",
                        help="Size of the float32 parameters (100MB)")  # fmt: skip
    parser.add_argument("--pairs", type=within(int, 1, 32), help="Pairs of nodes, one of which pulls (1)")
    parser.add_argument("--all-pull", type=within(int, 2, 64), help="Instead: nodes that all pull from each other")
    parser.add_argument("--instruction-set", metavar="avx512|avx2|baseline",
                        help="Vector instructions of the nodes (the best of the processor)")  # fmt: skip
    add_common(parser, SECONDS)
    add_choice(parser, "--transport", ("tcp", "same_host"), "How parameters travel")
    parser.add_argument("--encoding", default="fp32", help="transport.encoding of the nodes (fp32)")
    parser.add_argument("--security", default="insecure", help="security.mode of the nodes (insecure)")
    parser.add_argument("--key-file", default="", help="The key file of psk (a key of this run)")
    add_choice(parser, "--checksum", ("on", "off"), "transport.checksum of the nodes")
    parser.add_argument("--blend", action="store_true", help="Blend what has landed as a part of every pull")
    parser.add_argument("--with-raw", action="store_true",
                        help="Also the same by bare sockets, window by window in turn, and the ratio")  # fmt: skip
    parser.add_argument("--with-checked-raw", action="store_true",
                        help="Likewise bare sockets that land new versions, with checksums: the nearer limit")  # fmt: skip
    parser.add_argument("--ping-pong", action="store_true",
                        help="For the latency of small sizes: each node on a core of its own, and bare sockets with as "
                        "many threads as dpwa")  # fmt: skip


def settings_of(options: argparse.Namespace, group: Group, ours: Series) -> Json:
    pulls = sum(window.pulls for window in ours.windows)
    in_buffers = buffers(options.blend) * options.bytes
    return {
        **machine_settings(group.facts[0]),
        "congestion_control": ours.memory[0]["congestion_control"],
        "chunk_bytes": group.facts[0]["chunk_bytes"],
        "requested_transport": options.transport,
        "tcp_bytes_per_pull": sum(ours.values("tcp_bytes")) / pulls if pulls else 0,
        "bytes_per_pull": sum(ours.values("bytes")) / pulls if pulls else 0,
        "huge_pages": min(1.0, *(1024 * node["huge_kib"] / in_buffers for node in ours.memory)),
    }


def document_of(options: argparse.Namespace, topology: Topology, series: list[Series], small: list[Json]) -> Json:
    ours, group = series[0], series[0].group
    found: Json = {
        **{"kind": "pull", "bytes": options.bytes, "nodes": topology.nodes, "pulling_nodes": topology.pulling_nodes},
        "transport": transport_in_force(sum(ours.values("tcp_bytes")), sum(ours.values("bytes"))),
        **{key: getattr(options, key) for key in ("encoding", "security", "checksum", "blend", "seconds")},
        **ours.figures(),
    }
    found["memory_beyond_parameters_mib"] = None
    if small:
        in_buffers = buffers(options.blend) * options.bytes
        beyond = memory_beyond(ours.memory, small, in_buffers, group.facts[0]["chunk_bytes"])
        found["memory_beyond_parameters_mib"] = beyond / MIB
    for other in series[1:]:
        found[other.name] = other.figures()
        for figure, key in (("gb_per_s", "ratio_to"), ("latency_us", "latency_ratio_to")):
            found[f"{key}_{other.name}"] = ratios(ours.values(figure), other.values(figure))
    found["ping_pong"] = options.ping_pong
    found["settings"] = settings_of(options, group, ours)
    return found


def title_of(options: argparse.Namespace, topology: Topology) -> str:
    nodes = f"{topology.nodes} nodes{' all pulling' if topology.all_pull else ''}"
    words = [f"pull {size_text(options.bytes)}", nodes, options.transport, options.encoding]
    words += [f"checksum {options.checksum}", options.security]
    return ", ".join(words + ["blending"] * options.blend + ["ping-pong"] * options.ping_pong)


def lines_of(document: Json) -> list[str]:
    lines = []
    if document["transport"] != document["settings"]["requested_transport"]:
        lines.append(f"  in force          {document['transport']}")
    lines += figure_lines(document)
    if document["memory_beyond_parameters_mib"] is not None:
        lines.append(f"  beyond buffers    {document['memory_beyond_parameters_mib']:.2f} MiB a node")
    for name in (name for name in BARE if name in document):
        of = [spread_text(document[f"{key}_{name}"], "{:.3f}".format) for key in ("ratio_to", "latency_ratio_to")]
        lines += [f"{BARE[name]}, in the same windows", *figure_lines(document[name])]
        lines.append(f"of their throughput {of[0]}, of their latency {of[1]}")
    return lines


def run(options: argparse.Namespace) -> int:
    if options.pairs and options.all_pull:
        raise WrongUsage("--all-pull excludes --pairs")
    if options.ping_pong and options.with_checked_raw:
        raise WrongUsage("--ping-pong excludes --with-checked-raw")
    options.bytes = max(options.bytes // 4 * 4, 4)
    topology = Topology(options.bytes, options.pairs or 1, options.all_pull or 0, options.ping_pong)
    modes = {"raw": "ping_pong" if options.ping_pong else "in_place", "checked_raw": "checked"}
    modes = {name: mode for name, mode in modes.items() if getattr(options, f"with_{name}")}
    ours = topology.nodes * buffers(options.blend) * options.bytes
    require_memory(ours + sum(raw_memory(topology, mode) for mode in modes.values()))
    title = title_of(options, topology)
    say(title)
    of_file = ("transport", "encoding", "security", "key_file", "checksum")
    settings = NodeSettings(**{key: getattr(options, key) for key in of_file})
    small: list[Json] = []
    with node_file(settings, free_ports(topology.nodes)) as file, contextlib.ExitStack() as stack:
        of_nodes = (file, options.blend, options.instruction_set)
        if options.bytes >= LEAST_FOR_MEMORY:  # peaks of the same nodes with next to no parameters
            group = pull_group(Topology(**{**vars(topology), "bytes": SMALL_MODEL}), *of_nodes)
            with closing(group):
                group.run(seconds=0.02)
                small = group.memory()
        series = [Series("dpwa", pull_group(topology, *of_nodes))]
        stack.enter_context(closing(series[0].group))
        for name, mode in modes.items():
            series.append(Series(name, raw_group(topology, mode, options.instruction_set)))
            stack.enter_context(closing(series[-1].group))
        noise = measure(series, options.seconds)
        document = {**document_of(options, topology, series, small), "noise": noise}
    return print_result(document, options.json, lambda one: [title, *lines_of(one)])
