"""docs/PROTOCOL.md is enough for a trainer in another language: plain Python under node processes."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import unittest
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import attach_client
from nodes import CLI, PATIENCE, InFolder, all_at_once, cluster

import dpwa
import numpy as np


def faults(model: list[float]) -> float:
    """Of a line (slope, offset), against y = 3 x - 1 at the points of both trainers."""
    return sum((model[0] * x + model[1] - (3 * x - 1)) ** 2 for x in (-1, 0, 1, 2))


class Attached(InFolder):
    def start(self, *names: str) -> list[int]:
        """Node processes that wait for trainers: the ports of the file."""
        self.file = cluster(self.folder, 2, "gossip: {daemon: true, start_wait_ms: 60s, finish_wait_ms: 60s, timeout_ms: 60s}",
                            "log: {level: info}")  # fmt: skip
        text = Path(self.file).read_text(encoding="utf-8").replace("log: {level: error}\n", "")
        Path(self.file).write_text(text, encoding="utf-8")
        for name in names:
            node = subprocess.Popen([CLI, "node", "--config", self.file, "--name", name], stderr=subprocess.PIPE, text=True)
            self.addCleanup(node.communicate)
            self.addCleanup(node.terminate)
            assert node.stderr
            while "waiting for a trainer" not in (line := node.stderr.readline()):
                self.assertTrue(line, "the node process has ended")
        return [int(port) for port in re.findall(r"port: (\d+)", text)]

    def trainer(self, *words: Any) -> Any:
        return subprocess.Popen([sys.executable, "-I", attach_client.__file__, *map(str, words)], stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True)  # fmt: skip

    def said_by(self, process: Any) -> list[Any]:
        said, errors = process.communicate(timeout=PATIENCE)
        self.assertEqual((process.returncode, errors), (0, ""))
        return [json.loads(line) for line in said.splitlines()]

    def test_two_plain_trainers_train_one_model(self) -> None:
        ports = self.start("w1", "w2")
        trainers = [self.trainer("test", f"w{rank + 1}", port, 400, rank * 2 - 1) for rank, port in enumerate(ports)]
        (began, first), (other, second) = [self.said_by(one) for one in trainers]
        self.assertEqual(began, other)
        self.assertGreater(first["blends"] + second["blends"], 0)
        self.assertEqual((first["averaged"], first["participants"]), (True, 2))
        self.assertEqual(first["model"], second["model"])
        # A last blend may have been with a model from long before: far better than the start, no more than that.
        self.assertLess(faults(first["model"]), 0.1 * faults(began["start"]))

    def test_a_plain_trainer_and_one_with_the_package_have_one_model(self) -> None:
        ports = self.start("w1", "w2")
        own = {"slope": np.full(1, 2, np.float32), "offset": np.zeros((), np.float32)}
        plain = self.trainer("test", "w1", ports[0], 20, 1)

        def run() -> Any:
            node = dpwa.attach_arrays(own, self.file, "w2")
            with node:
                for _ in range(20):
                    node.step(loss=0.5)
                node.show("accuracy", 0.5)
                asked = subprocess.run([CLI, "status", "--json", "--timeout-ms", "60000", self.file], capture_output=True,
                                       check=True)  # fmt: skip
                shown = [one["status"].get("shown", {}) for one in json.loads(asked.stdout)["nodes"]]
                self.assertEqual(shown[1], {"accuracy": 0.5})
                self.assertLessEqual(shown[0].items(), {"first": 1.0}.items())  # {}: it has not begun to train
            return node.finish()

        (ended,) = all_at_once(run)
        _, said = self.said_by(plain)
        self.assertEqual((ended.participants, said["participants"]), (2, 2))
        self.assertEqual(said["model"], [float(own["slope"][0]), float(own["offset"])])

    def test_what_the_node_process_refuses_is_one_line(self) -> None:
        (port, _) = self.start("w1")

        def attach(**changes: Any) -> Any:
            node = attach_client.Node.__new__(attach_client.Node)
            attach_client.Node.__init__(node, "test", "w1", port, [("w", [2])])
            return node.ask(**changes)

        for changes, words in (({"what": "send", "loss": 1.0}, "not on the network"), ({"what": "dance"}, "not on the network"),
                               ({"what": "start", "resume": 3}, "type")):  # fmt: skip
            with self.assertRaisesRegex(RuntimeError, words) as caught:
                attach(**changes)
            self.assertNotIn("\n", str(caught.exception))
        for tensors, words in (([("w", [2]), ("w", [2])], "tensor 1 'w'"), ([("", [2])], "has no name")):
            with self.assertRaisesRegex(RuntimeError, words):
                attach_client.Node("test", "w1", port, tensors)


if __name__ == "__main__":
    unittest.main()
