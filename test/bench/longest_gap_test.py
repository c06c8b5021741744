"""bench/failures: gaps between the steps of survivors, and the rows of longest_gap.py. Pure parts; nothing is started."""

from __future__ import annotations

import sys
import unittest
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench/failures"))

import longest_gap
from gaps import Step, first_averaged, origin, went_on


def steps(*times: float) -> list[Step]:
    return [Step(at) for at in times]


class Gaps(unittest.TestCase):
    def test_a_gap_counts_where_it_ends(self) -> None:
        course = steps(0.0, 0.5, 0.6, 0.9, 1.0)
        self.assertAlmostEqual(longest_gap.longest_gap(course, 0.0, 2.0), 0.5)
        self.assertAlmostEqual(longest_gap.longest_gap(course, 0.55, 2.0), 0.3)
        self.assertAlmostEqual(longest_gap.longest_gap(course, 0.0, 0.55), 0.5)

    def test_no_two_steps_have_no_gap(self) -> None:
        for course in (steps(), steps(1.0), steps(1.0, 2.0)):
            self.assertIsNone(longest_gap.longest_gap(course, 3.0, 4.0))

    def test_a_step_that_was_under_way_is_not_going_on(self) -> None:
        self.assertFalse(went_on(steps(1.0, 5.05), killed=5.0, grace=0.08))
        self.assertTrue(went_on(steps(1.0, 5.1), killed=5.0, grace=0.08))
        self.assertFalse(went_on([], killed=5.0, grace=0.08))

    def test_a_node_is_back_with_its_first_averaged_step(self) -> None:
        course = [Step(1.0), Step(6.0, averaged=False), Step(7.0), Step(8.0)]
        self.assertEqual(first_averaged(course, 5.0), 2.0)
        self.assertIsNone(first_averaged(course, 8.0))

    def test_the_clock_of_a_file_is_taken_from_its_earliest_reading(self) -> None:
        # It began at 100; the file is read 0.4, 0.01 and 0.2 s late.
        self.assertAlmostEqual(origin([(101.4, 1.0), (102.01, 2.0), (103.2, 3.0)]), 100.01)


def round_of(**fields: Any) -> dict[str, Any]:
    plain = {"survivors": 6, "went_on": 6, "before_s": 0.03, "gap_s": 0.1, "ended_after_s": [], "codes": []}
    return {**plain, **fields}


class Rows(unittest.TestCase):
    def test_the_worst_round_counts_in_steps(self) -> None:
        rounds = [round_of(), round_of(gap_s=0.05, back_s=2.0, gap_at_return_s=0.2)]
        row = longest_gap.row("x", rounds, step_ms=20)
        self.assertEqual(row, ["x", "12 of 12 continued", "30 (worst 30) ms", "75 (worst 100) ms", "5.0", "200 ms", "2000 ms"])

    def test_survivors_that_end_have_no_gap(self) -> None:
        row = longest_gap.row("x", [round_of(went_on=0, gap_s=None, ended_after_s=[0.5, 2.0], codes=[1])], step_ms=20)
        self.assertEqual(row[1:5], ["0 of 6 continued, 2 ended after 0.5 to 2.0 s (1)", "30 ms", "-", "-"])


if __name__ == "__main__":
    unittest.main()
