"""dpwa-bench memory: GB/s of the passes over vectors that dpwa makes, and of plain ones."""

from __future__ import annotations

import argparse

from lib.bench_options import size, text_table, within
from lib.bench_processes import Json, Process, closing, cores, machine_settings, program, require_memory, say
from lib.bench_results import size_text
from lib.bench_statistics import NoiseWatch, range_of, spread_of
from lib.bench_windows import print_result

HELP = "Throughput of this machine's memory: copy, blend, land"
MEANINGS = {
    "memcpy": "copy",
    "publish_copy": "copy into the next of three snapshot buffers",
    "new_buffer": "blend into another buffer, plain loop",
    "plain_difference": "land without statistics, plain loop",
    "checksum": "CRC32C",
    "delta": "blend in place, difference out of cache",
    "lerp": "blend in place, peer out of cache",
    "lerp_hot": "blend in place, peer in cache",
    "land_difference": "land, peer out of cache",
    "land_difference_hot": "land past the cache, peer in cache",
}
OF_FLOAT32 = ("memcpy", "publish_copy", "new_buffer", "plain_difference", "checksum")  # alone
DTYPES = ("float32", "float64", "float16", "bfloat16")
WINDOW_SECONDS = 0.06
VECTORS = 5  # that a thread has


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--bytes", type=size, default=10**8, metavar="SIZE",
                        help="Size of a vector, all threads together (100MB)")  # fmt: skip
    parser.add_argument("--threads", type=within(int, 1, 256),
                        help="Threads to measure besides one (one for each core)")  # fmt: skip
    parser.add_argument("--windows", type=within(int, 1, 1000), default=5, help="Windows of each pass (5)")
    parser.add_argument("--json", action="store_true", help="Print one JSON document instead of a table")


def passes(dtype: str, threads: int, size: int, windows: int) -> tuple[list[Json], Json]:
    """All of one dtype. Their windows take turns, so that a machine that drifts does so under all."""
    names = [name for name in MEANINGS if dtype == "float32" or name not in OF_FLOAT32]
    rates: dict[str, list[float]] = {name: [] for name in names}
    process = Process([program("dpwa-measure")], {"kind": "memory", "bytes": size, "threads": threads, "dtype": dtype})
    with closing(process):
        facts = process.receive()
        for _ in range(windows):
            for name in names:
                answer = process.ask({"do": name, "seconds": WINDOW_SECONDS})
                rates[name].append(sum(one["bytes"] / one["ns"] for one in answer["threads"]))
    found = []
    for name in names:
        range_ = range_of(rates[name])
        settings = {"name": name, "dtype": dtype, "threads": threads, "meaning": MEANINGS[name]}
        counted = {"count": windows, "gb_per_s": range_}
        found.append({**settings, "gb_per_s": range_["median"], "windows": counted})
    return found, facts


def lines_of(document: Json) -> list[str]:
    rows = []
    for one in document["results"]:
        range_ = one["windows"]["gb_per_s"]
        rates = [f"{range_[key]:.1f}" for key in ("median", "min", "max")]
        rows.append([one["name"], one["dtype"], str(one["threads"]), *rates, one["meaning"]])
    return [text_table(["pass", "dtype", "threads", "GB/s", "lowest", "highest", "meaning"], rows)]


def run(options: argparse.Namespace) -> int:
    require_memory(VECTORS * options.bytes)
    say(f"memory {size_text(options.bytes)}")
    results: list[Json] = []
    facts: Json = {}
    watch = NoiseWatch()
    for dtype in DTYPES:
        for threads in sorted({1, options.threads or cores()}):
            say(f"   {dtype}, {threads} thread{'s' if threads > 1 else ''}")
            found, facts = passes(dtype, threads, options.bytes, options.windows)
            results += found
    noise = watch.judge(max(spread_of(one["windows"]["gb_per_s"]) for one in results))
    head = {"kind": "memory", "bytes": options.bytes, "results": results}
    return print_result({**head, "noise": noise, "settings": machine_settings(facts)}, options.json, lines_of)
