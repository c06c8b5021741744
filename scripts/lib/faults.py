"""What is wrong with a file of a run, in one line for people."""

from __future__ import annotations

import json
import sys


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
