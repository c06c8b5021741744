"""What Ctrl-C does to a script. Python makes a KeyboardInterrupt of it, which in an import, or inside a library, ends
as a traceback."""

from __future__ import annotations

import _signal  # what signal.py is made of, without the imports of that


def _replace(expected: object, handler: object) -> None:
    # A script whose caller has set SIGINT to be ignored (nohup, a job in the background) keeps that.
    if _signal.getsignal(_signal.SIGINT) == expected:
        _signal.signal(_signal.SIGINT, handler)


def end_at_once() -> None:
    """Before the first import that takes long: Ctrl-C ends the process, with nothing printed. One that came earlier has
    waited, where exec_python of common.sh has started the script."""
    _replace(_signal.default_int_handler, _signal.SIG_DFL)
    _signal.pthread_sigmask(_signal.SIG_UNBLOCK, {_signal.SIGINT})


def raise_again() -> None:
    """At the start of main(), where there is something to clean up: KeyboardInterrupt, after end_at_once()."""
    _replace(_signal.SIG_DFL, _signal.default_int_handler)
