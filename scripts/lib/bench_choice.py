"""dpwa-bench choice: memory that a node keeps of its peers, and the time of choosing one."""

from __future__ import annotations

import argparse

from lib.bench_options import text_table, within
from lib.bench_processes import Json, Process, closing, machine_settings, program, require_memory, say
from lib.bench_results import size_text, time_text
from lib.bench_statistics import NoiseWatch, range_of, spread_of
from lib.bench_windows import print_result

HELP = "Memory that a node keeps of its peers, and the time of choosing one"
WINDOWS = 5
WINDOW_SECONDS = 0.2
LEAST_BYTES_A_PEER = 512  # whatever the allocator makes of it


def sizes(text: str) -> list[int]:
    return [within(int, 2, 1_000_000)(part) for part in text.split(",")]


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--nodes", type=sizes, default=[100, 1000, 10000], metavar="N,N,...",
                        help="Sizes of clusters (100,1000,10000)")  # fmt: skip
    parser.add_argument("--pulls", type=within(int, 1, 100_000), default=64,
                        help="Pulls of the node before the measurement (64)")  # fmt: skip
    parser.add_argument("--json", action="store_true", help="Print one JSON document instead of a table")


def choice(nodes: int, pulls: int) -> tuple[Json, Json]:
    process = Process([program("dpwa-measure")], {"kind": "choice", "nodes": nodes, "pulls": pulls})
    with closing(process):
        facts = process.receive()
        times = []
        for _ in range(1 + WINDOWS):
            answer = process.ask({"do": "choose", "seconds": WINDOW_SECONDS})
            times.append(answer["ns"] / answer["choices"])
    range_ = range_of(times[1:])  # the first does not count
    found = {"nodes": nodes, **{f"{key}_per_node": facts[key] for key in ("records", "bytes", "table_bytes")}}
    return {**found, "choose_ns": range_["median"], "windows": {"count": WINDOWS, "choose_ns": range_}}, facts


def lines_of(document: Json) -> list[str]:
    rows = []
    for one in document["results"]:
        memory = [size_text(round(one[key])) for key in ("bytes_per_node", "table_bytes_per_node")]
        times = [time_text(one["windows"]["choose_ns"][key] / 1000) for key in ("median", "min", "max")]
        rows.append([str(one["nodes"]), f"{one['records_per_node']:.1f}", *memory, *times])
    header = ["nodes", "peers known", "memory of a node", "member table"]
    return [text_table([*header, "time of a choice", "lowest", "highest"], rows)]


def run(options: argparse.Namespace) -> int:
    results: list[Json] = []
    facts: Json = {}
    watch = NoiseWatch()
    for nodes in options.nodes:
        require_memory(nodes * LEAST_BYTES_A_PEER)
        say(f"choice among {nodes} nodes")
        found, facts = choice(nodes, options.pulls)
        results.append(found)
    noise = watch.judge(max(spread_of(one["windows"]["choose_ns"]) for one in results))
    head = {"kind": "choice", "pulls_per_node": options.pulls, "results": results}
    return print_result({**head, "noise": noise, "settings": machine_settings(facts)}, options.json, lines_of)
