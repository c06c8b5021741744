#!/usr/bin/env python3
"""The commands run.sh and stop.sh. Standard library only, Python 3.9: an installed dpwa has no more.

usage: supervise.py run|stop SCRIPT BINARIES RUNS STATES [ARGUMENTS of run.sh or stop.sh]

SCRIPT is the command as it was typed. Folders: BINARIES of the programs, RUNS of the runs, STATES of the records of
what runs.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path

from lib.messages import OUTPUT, Failure, UsageError, fail, ok, say, tell, warn
from lib.processes import GRACE, Records, end_all, names_of, still_running
from lib.readiness import Readiness
from lib.run import Run, Words, cli_of, local_names, run_folder, what_to_start
from lib.supervisor import Supervisor, heeded


def run(script: str, binaries: str, runs: str, states: str, arguments: list[str]) -> int:
    words = Words(arguments, ("--only", "--run-dir", "--wait"), ("--detach",))
    limit = words.seconds("--wait")
    run = what_to_start(script, binaries, runs, states, words)
    readiness = Readiness(run, limit) if "--detach" in words.options else None
    if readiness:
        readiness.refuse_foreign_nodes()
    if not run.run_dir and words.only:
        run.run_dir = run.records.run_dir()  # that of the others
    run.run_dir = run_folder(run.run_dir, runs)
    return detach(run, readiness, words.only) if readiness else asyncio.run(Supervisor(run).supervise())


def detach(run: Run, readiness: Readiness, only: list[str]) -> int:
    """A second process with a session of its own supervises the nodes. The first shows what that one says until they
    take part, and returns the exit code that comes after a zero byte."""
    log = run.log(f"run{'-' if only else ''}{','.join(only)}")
    try:
        output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
    except OSError as error:
        raise Failure(f"nothing was started, and {log} could not be written: {error.strerror}", 1) from None
    since = os.fstat(output).st_mtime
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.setsid()
        for target, source in enumerate((os.open(os.devnull, os.O_RDONLY), output, output)):
            os.dup2(source, target)
        os.close(reader)
        _, coloured = OUTPUT.get()
        OUTPUT.set((2, False))

        async def announce(codes: Mapping[str, int]) -> None:
            OUTPUT.set((writer, coloured))
            with contextlib.suppress(OSError):
                tell(Path(log).read_text("utf-8", "surrogateescape").replace("\0", ""), end="")
            code, ends = 0, f"{run.how_to_end}, {log} tells how each ended"
            if readiness.limit == 0:
                ok(f"started, not waited for; {ends}")
            elif not run.nodes:
                ok(f"server(s) started: {' '.join(run.servers)}; {ends}")
            else:
                code = await readiness.wait(codes, since)
                if code == 0:
                    ok(f"all {len(run.nodes)} node(s) take part; {ends}")
            tell(f"\0{code}", end="")
            os.close(writer)

        return asyncio.run(Supervisor(run).supervise(announce))
    os.close(writer)
    for number in heeded(signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit(143))
    try:
        while piece := os.read(reader, 1 << 16):
            text, end, code = piece.decode("utf-8", "surrogateescape").partition("\0")
            tell(text, end="")
            if end:
                return int(code)
    except KeyboardInterrupt:
        warn(f"interrupted: the nodes run on; {run.how_to_end}")
        raise
    if text := Path(log).read_text("utf-8", "surrogateescape"):  # why it has started nothing
        tell(text, end="")
    else:
        fail(f"nothing was started, and {log} could not be written")
    return abs(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))


async def stop(script: str, binaries: str, runs: str, states: str, arguments: list[str]) -> int:
    words = Words(arguments, ("--grace",))
    grace = words.seconds("--grace")
    records = Records(states, words.cluster)
    if not records.folder.is_dir():
        if not os.path.exists(words.cluster):
            raise UsageError(f"there is no file {words.cluster}, and nothing that was started for it")
        if os.access(cli := cli_of(binaries), os.X_OK):
            local_names(cli, words.cluster, None)  # it ends here when that is no cluster file
        ok("nothing of it runs")
        return 0
    with records.locked(5):  # a run.sh that starts nodes is done within that time
        nodes, servers, supervisors = records.names("node"), records.names("server"), records.supervisors()
        if servers:  # else run.sh would signal them as well, once the nodes have ended
            records.become_ender()
    found, ended = False, True
    for names in (nodes, servers):
        if running := records.running(names):
            found = True
            ended = await end_all(running, GRACE if grace is None else grace) and ended
    if not found:
        ok("nothing of it runs")
    if not ended:
        return 1
    if left := await still_running(supervisors, 2):
        say(f"waiting for run.sh (pid {left[0].pid}), which writes down how they ended")
        if left := await still_running(left, 8):
            warn(f"run.sh (pid {names_of(left)}) has not ended within 10 s: its log may not be whole")
    records.forget([*nodes, *servers])
    return 0


def main() -> int:
    command, script, *places = sys.argv[1:6]
    arguments = sys.argv[6:]
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # where it is ignored, nobody learns how a process ended
    try:
        if command == "run":
            return run(script, *places, arguments)
        return asyncio.run(stop(script, *places, arguments))
    except UsageError as error:
        fail(f"{error}; see {os.path.basename(script)} --help")
        return error.code
    except Failure as error:
        fail(str(error))
        return error.code
    except OSError as error:
        fail(str(error))
        return 1
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
