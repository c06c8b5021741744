"""Brings the tables of keys in docs/CONFIGURATION.md up to date with what `dpwa config keys --markdown` prints.

    python3 scripts/update_key_reference.py build/core/bin/dpwa
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

REFERENCE = Path(__file__).resolve().parents[1] / "docs/CONFIGURATION.md"
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
    if len(sys.argv) != 2:
        print("usage: update_key_reference.py DPWA, the program as it has just been built", file=sys.stderr)
        return 2
    document = REFERENCE.read_text(encoding="utf-8")
    REFERENCE.write_text(with_tables(document, printed_tables(sys.argv[1])), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
