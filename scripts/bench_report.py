#!/usr/bin/env python3
"""Sums up a benchmark run: writes report.md into its folder and prints the bars and the main figures.

usage: bench_report.py RUN_FOLDER [--docs docs/PERFORMANCE.md]

--docs replaces what stands between the two marks in that file by the bars and a table for each back end, and writes all
tables into data/benchmark.csv beside it.
"""

from __future__ import annotations

from lib import interrupts

if __name__ == "__main__":
    interrupts.end_at_once()  # also during the imports below

import argparse
import csv
import json
import sys
from pathlib import Path

from lib.bench_bars import MET, MISSED, judge
from lib.bench_results import Results, size_text
from lib.bench_tables import BRIEF, grid, number, records, report, spread, who
from lib.output import checked, fail
from lib.tables import console_for_tables
from rich.console import Console
from rich.table import Table

BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"
STYLES = {MET: "green", MISSED: "red"}


def with_measured(text: str, measured: str) -> str:
    """The document with another text between the marks. Throws ValueError where it has not one pair of them."""
    if text.count(BEGIN) != 1 or text.count(END) != 1 or text.index(END) < text.index(BEGIN):
        raise ValueError(f"it needs the marks {BEGIN} and {END}, once each and in this order")
    before, _, rest = text.partition(BEGIN)
    after = rest.partition(END)[2]
    return f"{before}{BEGIN}\n{measured.strip()}\n{END}{after}"


def print_bars(results: Results, console: Console) -> None:
    table = Table(title="bars")
    for name, justify in (("bar", "left"), ("target", "right"), ("measured", "right"), ("", "left")):
        table.add_column(name, justify=justify)
    for one in judge(results):
        table.add_row(one.bar.name, one.bar.target, one.text, one.verdict, style=STYLES.get(one.verdict, "dim"))
    console.print(table)


def print_pulls(results: Results, console: Console) -> None:
    table = Table(title="pulls by size")
    for name in ("", "nodes", "path", "GB/s", "of bare sockets", "CPU s/GB"):
        table.add_column(name, justify="left" if name in ("nodes", "path") else "right")
    for transport in ("tcp", "same_host"):
        for one in grid(results, transport=transport):
            cells = [number(one["gb_per_s"]), spread(one.get("ratio_to_raw")), number(one["cpu_s_per_gb"])]
            table.add_row(size_text(one["bytes"]), who(one), transport, *cells)
    console.print(table)


def print_summary(results: Results) -> None:
    console = console_for_tables()
    if results.pulls:
        print_pulls(results, console)
    print_bars(results, console)
    if results.noisy:
        console.print(f"!! the machine was noisy during {len(results.noisy)} of {len(results.all)} measurements")
    if results.skipped:
        console.print(f"left out, for reasons in the report: {', '.join(one['title'] for one in results.skipped)}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, metavar="RUN_FOLDER")
    parser.add_argument("--docs", type=Path, metavar="FILE", help="a document with marks around its measured part")
    options = parser.parse_args()
    try:
        results = Results.read(options.folder)
        target = options.folder / "report.md"
        target.write_text(f"# Benchmark of dpwa\n\n{report(results, 2)}", encoding="utf-8")
        if options.docs:
            text = options.docs.read_text(encoding="utf-8")
            options.docs.write_text(with_measured(text, report(results, 3, BRIEF)), encoding="utf-8")
            data = options.docs.parent / "data/benchmark.csv"
            data.parent.mkdir(exist_ok=True)
            with data.open("w", encoding="utf-8", newline="") as file:
                csv.writer(file, lineterminator="\n").writerows(records(results))
    except (OSError, ValueError, KeyError, json.JSONDecodeError) as error:
        return fail("no report", error)
    print_summary(results)
    print(f"   report: {target}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(checked(main))
