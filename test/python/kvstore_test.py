"""Back end kvstore in Python: equal models, the updates of servers and of workers, and what happens to lost processes."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import unittest
import weakref
from pathlib import Path
from typing import Any
from unittest import mock

sys.path.insert(0, str(Path(__file__).parent))

from nodes import (EMBEDDED, PACKAGE, PATIENCE, WithServers, all_at_once, cluster, embedded_net,
                   with_one_that_ends_after_backward)  # fmt: skip

import dpwa
import numpy as np
from dpwa import store_worker

try:
    import torch
except ImportError:
    torch = None  # type: ignore[assignment]


class Arrays(WithServers):
    def test_arrays_take_the_step_of_the_mean_gradient(self) -> None:
        file = self.start(2, "type: dist_sync, update: worker")
        own = [{"w": np.full(3, rank, np.float32), "b": np.zeros(2)} for rank in range(2)]

        def run(rank: int) -> Any:
            arrays = own[rank]

            def update(mean: Any) -> None:
                for name, gradient in mean.items():
                    arrays[name] -= gradient

            node = dpwa.attach_arrays(arrays, file, f"w{rank + 1}")
            with node:
                node.set_batch_size(3 if rank == 0 else 1)
                gradients = {"w": np.full(3, 4.0 * rank)}
                if rank == 0:
                    gradients["b"] = np.full(2, 8.0)
                report = node.step(1.0, gradients=gradients, update=update)
                with self.assertRaisesRegex(dpwa.UsageError, "gradient of 'v'; accepted: w, b"):
                    node.step(1.0, gradients={"v": 1.0}, update=update)
            return report

        report, _ = all_at_once(lambda: run(0), lambda: run(1))
        self.assertEqual((report.outcome, report.participants, report.clock), ("averaged", 2, 1))
        self.assertGreater(report.sent, 0)
        for arrays in own:  # from the weights of the first one; a gradient that one lacks counts as zeros
            np.testing.assert_array_equal(arrays["w"], np.full(3, -1, np.float32))
            np.testing.assert_array_equal(arrays["b"], np.full(2, -6.0))

    def test_servers_make_the_step_of_an_optimizer_that_was_named(self) -> None:
        file = self.start(2, "type: dist_sync, update: server")
        own = [{"w": np.full(3, rank, np.float32)} for rank in range(2)]

        def run(rank: int) -> None:
            node = dpwa.attach_arrays(own[rank], file, f"w{rank + 1}")
            with node:
                with self.assertRaisesRegex(dpwa.UsageError, r"the servers make the update; accepted: set_optimizer\(name"):
                    node.step(gradients={"w": np.ones(3)})
                node.set_optimizer("momentum", learning_rate=0.5, momentum=0.5)
                for _ in range(2):
                    report = node.step(gradients={"w": np.full(3, 4.0 * rank)}, update=lambda mean: self.fail("not asked"))
                self.assertEqual((report.outcome, report.clock), ("averaged", 2))
                own[rank]["w"][1] = 9
                with self.assertRaisesRegex(dpwa.UsageError, "array 'w' was written by the program"):
                    node.step(gradients={"w": np.ones(3)})
                node.leave()

        all_at_once(lambda: run(0), lambda: run(1))
        for arrays in own:  # from those of the first: -0.5 * 2, and -0.5 * (2 + 0.5 * 2)
            np.testing.assert_array_equal(arrays["w"][[0, 2]], [-2.5, -2.5])

    def test_a_type_without_servers_trains_alone(self) -> None:
        file = cluster(self.folder, 1, "backend: kvstore", "kvstore: {type: local_update_cpu}")
        arrays = {"w": np.ones(3)}
        with dpwa.attach_arrays(arrays, file, "w1") as node:
            report = node.step(gradients={"w": np.full(3, 0.5)}, update=lambda own: {"w": arrays["w"] - own["w"]})
        self.assertEqual((report.clock, arrays["w"].tolist()), (1, [0.5] * 3))
        file = cluster(self.folder, 1, "backend: kvstore", "kvstore: {type: local_update_cpu, compression: {type: fp16}}")
        with self.assertRaisesRegex(dpwa.ConfigError, "kvstore.compression.type: .* accepted there: none"):
            dpwa.attach_arrays(arrays, file, "w1")


@unittest.skipIf(torch is None, "needs torch in this Python")
class Torch(WithServers):
    STEPS = 5

    @staticmethod
    def model() -> Any:
        torch.manual_seed(1)
        nn = torch.nn
        model = nn.Sequential(nn.Linear(4, 8, bias=False), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 3))
        model.register_parameter("unused", nn.Parameter(torch.ones(5)))
        return model

    @staticmethod
    def loss(model: Any, rank: int, step: int) -> Any:
        generator = torch.Generator().manual_seed(100 * step + rank)
        x, y = torch.randn(6, 4, generator=generator), torch.randint(3, (6,), generator=generator)
        return torch.nn.functional.cross_entropy(model(x), y)

    def reference(self, make: Any) -> Any:
        """The model after the optimizer's steps with the mean of the gradients of two workers."""
        models = [self.model() for _ in range(2)]
        optimizers = [make(model.parameters()) for model in models]
        for step in range(self.STEPS):
            for rank, model in enumerate(models):
                model.zero_grad()
                self.loss(model, rank, step).backward()
            for one, other in zip(*(model.parameters() for model in models)):
                if one.grad is not None:
                    one.grad = other.grad = (one.grad + other.grad) / 2
            for optimizer in optimizers:
                optimizer.step()
        return models[0]

    def train(self, file: str, make: Any, first: int = 0, **more: Any) -> tuple[list[Any], list[Any]]:
        """Two workers as threads: their models, and the reports of their last steps."""
        models = [self.model() for _ in range(2)]

        def run(rank: int) -> Any:
            optimizer = make(models[rank].parameters())
            with dpwa.attach(models[rank], file, f"w{rank + 1}") as node:
                for step in range(first, self.STEPS):
                    loss = self.loss(models[rank], rank, step)
                    optimizer.zero_grad()
                    loss.backward()
                    if more.get("clips"):
                        node.average_gradients()
                        torch.nn.utils.clip_grad_norm_(models[rank].parameters(), 1e9)
                    report = node.step(optimizer, loss)
                if more.get("takes_state"):
                    self.assertTrue(node.take_optimizer_state(optimizer))
                    self.assertIn("exp_avg_sq", optimizer.state[models[rank][0].weight])
            return report

        return models, all_at_once(lambda: run(0), lambda: run(1))

    def assert_close(self, one: Any, other: Any) -> None:
        for (name, own), its in zip(one.named_parameters(), other.parameters()):
            torch.testing.assert_close(own, its, rtol=1e-4, atol=1e-6, msg=name)

    def test_servers_make_the_step_of_the_mean_gradient(self) -> None:
        for name, make, more in (("Adam", lambda all: torch.optim.Adam(all, lr=0.05), {"takes_state": True}),
                                 ("nesterov", lambda all: torch.optim.SGD(all, lr=0.1, momentum=0.9, nesterov=True),
                                  {"clips": True})):  # fmt: skip
            with self.subTest(name):
                models, reports = self.train(self.start(2, "type: dist_sync, update: server"), make, **more)
                self.assertEqual([report.outcome for report in reports], ["averaged"] * 2)
                self.assertEqual((reports[0].participants, reports[0].clock), (2, self.STEPS))
                for own, its in zip(models[0].state_dict().values(), models[1].state_dict().values()):
                    self.assertTrue(torch.equal(own, its))
                self.assert_close(models[0], self.reference(make))

    def test_servers_leave_alone_what_is_frozen_for_a_while(self) -> None:
        file = self.start(1, "type: dist_sync, update: server")
        model = self.model()
        optimizer = torch.optim.AdamW(model.parameters(), 0.1)
        with dpwa.attach(model, file, "w1") as node:
            held = None
            for step in range(6):
                model[0].requires_grad_(step < 2)
                optimizer.zero_grad()
                loss = self.loss(model, 0, step)
                loss.backward()
                node.step(optimizer, loss)
                if step == 1:
                    held = model[0].weight.detach().clone()
            self.assertTrue(torch.equal(model[0].weight, held))
            node.leave()

    def test_servers_take_over_what_is_written_between_the_halves_of_a_step(self) -> None:
        file = self.start(1, "type: dist_sync, update: server")
        model = self.model()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

        def backward(step: int) -> Any:
            optimizer.zero_grad()
            loss = self.loss(model, 0, step)
            loss.backward()
            return loss

        with dpwa.attach(model, file, "w1") as node:
            for step in range(3):
                before = model[0].weight.detach().clone()
                node.update_send(backward(step))
                optimizer.step()
                written = model[0].weight.detach().clone()
                self.assertFalse(torch.equal(written, before))
                node.update_wait()
                torch.testing.assert_close(model[0].weight.detach(), written)
            node.leave()
            loss = backward(3)
            expected = model[0].weight.detach() - 0.1 * model[0].weight.grad
            node.step(optimizer, loss)
            torch.testing.assert_close(model[0].weight.detach(), expected)

    def test_a_worker_that_ends_after_backward_holds_nobody_up(self) -> None:
        models = [self.model() for _ in range(2)]
        file = self.start(2, "type: dist_sync, update: server")
        ended = with_one_that_ends_after_backward(models, self.loss, file, steps=4)
        self.assertEqual([one.averaged for one in ended], [True, True])
        for own, its in zip(models[0].parameters(), models[1].parameters()):
            self.assertTrue(torch.equal(own, its))

    def test_workers_make_the_step_of_the_mean_gradient_with_any_optimizer(self) -> None:
        def make(parameters: Any) -> Any:
            return torch.optim.NAdam(parameters, lr=0.01)

        models, reports = self.train(self.start(2, "type: dist_sync, update: worker"), make)
        self.assertEqual([report.outcome for report in reports], ["averaged"] * 2)
        self.assertIsNone(models[0].unused.grad)
        for own, its in zip(models[0].parameters(), models[1].parameters()):
            self.assertTrue(torch.equal(own, its))
        self.assert_close(models[0], self.reference(make))

    def test_workers_that_do_not_step_together_are_updated(self) -> None:
        for keys in ("type: dist_async", "type: dist_ssp, staleness: 4"):
            with self.subTest(keys):
                models, reports = self.train(self.start(2, keys), lambda all: torch.optim.SGD(all, lr=0.01))
                self.assertEqual([report.outcome for report in reports], ["updated"] * 2)
                for own, its in zip(models[0].parameters(), models[1].parameters()):
                    self.assertTrue(torch.equal(own, its))  # the final ones
                    self.assertTrue(torch.isfinite(own).all())

    def test_a_worker_that_comes_later_takes_weights_and_state_of_another(self) -> None:
        file = self.start(2, "type: dist_sync, update: worker, min_workers: 1")
        models = [self.model() for _ in range(2)]
        optimizers = [torch.optim.AdamW(model.parameters(), lr=0.05) for model in models]
        nodes = [dpwa.attach(model, file, f"w{rank + 1}") for rank, model in enumerate(models)]

        def step(rank: int, number: int) -> Any:
            optimizers[rank].zero_grad()
            loss = self.loss(models[rank], rank, number)
            loss.backward()
            return nodes[rank].step(optimizers[rank], loss)

        nodes[0].start()
        for number in range(3):
            self.assertEqual(step(0, number).clock, number + 1)
        came = []

        def come() -> None:
            nodes[1].start()
            came.append(nodes[1].state_dict()["clock"])
            while step(1, 0).clock < came[0] + 3: ...

        def go_on() -> None:
            while not came or nodes[0].state_dict()["clock"] < came[0] + 3:
                step(0, 0)

        all_at_once(go_on, come)
        self.assertGreaterEqual(came[0], 3)
        for own, its in zip(models[0].parameters(), models[1].parameters()):
            self.assertTrue(torch.equal(own, its))
        self.assertEqual(optimizers[1].state[models[1][0].weight]["step"], came[0] + 3)
        all_at_once(nodes[0].finish, nodes[1].finish)

    def test_what_the_core_may_ask_about_the_last_step_outlives_set_optimizer(self) -> None:
        file = self.start(1, "type: dist_sync, update: worker, min_workers: 1")
        made: list[Any] = []

        class Noted(store_worker.StoreOptimizer):
            def __init__(self, *given: Any) -> None:
                super().__init__(*given)
                made.append(weakref.ref(self))

        model = self.model()
        optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
        with mock.patch.object(store_worker, "StoreOptimizer", Noted), dpwa.attach(model, file, "w1") as node:
            for step in range(2):
                node.set_optimizer(optimizer)
                self.loss(model, 0, step).backward()
                node.average_gradients()  # in which a worker may come, and want the state
                node.step(optimizer)
                gc.collect()
                self.assertIsNotNone(made[-1]())
            node.set_optimizer(optimizer)
            gc.collect()
            self.assertEqual([one() is None for one in made[-2:]], [False, False])
            self.assertIsNone(made[1]())  # that of the first step

    def test_what_does_not_fit_is_one_line(self) -> None:
        file = self.start(1, "type: dist_sync, update: server, min_workers: 1")
        model = self.model()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        node = dpwa.attach(model, file, "w1")
        node.start()
        self.loss(model, 0, 0).backward()
        with self.assertRaisesRegex(dpwa.UsageError, "closure"):
            node.step(optimizer, closure=lambda: None)
        with self.assertRaisesRegex(dpwa.UsageError, "NAdam.*accepted: one of these, or kvstore.update: worker"):
            node.step(torch.optim.NAdam(model.parameters()))
        self.assertEqual(node.step(optimizer).clock, 1)
        node.leave()

    def test_gradients_that_are_not_finite_do_not_count(self) -> None:
        for update in ("server", "worker"):
            with self.subTest(update):
                file = self.start(1, f"type: dist_sync, update: {update}, min_workers: 1")
                model = torch.nn.Linear(3, 2)
                optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
                with dpwa.attach(model, file, "w1") as node:
                    before = model.weight.detach().clone()
                    (model(torch.full((1, 3), float("nan")))).sum().backward()
                    report = node.step(optimizer)
                    self.assertEqual((report.outcome, report.refused), ("rejected", 1))
                    self.assertTrue(torch.equal(before, model.weight))

    def test_a_scaler_halves_where_the_gradients_of_all_overflow(self) -> None:
        for update in ("server", "worker"):
            with self.subTest(update):
                file = self.start(1, f"type: dist_sync, update: {update}, min_workers: 1")
                model = torch.nn.Linear(3, 2)
                optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
                scaler = torch.amp.GradScaler("cpu", init_scale=4.0)
                with dpwa.attach(model, file, "w1") as node:
                    before = model.bias.detach().clone()
                    scaler.scale(model(torch.full((1, 3), float("inf"))).sum()).backward()
                    report = node.step(optimizer, 1.0, scaler=scaler)
                    self.assertEqual((report.skipped_steps, scaler.get_scale()), (1, 2.0))
                    self.assertTrue(torch.equal(before, model.bias))
                    optimizer.zero_grad()
                    scaler.scale(model(torch.ones(1, 3)).sum()).backward()
                    self.assertEqual(node.step(optimizer, 1.0, scaler=scaler).skipped_steps, 1)
                    torch.testing.assert_close(model.bias.detach(), before - 0.5)

    def test_a_program_that_writes_weights_or_gradients_that_have_left_is_refused(self) -> None:
        file = self.start(1, "type: dist_sync, update: server, min_workers: 1")
        model = torch.nn.Linear(3, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        node = dpwa.attach(model, file, "w1")
        node.start()

        def backward() -> None:
            optimizer.zero_grad()
            node.set_optimizer(optimizer)
            model(torch.ones(1, 3)).sum().backward()

        backward()
        node.step(optimizer)
        backward()
        optimizer.zero_grad()
        with self.assertRaisesRegex(dpwa.UsageError, "a second backward pass"):
            model(torch.ones(1, 3)).sum().backward()
        node.step(optimizer)
        backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.01)
        with self.assertRaisesRegex(dpwa.UsageError, "parameter '.*': its gradient was changed after it had left"):
            node.step(optimizer)
        node.leave()
        file = self.start(1, "type: dist_sync, update: server, min_workers: 1")
        node = dpwa.attach(model, file, "w1")
        node.start()
        with torch.no_grad():
            model.bias.zero_()
        with self.assertRaisesRegex(dpwa.UsageError, "tensor 'bias' was written by the program"):
            node.step(optimizer)
        node.leave()

    def test_a_worker_with_another_model_ends_with_one_line(self) -> None:
        file = self.start(2, "type: dist_sync, min_workers: 1")
        one, other = torch.nn.Linear(3, 2), torch.nn.Linear(4, 2)
        with dpwa.attach(one, file, "w1"):
            with self.assertRaisesRegex(dpwa.Error, "node 'w2' has another model than the run: key 1 is 'weight'.*2,4.*2,3"):
                dpwa.attach(other, file, "w2").start()

    def test_ctrl_c_ends_the_wait_for_a_server_that_was_killed(self) -> None:
        file = self.start(1, "type: dist_sync, update: server, min_workers: 1")
        text = f"""
import sys; sys.path.insert(0, {PACKAGE!r})
import dpwa, os, signal, torch
model = torch.nn.Linear(3, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
node = dpwa.attach(model, {file!r}, "w1")
node.start()
os.kill({self.servers[0].pid}, signal.SIGKILL)
model(torch.ones(1, 3)).sum().backward()
try:
    print("waits", flush=True)
    node.step(optimizer)
except KeyboardInterrupt: print("interrupted", flush=True)
node.leave()
print(node.step(optimizer).outcome, flush=True)
"""
        self.assertEqual(self.interrupted(text), ["interrupted", "skipped"])

    def test_the_others_go_on_after_a_worker_was_killed(self) -> None:
        file = self.start(2, "type: dist_sync, update: server, lost_after_ms: 500")
        text = f"""
import sys; sys.path.insert(0, {PACKAGE!r})
import dpwa, os, signal, torch
model = torch.nn.Linear(3, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
node = dpwa.attach(model, {file!r}, "w2")
node.start()
while True:
    optimizer.zero_grad()
    model(torch.ones(1, 3)).sum().backward()
    if node.step(optimizer).clock == 2: os.kill(os.getpid(), signal.SIGKILL)
"""
        other = subprocess.Popen([sys.executable, "-c", text])
        model = torch.nn.Linear(3, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        with dpwa.attach(model, file, "w1") as node:
            while True:
                optimizer.zero_grad()
                model(torch.ones(1, 3)).sum().backward()
                report = node.step(optimizer)
                if report.clock > 2 and report.participants == 1:
                    break
        self.assertEqual(other.wait(PATIENCE), -signal.SIGKILL)
        self.assertEqual(node.finish().participants, 1)

    @unittest.skipUnless(EMBEDDED, "needs the C++ example")
    def test_workers_in_cpp_and_in_python_train_one_model(self) -> None:
        for update in ("server", "worker"):
            with self.subTest(update):
                file = self.start(2, f"type: dist_sync, update: {update}")
                model = embedded_net()
                optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
                together = 0
                with subprocess.Popen([EMBEDDED, file, "w1"], stdout=subprocess.PIPE, text=True) as other:
                    with dpwa.attach(model, file, "w2") as node:
                        for _ in range(20):
                            data = torch.rand(32, 2) * 2 - 1
                            loss = torch.nn.functional.nll_loss(model(data), (data.square().sum(1) < 0.6).long())
                            optimizer.zero_grad()
                            loss.backward()
                            node.average_gradients()  # as the program in C++ does
                            together += node.step(optimizer, loss).participants == 2
                    said = other.communicate(timeout=PATIENCE)[0]
                self.assertEqual((other.returncode, together), (0, 20))
                self.assertIn("accuracy", said)


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    unittest.main()
