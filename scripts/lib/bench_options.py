"""The command line of dpwa-bench: sizes and counts, bounds, help and wrong usage as the other programs have them."""

from __future__ import annotations

import argparse
import difflib
import re
import textwrap
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

DECIMAL = {"": 1, "k": 1000, "m": 1000**2, "g": 1000**3}
BINARY = {"ki": 1 << 10, "mi": 1 << 20, "gi": 1 << 30}


class Failure(Exception):
    """A measurement that could not be made: exit code 1."""


class WrongUsage(Failure):
    """Exit code 2."""


def _whole(text: str, pattern: str, units: dict[str, int]) -> int | None:
    found = re.fullmatch(r"([0-9]+(?:\.[0-9]*)?)" + pattern, text, re.IGNORECASE)
    value = float(found[1]) * units[found[2].lower()] if found else 0
    return int(value) if 1 <= value < 2**53 and value == int(value) else None


def parse_size(text: str) -> int | None:
    """"200", "10KB", "100MB" (powers of 1000), "64MiB" (of 1024): bytes, above zero. None otherwise."""
    if re.fullmatch("[0-9]+", text):
        return _whole(text, "()", {"": 1})
    return _whole(text, " ?([kmg]i?|)b", {**DECIMAL, **BINARY})


def parse_count(text: str) -> int | None:
    """"500", "100k", "10M", "1.5G": powers of 1000, a whole number above zero. None otherwise."""
    return _whole(text, "([kmg]?)", DECIMAL)


def _parsed(parse: Callable[[str], int | None], accepted: str) -> Callable[[str], int]:
    def take(text: str) -> int:
        value = parse(text)
        if value is None:
            raise argparse.ArgumentTypeError(f"'{text}' is not {accepted}")
        return value

    return take


size = _parsed(parse_size, "a size such as 200, 10KB, 100MB (powers of 1000) or 64MiB (of 1024)")
count = _parsed(parse_count, "a count such as 500, 100k, 10M")


def within(kind: type, least: float, most: float) -> Callable[[str], Any]:
    def take(text: str) -> Any:
        try:
            value = kind(text)
        except ValueError:
            value = None
        if value is None or not least <= value <= most:
            raise argparse.ArgumentTypeError(f"'{text}' is no number from {least:g} to {most:g}")
        return value

    return take


SECONDS = within(float, 0.01, 600)


def add_choice(parser: argparse.ArgumentParser, name: str, choices: Sequence[str], help: str, **more: Any) -> None:
    more.setdefault("default", choices[0])
    parser.add_argument(name, choices=choices, metavar="|".join(choices), help=f"{help} ({more['default']})", **more)


class HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Lines of 80 columns, in the form that completion reads (dpwa/cli/completion_command.cpp)."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=30, width=80)

    def _format_action_invocation(self, action: argparse.Action) -> str:
        if not action.option_strings:
            return super()._format_action_invocation(action)
        value = "" if action.nargs == 0 else f" {self._format_args(action, action.dest.upper())}"
        return ",".join(action.option_strings) + value


class Parser(argparse.ArgumentParser):
    def __init__(self, prog: str, about: str) -> None:
        usage = f"{prog} [OPTIONS]"
        super().__init__(prog, usage, formatter_class=HelpFormatter, allow_abbrev=False, add_help=False)
        self.about = about
        self._optionals.title, self._positionals.title = "Options", "Positionals"
        self.add_argument("-h", "--help", action="help", help="Print this help message and exit")

    def format_help(self) -> str:
        return f"{textwrap.fill(self.about, 80)}\n{super().format_help().replace('usage:', 'Usage:', 1)}"

    def print_help(self, file: Any = None) -> None:
        print(self.format_help(), end="")  # argparse itself ignores what cannot be written

    def error(self, message: str) -> NoReturn:
        raise WrongUsage(f"{message} (see {self.prog} --help)")

    def parse(self, words: list[str]) -> argparse.Namespace:
        options, rest = self.parse_known_args(words)
        if rest:
            known = [name for name in self._option_string_actions if name.startswith("--")]
            near = difflib.get_close_matches(rest[0].partition("=")[0], known, 1)
            self.error(f"unknown option: {rest[0]}{f', did you mean {near[0]!r}?' if near else ''}")
        return options


def text_table(header: list[str], rows: list[list[str]]) -> str:
    """Columns two blanks apart; numbers to the right."""
    widths = [max(len(cell) for cell in column) for column in zip(header, *rows)]
    right = [all(re.match("[0-9.-]*( |$)", cell) for cell in column) for column in zip(*rows)]
    lines = []
    for line in [header, *rows]:
        cells = [cell.rjust(w) if r else cell.ljust(w) for cell, w, r in zip(line, widths, right)]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)
