"""TCP ports of loopback for programs that start nodes."""

from __future__ import annotations

import random
import socket

# Below the ports that the kernel gives to outgoing connections, and to servers that name none: a node that is started
# again must find its port as it left it. scripts/free_ports.py takes those above.
CANDIDATES = range(12000, 32000)

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


def free_ports(count: int) -> list[int]:
    found: list[int] = []
    for port in random.sample(CANDIDATES, len(CANDIDATES)):
        if len(found) == count:
            return found
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        if _reserve(port):
            found.append(port)
    raise OSError("no free ports")
