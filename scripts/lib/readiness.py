"""The wait of run.sh --detach: until every node that it started takes part in the training."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import subprocess
import time
from collections.abc import Mapping

from lib.messages import Failure, fail, say, tell
from lib.run import Run
from lib.supervisor import how_it_ended


class Readiness:
    """To be made before anything is started. `limit`: the longest wait in seconds; None: the default."""

    def __init__(self, run: Run, limit: int | None) -> None:
        self._run = run
        self._since = 0.0
        self._states: dict[str, str] = {}  # what a node says of itself: joining, training, …
        backend = re.search(r'^backend: "?([a-z]*)', run.effective, re.MULTILINE)
        self._backend = backend[1] if backend else ""
        section = self._backend if self._backend in ("collective", "kvstore") else "gossip"
        start_wait = re.search(rf"^{section}:(?:\n .*)*?\n +start_wait_ms: (\d+)", run.effective, re.MULTILINE)
        self.limit = 60 + (int(start_wait[1]) + 999 if start_wait else 0) // 1000 if limit is None else limit

    def refuse_foreign_nodes(self) -> None:
        """A node that takes part before it is started is another process of that name. The new one could not listen
        beside it, and the other one would be mistaken for it."""
        if self._backend == "null" or self.limit == 0:
            return
        self._ask_nodes()
        if foreign := [name for name in self._run.nodes if self._takes_part(name)]:
            asked = f"{self._run.cli} status --config {self._run.cluster}"
            raise Failure(f"already running, and not started by run.sh: {' '.join(foreign)} ({asked})")

    async def wait(self, codes: Mapping[str, int], since: float) -> int:
        """Names the nodes that do not take part within the time. `codes`: of nodes that have ended; `since`:
        metrics that are older are not theirs. Returns the exit code: 0 when all take part; 2 when all others ended
        with 2 (wrong usage or configuration); else 1."""
        self._since = since
        nodes, ready = self._run.nodes, set()
        began = shown = time.monotonic()
        while True:
            await asyncio.to_thread(self._ask_nodes)
            ready |= {name for name in nodes if name not in codes and self._takes_part(name)}
            left = [name for name in nodes if name not in ready and name not in codes]
            now = time.monotonic()
            if not left or now - began >= self.limit:
                break
            if now - shown >= 2:
                shown = now
                texts = [f"{name} ({self._states.get(name, 'no answer yet')})" for name in left]
                texts[8:] = [f"and {len(texts) - 8} more"] if len(texts) > 8 else []
                say(f"{int(now - began)} s: waiting for {', '.join(texts)}")
            await asyncio.sleep(0.3)
        failed = {name: codes.get(name) for name in nodes if name not in ready and codes.get(name) != 0}
        for name, code in failed.items():
            why = f"not ready after {self.limit} s ({self._states.get(name, 'no answer')})"
            log = self._run.log(name)
            fail(f"{name}: {why if code is None else how_it_ended(code)}; the last line of {log}:")
            tell(f"     {last_line(log)}")
        running = [name for name in nodes if name not in codes]
        if failed and running:
            say(f"still running: {' '.join(running)}; {self._run.how_to_end}")
        return 0 if not failed else 2 if set(failed.values()) == {2} else 1

    def _ask(self, *arguments: str) -> bytes:
        with contextlib.suppress(OSError):
            return subprocess.run([self._run.cli, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.DEVNULL, check=False).stdout  # fmt: skip
        return b""

    def _ask_nodes(self) -> None:
        """The answer holds what other machines sent."""
        if self._backend == "null":
            return
        self._states = states = {}
        with contextlib.suppress(ValueError, LookupError, TypeError, RecursionError):
            answer = self._ask("status", "--config", self._run.cluster, "--json", "--timeout-ms", "1000")
            for node in json.loads(answer)["nodes"]:
                with contextlib.suppress(LookupError, TypeError, AttributeError):
                    name, state = node["name"], node["status"]["state"]
                    states |= {name: state} if (name + state).isprintable() else {}

    def _takes_part(self, name: str) -> bool:
        """It trains, or has trained. A node without a network (backend "null") cannot be asked; it takes part once it
        writes metrics."""
        if self._backend != "null":
            return self._states.get(name) in ("training", "finished")
        with contextlib.suppress(OSError):
            return os.stat(f"{self._run.run_dir}/{name}.metrics.jsonl").st_mtime > self._since
        return False


def last_line(log: str) -> str:
    """That is not blank, without terminal control characters."""
    text = ""
    with contextlib.suppress(OSError), open(log, "rb") as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - 8192))
        text = file.read().decode("utf-8", "replace").replace("\r", "\n")
    lines = re.sub(r"[\0-\x08\x0b-\x1f\x7f]", "", text).split("\n")
    line = next((line for line in reversed(lines) if line.strip()), "(empty)")
    return line if len(line) <= 300 else line[:298].rsplit(" ", 1)[0] + " …"
