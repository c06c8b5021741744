"""The wait of run.sh --detach: until every node that it started takes part in the training."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import subprocess
import time
from collections.abc import Mapping

from lib.messages import fail, say, show_end
from lib.run import Run

TAKES_PART = ("training", "finished")


def states_of(run: Run) -> dict[str, str]:
    """What the nodes say of themselves. The answer holds what other machines sent. A node without a network (backend
    "null") cannot be asked; it trains once it writes metrics."""
    states = {}
    if run.file["backend"] == "null":
        for name in run.nodes:
            with contextlib.suppress(OSError):
                if os.stat(f"{run.run_dir}/{name}.metrics.jsonl").st_mtime > run.began:
                    states[name] = "training"
        return states
    command = [run.cli, "status", "--config", run.cluster, "--json", "--timeout-ms", "1000"]
    with contextlib.suppress(OSError, ValueError, LookupError, TypeError, RecursionError):
        asked = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)
        for node in json.loads(asked.stdout)["nodes"]:
            if node["answered"] and node["status"]["state"] in (*TAKES_PART, "joining", "stale", "waiting"):
                states[node["name"]] = node["status"]["state"]
    return states


async def wait_for_nodes(run: Run, limit: int, codes: Mapping[str, int]) -> int:
    """Names the nodes that do not take part within `limit` seconds. `codes`: of nodes that have ended. Returns the
    exit code: 0 when all take part; 2 when all others ended with 2 (wrong usage or configuration); else 1."""
    ready, began, shown = set(), time.monotonic(), 0
    while True:
        states = await asyncio.to_thread(states_of, run)
        ready |= {name for name, state in states.items() if state in TAKES_PART and name not in codes}
        left = [name for name in run.nodes if name not in ready and name not in codes]
        waited = int(time.monotonic() - began)
        if not left or waited >= limit:
            break
        if waited >= shown + 2:
            shown = waited
            names = ", ".join(f"{name} ({states.get(name, 'no answer yet')})" for name in left[:8])
            say(f"{waited} s: waiting for {names}{f' and {len(left) - 8} more' if left[8:] else ''}")
        await asyncio.sleep(0.3)
    for name in left:
        fail(f"{name}: not ready after {limit} s ({states.get(name, 'no answer')}); the last line of {run.log(name)}:")
        show_end(run.log(name), 0, 1)
    failed = {codes.get(name) for name in run.nodes if name not in ready} - {0}
    if failed and (running := [name for name in run.nodes if name not in codes]):
        say(f"still running: {' '.join(running)}; {run.how_to_end}")
    return 0 if not failed else 2 if failed == {2} else 1
