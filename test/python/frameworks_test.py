"""What lets other programs use a node: an ordinary optimizer, a sampler for DataLoaders, and models of dpwa-train."""

from __future__ import annotations

import json
import os
import signal
import struct
import subprocess
import sys
import unittest
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from unittest import mock

sys.path.insert(0, str(Path(__file__).parent))

from nodes import PATIENCE, InFolder, all_at_once, cluster

import dpwa
import numpy as np
from dpwa.node import show_metrics
from lib.ports import free_ports

try:
    import torch
except ImportError:
    torch = None  # type: ignore[assignment]

ALONE = "gossip: {start_wait_ms: 0}"
COLLECTIVE = "backend: collective"


def has(*modules: str) -> bool:
    return torch is not None and all(find_spec(module) for module in modules)


TRAIN = os.environ.get("DPWA_TRAIN", "")


class Metrics(unittest.TestCase):
    def test_what_is_no_number_is_left_out(self) -> None:
        node = mock.Mock()
        node.show.side_effect = [None, dpwa.UsageError("16 others"), None]
        others: dict[str, Any] = {"list": [1.0], "dict": {"a": 1}, "text": "0.5", "array": np.zeros(2), "any": object()}
        if torch is not None:
            others["tensor"] = torch.zeros(2)
        show_metrics(node, {"loss": 1, **others, "eval_runtime": 2, "full": 3, "eval accuracy": np.array([0.5])})
        wanted = [("loss", 1), ("full", 3), ("eval accuracy", 0.5)]
        self.assertEqual([one.args for one in node.show.call_args_list], wanted)

    def test_an_error_of_the_node_passes(self) -> None:
        node = mock.Mock()
        node.show.side_effect = dpwa.Error("the node has ended")
        with self.assertRaisesRegex(dpwa.Error, "the node has ended"):
            show_metrics(node, {"loss": 1})
        show_metrics(None, {"loss": 1})


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
            node.average_gradients()
            scaler.step(optimizer)
            self.assertEqual(node.state_dict()["clock"], 2)
            closure()
            node.average_gradients()  # of the step after the one that was skipped
            optimizer.step()
            self.assertEqual(node.state_dict()["clock"], 3)


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


def data_of(features: int, samples: int) -> Any:
    generator = torch.Generator().manual_seed(3)
    x = torch.randn(samples, features, generator=generator)
    return x, x[:, :1] * 2


@unittest.skipUnless(has("lightning"), "needs lightning in this Python")
class Lightning(InFolder):
    def fit(self, file: str, name: str, **more: Any) -> Any:
        import dpwa.lightning
        import lightning.pytorch as pl

        torch.manual_seed(0)

        class Module(pl.LightningModule):
            def __init__(self) -> None:
                super().__init__()
                self.layer = torch.nn.Linear(4, 1)

            def training_step(self, batch: Any, _: int) -> Any:
                return torch.nn.functional.mse_loss(self.layer(batch[0]), batch[1])

            def configure_optimizers(self) -> Any:
                return torch.optim.SGD(self.parameters(), lr=0.1)

            def on_train_batch_end(self, *_: Any) -> None:
                gradients = torch.cat([one.grad.flatten() for one in self.parameters()])
                self.last_norm = float(torch.linalg.vector_norm(gradients))

        model, callback = Module(), dpwa.lightning.Callback(file, name)
        trainer = pl.Trainer(max_epochs=1, accelerator="cpu", callbacks=[callback], logger=False, enable_checkpointing=False,
                             enable_progress_bar=False, enable_model_summary=False, default_root_dir=self.folder, **more)  # fmt: skip
        rows = torch.utils.data.TensorDataset(*data_of(4, 32))
        trainer.fit(model, torch.utils.data.DataLoader(rows, batch_size=4))
        return model, callback

    def test_each_step_of_the_optimizer_is_one_of_the_node(self) -> None:
        model, callback = self.fit(cluster(self.folder, 1, ALONE), "w1", accumulate_grad_batches=2, gradient_clip_val=1.0)
        self.assertEqual((callback.report.clock, callback.node.is_in_step), (4, False))
        weight = model.layer.weight.detach()[0]
        self.assertGreater(float(weight[0]), float(weight[1].abs()))

    def test_a_node_that_cannot_start_ends_the_run_with_its_line(self) -> None:
        file = cluster(self.folder, 2, "gossip: {min_nodes: 2, start_wait_ms: 500ms}")
        with self.assertRaisesRegex(dpwa.Error, "min_nodes|fewer|only"):
            self.fit(file, "w1")

    def test_gradients_are_averaged_before_they_are_clipped(self) -> None:
        file = cluster(self.folder, 2, "backend: collective", f"collective: {{start_wait_ms: {PATIENCE:.0f}s}}")
        start = f"from frameworks_test import fit_lightning; fit_lightning({file!r}, 'w2')"
        with subprocess.Popen([sys.executable, "-c", start], cwd=Path(__file__).parent) as other:
            model, callback = self.fit(file, "w1", accumulate_grad_batches=2, gradient_clip_val=0.1)
            self.assertEqual(other.wait(PATIENCE), 0)
        self.assertEqual((callback.report.participants, callback.report.clock), (2, 4))
        self.assertLessEqual(model.last_norm, 0.1001)


def fit_lightning(file: str, name: str) -> None:
    test = Lightning()
    test.setUp()
    test.fit(file, name, accumulate_grad_batches=2, gradient_clip_val=0.1)
    test.doCleanups()


@unittest.skipUnless(has("transformers", "accelerate"), "needs transformers and accelerate in this Python")
class HuggingFace(InFolder):
    def train(self, make: Any) -> Any:
        """With the callbacks and optimizers that make(model) gives."""
        import transformers

        class Model(torch.nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.layer = torch.nn.Linear(4, 1)

            def forward(self, x: Any, y: Any) -> Any:
                return {"loss": torch.nn.functional.mse_loss(self.layer(x), y)}

        model = Model()
        rows = [{"x": x, "y": y} for x, y in zip(*data_of(4, 32))]
        options = transformers.TrainingArguments(
            output_dir=self.folder, per_device_train_batch_size=4, gradient_accumulation_steps=2, num_train_epochs=2,
            use_cpu=True, report_to=[], save_strategy="no", learning_rate=0.1, disable_tqdm=True, label_names=["y"])  # fmt: skip
        trainer = transformers.Trainer(model, options, train_dataset=rows, **make(model))
        trainer.train()
        return trainer

    def test_the_callback_makes_the_steps_of_the_node(self) -> None:
        import dpwa.huggingface

        callback = dpwa.huggingface.Callback(cluster(self.folder, 1, ALONE), "w1")
        self.train(lambda _: {"callbacks": [callback]})
        self.assertEqual(callback.report.clock, 8)

    def together(self, backend: str, kind: str) -> None:
        """Two processes, which clip and accumulate, end with one model."""
        file = cluster(self.folder, 2, backend, f"collective: {{start_wait_ms: {PATIENCE:.0f}s}}" if backend == COLLECTIVE else "")
        start = f"from frameworks_test import train_hugging_face as train; train({file!r}, 'w2', {kind!r}, {self.folder!r})"
        with subprocess.Popen([sys.executable, "-c", start], cwd=Path(__file__).parent) as other:
            report = self.with_node(file, "w1", kind)
            self.assertEqual(other.wait(PATIENCE), 0)
        self.assertEqual((report.participants, report.clock), (2, 8))
        first, second = (torch.load(Path(self.folder, f"{name}.pt")) for name in ("w1", "w2"))
        torch.testing.assert_close(first, second, rtol=0, atol=0)

    def with_node(self, file: str, name: str, kind: str) -> Any:
        import dpwa.huggingface

        made: list[Any] = []

        def make(model: Any) -> Any:
            if kind == "callback":
                made.append(dpwa.huggingface.Callback(file, name))
                return {"callbacks": made}
            node = dpwa.attach(model, file, name)
            node.start()
            made.append(dpwa.Optimizer(torch.optim.AdamW(model.parameters(), lr=0.1), node))
            return {"optimizers": (made[0], None)}

        torch.manual_seed(0)
        trainer = self.train(make)
        report = made[0].report
        made[0].node.finish()
        torch.save(trainer.model.state_dict(), Path(self.folder, f"{name}.pt"))
        return report

    def test_gradients_are_averaged_before_the_trainer_clips_them(self) -> None:
        for kind in ("callback", "optimizer"):
            with self.subTest(kind):
                self.together(COLLECTIVE, kind)

    def test_the_trainer_takes_the_optimizer(self) -> None:
        made: list[Any] = []

        def make(model: Any) -> Any:
            node = dpwa.attach(model, cluster(self.folder, 1, ALONE), "w1")
            node.start()
            made.append(dpwa.Optimizer(torch.optim.AdamW(model.parameters(), lr=0.1), node))
            return {"optimizers": (made[0], None)}

        self.train(make)
        self.assertEqual(made[0].report.clock, 8)
        made[0].node.finish()


def train_hugging_face(file: str, name: str, kind: str, folder: str) -> None:
    test = HuggingFace()
    test.folder = folder
    test.with_node(file, name, kind)


@unittest.skipUnless(has("accelerate"), "needs accelerate in this Python")
class Accelerate(InFolder):
    def test_the_optimizer_is_prepared_as_any(self) -> None:
        import accelerate

        accelerator = accelerate.Accelerator(cpu=True, gradient_accumulation_steps=2)
        model = torch.nn.Linear(4, 1)
        for backend in (ALONE, COLLECTIVE):
            with self.subTest(backend), dpwa.attach(model, cluster(self.folder, 1, backend), "w1") as node:
                own = dpwa.Optimizer(torch.optim.SGD(model.parameters(), lr=0.1), node)
                prepared, optimizer = accelerator.prepare(model, own)
                x, y = data_of(4, 32)
                for begin in range(0, 32, 4):
                    with accelerator.accumulate(prepared):
                        loss = torch.nn.functional.mse_loss(prepared(x[begin : begin + 4]), y[begin : begin + 4])
                        accelerator.backward(loss)
                        accelerator.clip_grad_norm_(prepared.parameters(), 1.0)
                        optimizer.step()
                        optimizer.zero_grad()
                self.assertEqual(own.report.clock, 4)


    def test_a_pass_that_fails_while_batches_are_accumulated_holds_nothing_back(self) -> None:
        import accelerate

        def fail(_: Any) -> None:
            raise RuntimeError("fails")

        state = accelerate.state.GradientState()
        model = torch.nn.Linear(4, 1)
        with dpwa.attach(model, cluster(self.folder, 1, COLLECTIVE), "w1") as node:
            own = dpwa.Optimizer(torch.optim.SGD(model.parameters(), lr=0.1), node)
            x, y = data_of(4, 4)
            state._set_sync_gradients(False)
            hook = model.weight.register_hook(fail)
            with self.assertRaisesRegex(RuntimeError, "fails"):
                torch.nn.functional.mse_loss(model(x), y).backward()
            hook.remove()
            own.zero_grad()
            state._set_sync_gradients(True)
            torch.nn.functional.mse_loss(model(x), y).backward()
            self.assertTrue(node.is_averaged)
            own.step()


@unittest.skipUnless(has("jax"), "needs jax in this Python")
class Jax(InFolder):
    def test_arrays_of_jax_train_under_each_back_end(self) -> None:
        import jax
        import jax.numpy as jnp

        x, y = (jnp.asarray(part.numpy()) for part in data_of(4, 32))
        gradient = jax.jit(jax.value_and_grad(lambda w: jnp.mean((x @ w["w"] + w["b"] - y) ** 2)))
        for backend in ("gossip", "collective", "'null'"):
            with self.subTest(backend):
                values = {"w": jnp.zeros((4, 1)), "b": jnp.zeros(1, jnp.bfloat16)}
                node = dpwa.attach_arrays(values, cluster(self.folder, 1, f"backend: {backend}", ALONE), "w1")
                with node:
                    for _ in range(200):
                        values = {key: jnp.asarray(value) for key, value in node.values.items()}
                        loss, gradients = gradient(values)

                        def update(mean: Any, values: Any = values) -> Any:
                            return {key: value - 0.1 * jnp.asarray(mean[key]) for key, value in values.items()}

                        report = node.step(float(loss), gradients=gradients, update=update)
                self.assertEqual(report.clock, 200)
                np.testing.assert_allclose(node.values["w"][:, 0], [2, 0, 0, 0], atol=0.02)


@unittest.skipIf(torch is None, "needs torch in this Python")
class Distributed(InFolder):
    def test_a_node_is_stateful_for_distributed_checkpoints(self) -> None:
        import torch.distributed.checkpoint as dcp
        from torch.distributed.checkpoint.stateful import Stateful

        def made() -> Any:
            return dpwa.attach(torch.nn.Linear(2, 1), cluster(self.folder, 1, ALONE), "w1")

        node = made()
        self.assertIsInstance(node, Stateful)
        with node:
            for _ in range(3):
                node.update_send(1.0)
                node.update_wait()
            dcp.save({"node": node}, checkpoint_id=self.folder, no_dist=True)
        fresh = made()
        dcp.load({"node": fresh}, checkpoint_id=self.folder, no_dist=True)
        self.assertEqual(fresh.state_dict()["clock"], 3)

    def test_groups_of_fsdp_exchange_their_shards_and_outlive_a_group(self) -> None:
        """Two groups of two processes, of which one is killed."""
        files = []
        for rank in range(2):
            folder = Path(self.folder, f"rank{rank}")
            folder.mkdir()
            files.append(cluster(str(folder), 2, "gossip: {timeout_ms: 10s, start_wait_ms: 240s, finish_wait_ms: 1s}"))
        ports = free_ports(2)
        processes = {(group, rank): subprocess.Popen(
            [sys.executable, "-c", f"import fsdp_node; fsdp_node.train({files[rank]!r}, 'w{group + 1}', {group})"],
            cwd=Path(__file__).parent, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
            env={**os.environ, "RANK": str(rank), "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1",
                 "MASTER_PORT": str(ports[group]), "DPWA_NAME": f"w{group + 1}"})
            for group in range(2) for rank in range(2)}  # fmt: skip
        try:
            said = {key: process.communicate(timeout=PATIENCE)[0] for key, process in processes.items()}
        finally:
            for process in processes.values():
                process.kill()
        self.assertEqual(processes[1, 1].returncode, -signal.SIGKILL)
        self.assertNotEqual(processes[1, 0].returncode, 0)  # its group is lost
        for rank in range(2):
            self.assertEqual(processes[0, rank].returncode, 0)
            self.assertIn("blended; went on alone; learnt", said[0, rank])


if __name__ == "__main__":
    unittest.main()
