#!/usr/bin/env python3
"""Runs clusters of real processes under seeded schedules of faults and attacks, and holds them to invariants.

Exit codes: 0 all invariants held; 1 one did not (the seed and the command that repeats it are printed); 2 wrong usage.
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

import netns
import schedule
import verdict as judgement
from network import Network, ProxyMesh
from run import Run, make_schedule
from settings import Settings, sanitizer_of

REPOSITORY = Path(__file__).resolve().parents[2]
SECURITY_MODES = ("insecure", "psk", "mtls")


def seeds_of(text: str) -> list[int]:
    """`7`, `1..20`, `1,5,9`."""
    seeds: list[int] = []
    for part in text.split(","):
        first, dots, last = part.partition("..")
        seeds += range(int(first), int(last) + 1) if dots else [int(first)]
    if not seeds:
        raise ValueError("no seeds")
    return seeds


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], epilog=__doc__.splitlines()[2])
    parser.add_argument("--seed", "--seeds", dest="seeds", type=seeds_of, default=[1], metavar="N|A..B",
                        help="one seed, a range such as 1..20, or several: 1,5,9 (default 1)")
    parser.add_argument("--nodes", type=int, choices=range(3, 33), default=4, metavar="N", help="3 to 32 (default 4)")
    parser.add_argument("--seconds", type=float, default=20, help="how long faults continue, in each run (default 20)")
    parser.add_argument("--build", type=Path, default=REPOSITORY / "build" / "release",
                        help="a build folder; that of a sanitizer makes any report of it a crash")
    parser.add_argument("--encoding", choices=("fp32", "fp16", "bf16", "int8"), help="default: by the seed")
    parser.add_argument("--firewall", choices=("warn", "clip", "refuse"), help="default: by the seed")
    parser.add_argument("--security", choices=SECURITY_MODES, default="insecure")
    parser.add_argument("--netns", action="store_true",
                        help="every node in a network namespace of its own; its interface goes down and up. Needs root")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="keep files and logs of the runs there")
    parser.add_argument("--print-schedule", action="store_true", help="print the faults of the seeds, run nothing")
    parser.add_argument("--schedule", type=Path, metavar="FILE",
                        help="these faults, in place of the seed's: lines as --print-schedule --json writes them")
    parser.add_argument("--json", action="store_true", help="with --print-schedule: one JSON object a line")
    chosen = parser.parse_args(arguments)
    if chosen.seconds < 2:
        parser.error("--seconds: at least 2")
    return chosen


def settings_for(chosen: argparse.Namespace, seed: int, sanitizer: str) -> Settings:
    # The choices that a seed makes beside its schedule.
    encoding = chosen.encoding or ("fp32", "fp32", "int8", "bf16")[seed // 2 % 4]
    return Settings(seed=seed, nodes=chosen.nodes, seconds=chosen.seconds, build=chosen.build, sanitizer=sanitizer,
                    encoding=encoding, security=chosen.security, netns=chosen.netns,
                    same_host=seed % 2 == 0 and not chosen.netns, step_budget_ms=20 if seed % 3 == 0 else 0,
                    firewall=chosen.firewall or ("clip", "clip", "clip", "refuse", "warn")[seed % 5])


def schedule_of(chosen: argparse.Namespace, settings: Settings) -> list[schedule.Fault]:
    if chosen.schedule is None:
        return make_schedule(settings)
    return schedule.from_json(chosen.schedule.read_text(encoding="utf-8"), settings.slowness)


def repeat_command(chosen: argparse.Namespace, settings: Settings) -> str:
    parts = ["test/faults/campaign.py", f"--seed {settings.seed}", f"--nodes {settings.nodes}",
             f"--seconds {settings.seconds:g}", f"--build {settings.build}", f"--encoding {settings.encoding}",
             f"--firewall {settings.firewall}"]
    parts += [f"--schedule {chosen.schedule}"] if chosen.schedule is not None else []
    parts += ["--netns"] if settings.netns else []
    parts += [f"--security {settings.security}"] if settings.security != "insecure" else []
    return " ".join(parts)


def run_one(chosen: argparse.Namespace, settings: Settings) -> tuple[judgement.Verdict, float]:
    faults = schedule_of(chosen, settings)
    print(f"\nseed {settings.seed}: {settings.describe()}, {len(faults)} faults in {settings.seconds:g} s", flush=True)
    folder = Path(tempfile.mkdtemp(prefix="dpwa-faults-"))
    network: Network = netns.Namespaces() if settings.netns else ProxyMesh()
    began = time.monotonic()

    def progress(what: str) -> None:
        if sys.stdout.isatty():
            print(f"\r\033[K  {time.monotonic() - began:6.1f} s  {what}", end="", flush=True)

    try:
        (folder / "schedule.txt").write_text(schedule.table(faults) + "\n", encoding="utf-8")
        observed = asyncio.run(Run(settings, folder, faults, network, progress).execute())
        if sys.stdout.isatty():
            print("\r\033[K", end="")
        result = judgement.judge(settings, observed)
        if result.violations:
            print(schedule.table(faults))
            _print_log_ends(folder)
        if chosen.keep is not None:
            kept = chosen.keep / f"seed-{settings.seed}-{settings.nodes}"
            shutil.rmtree(kept, ignore_errors=True)
            shutil.copytree(folder, kept)
        return result, time.monotonic() - began
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _print_log_ends(folder: Path) -> None:
    for log in sorted(folder.glob("*.log")):
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
        print(f"--- the end of {log.name}")
        print("\n".join(lines[-12:]))


HEADINGS = ("seed", "nodes", "verdict", "rounds to recover", "steps", "seconds", "longest gossip ms", "longest wait ms",
            "MiB", "descriptors", "pulls ok", "failed", "restarts", "took s")


def row(settings: Settings, result: judgement.Verdict, took: float) -> list[str]:
    rounds = result.recovery.rounds
    return [str(settings.seed), str(settings.nodes), "FAILED" if result.violations else "held",
            "-" if rounds is None else str(rounds), str(result.recovery.steps), f"{result.recovery.seconds:.2f}",
            f"{result.longest_gossip_ms:.0f}", f"{result.longest_wait_ms:.0f}", f"{result.resident_mib:.0f}",
            str(result.descriptors), str(result.pulls_ok), str(result.pulls_failed), str(result.restarts),
            f"{took:.0f}"]


def print_table(rows: list[list[str]]) -> None:
    widths = [max(len(line[i]) for line in [list(HEADINGS), *rows]) for i in range(len(HEADINGS))]
    print()
    for line in [list(HEADINGS), *rows]:
        print("  ".join(cell.rjust(width) for cell, width in zip(line, widths)))


def main(arguments: list[str]) -> int:
    chosen = parse(arguments)
    if chosen.print_schedule:
        for seed in chosen.seeds:
            faults = make_schedule(settings_for(chosen, seed, ""))
            print(schedule.to_json(faults) if chosen.json else f"seed {seed}\n{schedule.table(faults)}")
        return 0
    trainer = chosen.build / "test" / "process" / "dpwa_vector_trainer"
    if not trainer.exists():
        print(f"campaign.py: no {trainer}: build it, or name the build folder with --build", file=sys.stderr)
        return 2
    if chosen.security == "psk" and not (chosen.build / "bin" / "dpwa").exists():
        print(f"campaign.py: --security psk makes a key with {chosen.build}/bin/dpwa: build dpwa_cli",
              file=sys.stderr)
        return 2
    if chosen.security == "mtls" and shutil.which("openssl") is None:
        print("campaign.py: --security mtls makes certificates with the program openssl: install it", file=sys.stderr)
        return 2
    if chosen.netns and (why := netns.why_not()):
        print(f"skipped: {why}")
        return 0
    # Ended from outside, it still ends what it started.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    sanitizer = sanitizer_of(chosen.build)
    rows, failed = [], []
    for seed in chosen.seeds:
        settings = settings_for(chosen, seed, sanitizer)
        result, took = run_one(chosen, settings)
        rows.append(row(settings, result, took))
        if result.violations:
            failed.append(settings)
            for violation in result.violations:
                print(f"  VIOLATION {violation}")
            print(f"  seed {seed} failed; again: {repeat_command(chosen, settings)}", flush=True)
        else:
            found = result.recovery
            print(f"  held: {result.steps} steps, {result.pulls_ok} pulls; consensus distance {found.steady:.3g}, "
                  f"{found.distance_at_heal:.3g} at the last heal, back after {found.rounds} rounds", flush=True)
    print_table(rows)
    if failed:
        print(f"\n{len(failed)} of {len(rows)} runs broke an invariant: seeds "
              + ", ".join(str(one.seed) for one in failed))
        return 1
    print(f"\nall invariants held in {len(rows)} runs")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
