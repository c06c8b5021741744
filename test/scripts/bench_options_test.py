"""bench_options.py and the command line of dpwa-bench: sizes, help, wrong usage."""

from __future__ import annotations

import contextlib
import io
import unittest
from unittest import mock

import scripts_path  # noqa: F401  (before the modules of scripts/)
import dpwa_bench
from lib.bench_options import parse_count, parse_size, text_table
from lib.bench_results import rate_text, size_text, time_text


class Quantities(unittest.TestCase):
    def test_sizes_have_decimal_and_binary_units(self) -> None:
        sizes = {"200": 200, "10KB": 10_000, "100MB": 10**8, "64MiB": 64 << 20, "1.5GB": 15 * 10**8, "400kB": 400_000}
        self.assertEqual({text: parse_size(text) for text in sizes}, sizes)

    def test_a_size_that_is_nothing_negative_odd_or_without_a_number_is_none(self) -> None:
        for text in ("", "0", "-1MB", "MB", "3x", "1.5", "100 MB more", "1e99"):
            self.assertIsNone(parse_size(text), text)

    def test_counts_have_decimal_units(self) -> None:
        for text, count in (("500", 500), ("100k", 100_000), ("10M", 10_000_000), ("1.5G", 1_500_000_000)):
            self.assertEqual(parse_count(text), count, text)

    def test_a_count_that_is_nothing_negative_or_no_whole_number_is_none(self) -> None:
        for text in ("", "0", "-1", "k", "0.5", "1.0001k", "10MB", "1e99"):
            self.assertIsNone(parse_count(text), text)

    def test_sizes_times_and_rates_are_told_in_the_unit_that_suits_them(self) -> None:
        sizes = [size_text(size) for size in (200, 10_000, 10**8, 15 * 10**8)]
        self.assertEqual(sizes, ["200 B", "10 KB", "100 MB", "1.5 GB"])
        self.assertEqual([time_text(t) for t in (21.86, 19700, 2e6)], ["21.9 µs", "19.7 ms", "2 s"])
        self.assertEqual([rate_text(r) for r in (5.068, 0.00364)], ["5.07 GB/s", "3.64 MB/s"])

    def test_numbers_of_a_table_stand_to_the_right(self) -> None:
        self.assertEqual(text_table(["n", "what"], [["1.5", "a"], ["10.5", ""]]), "   n  what\n 1.5  a\n10.5")


class CommandLine(unittest.TestCase):
    def bench(self, *words: str) -> tuple[int, str, str]:
        out, err = io.StringIO(), io.StringIO()
        argv = mock.patch("sys.argv", ["dpwa-bench", *words])
        with argv, contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            return dpwa_bench.main(), out.getvalue(), err.getvalue()

    def test_help_is_a_result_in_lines_of_80_columns(self) -> None:
        for words in ([], *([command] for command in dpwa_bench.COMMANDS)):
            code, out, err = self.bench(*words, "--help")
            self.assertEqual((code, err), (0, ""), words)
            self.assertIn("\nUsage: dpwa-bench", out)
            self.assertIn("  -h,--help ", out)
            self.assertLessEqual(max(map(len, out.splitlines())), 80, out)
        self.assertRegex(self.bench("--help")[1], r"\nSubcommands:\n(.*\n)*  compare  ")

    def test_wrong_usage_is_one_line_and_exit_code_2(self) -> None:
        for words in WRONG:
            code, out, err = self.bench(*words)
            self.assertEqual((code, out, err.count("\n")), (2, "", 1), (words, err))
            self.assertTrue(err.startswith("dpwa-bench: "), err)

    def test_an_unknown_option_names_the_nearest(self) -> None:
        self.assertIn("did you mean '--threshold'?", self.bench("compare", "a", "b", "--treshold", "1")[2])


WRONG = [
    [],
    ["fly"],
    ["compare"],
    ["compare", "/nowhere", "/no"],
    ["compare", "a", "b", "--threshold", "x"],
    ["pull", "--bytes", "3x"],
    ["pull", "--pairs", "0"],
    ["pull", "--all-pull", "1"],
    ["pull", "--pairs", "1", "--all-pull", "2"],
    ["pull", "--ping-pong", "--with-checked-raw"],
    ["pull", "--transport", "pigeon"],
    ["pull", "--checksum", "maybe"],
    ["pull", "--seconds", "-1"],
    ["kvstore", "--workers", "0"],
    ["kvstore", "--type", "dist_async"],
    ["kvstore", "--replicas", "1"],
    ["kvstore", "--bytes", "100", "--keys", "200"],
    ["kvstore", "--torch-python", "python3"],
    ["kvstore", "--ps-lite", "/nowhere"],
    ["memory", "--threads", "0"],
    ["step", "--tensors", "0.5"],
    ["step", "--parameters", "10", "--tensors", "11"],
    ["collective", "--ddp-script", "/nowhere"],
    ["collective", "--model", "gpt"],
    ["choice", "--nodes", "1"],
    ["choice", "--nodes", "many"],
]

if __name__ == "__main__":
    unittest.main()
