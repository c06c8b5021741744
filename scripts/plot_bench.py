#!/usr/bin/env python3
"""Draws bench.png of a benchmark run: throughput over size, and dpwa beside its peers at 100 MB.

usage: plot_bench.py RUN_FOLDER
"""

from __future__ import annotations

from lib import interrupts

if __name__ == "__main__":
    interrupts.end_at_once()  # also during the imports below

import argparse
import json
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402
from lib.bench_results import MB, Document, Results, size_text  # noqa: E402
from lib.bench_tables import GROUPS, SIZES, grid  # noqa: E402
from lib.output import checked, fail  # noqa: E402
from matplotlib.axes import Axes  # noqa: E402

COLOURS = {"dpwa TCP": "tab:blue", "dpwa same host": "tab:green", "bare sockets": "black"}
OTHERS = {"dpwa TCP, checksum off": "tab:cyan"}
PEER_COLOURS = ("tab:orange", "tab:red", "tab:purple", "tab:brown")
Point = tuple[int, Document]  # bytes, and an object with gb_per_s and windows


def lines_of(results: Results, nodes: int) -> dict[str, list[Point]]:
    tcp = [one for one in grid(results) if one["nodes"] == nodes]
    shared = [one for one in grid(results, transport="same_host") if one["nodes"] == nodes]
    return {
        "dpwa TCP": [(one["bytes"], one) for one in tcp],
        "dpwa same host": [(one["bytes"], one) for one in shared],
        "bare sockets": [(one["bytes"], one["raw"]) for one in tcp if "raw" in one],
    }


def draw_sizes(axes: Axes, results: Results, nodes: int) -> None:
    """A line a path; the band is what the windows lay between."""
    for name, points in lines_of(results, nodes).items():
        if not points:
            continue
        sizes = [size for size, _ in points]
        windows = [one["windows"]["gb_per_s"] for _, one in points]
        style = {"color": COLOURS[name], "linestyle": "--" if name == "bare sockets" else "-"}
        axes.plot(sizes, [one["gb_per_s"] for _, one in points], marker="o", markersize=4, label=name, **style)
        low, high = [one["min"] for one in windows], [one["max"] for one in windows]
        axes.fill_between(sizes, low, high, color=COLOURS[name], alpha=0.15, linewidth=0)
    axes.set(title="1 pair" if nodes == 2 else f"{nodes} nodes, all pulling")
    axes.set(xscale="log", xlabel="parameters of a pull")
    axes.set_xticks(SIZES, [size_text(size) for size in SIZES], fontsize=8)
    axes.minorticks_off()
    sizes = [one["bytes"] for one in grid(results)]
    axes.set_xlim(min(sizes) / 2, max(sizes) * 2)


def bars_of(results: Results, nodes: int) -> dict[str, Document]:
    size = {"bytes": 100 * MB, "nodes": nodes}
    tcp = results.all_pulling(**size)
    found = {
        "dpwa same host": results.all_pulling(**size, transport="same_host"),
        "bare sockets": tcp.get("raw") if tcp else None,
        "dpwa TCP, checksum off": results.all_pulling(**size, checksum="off"),
        "dpwa TCP": tcp,
    }
    found |= {one["name"]: one for one in results.select(kind="peer", **size)}
    return {name: one for name, one in found.items() if one is not None}


def draw_peers(axes: Axes, results: Results) -> None:
    colours = {**COLOURS, **OTHERS}
    names, place = [], 0.0
    for nodes in GROUPS:
        for name, one in bars_of(results, nodes).items():
            if name not in colours:
                colours[name] = PEER_COLOURS[(len(colours) - 4) % len(PEER_COLOURS)]
            windows = one["windows"]["gb_per_s"]
            errors = [[max(one["gb_per_s"] - windows["min"], 0)], [max(windows["max"] - one["gb_per_s"], 0)]]
            axes.barh(place, one["gb_per_s"], xerr=errors, color=colours[name], ecolor="grey", capsize=2)
            axes.text(windows["max"], place, f"  {one['gb_per_s']:.1f}", va="center", fontsize=9)
            names.append((place, f"{name.removesuffix(' sendrecv and blend')}, {nodes} nodes"))
            place += 1
        place += 0.6
    axes.set_yticks([at for at, _ in names], [name for _, name in names])
    axes.invert_yaxis()
    axes.set(title="100 MB on every node, all exchanging", xlabel="GB/s, all nodes together")
    axes.grid(axis="y", visible=False)
    axes.margins(x=0.1)


def title(results: Results) -> str:
    settings = results.settings
    words = f"{settings.get('cpu', '')}, {settings.get('cores', '?')} cores, dpwa {settings.get('version', '?')}"
    return words + (" (the machine was noisy at times)" if results.noisy else "")


def draw(folder: Path) -> Path:
    results = Results.read(folder)
    sizes = {nodes: [one for one in grid(results) if one["nodes"] == nodes] for nodes in GROUPS}
    if not any(sizes.values()):
        raise ValueError(f"{folder} holds no pulls")
    # One size alone makes no line: the bars show it.
    groups = [nodes for nodes in GROUPS if len(sizes[nodes]) > 1] or [nodes for nodes in GROUPS if sizes[nodes]]
    plt.rcParams.update({"axes.spines.top": False, "axes.spines.right": False, "axes.grid": True, "grid.alpha": 0.25})
    plt.rcParams["axes.axisbelow"] = True
    count = sum(len(bars_of(results, nodes)) for nodes in GROUPS)
    height = 0.9 + 0.32 * count
    figure = plt.figure(figsize=(11, 4.2 + height), layout="constrained")
    figure.suptitle(title(results), fontsize=10)
    # Figures of their own, since the names of the bars need room on the left.
    parts = figure.subfigures(2, 1, height_ratios=[4, height])
    panels = parts[0].subplots(1, len(groups), sharey=True, squeeze=False)[0]
    for axes, nodes in zip(panels, groups):
        draw_sizes(axes, results, nodes)
    panels[0].set_ylim(bottom=0)  # of all, once the highest is known
    panels[0].set_ylabel("GB/s, all nodes together")
    panels[0].legend(frameon=False, loc="upper left")
    if count:
        draw_peers(parts[1].subplots(), results)
    target = folder / "bench.png"
    figure.savefig(target, dpi=110)
    plt.close(figure)
    return target


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, metavar="RUN_FOLDER")
    options = parser.parse_args()
    try:
        target = draw(options.folder)
    except (OSError, ValueError, KeyError, json.JSONDecodeError) as error:
        return fail("no plot", error)
    print(f"   plot: {target}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(checked(main))
