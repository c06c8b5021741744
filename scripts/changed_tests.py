#!/usr/bin/env python3
"""Prints the tests that a change can reach, for `ctest -I FILE`, and on stderr how many they are.

A change is what differs from the git revision --since, what is not committed included. It reaches
- a program that is linked from a source that it changes, or that includes a header that it changes;
- a test that runs such a program, itself or in a process that it starts;
- of a program of which only sources of tests change, the tests of these sources;
- a test in Python: when its folder changes or, for those of scripts, anything that scripts read;
- all tests, when it changes how the project is built.

BUILD has been built from the tree as it is.
"""

from __future__ import annotations

from lib import interrupts

if __name__ == "__main__":
    interrupts.end_at_once()  # also during the imports below

import argparse
import json
import re
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from lib.output import checked

REPOSITORY = Path(__file__).resolve().parent.parent
HOW_IT_IS_BUILT = re.compile(r"(^|/)CMake(Lists\.txt|Presets\.json)$|\.cmake$|^scripts/(setup|build)\.sh$")
READ_BY_SCRIPTS = ("scripts/", "docs/", "samples/", "README.md", "CONTRIBUTING.md", "CHANGELOG.md", "test/scripts/")
SOURCES = (".cpp", ".h", ".cu")


@dataclass
class Test:
    """`words`: its command line and environment. `programs`: those that it runs, as paths below the build folder."""

    words: list[str]
    labels: list[str]
    programs: list[str] = field(default_factory=list)

    def has(self, path: str) -> bool:
        return any(word.endswith(("/" + path, "=*" + path)) for word in self.words)


@dataclass
class Build:
    """`objects`: the files of the repository that each object is made of. `linked`: the objects and programs behind
    each program."""

    objects: dict[str, set[str]]
    linked: dict[str, set[str]]

    def reached(self, program: str, changed: Iterable[str]) -> set[str]:
        """The changed files of which the program, or one that it starts, is made."""
        inputs = self.linked.get(program, set())
        return {path for path in changed if any(path in self.objects.get(name, ()) for name in inputs)}


def reaches(test: Test, build: Build, changed: list[str]) -> bool:
    if any(HOW_IT_IS_BUILT.search(path) for path in changed) or any(test.has(path) for path in changed):
        return True
    scripts = [Path(word) for word in test.words if word.endswith(".py") and "/test/" in word]
    folders = tuple(f"{script.parent.relative_to(REPOSITORY)}/" for script in scripts)
    if any(path.startswith(folders) for path in changed if folders):
        return True
    if "scripts" in test.labels and any(path.startswith(READ_BY_SCRIPTS) for path in changed):
        return True
    if any(path.startswith("test/fuzz/corpus/") for path in changed) and any("/corpus/" in word for word in test.words):
        return True
    if "install" in test.labels:
        return any(path.endswith(SOURCES) for path in changed)
    # Where a test names no program, it runs those that are installed.
    programs = test.programs or [name for name in build.linked if name.startswith("bin/")]
    files = set().union(*(build.reached(program, changed) for program in programs))
    only_tests = all(path.endswith("_test.cpp") for path in files)
    names_its_file = any(word.startswith("--source-file=") for word in test.words)
    return bool(files) and not (only_tests and names_its_file)


def output_of(*command: str) -> str:
    """What the command prints; "" when it fails, after its own words. Ends the program when it cannot be run."""
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False).stdout


def changed_since(revision: str) -> list[str]:
    def lines(*arguments: str) -> list[str]:
        return output_of("git", "-C", str(REPOSITORY), *arguments).splitlines()

    return sorted({*lines("diff", "--name-only", revision), *lines("ls-files", "--others", "--exclude-standard")})


def tests_of(folder: Path) -> list[Test]:
    listed = json.loads(output_of("ctest", "--test-dir", str(folder), "--show-only=json-v1"))
    tests = []
    for entry in listed["tests"]:
        properties = {each["name"]: each["value"] for each in entry.get("properties", [])}
        environment = [value.partition("=")[2] for value in properties.get("ENVIRONMENT", [])]
        test = Test(entry.get("command", []) + environment, properties.get("LABELS", []))
        prefix = f"{folder}/"
        inside = [word.removeprefix(prefix) for word in test.words if word.startswith(prefix)]
        test.programs = [name for name in inside if (folder / name).is_file()]
        tests.append(test)
    return tests


def build_of(folder: Path, tests: list[Test]) -> Build:
    objects: dict[str, set[str]] = {}
    name = ""
    for line in output_of("ninja", "-C", str(folder), "-t", "deps").splitlines():
        if line.startswith("    "):
            path = (folder / line.strip()).resolve()
            if path.is_relative_to(REPOSITORY):
                objects[name].add(str(path.relative_to(REPOSITORY)))
        elif ":" in line:
            name = line.partition(":")[0]
            objects[name] = set()
    programs = {program for test in tests for program in test.programs}
    programs |= {f"bin/{path.name}" for path in (folder / "bin").glob("*")}
    linked = {}
    for program in programs:
        linked[program] = set(output_of("ninja", "-C", str(folder), "-t", "inputs", program).splitlines())
    return Build(objects, linked)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", metavar="BUILD", type=Path, help="folder of the build")
    parser.add_argument("--since", metavar="REVISION", required=True, help="git revision to compare with")
    arguments = parser.parse_args()
    folder = arguments.build.resolve()
    if not output_of("git", "-C", str(REPOSITORY), "rev-parse", "--verify", f"{arguments.since}^{{commit}}"):
        return 2  # git has said why
    changed = changed_since(arguments.since)
    tests = tests_of(folder)
    build = build_of(folder, tests)
    numbers = [number for number, test in enumerate(tests, start=1) if reaches(test, build, changed)]
    print(f"{len(changed)} files changed, which can reach {len(numbers)} of {len(tests)} tests", file=sys.stderr)
    print(",".join(str(number) for number in [0, 0, 0, *numbers]))
    return 0


if __name__ == "__main__":
    sys.exit(checked(main))
