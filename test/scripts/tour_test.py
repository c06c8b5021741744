"""docs/TOUR.md names only files and names that exist.

Its notation: `path/of/a/file.h`: `name`, `other`. That file has to declare or define each name. In a program of
examples/, which shows how something is used, a use is enough.
"""

from __future__ import annotations

import re
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TOUR = ROOT / "docs/TOUR.md"
FILE = re.compile(r"`([\w.-]+(?:/[\w.-]+)+\.(?:h|cpp))`")
ENTRY = re.compile(FILE.pattern + r": (`[\w:]+`(?:, `[\w:]+`)*)\.")


def entries(text: str) -> list[tuple[str, str]]:
    """The pairs of file and name that the text claims."""
    flat = re.sub(r"\s+", " ", text)
    return [(file, name) for file, names in ENTRY.findall(flat) for name in re.findall(r"[\w:]+", names)]


def code(source: str) -> str:
    """The source without comments, include lines and the contents of strings."""
    source = re.sub(r"//[^\n]*|/\*.*?\*/|^ *#include[^\n]*", "", source, flags=re.DOTALL | re.MULTILINE)
    return re.sub(r'"(?:[^"\\\n]|\\.)*"', '""', source)


def declares(source: str, name: str) -> bool:
    """Whether this code declares or defines a type, a function or a constant of that name."""
    name = re.escape(name)
    kinds = (
        rf"\b(?:class|struct|enum class|using|concept) {name}\b(?!::)",
        # A function: after a type, at most four columns into its line; else it is a call.
        rf"^ {{0,4}}(?!(?:return|co_return|co_await|throw|else|new|case)\b)\w[\w:<>,*& \[\]]*[ &*](?:\w+::)*{name}\(",
        rf"^(?:\w+::)*{name}::{name}\(",
        rf"\bconst(?:expr)? [\w:<> ]+ {name}(?:\{{| =)",
    )
    return any(re.search(kind, source, flags=re.MULTILINE) for kind in kinds)


def missing(root: Path, text: str) -> list[str]:
    """What the text names and the sources under root do not have."""
    found = []
    for file, name in entries(text):
        if not (root / file).is_file():
            found.append(f"{file}: no such file")
            continue
        source = code((root / file).read_text(encoding="utf-8"))
        used = file.startswith("examples/") and re.search(rf"\b{re.escape(name)}\b", source)
        if not used and not declares(source, name):
            found.append(f"{file}: no {name}")
    return found


class Tour(unittest.TestCase):
    def test_every_file_and_name_of_the_tour_exists(self) -> None:
        self.assertEqual(missing(ROOT, TOUR.read_text(encoding="utf-8")), [])

    def test_every_source_file_of_the_tour_is_followed_by_names(self) -> None:
        text = TOUR.read_text(encoding="utf-8")
        followed = [file for file, _ in ENTRY.findall(re.sub(r"\s+", " ", text))]
        self.assertGreater(len(followed), 20)
        self.assertEqual(FILE.findall(text), followed)

    def test_the_tour_goes_from_the_loop_to_the_kernels(self) -> None:
        folders = {file.split("/")[0] for file, _ in entries(TOUR.read_text(encoding="utf-8"))}
        self.assertEqual(folders, {"examples", "adapters", "dpwa", "interpolation"})


class Checker(unittest.TestCase):
    def test_a_file_that_does_not_exist_is_missing(self) -> None:
        self.assertEqual(missing(ROOT, "`dpwa/wire/none.h`: `x`."), ["dpwa/wire/none.h: no such file"])

    def test_a_name_that_the_file_does_not_have_is_missing(self) -> None:
        text = "`dpwa/wire/frame.h`: `FrameHeader`, `NoSuchName`."
        self.assertEqual(missing(ROOT, text), ["dpwa/wire/frame.h: no NoSuchName"])

    def test_a_name_that_the_file_only_uses_is_missing(self) -> None:
        for file, name in (
            ("dpwa/gossip/gossip.cpp", "plan_pull"),  # calls it
            ("dpwa/net/client.h", "PullEngine"),  # has a member of that type
            ("dpwa/rules/pull_round.h", "PeerTable"),
            ("adapters/factory.cpp", "config"),  # includes a file of its folder
        ):
            with self.subTest(file=file, name=name):
                self.assertIn(name, (ROOT / file).read_text(encoding="utf-8"))
                self.assertEqual(missing(ROOT, f"`{file}`: `{name}`."), [f"{file}: no {name}"])

    def test_types_functions_and_constants_are_declared_where_they_begin(self) -> None:
        for line in (
            "class x {", "struct x;", "using x = int;", "void x();", "  std::vector<int> x(int a) const;",
            "asio::awaitable<bool> Client::x() {", "x::x() {", "inline constexpr Exchange x{.a = 1};",
        ):
            with self.subTest(line):
                self.assertTrue(declares(code(line + "\n"), "x"))
        for line in ("  y.x();", "  const auto y = x();", "  return x();", "  x y;", "class x::y {", "  log(y, x());", "  x();"):
            with self.subTest(line):
                self.assertFalse(declares(code(line + "\n"), "x"))

    def test_comments_includes_and_strings_are_no_code(self) -> None:
        self.assertEqual(code('a; // b\n/* c\n */ d("e\\"f")\n#include "g/h.h"\n'), 'a; \n d("")\n\n')


if __name__ == "__main__":
    unittest.main()
