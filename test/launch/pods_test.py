#!/usr/bin/env python3
"""dpwa-train as the pods of a Job and of StatefulSets, which are killed and replaced at other addresses.

usage: pods_test.py DPWA_TRAIN

`dpwa` is beside it. Prints a line that ctest takes for a skipped test where namespaces cannot be made.
"""

from __future__ import annotations

import json
import signal
import sys
import unittest
from pathlib import Path

from pods import PATIENCE_S, Pod, PodTest, obstacle

SEEDED = "backend: gossip\nseeds: [train]"


def listed(count: int) -> str:
    """Nodes by the names that a headless service gives to the pods of a StatefulSet."""
    return "nodes:\n" + "".join(f"  - {{name: train-{i}, host: train-{i}.train, port: 24000}}\n" for i in range(count))


class Job(PodTest):
    def blends(self, index: int, peer: int, after: int = 0) -> bool:
        return any(line.get("peer") == f"train-{peer}" and line.get("outcome") == "mixed"
                   for line in self.job.steps(index)[after:])

    def begin_two(self) -> tuple[Pod, Pod]:
        job = self.begin(SEEDED)
        pods = job.train(0), job.train(1)
        self.until("two pods train together", lambda: self.blends(0, 1) and self.blends(1, 0))
        return pods

    def test_two_pods_become_eight_and_three_and_none_is_started_again(self) -> None:
        first, _ = self.begin_two()
        job = self.job
        process = first.first_process()
        joining = [job.train(index) for index in range(2, 8)]
        for index, pod in enumerate(joining, 2):  # a pod that is told to leave before its first step has no result
            self.until(f"{pod.name} trains", lambda p=pod, i=index: p.said("took over the weights") and job.steps(i))
        self.until("the first one blends with those that joined",
                   lambda: sum(self.blends(0, peer) for peer in range(2, 8)) >= 3)
        leaving = [job.pods.pop(f"train-{index}") for index in (1, 3, 4, 5, 6)]
        for pod in leaving:
            self.addCleanup(pod.remove)
            pod.signal(signal.SIGUSR2)
        for pod in leaving:
            self.assertEqual(pod.engine.wait(PATIENCE_S), 143, pod.text())
            result = json.loads((job.runs / f"{pod.name}.result.json").read_text(encoding="utf-8"))
            self.assertTrue(result["preempted"])
            self.assertTrue((job.runs / f"{pod.name}.{result['steps']}.ckpt").exists())
        steps = len(job.steps(0))
        self.until("three go on", lambda: self.blends(0, 2, steps) and self.blends(0, 7, steps))
        self.assertEqual(first.first_process(), process)

    def test_a_killed_pod_is_replaced_at_another_address(self) -> None:
        first, _ = self.begin_two()
        job = self.job
        job.kill("train-1")
        steps = len(job.steps(0))
        again = job.train(1)
        self.until("the other one takes up the new one",
                   lambda: again.said("took over the weights") and self.blends(0, 1, steps))

        first.signal(signal.SIGTERM)
        first.signal(signal.SIGTERM)
        self.assertEqual(first.engine.wait(PATIENCE_S), 143, first.text())
        result = json.loads((job.runs / "train-0.result.json").read_text(encoding="utf-8"))
        self.assertEqual((result["interrupted"], result["preempted"]), (True, False))
        self.assertTrue((job.runs / f"train-0.{result['steps']}.ckpt").exists())
        self.assertIsNone(again.engine.poll())

    def test_signals_that_come_before_the_program_is_loaded_are_not_lost(self) -> None:
        job = self.begin(SEEDED)
        for index, (number, code) in enumerate([("TERM", 143), ("USR1", 143), ("USR2", 143), ("INT", 130), ("HUP", 0)]):
            early = ["sh", "-c", f"kill -{number} $$ && exec \"$0\" --version", str(job.train_program)]
            pod = job.start(f"train-{index}", early, {})
            self.assertEqual(pod.engine.wait(PATIENCE_S), code, f"{number}: {pod.text()}")


class StatefulSet(PodTest):
    def replace_a_rank(self, policy: str, meanwhile: str) -> None:
        job = self.begin(f"{listed(3)}backend: collective\ncollective: {{on_lost_rank: {policy}}}")
        first, *_ = (job.member(index) for index in range(3))
        self.until("three step together", lambda: first.said("rank 0 of 3"))
        job.kill("train-1")
        self.until("the others go on", lambda: first.said(meanwhile))
        again = job.member(1)
        self.until("three step together again", lambda: again.said("of 3 (") and first.text().count("of 3 (") > 1)
        steps = len(job.steps(0))
        self.until("they go on", lambda: len(job.steps(0)) > steps + 10)

    def test_a_rank_that_the_others_go_on_without_is_replaced_at_another_address(self) -> None:
        self.replace_a_rank("shrink", "rank 0 of 2")

    def test_a_rank_whose_others_turn_to_gossip_is_replaced_at_another_address(self) -> None:
        self.replace_a_rank("gossip", "training continues by gossip averaging")

    def test_a_worker_and_a_server_of_a_store_are_replaced_at_other_addresses(self) -> None:
        servers = ", ".join(f"{{name: server-{i}, host: server-{i}.train, port: 24100}}" for i in range(2))
        job = self.begin(f"{listed(2)}backend: kvstore\nkvstore: {{replicas: 1, servers: [{servers}]}}")
        for index in range(2):
            job.server(index)
        first, _ = job.member(0), job.member(1)
        self.until("both workers step", lambda: all(len(job.steps(index)) > 10 for index in range(2)))
        job.kill("train-1")
        job.member(1)
        self.until("the worker takes part again", lambda: job.status()["train-1"].get("size") == 2)
        job.kill("server-1")
        job.server(1)
        self.until("the server is filled", lambda: job.status()["server-1"].get("state") == "up")
        steps = len(job.steps(0))
        self.until("they go on", lambda: len(job.steps(0)) > steps + 10)
        self.assertIsNone(first.engine.poll())


if __name__ == "__main__":
    PodTest.train_program = Path(sys.argv.pop(1)).resolve()
    if why := obstacle(PodTest.train_program):
        print(f"SKIPPED: {why}")
        sys.exit(0)
    unittest.main(verbosity=2)
