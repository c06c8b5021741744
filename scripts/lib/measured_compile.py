#!/usr/bin/env python3
"""A compiler launcher: runs the compiler, and adds a line to the file that DPWA_COMPILE_LOG names.

usage: measured_compile.py COMPILER ARGUMENT...

A line has the object, the processor seconds and the MiB of the largest process, with tabs between. The exit code is the
compiler's.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys


def main() -> int:
    command = sys.argv[1:]
    code = subprocess.run(command, check=False).returncode
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    made = command[command.index("-o") + 1] if "-o" in command[:-1] else "-"
    with open(os.environ["DPWA_COMPILE_LOG"], "a", encoding="utf-8") as log:
        log.write(f"{made}\t{used.ru_utime + used.ru_stime:.2f}\t{used.ru_maxrss // 1024}\n")
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main())
