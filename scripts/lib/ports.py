"""TCP ports of loopback for programs that start nodes.

usage: ports.py COUNT   prints the first of COUNT consecutive free ports
"""

from __future__ import annotations

import random
import socket
import sys
from pathlib import Path

# Below the ports that the kernel gives to outgoing connections, and to servers that name none: a node that is started
# again must find its port as it left it. Nothing reserves the consecutive ones until their nodes listen.
RESERVED, CONSECUTIVE = range(12000, 32000), range(32000, 32768)

_reservations: list[socket.socket] = []


def _reserve(port: int) -> bool:
    """Until this process ends, against all that ask for free ports, dpwa/net/free_ports.cpp included: the node of a
    port may not listen yet, or be down for a moment."""
    name = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    try:
        name.bind(f"\0dpwa-port-{port}")
    except OSError:
        name.close()
        return False
    _reservations.append(name)
    return True


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def free_ports(count: int) -> list[int]:
    found: list[int] = []
    for port in random.sample(RESERVED, len(RESERVED)):
        if len(found) == count:
            return found
        if _is_free(port) and _reserve(port):
            found.append(port)
    raise OSError("no free ports")


def first_free_port(count: int) -> int:
    """Of that many in a row. Ends the program where there are none."""
    for first in random.sample(CONSECUTIVE, len(CONSECUTIVE)):
        if first + count <= CONSECUTIVE.stop and all(map(_is_free, range(first, first + count))):
            return first
    sys.exit(f"failed: no {count} free ports between {CONSECUTIVE.start} and {CONSECUTIVE.stop}")


def main() -> int:
    if len(sys.argv) != 2 or not sys.argv[1].isdigit():
        print(__doc__, file=sys.stderr)
        return 2
    print(first_free_port(int(sys.argv[1])))
    return 0


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    from lib.output import checked

    sys.exit(checked(main))
