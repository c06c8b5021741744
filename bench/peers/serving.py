"""What the Python peers of the benchmark share."""

from __future__ import annotations

import json
import resource
import sys
from collections.abc import Callable
from typing import Any, Protocol


def processor_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


class Peer(Protocol):
    def ready(self) -> dict[str, Any]:
        """What to tell the caller about this peer, now that its job has begun."""

    def answer(self, command: dict[str, Any]) -> dict[str, Any]: ...


def send(document: dict[str, Any]) -> None:
    print(json.dumps(document), flush=True)


def serve(begin: Callable[[dict[str, Any]], Peer], name: str) -> int:
    """Reads a job, then commands, and answers each: one JSON document a line. Returns the exit code at the end of the
    input."""
    peer: Peer | None = None
    try:
        for line in sys.stdin:
            document = json.loads(line)
            if peer is None:
                peer = begin(document)
                send({"ready": True, **peer.ready()})
            else:
                send(peer.answer(document))
    except Exception as error:  # of any kind: the caller prints it
        send({"error": f"{name}: {error}"})
        return 1
    return 0
