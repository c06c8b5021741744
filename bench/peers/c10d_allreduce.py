#!/usr/bin/env python3
"""Averages a float32 vector over processes on loopback by c10d's Gloo all-reduce, for comparison with dpwa.

usage: c10d_allreduce.py --nodes N --bytes BYTES [--seconds S]

Prints one JSON document. Of each window: bytes of vectors that were averaged and processor seconds, of all nodes
together, and nanoseconds.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from multiprocessing.connection import Connection
from pathlib import Path

import torch
import torch.distributed as dist
import torch.multiprocessing as processes
from serving import processor_seconds

WINDOWS = 5


def average(vector: torch.Tensor, nodes: int) -> None:
    dist.all_reduce(vector)
    vector.div_(nodes)


def window(vector: torch.Tensor, nodes: int, count: int) -> tuple[float, float]:
    """Seconds and processor seconds of `count` averages; the same count on every node."""
    dist.barrier()
    began, used = time.monotonic(), processor_seconds()
    for _ in range(count):
        average(vector, nodes)
    return time.monotonic() - began, processor_seconds() - used


def node(rank: int, nodes: int, size: int, seconds: float, store: str, results: Connection) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=nodes)
    vector = torch.full((size // 4,), 0.1)
    average(vector, nodes)  # connections are made, pages are there
    took = torch.tensor([window(vector, nodes, 2)[0] / 2])
    dist.all_reduce(took, dist.ReduceOp.MAX)
    count = max(1, int(seconds / WINDOWS / took.item()))
    results.send([(count, *window(vector, nodes, count)) for _ in range(WINDOWS)])
    dist.destroy_process_group()


def run_nodes(options: argparse.Namespace, store: str) -> list[list[tuple[int, float, float]]]:
    """The windows of every node: count, seconds, processor seconds."""
    context = processes.get_context("spawn")
    pipes = [context.Pipe(duplex=False) for _ in range(options.nodes)]
    arguments = (options.nodes, options.bytes, options.seconds, store)
    children = [
        context.Process(target=node, args=(rank, *arguments, pipe[1]), daemon=True) for rank, pipe in enumerate(pipes)
    ]
    for child in children:
        child.start()
    for _, end_of_child in pipes:
        end_of_child.close()
    windows = [pipe.recv() for pipe, _ in pipes]
    for child in children:
        child.join()
    return windows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, required=True)
    parser.add_argument("--bytes", type=int, required=True)
    parser.add_argument("--seconds", type=float, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="dpwa-c10d-") as folder:
        windows = run_nodes(options, str(Path(folder) / "store"))
    results = [
        {
            "bytes": windows[0][index][0] * options.nodes * options.bytes,
            "ns": 1e9 * max(node[index][1] for node in windows),
            "cpu_s": sum(node[index][2] for node in windows),
        }
        for index in range(WINDOWS)
    ]
    document = {"kind": "peer", "name": "c10d Gloo all-reduce", "bytes": options.bytes, "nodes": options.nodes}
    document |= {"windows": results, "torch": torch.__version__}
    print(json.dumps(document, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
