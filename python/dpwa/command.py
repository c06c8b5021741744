"""The command line `dpwa` of the wheel: the program itself, which needs no Python, and `dpwa run` and `dpwa stop`, which
start and stop the nodes of this host."""

from __future__ import annotations

import os
import sys
from pathlib import Path

HERE = Path(__file__).parent
USAGE = {
    "run": "usage: dpwa run CLUSTER.yaml [--only NODE]... [--run-dir DIR] [--detach [--wait SECONDS]] [-- TRAINER ARGUMENTS]",
    "stop": "usage: dpwa stop CLUSTER.yaml [--grace SECONDS]",
}


def program() -> str:
    """Its path: that of the wheel, or $DPWA_CLI, or beside the folder of a build."""
    found = [HERE / "bin" / "dpwa", HERE.parents[1] / "bin" / "dpwa"]
    return os.environ.get("DPWA_CLI") or next((str(path) for path in found if path.exists()), "dpwa")


def supervise(command: str, words: list[str]) -> None:
    """As scripts/run.sh and scripts/stop.sh (docs/OPERATIONS.md); the trainer is $DPWA_TRAIN."""
    if command == "run" and not os.environ.get("DPWA_TRAIN"):
        sys.exit("error: dpwa run needs DPWA_TRAIN, a program that takes --config FILE --name NODE")
    os.environ["DPWA_CLI"] = program()
    state = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    os.execv(sys.executable, [sys.executable, "-ES", str(HERE / "scripts" / "supervise.py"), command, f"dpwa {command}",
                              str(Path(program()).parent), str(Path.cwd() / "runs"), f"{state}/dpwa", *words])  # fmt: skip


def main() -> None:
    command, *words = sys.argv[1:] or [""]
    if command not in USAGE:
        os.execvp(program(), ["dpwa", *sys.argv[1:]])
    if {"-h", "--help"} & set(words[: words.index("--")] if "--" in words else words):
        print(f"{USAGE[command]}\n{supervise.__doc__}")
    else:
        supervise(command, words)


if __name__ == "__main__":
    main()
