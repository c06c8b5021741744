"""Tables for people that fit 80 columns."""

from __future__ import annotations

from rich import box
from rich.console import Console
from rich.table import Table

WIDTH = 80  # where there is no terminal


def new_table(title: str | None = None) -> Table:
    """No lines but one under the heads, and two spaces between the columns."""
    return Table(title=title, title_justify="left", header_style="bold", box=box.SIMPLE_HEAD, show_edge=False,
                 pad_edge=False, padding=(0, 1, 0, 0))  # fmt: skip


def add_columns(table: Table, *heads: str, left: tuple[str, ...] = ("node",)) -> None:
    """Columns of numbers, and those of words in `left`. What is too wide is folded: nothing of a number is left out."""
    for head in heads:
        table.add_column(head, justify="left" if head in left else "right", overflow="fold",
                         min_width=max(len(word) for word in head.split()))  # fmt: skip


def console_for_tables() -> Console:
    """Standard output, as wide as the terminal (or COLUMNS), or 80 columns where there is none."""
    console = Console()
    return console if console.is_terminal else Console(width=WIDTH)
