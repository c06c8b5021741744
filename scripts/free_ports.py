#!/usr/bin/env python3
"""Prints the first of COUNT consecutive TCP ports that are free on loopback.

usage: free_ports.py COUNT
"""

from __future__ import annotations

import random
import socket
import sys

# Above those of lib/ports.py and dpwa/net/free_ports.cpp, below those that the kernel hands out: nothing here reserves a
# port until its node listens.
LOWEST, HIGHEST = 32000, 32768
ATTEMPTS = 200


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def main() -> int:
    if len(sys.argv) != 2 or not sys.argv[1].isdigit():
        print(__doc__, file=sys.stderr)
        return 2
    count = int(sys.argv[1])
    for _ in range(ATTEMPTS):
        base = random.randrange(LOWEST, HIGHEST - count)
        if all(is_free(port) for port in range(base, base + count)):
            print(base)
            return 0
    print(f"failed: no {count} free ports between {LOWEST} and {HIGHEST}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
