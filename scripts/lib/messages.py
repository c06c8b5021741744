"""Messages to the user, as those of common.sh: in colour only on a terminal and without NO_COLOR."""

from __future__ import annotations

import contextlib
import os
from contextvars import ContextVar
from functools import partial


def _wants_colour() -> bool:
    return os.isatty(2) and not os.environ.get("NO_COLOR") and os.environ.get("TERM", "") not in ("", "dumb")


OUTPUT = ContextVar("OUTPUT", default=(2, _wants_colour()))  # the descriptor, and whether there may be colours


class Failure(Exception):
    """Ends the command with this message. Exit code 2: wrong usage or configuration, nothing was started."""

    def __init__(self, message: str, code: int = 2) -> None:
        super().__init__(message)
        self.code = code


class UsageError(Failure):
    """The message is followed by the name of the help."""


def tell(text: str = "", mark: str = "", colour: int = 0, end: str = "\n") -> None:
    """A line. If it cannot be written (a full disk, a reader that has gone), that ends no work."""
    fd, coloured = OUTPUT.get()
    if coloured and colour:
        mark = f"\033[{colour}m{mark}\033[0m"
    with contextlib.suppress(OSError):
        os.write(fd, f"{mark}{text}{end}".encode("utf-8", "surrogateescape"))


say = partial(tell, mark="   ")
ok = partial(tell, mark="ok ", colour=32)
warn = partial(tell, mark="!! ", colour=33)
fail = partial(tell, mark="failed: ", colour=31)
