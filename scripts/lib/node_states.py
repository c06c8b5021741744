#!/usr/bin/env python3
"""Prints the nodes that answered `dpwa status --json`, read from standard input: NAME, a tab, STATE.

Exit code 0: what there was is printed; 1: that is no status document.
"""

from __future__ import annotations

import json
import sys


def states(document: object) -> list[tuple[str, str]]:
    """Name and state of each node that answered; the document holds what other machines sent."""
    nodes = document.get("nodes") if isinstance(document, dict) else None
    if not isinstance(nodes, list):
        raise ValueError("no list of nodes")
    found = []
    for node in nodes:
        status = node.get("status") if isinstance(node, dict) else None
        if isinstance(status, dict) and isinstance(node.get("name"), str) and isinstance(status.get("state"), str):
            found.append((node["name"], status["state"]))
    return found


def main() -> int:
    try:
        for name, state in states(json.load(sys.stdin)):
            if name.isprintable() and state.isprintable():
                print(f"{name}\t{state}")
    except ValueError as error:
        print(f"node_states.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
