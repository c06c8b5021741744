#!/usr/bin/env python3
"""The commands run.sh and stop.sh. Standard library only, Python 3.9: an installed dpwa has no more.

usage: supervise.py run|stop COMMAND-AS-TYPED FOLDER-OF-PROGRAMS FOLDER-OF-RUNS FOLDER-OF-RECORDS [ARGUMENTS]
"""

from __future__ import annotations

from lib import interrupts

if __name__ == "__main__":
    interrupts.end_at_once()  # also during the imports below

import argparse
import contextlib
import os
import re
import shlex
import signal
import sys
import time
from collections.abc import Iterator
from typing import Any, NoReturn

from lib.messages import Failure, UsageError, fail, ok, outputs, say, show_end, warn
from lib.output import checked, words_of
from lib.processes import GRACE, Records, end_all, names_of, require_pidfds, still_running
from lib.supervisor import TAKES_PART, Run, config


class Arguments(argparse.ArgumentParser):
    """Says in one line what is wrong."""

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


def run(parser: Arguments, options: argparse.Namespace, words: list[str]) -> int:
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--run-dir", action=Once)
    parser.add_argument("--detach", action="store_true")
    parser.add_argument("--wait", action=Once, type=seconds)
    end = words.index("--") if "--" in words else len(words)
    known, trainer_options = words[:end], words[end + 1 :]
    unknown = parser.parse_known_args(known, options)[1]
    if unknown and unknown[0].startswith("-"):
        first = known.index(unknown[0])
        in_order = options.cluster in known[:first]  # else it is not known which word is the cluster file
        for word in unknown:
            del known[known.index(word, first)]
        command = [*known, "--", *unknown, *trainer_options] if in_order else ["CLUSTER.yaml", "--", "OPTIONS"]
        parser.error(f"{unknown[0].partition('=')[0]} is no option of run.sh, and those of the trainer come after --: "
                     f"{options.shown} {shlex.join(command)}")  # fmt: skip
    if unknown:
        parser.error(f"unrecognized arguments: {' '.join(unknown)}")
    if options.wait is not None and not options.detach:
        parser.error("--wait goes with --detach")
    run = Run(options, trainer_options)
    limit = 60 + run.file["start_wait_ms"] // 1000 if options.wait is None else options.wait
    states = run.states() if options.detach and limit > 0 else {}
    # One that takes part before it is started is another process of that name. The new one could not listen beside it,
    # and the other one would be mistaken for it.
    if foreign := [name for name in run.nodes if states.get(name) in TAKES_PART]:
        asked = f"{run.cli} status --config {run.cluster}"
        raise Failure(f"already running, and not started by run.sh: {' '.join(foreign)} ({asked})")
    run.make_folder()
    if options.detach:
        return detach(run, limit, f"run-{','.join(run.servers + run.nodes)}" if options.only else "run")
    return run.supervise(run.progress())


def detach(run: Run, limit: int, name: str) -> int:
    """A second process with a session of its own supervises the nodes, and writes to the log of that name. Until they
    take part, the first shows what that one says; its exit code comes in a line that begins with a zero byte."""
    output = os.open(run.log(name), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
    reader, writer = os.pipe()
    if os.fork() == 0:
        os.setsid()
        for target, source in enumerate((os.open(os.devnull, os.O_RDONLY), output, output)):
            os.dup2(source, target)
        os.close(reader)
        outputs.update({writer: outputs[2], 2: False})
        return run.supervise(announce(run, limit, run.log(name), writer))
    os.close(writer)
    run.lock.close()
    try:
        for line in open(reader, "rb"):
            if line.startswith(b"\0"):
                return int(line[1:])
            with contextlib.suppress(OSError):
                os.write(2, line)
    except KeyboardInterrupt:
        warn(f"interrupted: the nodes run on; {run.how_to_end}")
        raise
    return 1  # it has said why it has started nothing


def announce(run: Run, limit: int, log: str, writer: int) -> Iterator[float]:
    """Names the nodes that do not take part within `limit` seconds. Sends the exit code: 0 when all take part; 2 when
    all others ended with 2 (wrong usage or configuration); else 1."""
    left, began, shown = run.nodes or run.servers, time.monotonic(), 0
    while left and limit > 0:
        states = run.states()
        left = [name for name in left if states.get(name) not in TAKES_PART and name not in run.codes]
        waited = int(time.monotonic() - began)
        if not left or waited >= limit:
            break
        if waited >= shown + 2:
            shown = waited
            names = ", ".join(f"{name} ({states.get(name, 'no answer yet')})" for name in left[:8])
            say(f"{waited} s: waiting for {names}{f' and {len(left) - 8} more' if left[8:] else ''}")
        yield 0.3
    code, ends = 0, f"{run.how_to_end}, {log} tells how each ended"
    if limit == 0:
        ok(f"started, not waited for; {ends}")
    elif failed := {run.codes.get(name) for name in (*left, *run.codes)} - {0}:
        for name in left:
            path, state = run.log(name), states.get(name, "no answer")
            fail(f"{name}: not ready after {limit} s ({state}); the last line of {path}:")
            show_end(path, 0, 1)
        if running := [name for name in run.nodes if name not in run.codes]:
            say(f"still running: {' '.join(running)}; {run.how_to_end}")
        code = 2 if failed == {2} else 1
    else:
        done = f"all {len(run.nodes)} node(s) take part" if run.nodes else f"server(s) started: {' '.join(run.servers)}"
        ok(f"{done}; {ends}")
    with contextlib.suppress(OSError):
        os.write(writer, b"\0%d\n" % code)
    del outputs[writer]
    os.close(writer)


def stop(parser: Arguments, options: argparse.Namespace, words: list[str]) -> int:
    parser.add_argument("--grace", action=Once, type=seconds)
    parser.parse_args(words, options)
    records = Records(options.states, options.cluster)
    with records.lock():
        supervisors = records.running("run")
        if not records.running():
            if not os.path.exists(options.cluster):
                parser.error(f"there is no file {options.cluster}, and nothing that was started for it")
            if os.access(options.cli, os.X_OK):
                config(options.cli, ["nodes", options.cluster])  # ends here when that is no cluster file
            ok("nothing of it runs")
        for kind in ("node", "server"):
            end_all(records.running(kind), GRACE if options.grace is None else options.grace)
    if left := still_running(supervisors, 2):
        say(f"waiting for run.sh (pid {left[0].pid}), which writes down how they ended")
        if left := still_running(left, 8):
            warn(f"run.sh (pid {names_of(left)}) has not ended within 10 s: its log may not be whole")
    with records.lock():
        records.forget()
    return 0


def main() -> int:
    command, script, binaries, runs, states, *words = sys.argv[1:]
    options = argparse.Namespace(script=script, runs=runs, states=states)
    options.shown = script if script.startswith("dpwa ") else shlex.quote(script)  # of a wheel: two words
    options.cli = os.environ.get("DPWA_CLI") or f"{binaries}/dpwa"
    options.trainer = os.environ.get("DPWA_TRAIN") or f"{binaries}/dpwa-train"
    parser = Arguments(add_help=False, allow_abbrev=False)
    parser.add_argument("cluster", metavar="CLUSTER.yaml")
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # where it is ignored, nobody learns how a process ended
    try:
        interrupts.raise_again()
        require_pidfds()
        return (run if command == "run" else stop)(parser, options, words)
    except (Failure, OSError) as error:
        fail(words_of(error) + f"; see {os.path.basename(script)} --help" * isinstance(error, UsageError))
        return getattr(error, "code", 1)
    except KeyboardInterrupt:
        return 130
    finally:
        interrupts.end_at_once()


if __name__ == "__main__":
    sys.exit(main() if len(sys.argv) > 5 else checked(lambda: print(__doc__)))
