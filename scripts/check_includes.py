#!/usr/bin/env python3
"""Checks the rules of docs/ARCHITECTURE.md on includes: which folder may include which.

- interpolation/ includes itself and the standard library, nothing else
- dpwa/ includes interpolation/ and itself; adapters/ those and itself; examples/ all three
- a folder of dpwa/ that is a layer includes itself and the layers that dpwa/CMakeLists.txt, or one in the
  folder, states in dpwa_layer(... USES ...), which must not lead back to it; it includes each of them;
  dpwa/cli/ lies beside the layers: it includes any, and no layer includes it; there is no other C++ below dpwa/
- a layer has sources of its own folder alone, and LINKS libraries of others alone
- bench/ includes dpwa/, interpolation/ and itself; bench/step/, bench/train/ and bench/collective/ alone adapters/ as well
- python/ includes dpwa/, interpolation/ and itself
- one adapter folder never includes another; adapters/common and adapters/*.h are shared;
  adapters/launch/ may include adapters/collective/engine/, which puts failures of c10d into words
- only adapters/, examples/, those of bench/ and their tests see torch
- a file that sees torch never sees spdlog: LibTorch carries another fmt
- what is ours is included in quotes, from the root of the repository, and nothing else is; the programs of
  test/install/consumer/ alone see the installed headers, in angle brackets
- C++ is in files whose names end in .h, .cpp or .cu: no other file is checked, so no other is allowed
- #include with a plain path alone: no #include_next, no #import, no import, no macro, no %: for #

Exit code 0: all hold; 1: some do not, one line each; 2: wrong usage.
"""

from __future__ import annotations

from lib import interrupts

if __name__ == "__main__":
    interrupts.end_at_once()  # also during the imports below

import argparse
import re
import sys
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from lib.output import checked

MAY_INCLUDE = {
    "interpolation": {"interpolation"},
    "dpwa": {"interpolation", "dpwa"},
    "adapters": {"interpolation", "dpwa", "adapters"},
    "examples": {"interpolation", "dpwa", "adapters", "examples"},
    "bench": {"interpolation", "dpwa", "adapters", "bench"},
    "python": {"interpolation", "dpwa", "python"},
    "test": {"interpolation", "dpwa", "adapters", "examples", "bench", "test"},
}
BENCH_FOLDERS = ("bench/step/", "bench/train/", "bench/collective/")
TORCH_FOLDERS = ("adapters/", "examples/", *BENCH_FOLDERS, "test/adapters/", "test/examples/", "test/install/")
TORCH = re.compile(r"(torch|ATen|c10|caffe2)/")
SPDLOG = re.compile(r"(spdlog|fmt)/")
STANDARD = re.compile(r"[a-z_0-9]+$|(cpuid|immintrin|x86intrin|arm_neon|arm_sve)\.h$")
LAYER = re.compile(r"dpwa_layer\(\s*(\w+)([^)]*)\)")
SUFFIXES = {".h", ".cpp", ".cu"}
OTHER_SUFFIXES = {
    ".c", ".c++", ".cc", ".cppm", ".cuh", ".cxx", ".def", ".h++", ".hh", ".hpp", ".hxx", ".i", ".ii", ".impl", ".inc",
    ".inl", ".ipp", ".ixx", ".tcc", ".tpl", ".tpp", ".txx",
}
INSTALLED = "test/install/consumer/"
COMMENTS = r"(?:\s|/\*.*?\*/)*"
DIRECTIVE = re.compile(rf"^(?:.*\*/)?{COMMENTS}(#|%:){COMMENTS}(include(?:_next)?|import)\b(.*)")
MODULE = re.compile(r'^\s*(?:export\s+)?import\s*["<]')
BESIDE_LAYERS = "cli"
PATH = re.compile(rf'^{COMMENTS}(?:"([^"]+)"|<([^>]+)>)')


@dataclass(frozen=True)
class Include:
    line: int
    quoted: bool
    path: str  # without a plain path: the directive as it is written
    plain: bool = True


@dataclass(frozen=True)
class Layer:
    stated_in: str  # the build file with its dpwa_layer()
    uses: set[str]
    sources: set[str]
    links: set[str]


def parse(text: str) -> list[Include]:
    found = []
    # A line that continues in the next one counts where it ends.
    def joined(lines: re.Match[str]) -> str:
        return "\n" * lines[0].count("\n") + lines[0].replace("\\\n", "")

    spliced = re.sub(r"(?:[^\n]*\\\n)+", joined, text)
    for number, line in enumerate(spliced.splitlines(), start=1):
        if MODULE.match(line):
            found.append(Include(number, False, line.strip(), plain=False))
        if not (directive := DIRECTIVE.match(line)):
            continue
        path = PATH.match(directive[3])
        if path and directive[1] == "#" and directive[2] == "include":
            found.append(Include(number, path[1] is not None, path[1] or path[2]))
        else:
            found.append(Include(number, False, f"{directive[1]}{directive[2]}{directive[3]}", plain=False))
    return found


class Tree:
    """The sources under one root and what each of them includes."""

    def __init__(self, root: Path) -> None:
        self.root = root

    @cached_property
    def includes(self) -> dict[str, list[Include]]:
        """Include lines by file, both as paths from the root."""
        result = {}
        for folder in MAY_INCLUDE:
            for path in sorted((self.root / folder).rglob("*")):
                if path.suffix in SUFFIXES:
                    text = path.read_text(encoding="utf-8")
                    result[path.relative_to(self.root).as_posix()] = parse(text)
        return result

    def unread(self) -> list[str]:
        """The files of C++ whose suffix keeps them from being checked, as paths from the root."""
        return [
            path.relative_to(self.root).as_posix()
            for folder in MAY_INCLUDE
            for path in sorted((self.root / folder).rglob("*"))
            if path.suffix.lower() in OTHER_SUFFIXES | SUFFIXES and path.suffix not in SUFFIXES
        ]

    @cached_property
    def layers(self) -> dict[str, Layer]:
        """The layers of dpwa/ by name."""
        result = {}
        for path in sorted((self.root / "dpwa").rglob("CMakeLists.txt")):
            text = re.sub(r"#[^\n]*", "", path.read_text(encoding="utf-8"))
            for name, words in LAYER.findall(text):
                lists: dict[str, set[str]] = {"SOURCES": set(), "USES": set(), "LINKS": set()}
                current: set[str] = set()
                for word in words.split():
                    if word in lists:
                        current = lists[word]
                    else:
                        current.add(word)
                result[name] = Layer(path.relative_to(self.root).as_posix(), lists["USES"], lists["SOURCES"],
                                     lists["LINKS"])
        return result

    def is_ours(self, path: str) -> bool:
        """Whether a path in angle brackets leads to a file of this tree, from its root or beside another file."""
        return path in self.includes or path.split("/")[0] in MAY_INCLUDE or "../" in path

    def reached(self, file: str) -> set[str]:
        """Every include path that `file` sees, its own and those of our headers, however deep."""
        seen: set[str] = set()
        waiting = [file]
        while waiting:
            for include in self.includes.get(waiting.pop(), []):
                if include.path not in seen:
                    seen.add(include.path)
                    waiting.append(include.path)
        return seen


def layer_of(path: str) -> str:
    """The folder of dpwa/ that `path` is in; empty for other files."""
    parts = path.split("/")
    return parts[1] if parts[0] == "dpwa" and len(parts) > 2 else ""


def used_by_include(path: str) -> str:
    """What USES has to state for an include of `path`; empty for files that are of no layer."""
    return "interpolation" if path.startswith("interpolation/") else layer_of(path)


def layer_problem(layers: dict[str, Layer], file: str, include: Include) -> str | None:
    """What is wrong with an include line of a layer of dpwa/."""
    source, target = layer_of(file), used_by_include(include.path)
    if not source or not target or source == target or source not in layers:
        return None
    if target not in layers and target != "interpolation":
        return f"dpwa/{target}/ is no layer: none may include it"
    if target not in layers[source].uses:
        return f"{layers[source].stated_in} does not state that the layer uses {target}"
    return None


def layer_cycles(layers: dict[str, Layer]) -> list[str]:
    """The layers that lead back to themselves."""
    lines = []
    for layer in layers:
        seen: set[str] = set()
        waiting = list(layers[layer].uses)
        while waiting:
            used = waiting.pop()
            if used not in seen:
                seen.add(used)
                if used in layers:
                    waiting.extend(layers[used].uses)
        if layer in seen:
            lines.append(f"{layers[layer].stated_in}: the layers that {layer} uses lead back to it")
    return lines


def list_problems(layers: dict[str, Layer]) -> list[str]:
    """Sources of other folders, and layers that are linked without being stated in USES."""
    lines = []
    for name, layer in layers.items():
        lines += [f"{layer.stated_in}: {source} of {name} is not in the folder of the layer"
                  for source in sorted(layer.sources) if ".." in source.split("/")]
        lines += [f"{layer.stated_in}: {name} LINKS {link}: a layer is stated in USES"
                  for link in sorted(layer.links) if link.startswith("dpwa")]
    return lines


def unused_layers(tree: Tree) -> list[str]:
    """What layers state in USES and include nowhere."""
    included: dict[str, set[str]] = {}
    for file, includes in tree.includes.items():
        included.setdefault(layer_of(file), set()).update(used_by_include(include.path) for include in includes)
    return [f"{layer.stated_in}: {name} USES {used}, and no file of the layer includes it"
            for name, layer in tree.layers.items() for used in sorted(layer.uses - included.get(name, set()))]


def adapter_folder(path: str) -> str:
    """The folder below adapters/ that `path` is in; empty for adapters/*.h and adapters/*.cpp."""
    parts = path.split("/")
    return parts[1] if parts[0] == "adapters" and len(parts) > 2 else ""


def arrow_problem(file: str, include: Include) -> str | None:
    """What is wrong with one include line of ours."""
    layer, target = file.split("/")[0], include.path.split("/")[0]
    if target not in MAY_INCLUDE[layer]:
        return f"{layer}/ must not include {target}/"
    if layer == "bench" and target == "adapters" and not file.startswith(BENCH_FOLDERS):
        return f"of bench/, {', '.join(BENCH_FOLDERS)} alone may include adapters/"
    source_adapter, target_adapter = adapter_folder(file), adapter_folder(include.path)
    if source_adapter == "launch" and include.path.startswith("adapters/collective/engine/"):
        return None
    shared_header = layer == "adapters" and not source_adapter and file.endswith(".h")
    if (source_adapter or shared_header) and target_adapter not in {"", "common", source_adapter}:
        return f"{source_adapter or 'a shared header'} must not include the adapter {target_adapter}"
    return None


def problem(tree: Tree, file: str, include: Include) -> str | None:
    """What is wrong with one include line; None when it follows the rules."""
    if not include.plain:
        return "write #include with a path in quotes or angle brackets"
    if include.quoted:
        if include.path not in tree.includes:
            return "there is no such .h, .cpp or .cu file from the root of the repository"
        return layer_problem(tree.layers, file, include) or arrow_problem(file, include)
    if tree.is_ours(include.path) and not file.startswith(INSTALLED):
        return "what is ours is included in quotes, from the root of the repository"
    if file.startswith("interpolation/") and not STANDARD.match(include.path):
        return "interpolation/ has no dependencies"
    if TORCH.match(include.path) and not file.startswith(TORCH_FOLDERS):
        return f"torch is for adapters/, examples/, {', '.join(BENCH_FOLDERS)} and their tests alone"
    return None


def check(root: Path) -> list[str]:
    """Every violation under `root`, one line each."""
    tree = Tree(root)
    lines = layer_cycles(tree.layers) + list_problems(tree.layers) + unused_layers(tree)
    lines += [
        f"{file}: C++ of dpwa/ is in the folder of a layer or in dpwa/{BESIDE_LAYERS}/"
        for file in tree.includes
        if file.startswith("dpwa/") and layer_of(file) not in {*tree.layers, BESIDE_LAYERS}
    ]
    lines += [f"{file}: C++ is in files that end in .h, .cpp or .cu: others are not checked" for file in tree.unread()]
    for file, includes in tree.includes.items():
        for include in includes:
            if what := problem(tree, file, include):
                lines.append(f"{file}:{include.line}: {include.path}: {what}")
        reached = tree.reached(file)
        logs = sorted(path for path in reached if SPDLOG.match(path))
        if logs and any(TORCH.match(path) for path in reached):
            lines.append(f"{file}: sees torch and {logs[0]}: log through dpwa/log/log.h")
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = Path(__file__).resolve().parent.parent
    parser.add_argument("root", metavar="ROOT", nargs="?", type=Path, default=default,
                        help="the root of a source tree; without it, of this one")
    root = parser.parse_args().root
    missing = [folder for folder in ("dpwa", "interpolation") if not (root / folder).is_dir()]
    if missing:
        parser.error(f"{root} has no folder {missing[0]}/; accepted: the root of a source tree of dpwa")
    violations = check(root)
    print("\n".join(violations) if violations else "ok includes: the arrows hold", file=sys.stderr)
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(checked(main))
