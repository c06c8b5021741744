"""What one run.sh is to start: its arguments, the cluster file, the folder of the run; and whether its nodes take part
in the training, for which --detach waits."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

from lib.messages import Failure, UsageError, fail, say, show_end, tell
from lib.processes import Records, names_of

TAKES_PART = ("training", "finished")
CHECKS_AT_ONCE = 16


class Arguments(argparse.ArgumentParser):
    """Of a command for one cluster file. Says in one line what is wrong."""

    def __init__(self) -> None:
        super().__init__(add_help=False, allow_abbrev=False)
        self.add_argument("cluster", metavar="CLUSTER.yaml")

    def error(self, message: str) -> NoReturn:
        raise UsageError(message)


class Once(argparse.Action):
    def __call__(self, _: Any, options: Any, value: Any, name: str | None = None) -> None:
        if getattr(options, self.dest) is not None:
            raise UsageError(f"{name} is given twice; accepted: once")
        setattr(options, self.dest, value)


def seconds(text: str) -> int:
    if not re.fullmatch("[0-9]{1,6}", text):
        raise argparse.ArgumentTypeError(f"takes whole seconds, not '{text}'")
    return int(text)


def refuse_unknown(script: str, words: list[str], unknown: list[str], cluster: str, arguments: list[str]) -> NoReturn:
    """Of `words`, which came before `--`. The command with them after it is shown; in another order than that of its
    usage it is not known which word is the cluster file."""
    if not unknown[0].startswith("-"):
        raise UsageError(f"unrecognized arguments: {' '.join(unknown)}")
    first = words.index(unknown[0])
    known, left = words[:first], list(unknown)
    for word in words[first:]:
        if left and word == left[0]:
            left.pop(0)
        else:
            known.append(word)
    in_order = cluster in words[:first]
    command = [script, *known, "--", *unknown, *arguments] if in_order else [script, "CLUSTER.yaml", "--", "OPTIONS"]
    option = unknown[0].partition("=")[0]
    raise UsageError(f"{option} is no option of run.sh, and those of the trainer come after --: {shlex.join(command)}")


def run_folder(wanted: str | None, runs: str) -> str:
    """The folder of the run, as an absolute path. Without a wish a new one, named for the time and linked as latest."""
    try:
        os.makedirs(wanted or runs, exist_ok=True)
        if not wanted:
            base = time.strftime("%Y%m%d-%H%M%S")
            for name in (base, *(f"{base}-{count}" for count in range(2, 100))):
                with contextlib.suppress(FileExistsError):
                    os.mkdir(wanted := os.path.join(runs, name))
                    break
            Path(runs, "latest").unlink(missing_ok=True)
            Path(runs, "latest").symlink_to(name)
    except OSError as error:
        raise Failure(f"there can be no folder of the run: {wanted or runs}: {error.strerror}") from None
    return os.path.realpath(wanted)


def cli_of(binaries: str) -> str:
    return os.environ.get("DPWA_CLI") or f"{binaries}/dpwa"


def config(cli: str, *words: str) -> bytes:
    """What that command of `dpwa config` prints; what it says of a file that is in order is shown for `nodes` only."""
    asked = subprocess.run([cli, "config", *words], capture_output=True, check=False, close_fds=False)
    if asked.stderr and (asked.returncode != 0 or words[0] == "nodes"):
        tell(asked.stderr.decode("utf-8", "replace").rstrip("\n"))
    if asked.returncode != 0:
        sys.exit(2)
    return asked.stdout


def check_each(cli: str, cluster: str, names: list[str]) -> None:
    """`dpwa config check` as each of these nodes and servers: also its own certificate, key and addresses. What is
    wrong for several of them alike is shown once."""
    faults: dict[str, None] = {}
    failed = False
    for first in range(0, len(names), CHECKS_AT_ONCE):
        checks = [
            subprocess.Popen([cli, "config", "check", cluster, "--name", name], stdin=subprocess.DEVNULL,
                             stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
            for name in names[first : first + CHECKS_AT_ONCE]
        ]  # fmt: skip
        for check in checks:
            said = check.communicate()[1].decode("utf-8", "replace")
            if check.returncode != 0:
                failed = True
                faults.update(dict.fromkeys(said.splitlines()))
    for fault in faults:
        tell(fault)
    if failed:
        sys.exit(2)


class Run:
    """What one run.sh starts."""

    def __init__(self, script: str, binaries: str, runs: str, states: str, options: Any, arguments: list[str]) -> None:
        """Refuses what is wrong before anything is written."""
        cluster, only = options.cluster, options.only
        # What is open in this process alone, such as <(...) of a shell, counts as a pipe.
        piped = cluster.startswith(("/dev/stdin", "/dev/fd/", "/proc/self/fd/")) or Path(cluster).is_fifo()
        if piped and only:
            accepted = "the cluster file of the run to continue, such as runs/latest/cluster.yaml, not a pipe"
            raise UsageError(f"--only takes {accepted}")
        if given := {word.partition("=")[0] for word in arguments} & {"--config", "--name", "--run-dir"}:
            raise UsageError(f"{min(given)} is run.sh's to give; its own options come before --")
        self.arguments = arguments  # of the trainers
        self.trainer = os.environ.get("DPWA_TRAIN") or f"{binaries}/dpwa-train"
        self.cli = cli_of(binaries)
        for binary in (self.trainer, self.cli):
            if not os.access(binary, os.X_OK):
                how = "build it (scripts/build.sh), or name one by DPWA_TRAIN and DPWA_CLI"
                raise Failure(f"there is no {binary}: {how}")
        self.file = json.loads(config(self.cli, "nodes", cluster, "--local", "--json"))
        self.cores = {entry["name"]: entry["cores"] for entry in self.file["nodes"] + self.file["servers"]}
        if not self.cores:
            raise UsageError(f"no node of {cluster} lives on this host")
        if unknown := [name for name in only if name not in self.cores]:
            raise UsageError(f"--only {unknown[0]}: the nodes here are {' '.join(self.cores)}")
        self.nodes, self.servers = (
            [name for name in only or self.cores if any(name == entry["name"] for entry in self.file[kind])]
            for kind in ("nodes", "servers")
        )
        self.began = 0.0  # as the file system tells the time; metrics that are older are of another run
        self.run_dir = run_folder(options.run_dir, runs) if piped else options.run_dir
        self.cluster = f"{self.run_dir}/cluster.yaml" if piped else cluster
        self.records = Records(states, self.cluster)
        self.how_to_end = f"{os.path.dirname(script) or '.'}/stop.sh {self.cluster} ends them"
        self.refuse_second_start()
        if piped:
            self.keep_copy()
            say(f"the cluster file came through a pipe: {self.cluster}")
        check_each(self.cli, self.cluster, self.nodes + self.servers)  # relative paths in it start at the copy
        if only and not self.run_dir:
            self.run_dir = self._run_to_continue(runs)

    def _run_to_continue(self, runs: str) -> str | None:
        """The folder of the others that run; else that of the latest run of the file, where the trainer resumes it."""
        for other in self.records.running("node") + self.records.running("server"):
            return other.run_dir
        latest = Path(runs, "latest")
        with contextlib.suppress(OSError, ValueError):
            if "--resume" in self.arguments and latest.joinpath("cluster.yaml").read_text("utf-8") == self.file["text"]:
                return str(latest)
        return None

    def log(self, name: str) -> str:
        return f"{self.run_dir}/{name}.log"

    def threads(self, name: str) -> int:
        """As many as cores; a node without cores gets its share of the machine, or of this command's CPU quota."""
        processors = self.file["processors"]
        return min(len(self.cores[name]), processors) or max(1, processors // len(self.file["nodes"]))

    def refuse_second_start(self) -> None:
        if running := self.records.running("server", self.servers) + self.records.running("node", self.nodes):
            raise Failure(f"already running: {names_of(running)} ({self.how_to_end})")

    def keep_copy(self) -> None:
        """The cluster file, in the folder of the run."""
        copy, text = Path(self.run_dir, "cluster.yaml"), self.file["text"].encode()
        try:
            if not (copy.exists() and copy.read_bytes() == text):
                copy.write_bytes(text)
        except OSError as error:
            raise Failure(f"nothing was started: {copy}: {error.strerror}") from None


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
