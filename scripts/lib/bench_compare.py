"""dpwa-bench compare: two results, figure by figure."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import dataclass
from typing import Any

from lib.bench_options import Failure, WrongUsage, text_table

HELP = "Compare two results; exit code 1 when something got worse. Ratios above 1 are gains"

# What tells one measurement from another, in the order of a label.
IDENTITIES = (
    *("kind", "name", "model", "bytes", "nodes", "pulling_nodes", "mode", "transport", "encoding", "security"),
    *("checksum", "blend", "dtype", "threads", "parameters", "tensors", "pulls_per_node", "workers", "servers"),
    *("type", "optimizer", "compression", "ping_pong", "keys", "replicas", "backend", "batch", "device"),
)
MORE_IS_BETTER = {
    "gb_per_s", "ratio_to_raw", "ratio_to_checked_raw", "ratio_to_hand_written", "ratio_to_gloo", "ratio_to_ps_lite",
}  # fmt: skip
LESS_IS_BETTER = {
    "latency_us", "trainer_latency_us", "cpu_s_per_gb", "peak_rss_mib", "memory_beyond_parameters_mib",
    "latency_ratio_to_raw", "latency_ratio_to_checked_raw", "send_us", "wait_us", "step_us", "ratio_to_ddp",
    "pushed_bytes", "choose_ns", "bytes_per_node",
}  # fmt: skip
FIGURES = MORE_IS_BETTER | LESS_IS_BETTER
# Raw and plain loops, DistributedDataParallel and other peers are references of the same run: their figures are not
# compared.
LEFT_OUT = {"windows", "settings", "noise", "raw", "checked_raw", "plain", "blocking", "ddp", "gloo", "ps_lite"}


@dataclass
class Figure:
    value: float
    range: dict[str, float] | None  # of the windows, where they were recorded


@dataclass
class Comparison:
    label: str
    before: float
    after: float
    ratio: float  # above 1: better
    worse: bool


def identity_of(document: dict[str, Any]) -> str:
    words = [(key, document[key]) for key in IDENTITIES if not isinstance(document.get(key, []), (dict, list))]
    return " ".join(f"{key}={value if isinstance(value, str) else json.dumps(value)}" for key, value in words)


def number_of(value: Any) -> float | None:
    """The number of a figure: itself, or the median of quantiles."""
    number = value.get("median") if isinstance(value, dict) else value
    return number if isinstance(number, (int, float)) and not isinstance(number, bool) else None


def figures_in(value: Any, label: str = "", found: dict[str, Figure] | None = None) -> dict[str, Figure]:
    """Every figure of a document, however deep, by its label: what was measured and how. Of equal labels the first."""
    found = {} if found is None else found
    if isinstance(value, list):
        for entry in value:
            figures_in(entry, label, found)
    if not isinstance(value, dict):
        return found
    here = " / ".join(part for part in (label, identity_of(value)) if part)
    for key in (key for key in value if key in FIGURES):
        number = number_of(value[key])
        range_ = value.get("windows", {}).get(key, value[key])
        has_range = isinstance(range_, dict) and {"min", "max"} <= range_.keys()
        if number is not None:
            found.setdefault(f"{here}: {key}", Figure(number, range_ if has_range else None))
    for key, entry in value.items():
        if key not in FIGURES | LEFT_OUT and isinstance(entry, (dict, list)):
            figures_in(entry, f"{here} {key}".strip() if isinstance(entry, dict) else here, found)
    return found


def overlap(one: Figure, other: Figure) -> bool:
    if one.range is None or other.range is None:
        return False
    return one.range["min"] <= other.range["max"] and other.range["min"] <= one.range["max"]


def compare(before: Any, after: Any, threshold: float) -> list[Comparison]:
    """The figures that both have. Worse: the ratio is below `threshold`, and the windows of the two do not overlap."""
    rows = []
    old_figures = figures_in(before)
    for label, now in figures_in(after).items():
        old = old_figures.get(label)
        if old is None or old.value <= 0 or now.value <= 0:
            continue
        better = label.rpartition(": ")[2] in MORE_IS_BETTER
        ratio = now.value / old.value if better else old.value / now.value
        rows.append(Comparison(label, old.value, now.value, ratio, ratio < threshold and not overlap(now, old)))
    return rows


def read(file: str) -> Any:
    try:
        with open(file, encoding="utf-8") as stream:
            return json.load(stream)
    except OSError as error:
        raise WrongUsage(f"{file}: {error.strerror}") from None
    except ValueError:
        raise WrongUsage(f"{file}: this file holds no JSON document") from None


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("old", metavar="OLD", help="A JSON result, or the bench.json of a run")
    parser.add_argument("new", metavar="NEW", help="The result to compare with OLD")
    parser.add_argument("--threshold", type=float, default=0.9, help="The ratio below which a figure is worse (0.9)")
    parser.add_argument("--json", action="store_true", help="Print one JSON document instead of a table")


def shown(value: float) -> str:
    return f"{value:.3f}" if value < 10 else f"{value:.1f}"


def run(options: argparse.Namespace) -> int:
    if not 0 <= options.threshold <= 1:
        raise WrongUsage("--threshold takes a number from 0 to 1")
    rows = compare(read(options.old), read(options.new), options.threshold)
    if not rows:
        raise Failure("the two files have no figure in common")
    worse = sum(row.worse for row in rows)
    if options.json:
        figures = [{"figure": one.label, **{key: getattr(one, key) for key in ("before", "after", "ratio", "worse")}}
                   for one in rows]  # fmt: skip
        print(json.dumps({"threshold": options.threshold, "worse": worse, "figures": figures}, indent=2))
    else:
        cells = [[shown(one.before), shown(one.after), f"{one.ratio:.2f}", "WORSE" if one.worse else "", one.label]
                 for one in rows]  # fmt: skip
        print(text_table(["before", "after", "ratio", "", "figure"], cells))
    words = f"{len(rows)} figures, {worse} worse than {options.threshold:g} beyond the spread of their windows"
    print(words, file=sys.stderr)
    return 1 if worse else 0
