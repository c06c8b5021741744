#!/usr/bin/env python3
"""The commands run.sh and stop.sh. Standard library only, Python 3.9: an installed dpwa has no more.

usage: supervise.py run|stop SCRIPT BINARIES RUNS STATES [ARGUMENTS of run.sh or stop.sh]

SCRIPT is the command as it was typed. Folders: BINARIES of the programs, RUNS of the runs, STATES of the records of
what runs.
"""

from __future__ import annotations

from lib import interrupts

if __name__ == "__main__":
    interrupts.end_at_once()  # also during the imports below

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Mapping

from lib.messages import Failure, UsageError, fail, ok, outputs, say, warn
from lib.processes import GRACE, Records, end_all, names_of, still_running
from lib.run import (TAKES_PART, Arguments, Once, Run, cli_of, config, refuse_unknown, run_folder, seconds, states_of,
                     wait_for_nodes)  # fmt: skip
from lib.supervisor import Supervisor, heeded


def run(script: str, binaries: str, runs: str, states: str, words: list[str]) -> int:
    parser, end = Arguments(), words.index("--") if "--" in words else len(words)
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--run-dir", action=Once)
    parser.add_argument("--detach", action="store_true")
    parser.add_argument("--wait", action=Once, type=seconds)
    options, unknown = parser.parse_known_args(words[:end])
    if unknown:
        refuse_unknown(script, words[:end], unknown, options.cluster, words[end + 1 :])
    options.only = list(dict.fromkeys(options.only))
    if options.wait is not None and not options.detach:
        raise UsageError("--wait goes with --detach")
    run = Run(script, binaries, runs, states, options, words[end + 1 :])
    limit = 60 + run.file["start_wait_ms"] // 1000 if options.wait is None else options.wait
    if options.detach and limit > 0 and run.file["backend"] != "null":
        # One that takes part before it is started is another process of that name. The new one could not listen
        # beside it, and the other one would be mistaken for it.
        states = states_of(run)
        if foreign := [name for name in run.nodes if states.get(name) in TAKES_PART]:
            asked = f"{run.cli} status --config {run.cluster}"
            raise Failure(f"already running, and not started by run.sh: {' '.join(foreign)} ({asked})")
    run.run_dir = run_folder(run.run_dir, runs)
    if options.detach:
        return detach(run, limit, f"run{'-' if options.only else ''}{','.join(options.only)}")
    return asyncio.run(Supervisor(run).supervise())


def detach(run: Run, limit: int, name: str) -> int:
    """A second process with a session of its own supervises the nodes, and writes to the log of that name. Until they
    take part, the first shows what that one says; its exit code comes after a zero byte."""
    log = run.log(name)
    try:
        output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
    except OSError as error:
        raise Failure(f"nothing was started, and {log} could not be written: {error.strerror}", 1) from None
    run.began = os.fstat(output).st_mtime
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.setsid()
        for target, source in enumerate((os.open(os.devnull, os.O_RDONLY), output, output)):
            os.dup2(source, target)
        os.close(reader)
        outputs.update({writer: outputs[2], 2: False})

        async def announce(codes: Mapping[str, int]) -> None:
            code, ends = 0, f"{run.how_to_end}, {log} tells how each ended"
            if limit == 0:
                ok(f"started, not waited for; {ends}")
            elif not run.nodes:
                ok(f"server(s) started: {' '.join(run.servers)}; {ends}")
            elif (code := await wait_for_nodes(run, limit, codes)) == 0:
                ok(f"all {len(run.nodes)} node(s) take part; {ends}")
            with contextlib.suppress(OSError):
                os.write(writer, b"\0%d" % code)
            del outputs[writer]
            os.close(writer)

        return asyncio.run(Supervisor(run).supervise(announce))
    os.close(writer)
    for number in heeded(signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit(143))
    try:
        while piece := os.read(reader, 1 << 16):
            text, end, code = piece.partition(b"\0")
            with contextlib.suppress(OSError):
                os.write(2, text)
            if end:
                return int(code)
    except KeyboardInterrupt:
        warn(f"interrupted: the nodes run on; {run.how_to_end}")
        raise
    return abs(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))  # it has said why it has started nothing


async def stop(script: str, binaries: str, runs: str, states: str, words: list[str]) -> int:
    parser = Arguments()
    parser.add_argument("--grace", action=Once, type=seconds)
    options = parser.parse_args(words)
    grace = GRACE if options.grace is None else options.grace
    records = Records(states, options.cluster)
    with await records.lock():
        supervisors = records.running("run")
        if not records.running("node") + records.running("server"):
            if not supervisors and not os.path.exists(options.cluster):
                raise UsageError(f"there is no file {options.cluster}, and nothing that was started for it")
            if not supervisors and os.access(cli := cli_of(binaries), os.X_OK):
                config(cli, "nodes", options.cluster)  # ends here when that is no cluster file
            ok("nothing of it runs")
        for kind in ("node", "server"):
            if not await end_all(records.running(kind), grace):
                return 1
    if left := await still_running(supervisors, 2):
        say(f"waiting for run.sh (pid {left[0].pid}), which writes down how they ended")
        if left := await still_running(left, 8):
            warn(f"run.sh (pid {names_of(left)}) has not ended within 10 s: its log may not be whole")
    with await records.lock():
        records.forget()
    return 0


def main() -> int:
    command, script, *places = sys.argv[1:6]
    arguments = sys.argv[6:]
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # where it is ignored, nobody learns how a process ended
    try:
        interrupts.raise_again()
        if command == "run":
            return run(script, *places, arguments)
        return asyncio.run(stop(script, *places, arguments))
    except (Failure, OSError) as error:
        fail(f"{error}; see {os.path.basename(script)} --help" if isinstance(error, UsageError) else str(error))
        return error.code if isinstance(error, Failure) else 1
    except KeyboardInterrupt:
        return 130
    finally:
        interrupts.end_at_once()


if __name__ == "__main__":
    sys.exit(main())
