#!/usr/bin/env python3
"""Prints how large the source tree is: files, lines, the median length of files, words of the documents, the longest
chain of includes.

A file counts where git tracks it. Lines are those of C++ (.h, .cpp, .cu). Documents are README.md, CONTRIBUTING.md and
docs/*.md. A chain of includes goes from a source to the last header of this repository that it reaches, by the longest
way.
"""

from __future__ import annotations

import argparse
import re
import statistics
import subprocess
import sys
from pathlib import Path

from check_includes import Tree
from lib.output import checked

CPP = (".h", ".cpp", ".cu")


def tracked(root: Path) -> list[str]:
    command = ["git", "-C", str(root), "ls-files", "-z"]
    return [name for name in subprocess.run(command, check=True, capture_output=True, text=True).stdout.split("\0") if name]


def lines_of(root: Path, names: list[str]) -> list[int]:
    return [(root / name).read_text(encoding="utf-8", errors="replace").count("\n") for name in names]


def words_of(root: Path, names: list[str]) -> int:
    documents = [name for name in names if name in ("README.md", "CONTRIBUTING.md") or re.fullmatch(r"docs/[^/]+\.md", name)]
    return sum(len((root / name).read_text(encoding="utf-8").split()) for name in documents)


def longest_chain(includes: dict[str, list[str]], start: str, known: dict[str, list[str]]) -> list[str]:
    """The files of the longest chain that begins at `start`. Includes have no cycles."""
    if start not in known:
        chains = (longest_chain(includes, path, known) for path in includes[start] if path in includes)
        known[start] = [start, *max(chains, key=len, default=[])]
    return known[start]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("root", metavar="ROOT", nargs="?", type=Path, default=Path(__file__).resolve().parent.parent,
                        help="the root of a clone; without it, of this one")
    root = parser.parse_args().root
    try:
        names = tracked(root)
    except (OSError, subprocess.CalledProcessError):
        parser.error(f"{root}: accepted: the root of a clone of the repository")
    print(f"tracked files: {len(names)}")
    for folder in ("dpwa", "adapters", "test"):
        lengths = lines_of(root, [name for name in names if name.startswith(f"{folder}/") and name.endswith(CPP)])
        if not lengths:
            continue
        print(f"{folder}/: {len(lengths)} files of C++, {sum(lengths)} lines, "
              f"median {statistics.median(lengths):g}, longest {max(lengths)}")
    print(f"documents: {words_of(root, names)} words")
    includes = {file: [one.path for one in found] for file, found in Tree(root).includes.items()}
    known: dict[str, list[str]] = {}
    for folder in ("dpwa/", ""):
        chains = [longest_chain(includes, file, known) for file in includes if file.startswith(folder)]
        longest = max(chains, key=len, default=[])
        print(f"longest chain of includes in {folder or 'the tree'}: {len(longest)} files, from {longest[0]}")
    return 0


if __name__ == "__main__":
    sys.exit(checked(main))
