"""Messages to the user, as those of common.sh: in colour only on a terminal and without NO_COLOR."""

from __future__ import annotations

import contextlib
import os
import re
from functools import partial


class Failure(Exception):
    """Ends the command with this message. Exit code 2: wrong usage or configuration, nothing was started."""

    def __init__(self, message: str, code: int = 2) -> None:
        super().__init__(message)
        self.code = code


class UsageError(Failure):
    """The message is followed by the name of the help."""


# The descriptors that get every message, and whether it may have colours there.
outputs = {2: os.isatty(2) and not os.environ.get("NO_COLOR") and os.environ.get("TERM", "") not in ("", "dumb")}


def tell(text: str = "", mark: str = "", colour: int = 0) -> None:
    """A line. If it cannot be written (a full disk, a reader that has gone), that ends no work."""
    for fd, coloured in outputs.items():
        shown = f"\033[{colour}m{mark}\033[0m" if coloured and colour else mark
        with contextlib.suppress(OSError):
            os.write(fd, f"{shown}{text}\n".encode("utf-8", "surrogateescape"))


say = partial(tell, mark="   ")
ok = partial(tell, mark="ok ", colour=32)
warn = partial(tell, mark="!! ", colour=33)
fail = partial(tell, mark="failed: ", colour=31)


def last_lines(log: str, begin: int, count: int) -> list[str]:
    """Of a log: those that are not blank, from that byte on, without control characters, shortened to `longest`."""
    longest = 1000
    with contextlib.suppress(OSError), open(log, "rb") as file:
        file.seek(max(begin, os.fstat(file.fileno()).st_size - 8192))
        text = re.sub(r"[\0-\x08\x0b-\x1f\x7f]", "", file.read().decode("utf-8", "replace").replace("\r", "\n"))
        return [line if len(line) <= longest else line[:longest] + "…"
                for line in text.split("\n") if line.strip()][-count:]
    return []


def show_end(log: str, begin: int, count: int) -> None:
    for line in last_lines(log, begin, count):
        tell(f"     {line}")
