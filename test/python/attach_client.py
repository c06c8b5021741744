"""A trainer in plain Python that knows nothing but "Attached trainers" of docs/PROTOCOL.md: it fits a line to points, under
a running `dpwa node`. usage: attach_client.py CLUSTER NODE PORT STEPS FIRST-X"""

from __future__ import annotations

import json
import mmap
import os
import socket
import struct
import sys
from typing import Any


def crc32c(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


class Node:
    """The node process, and the parameters, as `tensors`: views of memory that both have. `tensors`: name, shape."""

    def __init__(self, cluster: str, name: str, port: int, tensors: list[tuple[str, list[int]]]) -> None:
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        digest = crc32c(f"{cluster}\0{name}".encode())
        self.socket.connect(f"\0dpwa-node-{os.geteuid()}-{port}-{digest:08x}")
        # Any user of the host can bind this name.
        _, user, _ = struct.unpack("=iII", self.socket.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
        if user != os.geteuid():
            raise RuntimeError("the node process belongs to another user")
        told = [{"name": name, "dtype": "float32", "rule": "interpolate", "shape": shape} for name, shape in tensors]
        answer, descriptors = self.ask_for_memory({"do": "attach", "protocol": 1, "cluster": cluster, "node": name,
                                                   "process": os.getpid(), "tensors": told})  # fmt: skip
        memory = memoryview(mmap.mmap(descriptors[0], answer["bytes"]))
        os.close(descriptors[0])
        self.tensors = {}
        for (label, shape), offset in zip(tensors, answer["offsets"]):
            size = 4
            for extent in shape:
                size *= extent
            self.tensors[label] = memory[offset : offset + size].cast("f")

    def ask_for_memory(self, request: dict[str, Any]) -> tuple[dict[str, Any], list[int]]:
        text = json.dumps(request).encode()
        self.socket.sendall(struct.pack("=I", len(text)) + text)
        head, descriptors, _, _ = socket.recv_fds(self.socket, 4, 1)
        head += self.read(4 - len(head))
        answer = json.loads(self.read(struct.unpack("=I", head)[0]))
        if "error" in answer:
            self.socket.close()
            raise RuntimeError(answer["error"])
        return answer, descriptors

    def read(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            part = self.socket.recv(size - len(data))
            if not part:
                raise RuntimeError("the node process has ended")
            data += part
        return data

    def ask(self, what: str, **more: Any) -> dict[str, Any]:
        return self.ask_for_memory({"do": what, **more})[0]


def main() -> None:
    cluster, name, port, steps, first = sys.argv[1:]
    node = Node(cluster, name, int(port), [("slope", [1]), ("offset", [])])
    slope, offset = node.tensors["slope"], node.tensors["offset"]
    slope[0] = offset[0] = float(first)
    node.ask("start", resume=None)
    node.ask("show", name="first", value=float(first))
    print(json.dumps({"start": [slope[0], offset[0]]}), flush=True)
    points = [(x, 3 * x - 1) for x in (float(first), float(first) + 1)]  # y = 3 x - 1, seen at two places
    blends = made = 0
    while made < int(steps) or (not blends and made < 50 * int(steps)):
        faults = [(slope[0] * x + offset[0] - y, x) for x, y in points]
        answer = node.ask("send", loss=sum(fault * fault for fault, _ in faults) / 2)
        slope[0] -= 0.1 * sum(fault * x for fault, x in faults)
        offset[0] -= 0.1 * sum(fault for fault, _ in faults)
        report = answer["report"] or node.ask("wait")["report"]
        made, blends = made + 1, blends + (report["outcome"] == "mixed")
    ended = node.ask("finish")
    node.socket.close()
    print(json.dumps({"steps": made, "blends": blends, "clock": ended["state"]["clock"], **ended["finished"],
                      "model": [slope[0], offset[0]]}))  # fmt: skip


if __name__ == "__main__":
    main()
