"""bench/compare/straggler.py: time to a target and the table. Pure parts; nothing is started."""

from __future__ import annotations

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench/compare"))

import straggler


class Straggler(unittest.TestCase):
    def test_the_target_is_passed_by_the_mean_of_what_each_node_measured_last(self) -> None:
        courses = [[(1.0, 0.8), (2.0, 0.96)], [(1.5, 0.9), (2.5, 0.94)]]
        self.assertEqual(straggler.time_to(0.95, courses), 2.5)
        self.assertEqual(straggler.time_to(0.85, courses), 1.5)
        self.assertIsNone(straggler.time_to(0.97, courses))
        self.assertIsNone(straggler.time_to(0.5, [*courses, []]))

    def test_a_table_has_both_rows_of_a_split_and_their_paired_difference(self) -> None:
        def row(seed: int, ledger: bool, value: float, to_target: float | None) -> dict[str, object]:
            figures = dict.fromkeys(("rate", "averaged", "nodes", "worst"), value)
            return {"split": "iid", "seed": seed, "ledger": ledger, **figures, "to_target": to_target}

        rows = [row(1, False, 0.8, 9.0), row(1, True, 1.0, 8.0), row(2, True, 0.9, None), row(2, False, 0.8, 9.0)]
        off, on, gain = straggler.table(rows).splitlines()[2:]
        self.assertTrue(off.startswith("| `iid` | off | 0.800 ± 0.000 |"))
        self.assertIn("| 0.950 ± 0.050 |", on)
        self.assertTrue(on.endswith("| 8.0 ± 0.0 (1 of 2) |"))
        self.assertIn("| +0.150 ± 0.050 |", gain)
        self.assertTrue(gain.endswith("| – |"))  # one pair has no standard error


if __name__ == "__main__":
    unittest.main()
