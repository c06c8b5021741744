"""How a script that makes a result ends: what is wrong with a file of a run, or cannot be written, is one line and a
failure."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

from lib import interrupts


def takes_all() -> bool:
    """Whether what was printed so far can be written."""
    try:
        sys.stdout.flush()
    except OSError:
        return False
    return True


def checked(main: Callable[[], int | None]) -> int:
    """The exit code of `main`; 130 after a KeyboardInterrupt; or 1, after a line on stderr, where not all that it printed
    could be written."""
    if sys.stdout is None:  # closed when the script began: print() would do nothing
        sys.stdout = open("/dev/full", "w", encoding="utf-8")  # noqa: SIM115
    else:  # argparse passes over what cannot be written: a buffer keeps it, also with PYTHONUNBUFFERED
        sys.stdout = open(1, "w", 1, sys.stdout.encoding, sys.stdout.errors, closefd=False)  # noqa: SIM115
    try:
        try:
            code = main() or 0
        except KeyboardInterrupt:
            code = 130
        except SystemExit:  # of argparse, after the text of --help
            sys.stdout.flush()
            raise
        sys.stdout.flush()
    except OSError:
        if takes_all():  # it was not the result
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for the flush at the end of Python
        print(f"{Path(sys.argv[0]).name}: cannot write the result", file=sys.stderr)
        return 1
    finally:
        interrupts.end_at_once()  # also while Python itself ends
    return code


def words_of(error: Exception) -> str:
    """Without the names of Python."""
    if isinstance(error, KeyError):
        return f"a file lacks the key {error}: it is of another version, or not complete"
    if isinstance(error, json.JSONDecodeError):
        return f"a file is not complete JSON: {error.msg}, line {error.lineno}"
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    return str(error)


def fail(what: str, error: Exception) -> int:
    """Prints why `what` cannot be made. Returns the exit code."""
    print(f"failed: {what}: {words_of(error)}", file=sys.stderr)
    return 1
