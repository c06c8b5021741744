#!/usr/bin/env python3
"""Brings the tables of keys in docs/CONFIGURATION.md up to date with the table of keys in the program."""

from __future__ import annotations

from lib import interrupts

if __name__ == "__main__":
    interrupts.end_at_once()  # also during the imports below

import argparse
import re
import subprocess
import sys
from pathlib import Path

from lib.output import checked

REFERENCE = Path(__file__).resolve().parents[1] / "docs/CONFIGURATION.md"
ACCEPTED = "the program dpwa, such as build/core/bin/dpwa"
TABLE = re.compile(r"^<!-- keys of ([\w. ]+), .*?^<!-- end of keys -->$", re.MULTILINE | re.DOTALL)


def printed_tables(program: str | Path) -> dict[str, str]:
    """Section -> its table, the two lines around it included."""
    command = [str(program), "config", "keys", "--markdown"]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return {table[1]: table[0] for table in TABLE.finditer(text)}


def with_tables(document: str, tables: dict[str, str]) -> str:
    """The document with each of its tables as it is printed; raises ValueError when the sections are not the same."""
    present = [table[1] for table in TABLE.finditer(document)]
    if sorted(present) != sorted(tables):
        raise ValueError(f"tables of {present}, and printed are those of {list(tables)}")
    return TABLE.sub(lambda table: tables[table[1]], document)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, epilog="example: %(prog)s build/core/bin/dpwa")
    parser.add_argument("program", metavar="DPWA", type=Path, help="the command line as it has just been built")
    program = parser.parse_args().program.absolute()
    try:
        tables = printed_tables(program)
    except (OSError, subprocess.CalledProcessError) as error:
        parser.error(f"{program} does not print its keys: {error}; accepted: {ACCEPTED}")
    if not tables:
        parser.error(f"{program} prints no keys; accepted: {ACCEPTED}")
    document = REFERENCE.read_text(encoding="utf-8")
    REFERENCE.write_text(with_tables(document, tables), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(checked(main))
