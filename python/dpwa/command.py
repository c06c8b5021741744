"""The command line `dpwa` of the wheel: the program itself, which needs no Python."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def program() -> str:
    """Its path: that of the wheel, or $DPWA_CLI, or beside the folder of a build."""
    here = Path(__file__).parent
    found = [here / "bin" / "dpwa", here.parent.parent / "bin" / "dpwa"]
    return os.environ.get("DPWA_CLI") or next((str(path) for path in found if path.exists()), "dpwa")


def main() -> None:
    os.execvp(program(), ["dpwa", *sys.argv[1:]])


if __name__ == "__main__":
    main()
