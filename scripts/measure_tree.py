#!/usr/bin/env python3
"""Prints how large the source tree is: files, lines, words, the median length of files, the longest chain of includes.
With --compile also what it costs to compile.

A file counts where git tracks it. Lines are those of C++ (.h, .cpp, .cu). Words are those of README.md,
CONTRIBUTING.md and docs/. A chain of includes goes from a source to the last header of this repository that it reaches,
by the longest way.

--compile configures the preset `release` in the new folder build/measured, without a compiler cache, and builds there
what scripts/demo.sh builds, or the targets that are named. Seconds are those of processors, user and system, which
other work of the machine changes little.
"""

from __future__ import annotations

from lib import interrupts

if __name__ == "__main__":
    interrupts.end_at_once()  # also during the imports below

import argparse
import os
import re
import shutil
import statistics
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

from check_includes import Tree
from lib.output import checked

CPP = (".h", ".cpp", ".cu")
OBJECT_FOLDER = re.compile(r"(?:.*/)?CMakeFiles/([^/]+)\.dir/")


def tracked(root: Path) -> list[str]:
    command = ["git", "-C", str(root), "ls-files", "-z"]
    return [name for name in subprocess.run(command, check=True, capture_output=True, text=True).stdout.split("\0") if name]


def text_of(root: Path, name: str) -> str:
    return (root / name).read_text(encoding="utf-8", errors="replace")


def lines_of(root: Path, names: list[str]) -> list[int]:
    return [text_of(root, name).count("\n") for name in names]


def longest_chain(includes: dict[str, list[str]], start: str, known: dict[str, list[str]]) -> list[str]:
    """The files of the longest chain that begins at `start`. Includes have no cycles."""
    if start not in known:
        chains = (longest_chain(includes, path, known) for path in includes[start] if path in includes)
        known[start] = [start, *max(chains, key=len, default=[])]
    return known[start]


def print_size(root: Path, names: list[str]) -> None:
    print(f"tracked files: {len(names)}")
    cpp = [name for name in names if name.endswith(CPP)]
    outside = [name for name in cpp if not name.startswith("test/")]
    print(f"C++ outside test/: {len(outside)} files, {sum(lines_of(root, outside))} lines")
    documents = [name for name in names if re.fullmatch(r"(README|CONTRIBUTING|docs/[^/]+)\.md", name)]
    print(f"documents: {len(documents)} files, {sum(len(text_of(root, name).split()) for name in documents)} words")
    for folder in ("dpwa", "adapters", "test"):
        lengths = lines_of(root, [name for name in cpp if name.startswith(f"{folder}/")])
        if not lengths:
            continue
        print(f"{folder}/: {len(lengths)} files of C++, {sum(lengths)} lines, "
              f"median {statistics.median(lengths):g}, longest {max(lengths)}")
    print_invariants(root, cpp)
    includes = {file: [one.path for one in found] for file, found in Tree(root).includes.items()}
    known: dict[str, list[str]] = {}
    for folder in ("dpwa/", ""):
        chains = [longest_chain(includes, file, known) for file in includes if file.startswith(folder)]
        longest = max(chains, key=len, default=[])
        print(f"longest chain of includes in {folder or 'the tree'}: {len(longest)} files, from {longest[0]}")


def print_invariants(root: Path, cpp: list[str]) -> None:
    """How many a layer of dpwa/ has, of those that have any, and for 1,000 lines."""
    layers: dict[str, list[str]] = defaultdict(list)
    for name in cpp:
        if re.match(r"dpwa/\w+/", name) and name != "dpwa/base/invariant.h":
            layers[name.split("/")[1]].append(name)
    counts = {layer: sum(text_of(root, name).count("DPWA_INVARIANT(") for name in of) for layer, of in layers.items()}
    words = (f"{layer} {count} ({1000 * count / sum(lines_of(root, layers[layer])):.1f})"
             for layer, count in sorted(counts.items(), key=lambda item: -item[1]) if count)
    print(f"invariants, and for 1,000 lines: {', '.join(words)}")


def demo_targets(root: Path) -> list[str]:
    return re.findall(r"--target (\w+)", text_of(root, "scripts/demo.sh"))


def torch_folder(root: Path) -> str | None:
    """That of a build of this clone, or of scripts/setup.sh."""
    record = root / ".venv" / "torch_dir"
    return os.environ.get("Torch_DIR") or (record.read_text().strip() if record.is_file() else None)


def compile_targets(root: Path, targets: list[str]) -> list[tuple[str, float, int]]:
    """Builds them from nothing. Object, processor seconds and MiB of each call of the compiler."""
    folder = root / "build" / "measured"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    log = folder / "compile_log.tsv"
    launcher = root / "scripts" / "lib" / "measured_compile.py"
    configure = ["cmake", "--preset", "release", "-B", str(folder), f"-DCMAKE_CXX_COMPILER_LAUNCHER={launcher}"]
    if torch := torch_folder(root):
        configure.append(f"-DTorch_DIR={torch}")
    environment = {**os.environ, "DPWA_COMPILE_LOG": str(log), "CCACHE_DISABLE": "1"}
    # What CMake tries out while it configures is not of the tree.
    quiet = {**environment, "DPWA_COMPILE_LOG": os.devnull}
    subprocess.run(configure, cwd=root, env=quiet, check=True, stdout=sys.stderr)
    subprocess.run(["ninja", "-C", str(folder), *targets], env=environment, check=True, stdout=sys.stderr)
    rows = (line.split("\t") for line in log.read_text(encoding="utf-8").splitlines())
    # The compiler links too: that is no object.
    return [(made, float(seconds), int(mebibytes)) for made, seconds, mebibytes in rows if made.endswith(".o")]


def print_compile(objects: list[tuple[str, float, int]]) -> None:
    by_target: dict[str, list[tuple[str, float, int]]] = defaultdict(list)
    for one in objects:
        found = OBJECT_FOLDER.match(one[0])
        by_target[found[1] if found else "others"].append(one)

    def seconds(of: list[tuple[str, float, int]]) -> float:
        return sum(each[1] for each in of)

    print(f"{'target':<32}{'objects':>8}{'seconds':>9}{'largest MiB':>13}")
    for target, own in sorted(by_target.items(), key=lambda item: -seconds(item[1])):
        print(f"{target:<32}{len(own):>8}{seconds(own):>9.1f}{max(each[2] for each in own):>13}")
    largest = max(objects, key=lambda each: each[2])
    slowest = max(objects, key=lambda each: each[1])
    print(f"{'all':<32}{len(objects):>8}{seconds(objects):>9.1f}{largest[2]:>13}")
    print(f"largest: {largest[0]}, {largest[2]} MiB\nslowest: {slowest[0]}, {slowest[1]:.1f} s")


def main() -> int:
    interrupts.raise_again()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("root", metavar="ROOT", nargs="?", type=Path, default=Path(__file__).resolve().parent.parent,
                        help="the root of a clone; without it, of this one")
    parser.add_argument("--compile", metavar="TARGET", nargs="*",
                        help="build these targets and print what that costs; without a name, those of scripts/demo.sh")
    arguments = parser.parse_args()
    root = arguments.root.resolve()
    try:
        names = tracked(root)
    except (OSError, subprocess.CalledProcessError):
        parser.error(f"{root}: accepted: the root of a clone of the repository")
    print_size(root, names)
    if arguments.compile is None:
        return 0
    sys.stdout.flush()
    try:
        objects = compile_targets(root, arguments.compile or demo_targets(root))
    except subprocess.CalledProcessError as error:
        print(f"measure_tree.py: exit code {error.returncode}: {' '.join(error.cmd[:2])}", file=sys.stderr)
        return 1
    print_compile(objects)
    return 0


if __name__ == "__main__":
    sys.exit(checked(main))
