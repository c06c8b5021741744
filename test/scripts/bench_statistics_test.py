"""bench_statistics.py: medians and ranges, and when a machine counts as noisy."""

from __future__ import annotations

import unittest

import scripts_path  # noqa: F401  (before the modules of scripts/)
from lib.bench_statistics import NoiseWatch, ProcessorTime, judge, quantile, range_of, ratios, spread_of


class Quantiles(unittest.TestCase):
    def test_a_quantile_is_the_value_of_the_nearest_rank(self) -> None:
        values = [5.0, 1.0, 4.0, 2.0, 3.0]
        self.assertEqual([quantile(values, q) for q in (0, 0.5, 0.99, 1)], [1, 3, 5, 5])
        self.assertEqual(quantile([7, 1], 0.5), 1)

    def test_the_99th_percentile_of_a_hundred_values_is_the_last_but_one(self) -> None:
        self.assertEqual(quantile([float(i) for i in range(1, 101)], 0.99), 99)

    def test_a_range_has_the_lowest_the_median_and_the_highest_value(self) -> None:
        range_ = range_of([2, 9, 4])
        self.assertEqual(range_, {"min": 2, "median": 4, "max": 9})
        self.assertAlmostEqual(spread_of(range_), 7 / 4)

    def test_nothing_has_no_quantiles_and_no_spread(self) -> None:
        self.assertEqual((quantile([], 0.5), range_of([])["max"], spread_of(range_of([]))), (0, 0, 0))

    def test_ratios_are_those_of_each_window(self) -> None:
        self.assertEqual(ratios([2, 9, 4], [1, 3, 4]), {"min": 1, "median": 2, "max": 3})


class Time(unittest.TestCase):
    def test_the_time_of_all_processors_is_read_from_the_first_line(self) -> None:
        # user nice system idle iowait irq softirq steal guest guest_nice
        time = ProcessorTime.parse("cpu  100 10 50 800 20 5 5 10 0 0\ncpu0 1 1 1 1 1 1 1 1 0 0\n", 100)
        self.assertAlmostEqual(time.busy, 1.7)
        self.assertAlmostEqual(time.steal, 0.1)
        self.assertAlmostEqual(time.total, 10)

    def test_a_text_of_another_form_gives_no_time(self) -> None:
        for text in ("", "intr 1 2 3\n", "cpu 1 2 3\n", "cpu a b c d e f g h\n"):
            with self.subTest(text):
                self.assertEqual(ProcessorTime.parse(text, 100).total, 0)


class Noise(unittest.TestCase):
    BEFORE = ProcessorTime(10, 0, 100)

    def test_a_quiet_machine_gives_no_reason_to_doubt(self) -> None:
        noise = judge(0.1, self.BEFORE, ProcessorTime(12, 0.01, 104), 1.9)
        self.assertEqual((noise["noisy"], noise["reasons"]), (False, []))
        self.assertAlmostEqual(noise["other_load"], 0.025)

    def test_windows_that_differ_other_work_and_steal_are_told_apart(self) -> None:
        nothing = ProcessorTime()
        self.assertEqual(judge(0.2, nothing, nothing, 0)["reasons"], ["the windows differ by 20 %"])
        other = judge(0, self.BEFORE, ProcessorTime(13, 0, 104), 1)
        self.assertEqual(other["reasons"], ["other work took 50 % of the processors"])
        steal = judge(0, self.BEFORE, ProcessorTime(11, 1, 104), 1)
        self.assertEqual(steal["reasons"], ["the host took 25 % of the processors"])
        self.assertEqual(len(judge(0.2, self.BEFORE, ProcessorTime(13, 1, 104), 1)["reasons"]), 3)

    def test_more_time_of_our_own_than_the_machine_counted_is_no_load_of_others(self) -> None:
        self.assertEqual(judge(0, self.BEFORE, ProcessorTime(11, 0, 104), 2)["other_load"], 0)

    def test_a_watch_leaves_out_its_own_processes(self) -> None:
        watch = NoiseWatch()
        watch.also_used(1e9)  # of processes that still run
        self.assertEqual(watch.judge(0)["other_load"], 0)


if __name__ == "__main__":
    unittest.main()
