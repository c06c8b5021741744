"""A network of the campaign: relay.py NAME=ADDRESS... makes a network namespace for each name, prefixed with
$DPWA_WHY_PREFIX, and carries packets between them. Lines of JSON from standard input say how: {"pair": [a, b],
"delay_s": s, "loss": share}, {"deaf": [a, b]}: a's connections to b carry nothing; {"down": a}; {"up": true}: all is well
again. Ends with its input. Needs root and /dev/net/tun; the kernel needs no netem."""

from __future__ import annotations

import fcntl
import heapq
import json
import os
import random
import select
import struct
import subprocess
import sys
import time
from typing import Any

TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 1, 0x1000
PORT = 24000  # where every process listens
TCP = 6


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True, timeout=120)


class Relay:
    def __init__(self, addresses: dict[str, str], prefix: str) -> None:
        self.names = {address: name for name, address in addresses.items()}
        self.spaces = [f"{prefix}{name}" for name in addresses]
        self.devices: dict[str, int] = {}
        self.waiting: list[tuple[float, int, str, bytes]] = []
        self.count = 0
        self.random = random.Random(1)
        self.heal()
        for index, (name, address) in enumerate(addresses.items()):
            space, device = f"{prefix}{name}", f"{prefix[-8:]}{index}"
            descriptor = os.open("/dev/net/tun", os.O_RDWR)
            fcntl.ioctl(descriptor, TUNSETIFF, struct.pack("16sH22x", device.encode(), IFF_TUN | IFF_NO_PI))
            os.set_blocking(descriptor, False)
            self.devices[name] = descriptor
            ip("netns", "add", space)
            ip("link", "set", device, "netns", space)
            ip("-n", space, "address", "add", f"{address}/24", "dev", device)
            ip("-n", space, "link", "set", "lo", "up")
            ip("-n", space, "link", "set", device, "up")

    def close(self) -> None:
        for space in self.spaces:
            subprocess.run(["ip", "netns", "delete", space], check=False, capture_output=True, timeout=120)

    def heal(self) -> None:
        self.pairs: dict[frozenset[str], dict[str, Any]] = {}
        self.deaf: set[tuple[str, str]] = set()
        self.down: set[str] = set()

    def obey(self, words: dict[str, Any]) -> None:
        if "pair" in words:
            self.pairs[frozenset(words["pair"])] = words
        elif "deaf" in words:
            self.deaf.add(tuple(words["deaf"]))
        elif "down" in words:
            self.down.add(words["down"])
        else:
            self.heal()

    def is_deaf(self, packet: bytes, sender: str, receiver: str) -> bool:
        if not self.deaf or packet[9] != TCP:
            return False
        to_port = struct.unpack_from("!H", packet, 4 * (packet[0] & 15) + 2)[0]
        return (sender, receiver) in self.deaf and to_port == PORT

    def carry(self, packet: bytes, sender: str) -> None:
        receiver = self.names.get(".".join(map(str, packet[16:20]))) if packet[0] >> 4 == 4 else None
        if receiver is None or {sender, receiver} & self.down or self.is_deaf(packet, sender, receiver):
            return
        link = self.pairs.get(frozenset((sender, receiver)), {})
        if self.random.random() < link.get("loss", 0):
            return
        if link.get("delay_s", 0) > 0:
            self.count += 1
            heapq.heappush(self.waiting, (time.monotonic() + link["delay_s"], self.count, receiver, packet))
        else:
            self.write(receiver, packet)

    def write(self, receiver: str, packet: bytes) -> None:
        try:
            os.write(self.devices[receiver], packet)
        except OSError:
            pass  # its interface is down, or its queue full

    def run(self) -> None:
        poll = select.poll()
        by_descriptor = {descriptor: name for name, descriptor in self.devices.items()}
        for descriptor in [*by_descriptor, sys.stdin.fileno()]:
            poll.register(descriptor, select.POLLIN)
        while True:
            wait_ms = 1000.0
            while self.waiting:
                wait_ms = 1000 * (self.waiting[0][0] - time.monotonic())
                if wait_ms > 0:
                    break
                _, _, receiver, packet = heapq.heappop(self.waiting)
                self.write(receiver, packet)
            for descriptor, _ in poll.poll(max(0.0, wait_ms if self.waiting else 1000)):
                if descriptor == sys.stdin.fileno():
                    words = os.read(descriptor, 65536)
                    if not words:
                        return
                    for line in words.splitlines():
                        self.obey(json.loads(line))
                    continue
                try:
                    for _ in range(64):
                        self.carry(os.read(descriptor, 65536), by_descriptor[descriptor])
                except BlockingIOError:
                    pass


if __name__ == "__main__":
    relay = Relay(dict(word.split("=") for word in sys.argv[1:]), os.environ["DPWA_WHY_PREFIX"])
    try:
        print("ready", flush=True)
        relay.run()
    finally:
        relay.close()
