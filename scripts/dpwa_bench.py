#!/usr/bin/env python3
"""dpwa-bench: measures dpwa side by side with the limits of the machine. Standard library only, Python 3.9: an
installed dpwa has no more. `dpwa-bench SUBCOMMAND --help` says what each takes.

Exit code: 0 done, 1 failed while running (compare: something got worse), 2 wrong usage.
"""

from __future__ import annotations

from lib import interrupts

if __name__ == "__main__":
    interrupts.end_at_once()  # also during the imports below

import importlib
import subprocess
import sys
import textwrap

from lib.bench_options import Failure, Parser, WrongUsage
from lib.bench_processes import program
from lib.output import checked

# What each does is HELP of its module, which imports no more than it needs.
COMMANDS = {name: f"lib.bench_{name}" for name in
            ("memory", "pull", "step", "collective", "kvstore", "choice", "compare")}  # fmt: skip
NAME = "dpwa-bench"


def top_help() -> str:
    lines = ["Measures dpwa side by side with the limits of the machine.", f"Usage: {NAME} SUBCOMMAND [OPTIONS]", ""]
    lines += ["Options:", "  -h,--help                   Print this help message and exit",
              "  --version                   Print the version and exit", "", "Subcommands:"]  # fmt: skip
    for command, module in COMMANDS.items():
        first, *more = textwrap.wrap(importlib.import_module(module).HELP, 50)
        lines += [f"  {command:<28}{first}", *(" " * 30 + line for line in more)]
    return "\n".join(lines)


def run(words: list[str]) -> int:
    command = words[0] if words else ""
    if command in ("-h", "--help"):
        print(top_help())
        return 0
    if command == "--version" or words[1:2] == ["--version"]:
        print(NAME, subprocess.check_output([program("dpwa-measure"), "--version"], text=True).strip())
        return 0
    if command not in COMMANDS:
        raise WrongUsage(f"unknown subcommand '{command}' (see {NAME} --help)")
    module = importlib.import_module(COMMANDS[command])
    parser = Parser(f"{NAME} {command}", module.HELP)
    module.add_options(parser)
    return module.run(parser.parse(words[1:]))


def main() -> int:
    try:
        interrupts.raise_again()
        return run(sys.argv[1:])
    except SystemExit as end:  # --help
        return int(end.code or 0)
    except KeyboardInterrupt:
        return 130
    except Failure as error:
        print(f"{NAME}: {' '.join(str(error).split())}", file=sys.stderr)
        return 2 if isinstance(error, WrongUsage) else 1


if __name__ == "__main__":
    sys.exit(checked(main))
