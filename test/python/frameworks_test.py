"""What lets other programs use a node: an ordinary optimizer, a sampler for DataLoaders, and models of dpwa-train."""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
import unittest
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from nodes import PATIENCE, InFolder, all_at_once, cluster

import dpwa
import numpy as np

try:
    import torch
except ImportError:
    torch = None  # type: ignore[assignment]

TRAIN = os.environ.get("DPWA_TRAIN", "")


class Sampler(InFolder):
    def node(self, name: str, file: str) -> Any:
        return dpwa.attach_arrays({"w": np.zeros(1)}, file, name)

    def test_nodes_share_each_epoch_out(self) -> None:
        file = cluster(self.folder, 2, "backend: collective")

        def run(name: str) -> tuple[list[int], int]:
            node = self.node(name, file)
            sampler = dpwa.Sampler(10, 3, node, epochs=2, seed=7)
            taken = []
            with node:
                length = len(sampler)
                for batch in sampler:
                    taken += batch
                    node.step(gradients={"w": np.ones(1)}, update=lambda mean: None)
            return taken, length

        (first, length), (second, _) = all_at_once(lambda: run("w1"), lambda: run("w2"))
        self.assertEqual(sorted(first + second), sorted(2 * list(range(10))))
        self.assertEqual(length, 4)
        self.assertNotEqual(first[:3] + second[:3], list(range(6)))  # shuffled

    def test_it_goes_on_where_its_state_was(self) -> None:
        node = self.node("w1", cluster(self.folder, 1, "backend: 'null'"))
        sampler = dpwa.Sampler(5, 2, node, shuffle=False)
        batches = iter(sampler)
        self.assertEqual(next(batches), [0, 1])
        other = dpwa.Sampler(5, 2, self.node("w1", cluster(self.folder, 1, "backend: 'null'")), shuffle=False)
        other.load_state_dict(json.loads(json.dumps(sampler.state_dict())))
        self.assertEqual([len(other), *other], [2, [2, 3], [4]])

    def test_nodes_with_another_order_do_not_start(self) -> None:
        file = cluster(self.folder, 2, "backend: collective")

        def run(name: str) -> None:
            node = self.node(name, file)
            dpwa.Sampler(10, 3, node, seed=int(name[1:]))
            with self.assertRaisesRegex(dpwa.Error, "'data' .*shuffled by 1.*shuffled by 2"):
                node.start()

        all_at_once(lambda: run("w1"), lambda: run("w2"))


@unittest.skipIf(torch is None, "needs torch in this Python")
class Optimizer(InFolder):
    def test_a_step_of_the_optimizer_is_one_of_the_node(self) -> None:
        model = torch.nn.Linear(2, 1)
        own = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        with dpwa.attach(model, cluster(self.folder, 1, "gossip: {start_wait_ms: 0}"), "w1") as node:
            optimizer = dpwa.Optimizer(own, node)
            self.assertIsInstance(optimizer, torch.optim.Optimizer)
            schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.5)

            def closure() -> Any:
                optimizer.zero_grad()
                loss = model(torch.ones(1, 2)).sum()
                loss.backward()
                return loss

            before = model.weight.detach().clone()
            self.assertTrue(torch.is_tensor(optimizer.step(closure)))
            schedule.step()
            self.assertEqual(own.param_groups[0]["lr"], 0.05)
            torch.testing.assert_close(model.weight, before - 0.1)
            closure()
            optimizer.step()
            self.assertEqual(optimizer.report.clock, 2)
            torch.testing.assert_close(model.weight, before - 0.1 - 0.05 * 1.9)
            saved = optimizer.state_dict()
            self.assertEqual(len(saved["state"]), 2)
            optimizer.load_state_dict(saved)
            scaler = torch.amp.GradScaler("cpu", init_scale=2.0)
            scaler.scale(model(torch.ones(1, 2)).sum())
            model.weight.grad[0, 0] = float("inf")
            scaler.step(optimizer)
            self.assertEqual(node.state_dict()["clock"], 2)


@unittest.skipIf(torch is None, "needs torch in this Python")
class Checkpoint(InFolder):
    def test_a_file_that_is_no_model_is_one_line_with_its_name(self) -> None:
        body = struct.pack("<Q", 2) + b"{}"
        for content, why in ((b"", "neither"), (b"x" * 100, "neither"),
                             (struct.pack("<8sIIQ", b"DPWACKPT", 1, 0, len(body)) + body, "checksum"),
                             (struct.pack("<8sIIQ", b"DPWACKPT", 9, 0, 0), "version 9")):  # fmt: skip
            path = Path(self.folder, "model")
            path.write_bytes(content)
            with self.assertRaisesRegex(dpwa.Error, f"^{path}: .*{why}") as caught:
                dpwa.load_checkpoint(path)
            self.assertNotIn("\n", str(caught.exception))

    @unittest.skipUnless(TRAIN, "needs dpwa-train")
    def test_models_and_checkpoints_of_dpwa_train_open(self) -> None:
        file = cluster(self.folder, 1, "backend: 'null'")
        subprocess.run([TRAIN, "--config", file, "--name", "w1", "--data", "synthetic", "--steps", "3", "--checkpoint", self.folder, "--save",
                        str(Path(self.folder, "model.safetensors"))], check=True, capture_output=True, timeout=PATIENCE,
                       cwd=self.folder)  # fmt: skip
        (model,) = Path(self.folder).glob("model*.safetensors")
        saved = dpwa.load_checkpoint(model)
        kept = dpwa.load_checkpoint(Path(self.folder, "w1.3.ckpt"))
        self.assertEqual(saved.keys(), kept.keys())
        for name, value in kept.items():
            self.assertTrue(torch.equal(value, saved[name]))


if __name__ == "__main__":
    unittest.main()
