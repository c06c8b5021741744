"""What dpwa-bench makes of steps: of a trainer beside hand-written passes, of backend collective, of its engines, and of
whole training steps on a device."""

from __future__ import annotations

import argparse
import unittest
from types import SimpleNamespace
from typing import Any

import scripts_path  # noqa: F401  (before the modules of scripts/)
from lib import bench_collective, bench_engines, bench_step, bench_train
from lib.bench_collective import FEWEST, MOST, Side, hidden_share, until_quiet
from lib.bench_engines import Engine
from lib.bench_step import Step, figures_of, range_over_time, tensor_sizes
from lib.bench_step_peers import StepPeer, count_for


class Collective(unittest.TestCase):
    OPTIONS = argparse.Namespace(model="mlp", nodes=4, threads=1, batch=32, seed=1)
    FACTS = {"parameters": 1000, "torch": "2", "version": "1", "instruction_set": "avx2"}

    def sides(self) -> tuple[Side, Side]:
        nodes = SimpleNamespace(facts=[self.FACTS])
        ours = Side(nodes, 0.5, [90, 110, 100], [90, 110], [60, 60], [50, 52])
        return ours, Side(nodes, 0.5, [100, 100], [100, 100], [60, 60], [55, 57])

    def document(self, ddp: Side | None, absent: str = "") -> dict[str, Any]:
        return bench_collective.document_of(self.OPTIONS, self.sides()[0], ddp, absent, [40, 40])

    def test_what_of_an_all_reduce_a_step_does_not_show_is_hidden(self) -> None:
        for step, local, share in ((100, 100, 1), (125, 100, 0.5), (150, 100, 0), (175, 100, -0.5)):
            self.assertAlmostEqual(hidden_share(step, local, 50), share)
        self.assertEqual(hidden_share(90, 100, 50), 1)  # noise hides no more than all of it
        self.assertEqual(hidden_share(100, 90, 0), 0)

    def test_a_window_has_as_many_steps_as_fit_and_enough_for_a_median(self) -> None:
        counts = [count_for(seconds, us, FEWEST, MOST) for seconds, us in ((1, 10_000), (0.5, 1e6), (600, 0))]
        self.assertEqual(counts, [100, 4, 100_000])

    def test_steps_are_compared_window_by_window(self) -> None:
        document = self.document(self.sides()[1])
        self.assertEqual(document["bytes"], 4000)
        self.assertAlmostEqual(document["ratio_to_ddp"]["min"], 0.9)
        self.assertAlmostEqual(document["ratio_to_ddp"]["max"], 1.1)
        self.assertEqual(document["dpwa"]["step_us"]["median"], 100)
        self.assertEqual(document["dpwa"]["added_us"], {"min": 30, "median": 30, "max": 50})
        self.assertAlmostEqual(document["added_ratio_to_ddp"]["max"], 1.25)
        self.assertAlmostEqual(document["dpwa"]["hidden_share"]["max"], 0.25)
        self.assertAlmostEqual(document["ddp"]["hidden_share"]["median"], 0)
        self.assertEqual(document["ddp"]["cpu_us"]["max"], 57)
        self.assertTrue(any("collective / DDP" in line for line in bench_collective.lines_of(document)))

    def test_steps_without_ddp_say_why_and_have_no_ratio(self) -> None:
        document = self.document(None, "no torch here")
        self.assertEqual((document["ddp"], document["ratio_to_ddp"]), ({"absent": "no torch here"}, None))
        self.assertIsNone(document["added_ratio_to_ddp"])
        self.assertIn("  absent            no torch here", bench_collective.lines_of(document))

    def test_a_noisy_measurement_is_made_again_and_the_last_one_counts(self) -> None:
        def run(*noisy: bool) -> int:
            made = iter(enumerate(noisy))

            def measure() -> dict[str, Any]:
                index, one = next(made)
                return {"index": index, "noise": {"noisy": one, "reasons": []}}

            return until_quiet(3, measure)["index"]

        self.assertEqual([run(False), run(True, False), run(True, True, True)], [0, 1, 2])

    def test_engines_are_compared_by_the_median_of_each_window_and_one_that_is_absent_says_why(self) -> None:
        mpi = Engine("mpi", "", "algorithm 5", [1000, 2000])
        engines = [Engine("gloo", "", "", [2000, 3000]), Engine("nccl", "no device"), mpi]
        options = argparse.Namespace(bytes=1_000_000, nodes=4)
        document = bench_engines.document_of(options, engines)
        self.assertEqual(document["engines"][0]["windows"]["allreduce_us"]["min"], 2000)
        self.assertEqual(document["engines"][0]["windows"]["gb_per_s"]["max"], 2)
        self.assertEqual(document["engines"][1], {"name": "nccl", "absent": "no device"})
        self.assertEqual(document["engines"][2]["setting"], "algorithm 5")
        self.assertIsNone(document["engines"][0]["ratio_to_gloo"])
        self.assertEqual([document["engines"][2]["ratio_to_gloo"][key] for key in ("min", "max")], [1.5, 2])
        mpi.absent = "no MPI"
        document = bench_engines.document_of(options, engines)
        self.assertIn("mpi                 absent: no MPI", bench_engines.lines_of(document))


class Steps(unittest.TestCase):
    # send, wait, arrived, waited, allocations of the trainer and of all threads
    RAW = ([4000, 6000, True, 0, 1, 5], [1000, 1000, False, 500, 3, 7], [8000, 12000, True, 0, 2, 6])

    def test_a_model_is_cut_into_parts_as_equal_as_they_can_be(self) -> None:
        self.assertEqual(tensor_sizes(8, 3), [("p0", 3), ("p1", 3), ("p2", 2)])

    def test_steps_with_a_pull_and_without_are_apart_and_beside_the_best_loop(self) -> None:
        steps = [Step.of(raw) for raw in self.RAW]
        hand = [{"copy": [1.0], "copy_and_blend": [9.0], "blend_and_copy": [6.0]},
                {"copy": [0.5], "copy_and_blend": [5.0], "blend_and_copy": [8.0]}]  # fmt: skip
        figures = figures_of({"embedded": steps}, hand, [1, 2])
        self.assertEqual((figures["arrived"]["steps"], figures["not_arrived"]["steps"]), (2, 1))
        self.assertEqual(figures["arrived"]["step_us"], {"median": 10, "p99": 20})
        self.assertEqual(figures["arrived"]["send_us"]["median"], 4)
        self.assertEqual([figures[key] for key in ("ratio_to_hand_written", "ratio_to_one_pass")], [0.5, 0.6])
        self.assertEqual((figures["publish_ratio_to_copy"], figures["waited_us_max"]), (0.25, 0.5))
        self.assertEqual(figures["allocations_per_step"]["trainer"], {"median": 2, "max": 3})
        self.assertEqual([one["threads"] for one in figures["hand_written"]], [1, 2])
        self.assertNotIn("attached", figures)

    def test_other_trainers_are_compared_with_the_embedded_one(self) -> None:
        embedded, other = ([Step.of(raw) for raw in raws] for raws in (self.RAW[:2], [[9000, 6000, True, 0, 1, 5]]))
        hand = [{name: [1.0] for name in bench_step.PASSES}]
        for key in ("attached", "in_python"):
            figures = figures_of({"embedded": embedded, key: other}, hand, [1])
            self.assertEqual(figures[key]["arrived"]["beyond_embedded_us"], 5)
            self.assertEqual(figures[key]["arrived"]["times_embedded"], 1.5)
            self.assertEqual(figures[key]["not_arrived"], {"steps": 0})

    def test_the_range_over_time_is_that_of_parts_in_their_order(self) -> None:
        self.assertEqual(range_over_time([1, 1, 2, 2, 3, 3, 4, 4, 9, 9]), {"min": 1, "median": 3, "max": 9})
        self.assertEqual(range_over_time([7]), {"min": 7, "median": 7, "max": 7})

    def test_a_peer_that_is_not_there_says_why(self) -> None:
        peer = StepPeer.start("gloo", ["/no/such/python"], [{}])
        self.assertIn("/no/such/python", peer.figures()["absent"])


class FakeTrainers:
    """Two nodes, whose plain step takes 2 ms and 10 µs for each sample, and half of whose exchanges find something."""

    facts = [{"parameters": 1000, "torch": "2", "version": "1", "instruction_set": "avx2", "engine": "gloo"}] * 2

    def __init__(self) -> None:
        self.batch = 100
        self.training: list[Any] = []
        self.asked: list[tuple[str, int]] = []

    def steps(self, loop: str, count: int, expected_us: float = 0) -> list[dict[str, Any]]:
        self.asked.append((loop, count))
        us = 2000 + 10 * self.batch + {"plain": 0, "blocking": 3000, "exchange": 300}[loop]
        node = {"ns": 1000 * us * count, "published": count, "exchanged": count // 2}
        return [node, {**node, "ns": 900 * us * count}]

    def ask(self, command: dict[str, Any], of: Any) -> None:
        self.batch = command["batch"]


class Training(unittest.TestCase):
    OPTIONS = argparse.Namespace(model="mlp", device="cuda", batch=100, threads=None)
    ROLES = bench_train.Roles("kvstore", "", nodes=2, servers=1, type="dist_sync")

    def loops(self) -> list[bench_train.Loop]:
        return [bench_train.Loop(name, FakeTrainers()) for name in ("plain", "blocking", "exchange", "ddp")]

    def test_loops_are_compared_with_the_plain_one_by_the_slowest_node_of_a_window(self) -> None:
        loops = self.loops()
        for loop in loops:
            loop.warm_up()
            loop.run(10)
            del loop.step_us[0]
        document = bench_train.document_of(self.OPTIONS, self.ROLES, 100, loops, "", FakeTrainers.facts[0])
        self.assertEqual(document["plain"]["step_us"]["median"], 3000)
        self.assertAlmostEqual(document["times_the_plain_step"]["blocking"]["median"], 2)
        self.assertAlmostEqual(document["times_the_plain_step"]["exchange"]["max"], 1.1)
        self.assertEqual([document["exchange"][key] for key in ("steps", "published", "exchanged")], [20, 1, 0.5])
        self.assertEqual(document["ddp"]["engine"], "gloo")
        self.assertEqual({loop for loop, _ in loops[3].trainers.asked}, {"exchange"})
        text = "\n".join(bench_train.lines_of(document))
        self.assertIn("1.100 of the plain one; 1.00 publishes and 0.50 exchanges a step", text)
        rows = bench_train.table([document]).splitlines()
        self.assertEqual(len(rows), 1 + 4)
        self.assertRegex(rows[3], r"kvstore dist_sync 2 +mlp +100 +dpwa +3\.300 +1\.100 +1\.00 +0\.50$")

    def test_without_ddp_the_reason_is_told(self) -> None:
        loops = self.loops()[:3]
        for loop in loops:
            loop.run(10)
        document = bench_train.document_of(self.OPTIONS, self.ROLES, 100, loops, "no torch", FakeTrainers.facts[0])
        self.assertEqual(document["ddp"], {"absent": "no torch"})
        self.assertIn("  DistributedDataParallel: absent: no torch", bench_train.lines_of(document))
        self.assertEqual(len(bench_train.table([document]).splitlines()), 1 + 3)

    def test_the_batch_is_chosen_for_a_plain_step_of_the_wanted_time(self) -> None:
        trainers = FakeTrainers()
        loops = [bench_train.Loop(name, trainers) for name in ("plain", "exchange")]
        batch = bench_train.fit_batch(loops, 100, 4000)
        self.assertEqual(batch, trainers.batch)
        self.assertAlmostEqual(2000 + 10 * batch, 4000, delta=100)


if __name__ == "__main__":
    unittest.main()
