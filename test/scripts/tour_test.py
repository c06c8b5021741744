"""docs/TOUR.md names only files and names that exist.

Its notation: `path/of/a/file.h`: `name`, `other`. Each name has to be in that file, outside of comments.
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


def without_comments(source: str) -> str:
    return re.sub(r"//[^\n]*|/\*.*?\*/", "", source, flags=re.DOTALL)


def missing(root: Path, text: str) -> list[str]:
    """What the text names and the sources under root do not have."""
    found = []
    for file, name in entries(text):
        if not (root / file).is_file():
            found.append(f"{file}: no such file")
        elif not re.search(rf"\b{re.escape(name)}\b", without_comments((root / file).read_text(encoding="utf-8"))):
            found.append(f"{file}: no {name}")
    return found


class Tour(unittest.TestCase):
    def test_every_file_and_name_of_the_tour_exists(self) -> None:
        self.assertEqual(missing(ROOT, TOUR.read_text(encoding="utf-8")), [])

    def test_every_source_file_of_the_tour_is_followed_by_names(self) -> None:
        text = TOUR.read_text(encoding="utf-8")
        named = {file for file, _ in entries(text)}
        self.assertGreater(len(named), 20)
        self.assertEqual(set(FILE.findall(text)) - named, set())

    def test_the_tour_goes_from_the_loop_to_the_kernels(self) -> None:
        folders = {file.split("/")[0] for file, _ in entries(TOUR.read_text(encoding="utf-8"))}
        self.assertEqual(folders, {"examples", "adapters", "dpwa", "interpolation"})


class Checker(unittest.TestCase):
    def test_a_file_that_does_not_exist_is_missing(self) -> None:
        self.assertEqual(missing(ROOT, "`dpwa/wire/none.h`: `x`."), ["dpwa/wire/none.h: no such file"])

    def test_a_name_that_the_file_does_not_have_is_missing(self) -> None:
        text = "`dpwa/wire/frame.h`: `FrameHeader`, `NoSuchName`."
        self.assertEqual(missing(ROOT, text), ["dpwa/wire/frame.h: no NoSuchName"])

    def test_comments_do_not_count(self) -> None:
        self.assertEqual(without_comments("a; // b\n/* c\n */ d"), "a; \n d")


if __name__ == "__main__":
    unittest.main()
