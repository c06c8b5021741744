"""Standard output as the place of a script's result: what cannot be written is a failure."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path


def checked(main: Callable[[], int | None]) -> int:
    """The exit code of `main`; or 1, after a line on stderr, where not all that it printed could be written."""
    if sys.stdout is None:  # closed when the script began: print() would do nothing
        sys.stdout = open("/dev/full", "w", encoding="utf-8")  # noqa: SIM115
    try:
        code = main() or 0
        sys.stdout.flush()
    except OSError as error:
        if error.filename is not None:
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for the flush at the end of Python
        print(f"{Path(sys.argv[0]).name}: cannot write the result", file=sys.stderr)
        return 1
    return code
