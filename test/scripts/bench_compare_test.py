"""bench_compare.py: which figures of two results are compared, and which one is worse."""

from __future__ import annotations

import unittest
from typing import Any

import scripts_path  # noqa: F401  (before the modules of scripts/)
from lib.bench_compare import Comparison, compare


def pull(rate: float, spread: float, size: int = 1000) -> dict[str, Any]:
    latencies = {"min": 100 / (rate + spread), "max": 100 / (rate - spread)}
    return {
        **{"kind": "pull", "bytes": size, "transport": "tcp", "gb_per_s": rate, "settings": {"gb_per_s": 7}},
        "latency_us": {"median": 100 / rate, "p99": 1000},
        "windows": {"count": 3, "gb_per_s": {"min": rate - spread, "max": rate + spread}, "latency_us": latencies},
    }


def row(rows: list[Comparison], end: str) -> Comparison:
    return next(one for one in rows if one.label.endswith(end))


class Compare(unittest.TestCase):
    def test_a_document_is_as_good_as_itself(self) -> None:
        rows = compare(pull(5, 0.1), pull(5, 0.1), 0.9)
        self.assertEqual([(one.ratio, one.worse) for one in rows], [(1, False)] * 2)

    def test_less_throughput_and_more_latency_are_worse_the_other_way_round_is_not(self) -> None:
        slower = compare(pull(5, 0.1), pull(4, 0.1), 0.9)
        for figure in ("gb_per_s", "latency_us"):
            self.assertAlmostEqual(row(slower, figure).ratio, 0.8)
            self.assertTrue(row(slower, figure).worse)
        for one in compare(pull(4, 0.1), pull(5, 0.1), 0.9):
            self.assertAlmostEqual(one.ratio, 1.25)
            self.assertFalse(one.worse)

    def test_what_is_within_the_threshold_or_the_spread_of_the_windows_is_not_worse(self) -> None:
        for before, after in ((pull(5, 0.1), pull(4.6, 0.1)), (pull(5, 0.6), pull(4, 0.6))):
            self.assertFalse(any(one.worse for one in compare(before, after, 0.9)))

    def test_a_figure_without_windows_is_judged_by_the_threshold_alone(self) -> None:
        before = {"kind": "raw", "bytes": 5, "peak_rss_mib": 10.0}
        (only,) = compare(before, {**before, "peak_rss_mib": 20.0}, 0.9)
        self.assertEqual((only.ratio, only.worse), (0.5, True))

    def test_a_figure_that_is_a_range_is_judged_by_it(self) -> None:
        before = {"kind": "pull", "ratio_to_raw": {"min": 0.7, "median": 0.8, "max": 0.9}}
        near = {"kind": "pull", "ratio_to_raw": {"min": 0.5, "median": 0.6, "max": 0.75}}
        far = {"kind": "pull", "ratio_to_raw": {"min": 0.5, "median": 0.6, "max": 0.65}}
        self.assertEqual([compare(before, one, 0.9)[0].worse for one in (near, far)], [False, True])

    def test_bare_sockets_that_ran_beside_a_pull_are_not_compared(self) -> None:
        before, after = ({**pull(5, 0.1), "raw": {"gb_per_s": rate}} for rate in (6.0, 1.0))
        self.assertEqual({one.ratio for one in compare(before, after, 0.9)}, {1})

    def test_measurements_are_matched_by_their_settings_in_whatever_order_and_company(self) -> None:
        before = {"results": [pull(5, 0.1, 1000), pull(8, 0.1, 2000)]}
        after = {"results": [pull(8, 0.1, 2000), pull(3, 0.1, 3000), pull(5, 0.1, 1000)]}
        self.assertEqual([one.ratio for one in compare(before, after, 0.9)], [1] * 4)

    def test_documents_of_different_things_have_nothing_in_common(self) -> None:
        self.assertEqual(compare(pull(5, 0.1, 1000), pull(5, 0.1, 2000), 0.9), [])
        self.assertEqual(compare([], pull(5, 0.1), 0.9), [])

    def test_steps_of_another_model_are_another_measurement_and_those_of_a_peer_are_none(self) -> None:
        def steps(model: str, step_us: float) -> dict[str, Any]:
            return {
                **{"kind": "collective", "model": model, "nodes": 2},
                "dpwa": {"step_us": {"median": step_us, "p99": step_us}},
                "ddp": {"step_us": {"median": 1, "p99": 1}},
                "ratio_to_ddp": {"min": step_us, "median": step_us, "max": step_us},
            }

        rows = compare(steps("mlp", 100), steps("mlp", 200), 0.9)
        self.assertEqual(len(rows), 2)
        self.assertTrue(row(rows, "dpwa: step_us").worse)
        self.assertTrue(row(rows, ": ratio_to_ddp").worse)
        self.assertEqual(compare(steps("mlp", 100), steps("resnet18", 200), 0.9), [])


if __name__ == "__main__":
    unittest.main()
