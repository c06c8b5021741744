"""Every configuration key is read somewhere: a key that is described and parsed but never used does nothing.

The rows of the table name the field of each key: key("timeout_ms", &GossipConfig::timeout, …). A field counts as read
when other code has its name where it could be. So a name that many structs have, such as `min`, is never found out.
"""

from __future__ import annotations

import re
import unittest
from collections.abc import Iterable
from pathlib import Path

from tour_test import code

ROOT = Path(__file__).resolve().parents[2]
ROW = re.compile(r'\bkey\(\s*"(\w+)",\s*&[\w:]+::(\w+)')
READERS = ("dpwa", "adapters", "examples")


def fields(rows: str) -> list[tuple[str, str]]:
    """Keys and the names of their fields."""
    return ROW.findall(rows)


def unread(named: Iterable[tuple[str, str]], sources: str) -> list[str]:
    """The keys whose field the sources only declare or set."""
    found = []
    for key, field in named:
        use = rf"(?:\.|->){field}\b(?!\s*=[^=])|\b{field}\b(?!\s*(?:=[^=]|;|\{{))"
        if not re.search(use, sources):
            found.append(key)
    return found


class Keys(unittest.TestCase):
    def test_every_key_is_read(self) -> None:
        tables = [file for file in (ROOT / "dpwa/config").glob("*.cpp") if fields(file.read_text(encoding="utf-8"))]
        named = [pair for file in tables for pair in fields(file.read_text(encoding="utf-8"))]
        self.assertGreater(len(named), 50)
        files = (file for folder in READERS for file in (ROOT / folder).rglob("*") if file.suffix in {".cpp", ".h"})
        sources = "\n".join(code(file.read_text(encoding="utf-8")) for file in files if file not in tables)
        self.assertEqual(unread(named, sources), [])

    def test_a_key_that_is_only_declared_or_set_is_not_read(self) -> None:
        named = fields('in.key("pace_ms", &GossipConfig::pace, duration()),')
        self.assertEqual(named, [("pace_ms", "pace")])
        for source in ("struct GossipConfig {\n  Duration pace{};\n};", "Duration pace;", "config.gossip.pace = fresh;"):
            with self.subTest(source):
                self.assertEqual(unread(named, source), ["pace_ms"])
        for source in ("wait(config.gossip.pace);", "return options->pace;", "return 2 * pace + 1;"):
            with self.subTest(source):
                self.assertEqual(unread(named, source), [])


if __name__ == "__main__":
    unittest.main()
