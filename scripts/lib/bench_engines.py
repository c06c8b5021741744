"""dpwa-bench collective --engines: an all-reduce by each engine of backend collective."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
from dataclasses import dataclass, field

from lib.bench_cluster import new_key_file
from lib.bench_options import Failure
from lib.bench_processes import Json, Process, closing, machine_settings, program, say
from lib.bench_results import time_text
from lib.bench_statistics import NoiseWatch, median, range_of, ratios, spread_of
from lib.bench_windows import spread_text
from lib.ports import free_ports

WINDOWS = 5  # at most: each starts new processes


@dataclass
class Engine:
    name: str
    absent: str  # why there are no figures; empty: there are
    setting: str = ""  # how it was set up; empty: there is nothing to say
    medians_us: list[float] = field(default_factory=list)  # of an all-reduce, by window
    engine: str = ""  # which one, in a form of its own; empty: that of its name
    job: Json = field(default_factory=dict)  # the form

    def figures(self, moved: int, gloo: Engine | None) -> Json:
        if self.absent:
            return {"name": self.name, "absent": self.absent}
        beside = gloo and gloo is not self and not gloo.absent
        ratio = ratios(gloo.medians_us, self.medians_us) if gloo and beside else None  # of throughput, by window
        rates = range_of([moved / 1e3 / us for us in self.medians_us])
        windows = {"count": len(self.medians_us), "gb_per_s": rates, "allreduce_us": range_of(self.medians_us)}
        rate = moved / 1e3 / median(self.medians_us)
        head = {"name": self.name, "setting": self.setting, "gb_per_s": rate}
        return {**head, "ratio_to_gloo": ratio, "windows": windows}


# Beside "dpwa" itself, whose vector lies in memory of the program.
FORMS = {
    **{"dpwa, lent memory": {"lent": True}, "dpwa, TCP": {"same_host": False}},
    "dpwa, psk": {"same_host": False, "key_file": ""},  # of a key of the measurement
}


def commands(engine: str, job: Json, nodes: int) -> list[list[str]]:
    """Of the processes; those of MPI are started by mpirun."""
    tool = str(program("dpwa-measure-collective"))
    if engine != "mpi":
        return [[tool, json.dumps({**job, "rank": rank})] for rank in range(nodes)]
    return [["mpirun", "-np", str(nodes), "--oversubscribe", "--bind-to", "none", tool, json.dumps(job)]]


def windows_of(options: argparse.Namespace) -> int:
    return min(options.windows, WINDOWS)


def window(of: Engine, options: argparse.Namespace) -> Json:
    """What rank 0 tells. Every window starts new processes, as those of MPI take a core while they wait."""
    engine = of.engine or of.name
    job = {**of.job, "kind": "engine", "engine": engine, "nodes": options.nodes, "store_port": free_ports(1)[0]}
    job |= {"bytes": options.bytes // 4 * 4, "seconds": options.seconds / windows_of(options)}
    with contextlib.ExitStack() as stack:
        ranks = []
        for command in commands(engine, job, options.nodes):
            ranks.append(Process(command))
            stack.enter_context(closing(ranks[-1]))
        told: Json = {}
        while "times_ns" not in told:  # mpirun passes on what every rank says
            told = ranks[0].receive()
        for rank in ranks:
            rank.await_end()
        return told


def measure(options: argparse.Namespace) -> Json:
    with new_key_file() as key_file:
        return measure_with(options, key_file)


def measure_with(options: argparse.Namespace, key_file: str) -> Json:
    for name in ("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"):
        os.environ.setdefault(name, "1")
    asked = Process([program("dpwa-measure-collective")], {"kind": "engines"})
    with closing(asked):
        facts = asked.receive()
    engines = [Engine(**one) for one in facts["engines"]]
    own = next(place for place, engine in enumerate(engines) if engine.name == "dpwa")
    forms = {name: {**job, "key_file": key_file} if "key_file" in job else job for name, job in FORMS.items()}
    engines[own + 1 : own + 1] = [Engine(name, "", engine="dpwa", job=job) for name, job in forms.items()]
    for engine in engines:
        if engine.name == "mpi" and not engine.absent and not shutil.which("mpirun"):
            engine.absent = "there is no mpirun"
    watch = NoiseWatch()
    for index in range(windows_of(options)):
        line = f"   window {index + 1}/{windows_of(options)}"
        for engine in (engine for engine in engines if not engine.absent):
            try:
                told = window(engine, options)
            except Failure as error:
                engine.absent = str(error)
                continue
            engine.setting = told["setting"]
            engine.medians_us.append(median([ns / 1000 for ns in told["times_ns"]]))
            line += f"  {engine.name} {time_text(engine.medians_us[-1])}"
        say(line)
    present = [engine for engine in engines if not engine.absent]
    noise = watch.judge(max((spread_of(range_of(engine.medians_us)) for engine in present), default=0))
    return {**document_of(options, engines), "noise": noise, "settings": machine_settings(facts)}


def document_of(options: argparse.Namespace, engines: list[Engine]) -> Json:
    size = options.bytes // 4 * 4
    gloo = next((engine for engine in engines if engine.name == "gloo"), None)
    figures = [engine.figures(size * options.nodes, gloo) for engine in engines]
    return {"kind": "engines", "bytes": size, "nodes": options.nodes, "engines": figures}


def lines_of(document: Json) -> list[str]:
    lines = []
    for engine in document["engines"]:
        if "absent" in engine:
            lines.append(f"{engine['name']:<20}absent: {engine['absent']}")
            continue
        times = spread_text(engine["windows"]["allreduce_us"], time_text)
        setting = f"; {engine['setting']}" if engine["setting"] else ""
        beside = f"; {spread_text(engine['ratio_to_gloo'])} × gloo" if engine["ratio_to_gloo"] else ""
        lines.append(f"{engine['name']:<20}{engine['gb_per_s']:.2f} GB/s, an all-reduce {times}{beside}{setting}")
    return lines
