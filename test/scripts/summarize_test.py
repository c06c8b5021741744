"""summarize.py writes the summary.json that the documentation promises."""

from __future__ import annotations

import contextlib
import io
import json
import math
import tempfile
import unittest
from pathlib import Path
from typing import Any
from unittest import mock

import scripts_path  # noqa: F401  (before the modules of scripts/)

try:
    import summarize
except ModuleNotFoundError:
    summarize = None


def result(node: str, accuracy: float, averaged: dict[str, Any] | None) -> dict[str, Any]:
    fields: dict[str, Any] = dict.fromkeys(summarize.NODE_KEYS, 1)
    fields.update(node=node, dataset="mnist", split="iid", model="mlp", seed=7, test_accuracy=accuracy)
    return {**fields, "averaged_model": averaged}


def average(accuracy: float, participants: int, distance: float) -> dict[str, Any]:
    return {"test_accuracy": accuracy, "test_loss": 0.1, "participants": participants, "distance": distance}


@unittest.skipIf(summarize is None, "the Python tools of .venv are not there")
class Summarize(unittest.TestCase):
    def setUp(self) -> None:
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = Path(scratch.name)

    def write(self, *results: dict[str, Any], into: str = ".") -> None:
        folder = self.folder / into
        folder.mkdir(parents=True, exist_ok=True)
        for one in results:
            folder.joinpath(f"{one['node']}.result.json").write_text(json.dumps(one), encoding="utf-8")

    def test_a_run_with_its_baselines_gives_the_documented_keys(self) -> None:
        self.write(result("w1", 0.96, average(0.97, 2, 3.0)), result("w2", 0.95, average(0.97, 2, 4.0)))
        self.write(result("w1", 0.98, None), into="baselines/single_process")
        self.write(result("w1", 0.90, None), into="baselines/alone")
        silent = (result("w1", 0.90, average(0.5, 2, 9.0)), result("w2", 0.92, None))
        self.write(*silent, into="baselines/no_communication")
        data = summarize.summary(self.folder, "")
        head = [data[key] for key in ("schema", "dataset", "split", "model", "seed")]
        self.assertEqual(head, [1, "mnist", "iid", "mlp", 7])
        self.assertEqual([set(node) for node in data["nodes"]], [{"name", *summarize.NODE_KEYS}] * 2)
        self.assertEqual(data["averaged_model"]["test_accuracy"], 0.97)
        self.assertAlmostEqual(data["consensus_distance"], math.sqrt((9 + 16) / 2))
        self.assertEqual(data["baselines"]["single_process"]["test_accuracy"], 0.98)
        self.assertEqual(data["baselines"]["alone"]["test_accuracy"], 0.90)
        silent = data["baselines"]["no_communication"]
        self.assertAlmostEqual(silent["node_mean_accuracy"], 0.91)
        self.assertEqual(silent["averaged_model_accuracy"], 0.5)

    def test_a_run_without_average_or_baselines_has_nulls(self) -> None:
        self.write(result("w1", 0.96, None))
        data = summarize.summary(self.folder, "")
        self.assertIsNone(data["averaged_model"])
        self.assertIsNone(data["consensus_distance"])
        self.assertEqual(data["baselines"], {})

    def test_the_average_of_the_most_participants_counts(self) -> None:
        self.write(result("w1", 0.9, average(0.8, 1, 0.0)), result("w2", 0.9, average(0.97, 2, 1.0)))
        self.assertEqual(summarize.summary(self.folder, "")["averaged_model"]["test_accuracy"], 0.97)

    def test_nodes_with_another_average_or_none_are_named(self) -> None:
        few = (result("w1", 0.9, average(0.8, 2, 0.1)), result("w2", 0.9, average(0.8, 2, 0.1)))
        self.write(*few, result("w3", 0.9, average(0.97, 4, 1.0)), result("w4", 0.9, None))
        others = summarize.summary(self.folder, "")["other_averages"]
        self.assertEqual(others, [{"participants": 2, "test_accuracy": 0.8, "nodes": ["w1", "w2"]},
                                  {"participants": 0, "test_accuracy": None, "nodes": ["w4"]}])  # fmt: skip

    def test_nodes_that_all_have_one_average_or_none_are_not_named(self) -> None:
        for averaged in (average(0.9, 2, 0.1), None):
            self.write(result("w1", 0.9, averaged), result("w2", 0.9, averaged))
            self.assertEqual(summarize.summary(self.folder, "")["other_averages"], [])

    def test_nodes_come_in_the_order_of_their_numbers(self) -> None:
        self.write(*(result(f"w{number}", 0.9, None) for number in (10, 2, 1)))
        names = [node["name"] for node in summarize.summary(self.folder, "")["nodes"]]
        self.assertEqual(names, ["w1", "w2", "w10"])

    def test_an_average_whose_participants_are_not_known_counts_least(self) -> None:
        results = [{"averaged_model": {**average(0.9, 1, 0.1), "participants": count}} for count in (None, 2)]
        self.assertEqual(summarize.average_of(results)["participants"], 2)
        self.assertIsNone(summarize.average_of(results[:1])["participants"])

    def test_an_empty_folder_is_an_error(self) -> None:
        with self.assertRaises(FileNotFoundError):
            summarize.summary(self.folder, "")

    def test_only_a_run_with_pulls_has_columns_of_pulls(self) -> None:
        self.write(result("w1", 0.96, average(0.97, 1, 3.0)))
        data = summarize.summary(self.folder, "")
        for backend, pulls in (("gossip", True), ("", True), ("collective", False), ("kvstore", False)):
            with self.subTest(backend):
                table = summarize.node_table(data, backend)
                self.assertEqual("pulls\nok" in [column.header for column in table.columns], pulls)
                self.assertEqual({len(list(column.cells)) for column in table.columns}, {1})

    def test_the_table_says_what_the_nodes_of_each_back_end_have_in_the_end(self) -> None:
        self.write(result("w1", 0.96, average(0.97, 2, 0.0)))
        data = summarize.summary(self.folder, "")
        for backend, title in (
            ("gossip", "averaged model of the gossip nodes"),
            ("collective", "model that the synchronous nodes share"),
            ("kvstore", "model of the parameter servers"),
            ("null", "averaged model of the nodes"),
        ):
            self.assertIn(title, list(summarize.comparison_table(data, backend).columns[0].cells))

    def test_tables_fit_80_columns_with_whole_words_and_numbers(self) -> None:
        long = result("w1", 0.9759, average(0.9776, 2, 0.56))
        long.update(test_loss=0.0785, steps=140700, steps_made=140700, samples=450000, clock=1.0, pulls_ok=46900,
                    pulls_failed=100, waited_ms_total=123456.7, step_ms_median=123.45, bytes_received=12_345.6e6,
                    backend="gossip")  # fmt: skip
        self.write(long, {**long, "node": "w2"})
        out = io.StringIO()
        with contextlib.redirect_stdout(out), mock.patch("sys.argv", ["summarize.py", str(self.folder)]):
            self.assertEqual(summarize.main(), 0)
        text = out.getvalue()
        title = text.splitlines()[0]
        self.assertEqual(title, title.rstrip())
        self.assertIn("seed", title)
        self.assertLessEqual(max(len(line.rstrip()) for line in text.splitlines()), 80)
        for word in ("accuracy", "97.59", "0.0785", "140700", "450,000", "46900", "failed", "123,457", "123.45",
                     "12,346", "blends a step"):
            self.assertIn(word, text)
        self.assertNotIn("…", text)

    def test_few_blends_are_said_with_what_to_look_at(self) -> None:
        for pulls, probability, lines in ((9, 1.0, True), (20, 1.0, False), (4, 0.5, True), (9, 0.5, False)):
            nodes = [{**result(f"w{i}", 0.9, None), "backend": "gossip", "steps_made": 100, "pulls_ok": pulls}
                     for i in (1, 2)]  # fmt: skip
            text = "\n".join(summarize.few_blends(nodes, probability))
            self.assertEqual("sched_autogroup_enabled" in text, lines)
            self.assertLessEqual(max(map(len, text.splitlines()), default=0), 80)
            self.assertEqual(summarize.few_blends(nodes[:1], probability), [])
            self.assertEqual(summarize.few_blends([{**nodes[0], "backend": "kvstore"}, nodes[1]], probability), [])

    def test_the_probability_of_a_pull_is_that_of_the_cluster_file(self) -> None:
        self.assertEqual(summarize.pull_probability(self.folder), 1.0)
        file = self.folder / "cluster.yaml"
        file.write_text("gossip:  # pull_probability: 0.1\n  {pull_probability: 0.25}\n", encoding="utf-8")
        self.assertEqual(summarize.pull_probability(self.folder), 0.25)

    def test_a_fault_is_one_line_without_names_of_python(self) -> None:
        for text in (None, "{", '{"node": "w1"}'):
            with self.subTest(text), contextlib.redirect_stderr(io.StringIO()) as said:
                if text:
                    self.folder.joinpath("w1.result.json").write_text(text, encoding="utf-8")
                with mock.patch("sys.argv", ["summarize.py", str(self.folder)]):
                    self.assertEqual(summarize.main(), 1)
            self.assertRegex(said.getvalue(), r"^failed: no summary: [^\n]+\n$")
            self.assertNotRegex(said.getvalue(), r"Error|\(")

    def test_the_effective_learning_rate_is_that_of_all_steps(self) -> None:
        fast, slow = result("w1", 0.96, None), result("w2", 0.95, None)
        fast.update(clock=360.0, steps=400)
        slow.update(clock=120.0, steps=100)
        self.write(fast, slow)
        data = summarize.summary(self.folder, "")
        self.assertIn("0.960", list(summarize.comparison_table(data, "gossip").columns[1].cells))
        for backend in ("collective", "kvstore"):
            self.assertNotIn("0.960", list(summarize.comparison_table(data, backend).columns[1].cells))


if __name__ == "__main__":
    unittest.main()
