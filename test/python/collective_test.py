"""Back end collective in Python: equal models, the update of the mean gradient, and what happens to lost nodes."""

from __future__ import annotations

import math
import subprocess
import sys
import threading
import unittest
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from nodes import CLI, EMBEDDED, PACKAGE, PATIENCE, InFolder, all_at_once, cluster, with_one_that_ends_after_backward

import dpwa
import numpy as np

try:
    import torch
except ImportError:
    torch = None  # type: ignore[assignment]

COLLECTIVE = "backend: collective"


def fails(_: Any) -> None:
    raise KeyError("of the program")


class Arrays(InFolder):
    def test_arrays_take_the_step_of_the_mean_gradient(self) -> None:
        file = cluster(self.folder, 2, COLLECTIVE)
        own = [{"w": np.full(3, rank, np.float32), "b": np.zeros(2)} for rank in range(2)]

        def run(rank: int) -> Any:
            arrays = own[rank]

            def update(mean: Any) -> None:
                arrays["w"] -= mean["w"]
                arrays["b"] -= mean["b"]

            node = dpwa.attach_arrays(arrays, file, f"w{rank + 1}")
            with node:
                node.set_batch_size(3 if rank == 0 else 1)
                gradients = {"w": np.full(3, 4.0 * rank), "b": np.full(2, 8.0)}
                report = node.step(1.0, gradients=gradients, update=update)
                with self.assertRaisesRegex(dpwa.UsageError, "averages gradients; accepted: step.loss, gradients"):
                    node.step(1.0)
                with self.assertRaisesRegex(dpwa.UsageError, "gradient of 'v'; accepted: w, b"):
                    node.step(1.0, gradients={"v": 1.0}, update=update)
                for wrong in (np.ones(4), np.ones(3, complex)):
                    with self.assertRaisesRegex(dpwa.UsageError, "the gradient of 'w' is .*; accepted: float32 .3."):
                        node.step(1.0, gradients={"b": np.ones(2), "w": wrong}, update=update)
                node.set_batch_size(0 if rank == 0 else 2)  # those of the first do not count, whatever they are
                node.step(1.0, gradients={"w": np.full(3, 2.0 if rank else math.nan), "b": np.zeros(2)}, update=update)
            return report, node.finish()

        (report, ended), _ = all_at_once(lambda: run(0), lambda: run(1))
        self.assertEqual((report.outcome, report.participants, report.clock), ("averaged", 2, 1))
        self.assertEqual((ended.averaged, ended.participants), (True, 2))
        for arrays in own:  # from the weights of the first one
            np.testing.assert_array_equal(arrays["w"], np.full(3, -3, np.float32))
            np.testing.assert_array_equal(arrays["b"], np.full(2, -8.0))

    def test_arrays_that_cannot_be_written_take_a_step_too(self) -> None:
        for backend in ("collective", "'null'"):
            with self.subTest(backend):
                fixed = np.ones(2)
                fixed.flags.writeable = False
                node = dpwa.attach_arrays({"w": fixed}, cluster(self.folder, 1, f"backend: {backend}"), "w1")
                with node:
                    node.step(gradients={"w": np.full(2, 3.0)}, update=lambda mean: {"w": node.values["w"] - mean["w"]})
                np.testing.assert_array_equal(node.values["w"], np.full(2, -2.0))

    def test_a_node_that_is_behind_takes_over_all_that_the_program_shares(self) -> None:
        file = cluster(self.folder, 2, COLLECTIVE)

        def run(rank: int) -> list[Any]:
            node = dpwa.attach_arrays({"w": np.zeros(1)}, file, f"w{rank + 1}")
            if rank:
                node.load_state_dict({"clock": 5})
            shared = [np.full(2, 10 * rank), np.full(3, 20.0 * rank)]
            for one in shared:
                node.share(one)
            with node:
                node.step(gradients={"w": np.ones(1)}, update=lambda mean: None)
            return [one.tolist() for one in shared]

        self.assertEqual(all_at_once(lambda: run(0), lambda: run(1)), [[[10, 10], [20, 20, 20]]] * 2)

    def test_an_exception_in_the_update_leaves(self) -> None:
        with dpwa.attach_arrays({"w": np.zeros(1)}, cluster(self.folder, 1, COLLECTIVE), "w1") as node:
            with self.assertRaisesRegex(KeyError, "of the program"):
                node.step(gradients={"w": np.ones(1)}, update=fails)
            for _ in range(2):
                report = node.step(gradients={"w": np.ones(1)}, update=lambda _: None)
                self.assertEqual((report.outcome, report.participants), ("skipped", 1))

    def test_what_the_package_lacks_is_refused_with_the_key(self) -> None:
        for section, words in (("{compression: fp16}", "collective.compression: fp16 is not in the Python package"),
                               ("{engine: gloo}", "collective.engine: gloo is not .* accepted there: auto, dpwa")):  # fmt: skip
            with self.assertRaisesRegex(dpwa.ConfigError, words):
                dpwa.attach_arrays({"w": np.zeros(3)}, cluster(self.folder, 1, COLLECTIVE, f"collective: {section}"), "w1")

    def test_ctrl_c_ends_the_wait_for_gradients_of_others(self) -> None:
        file = cluster(self.folder, 2, COLLECTIVE)
        text = f"""
import sys, threading; sys.path.insert(0, {PACKAGE!r})
import dpwa, numpy
nodes = [dpwa.attach_arrays({{"w": numpy.zeros(3)}}, {file!r}, name) for name in ("w1", "w2")]
other = threading.Thread(target=nodes[1].start)
other.start()
nodes[0].start()
other.join()
try:
    print("waits", flush=True)
    nodes[0].step(gradients={{"w": numpy.ones(3)}}, update=lambda mean: None)
except KeyboardInterrupt: print("interrupted", flush=True)
for node in nodes: node.leave()  # the signal may have come before the call
print(nodes[0].step().outcome, flush=True)
"""
        self.assertEqual(self.interrupted(text), ["interrupted", "skipped"])


@unittest.skipIf(torch is None, "needs torch in this Python")
class Torch(InFolder):
    def test_a_node_that_ends_after_backward_holds_nobody_up(self) -> None:
        models = [self.model() for _ in range(2)]
        ended = with_one_that_ends_after_backward(models, self.loss, cluster(self.folder, 2, COLLECTIVE), steps=5)
        self.assertEqual([one.averaged for one in ended], [True, True])
        for own, its in zip(models[0].parameters(), models[1].parameters()):
            self.assertTrue(torch.equal(own, its))

    def test_a_second_optimizer_finds_no_gradients_after_the_pass_of_the_first(self) -> None:
        model = self.model()
        halves = [torch.optim.SGD(part.parameters(), lr=0.1) for part in (model[1], model[5])]
        with dpwa.attach(model, cluster(self.folder, 1, COLLECTIVE), "w1") as node:
            for step in range(2):  # one after the other, each with a pass of its own
                loss = self.loss(model, 0, step)
                loss.backward()
                node.step(halves[step], loss)
            with self.assertRaisesRegex(dpwa.UsageError, "a second optimizer after one backward pass"):
                node.step(halves[0], loss)
            self.loss(model, 0, 3).backward()
            self.assertEqual(node.step(halves[0]).clock, 3)

    @staticmethod
    def model() -> Any:
        torch.manual_seed(1)
        nn = torch.nn
        first = (nn.Unflatten(1, (2, 2, 1)), nn.Conv2d(2, 8, (2, 1)), nn.Flatten())
        model = nn.Sequential(*first, nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 3))
        model.register_parameter("unused", nn.Parameter(torch.ones(5)))
        return model.to(memory_format=torch.channels_last)

    @staticmethod
    def loss(model: Any, rank: int, step: int) -> Any:
        generator = torch.Generator().manual_seed(100 * step + rank)
        x, y = torch.randn(6, 4, generator=generator), torch.randint(3, (6,), generator=generator)
        return torch.nn.functional.cross_entropy(model(x), y)

    def reference(self, nodes: int, steps: int) -> list[Any]:
        """The weights after SGD on the mean of the gradients of all nodes, taken in the order of ranks."""
        models = [self.model() for _ in range(nodes)]
        optimizers = [torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9) for model in models]
        for step in range(steps):
            for rank, model in enumerate(models):
                model.zero_grad()
                self.loss(model, rank, step).backward()
            for same in zip(*(model.parameters() for model in models)):
                gradients = [one.grad for one in same]
                if gradients[0] is not None:
                    mean = torch.stack(gradients).sum(0) if nodes == 2 else (gradients[0] + gradients[1]) + gradients[2]
                    for one in same:
                        one.grad = mean / nodes
            for optimizer in optimizers:
                optimizer.step()
        return list(models[0].parameters())

    def test_nodes_take_the_step_of_the_mean_gradient_bit_for_bit(self) -> None:
        subprocess.run([CLI, "keygen", "--output", Path(self.folder, "cluster.key")], check=True, capture_output=True)
        secured = ["security: {mode: psk, key_file: cluster.key}", "transport: {same_host: 'off'}"]
        for count, more in ((2, []), (3, ["collective: {bucket_bytes: 0}"]), (2, secured)):
            with self.subTest(nodes=count, more=more):
                file = cluster(self.folder, count, COLLECTIVE, *more)
                models = [self.model() for _ in range(count)]

                def run(rank: int) -> Any:
                    model = models[rank]
                    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
                    reports = []
                    with dpwa.attach(model, file, f"w{rank + 1}") as node:
                        self.assertEqual((node.rank, node.size), (rank, count))
                        for step in range(4):
                            loss = self.loss(model, rank, step)
                            optimizer.zero_grad()
                            loss.backward()
                            reports.append(node.step(optimizer, loss))
                    return reports[-1], node.finish()

                (report, ended), *_ = all_at_once(*(lambda rank=rank: run(rank) for rank in range(count)))
                self.assertEqual((report.outcome, report.participants, report.clock), ("averaged", count, 4))
                self.assertEqual((ended.averaged, ended.participants), (True, count))
                for model in models:
                    for own, other in zip(model.state_dict().values(), models[0].state_dict().values()):
                        self.assertTrue(torch.equal(own, other))
                for own, wanted in zip(models[0].parameters(), self.reference(count, 4)):
                    self.assertTrue(torch.equal(own, wanted))

    def alone(self, model: Any) -> Any:
        return dpwa.attach(model, cluster(self.folder, 1, COLLECTIVE), "w1")

    def test_passes_add_up_under_accumulate_and_a_second_one_without_it_is_refused(self) -> None:
        model = self.model()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
        with self.alone(model) as node:
            with node.accumulate():
                self.loss(model, 0, 0).backward()
            once = model[1].weight.grad.clone()
            self.loss(model, 0, 0).backward()
            node.average_gradients()
            torch.testing.assert_close(model[1].weight.grad, 2 * once)
            with self.assertRaisesRegex(dpwa.UsageError, "average_gradients"):
                node.average_gradients()
            self.assertEqual(node.step(optimizer).clock, 1)
            self.loss(model, 0, 0).backward()
            with self.assertRaisesRegex(dpwa.UsageError, "a second backward pass before step"):
                self.loss(model, 0, 0).backward()
            node.leave()
        self.assertIsNone(model.unused.grad)

    def test_a_step_that_the_scaler_skips_is_skipped_by_all(self) -> None:
        file = cluster(self.folder, 2, COLLECTIVE)

        def run(rank: int) -> Any:
            model = self.model()
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            scaler = torch.amp.GradScaler("cpu", init_scale=4.0)
            with dpwa.attach(model, file, f"w{rank + 1}") as node:
                before = model[1].weight.detach().clone()
                loss = self.loss(model, rank, 0)
                scaler.scale(loss * (float("inf") if rank else 1)).backward()
                report = node.step(optimizer, loss, scaler=scaler)
                self.assertTrue(torch.equal(before, model[1].weight))
                optimizer.zero_grad()
                loss = self.loss(model, rank, 1)
                scaler.scale(loss).backward()
                second = node.step(optimizer, loss, scaler=scaler)
            return report, second, model[1].weight.detach()

        (report, second, weight), (_, _, other) = all_at_once(lambda: run(0), lambda: run(1))
        self.assertEqual((report.skipped_steps, second.skipped_steps, second.clock), (1, 1, 2))
        self.assertTrue(torch.equal(weight, other))

    def test_an_optimizer_of_the_node_averages_in_backward_and_a_scaler_skips_on_all(self) -> None:
        file = cluster(self.folder, 2, COLLECTIVE)

        def run(rank: int) -> Any:
            model = self.model()
            scaler = torch.amp.GradScaler("cpu", init_scale=4.0)
            norms = []
            with dpwa.attach(model, file, f"w{rank + 1}") as node:
                optimizer = dpwa.Optimizer(torch.optim.SGD(model.parameters(), lr=0.1), node)
                for step in range(4):
                    optimizer.zero_grad()
                    overflow = float("inf") if rank and step in (1, 3) else 1
                    scaler.scale(self.loss(model, rank, step) * overflow).backward()
                    node.average_gradients()  # backward() has done it
                    scaler.unscale_(optimizer)
                    norms.append(float(torch.nn.utils.clip_grad_norm_(model.parameters(), 0.01)))
                    scaler.step(optimizer)
                    scaler.update()
                self.assertTrue(node.is_averaged)
                ended = node.finish()
            return norms[::2], optimizer.report, ended, model[1].weight.detach()

        (norms, report, ended, weight), (others, _, _, other) = all_at_once(lambda: run(0), lambda: run(1))
        self.assertEqual((report.skipped_steps, report.clock, ended.averaged), (1, 3, True))
        self.assertEqual(norms, others)
        self.assertTrue(torch.equal(weight, other))

    def test_a_loss_that_is_no_number_is_told_once(self) -> None:
        file = Path(cluster(self.folder, 1, COLLECTIVE))
        file.write_text(file.read_text(encoding="utf-8").replace("level: error", "level: warn"), encoding="utf-8")
        text = f"import sys; sys.path.insert(0, {PACKAGE!r}); import dpwa, torch\nmodel = torch.nn.Linear(2, 1)\n"
        text += f"optimizer = torch.optim.SGD(model.parameters())\nwith dpwa.attach(model, {str(file)!r}, 'w1') as node:\n"
        text += "  for scale in (1, float('nan'), float('nan')):\n    loss = (model(torch.ones(1, 2)) * scale).sum()\n"
        text += "    loss.backward()\n    node.step(optimizer, loss)\n"
        done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=PATIENCE, check=True)
        self.assertEqual(done.stderr.count("the loss is nan"), 1, done.stderr)

    def test_a_second_pass_that_adds_to_averaged_gradients_is_refused(self) -> None:
        model = self.model()
        with self.alone(model) as node:
            optimizer = dpwa.Optimizer(torch.optim.SGD(model.parameters(), lr=0.0), node)
            with node.accumulate():
                self.loss(model, 0, 0).backward()
            once = model[1].weight.grad.clone()
            self.loss(model, 0, 0).backward()
            torch.testing.assert_close(model[1].weight.grad, 2 * once)
            with self.assertRaisesRegex(dpwa.UsageError, "adds to gradients that were averaged; accepted: node.accumulate"):
                self.loss(model, 0, 0).backward()
            optimizer.step()
            self.assertEqual(optimizer.report.clock, 1)

    def test_a_pass_within_another_one_is_refused_where_it_would_be_averaged(self) -> None:
        from torch.utils.checkpoint import checkpoint

        nn = torch.nn
        x = torch.ones(2, 3, requires_grad=True)

        def loss(model: Any, reenters: bool) -> Any:
            first = checkpoint(model[0], x, use_reentrant=reenters)
            return model[2](checkpoint(model[1], first, use_reentrant=reenters)).sum()

        for head in (nn.Linear(3, 1), nn.Identity()):  # whose gradient comes before the passes within, or there is none
            with self.subTest(head):
                model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3), head)
                with self.alone(model) as node:
                    optimizer = dpwa.Optimizer(torch.optim.SGD(model.parameters(), lr=0.0), node)
                    with node.accumulate():
                        loss(model, True).backward()
                    once = model[0].weight.grad.clone()
                    loss(model, False).backward()
                    torch.testing.assert_close(model[0].weight.grad, 2 * once)
                    optimizer.step()
                    self.assertEqual(optimizer.report.clock, 1)
                    optimizer.zero_grad()
                    with self.assertRaisesRegex(dpwa.UsageError, "within another one.* accepted: use_reentrant=False$"):
                        loss(model, True).backward()
                    node.leave()
                with self.alone(model) as node:
                    for _ in range(2):
                        loss(model, True).backward()  # averaged in step()
                        self.assertEqual(node.step(optimizer.optimizer).outcome, "skipped")

    def test_gradients_that_the_program_assigns_are_averaged(self) -> None:
        file = cluster(self.folder, 2, COLLECTIVE)
        models = [torch.nn.Linear(3, 2), torch.nn.Linear(3, 2)]

        def run(rank: int) -> None:
            model = models[rank]
            optimizer = torch.optim.SGD(model.parameters(), lr=1)
            with dpwa.attach(model, file, f"w{rank + 1}") as node:
                before = model.bias.detach().clone()
                for _ in range(2):
                    model.weight.grad = torch.zeros_like(model.weight)
                    model.bias.grad = torch.full_like(model.bias, 2.0 * rank)
                    node.step(optimizer)
                self.assertTrue(torch.equal(model.bias.detach(), before - 1 - 1))

        all_at_once(lambda: run(0), lambda: run(1))

    def test_gradients_that_the_program_changes_after_they_have_left_are_refused(self) -> None:
        model = torch.nn.Linear(3, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        scaler = torch.amp.GradScaler("cpu", init_scale=4.0)

        def clip() -> None:
            torch.nn.utils.clip_grad_norm_(model.parameters(), 0.01)

        def clear() -> None:
            model.weight.grad = None

        for change in (clip, clear):
            with dpwa.attach(model, cluster(self.folder, 1, COLLECTIVE), "w1") as node:
                model(torch.ones(1, 3)).sum().backward()
                change()
                with self.assertRaisesRegex(dpwa.UsageError, "'.*': its gradient was changed after .*average_gradients"):
                    node.step(optimizer)
                node.leave()
            optimizer.zero_grad()
        with dpwa.attach(model, cluster(self.folder, 1, COLLECTIVE), "w1") as node:
            scaler.scale(model(torch.ones(1, 3)).sum()).backward()
            scaler.unscale_(optimizer)
            with self.assertRaisesRegex(dpwa.UsageError, "scaler.unscale_.. before average_gradients"):
                node.step(optimizer, scaler=scaler)
            node.leave()
            optimizer.zero_grad()
        with dpwa.attach(model, cluster(self.folder, 1, COLLECTIVE), "w1") as node:
            model(torch.ones(1, 3)).sum().backward()
            node.average_gradients()
            clip()
            bias = model.bias.detach().clone()
            node.step(optimizer)
            self.assertFalse(torch.equal(bias, model.bias.detach()))
            torch.testing.assert_close(bias, model.bias.detach(), atol=0.002, rtol=0)

    def test_nodes_that_end_at_different_times_end_with_the_model_of_the_last(self) -> None:
        file = cluster(self.folder, 2, COLLECTIVE)
        models = [self.model(), self.model()]

        def run(rank: int) -> float:
            optimizer = torch.optim.SGD(models[rank].parameters(), lr=0.1)
            with dpwa.attach(models[rank], file, f"w{rank + 1}") as node:
                for step in range(2 + 3 * rank):
                    optimizer.zero_grad()
                    self.loss(models[rank], rank, step).backward()
                    report = node.step(optimizer)
            return report.clock

        self.assertEqual(all_at_once(lambda: run(0), lambda: run(1)), [2, 5])
        for one, two in zip(models[0].parameters(), models[1].parameters()):
            self.assertTrue(torch.equal(one, two))

    def test_all_end_after_the_step_after_one_wanted_to(self) -> None:
        file = cluster(self.folder, 2, COLLECTIVE)

        def run(rank: int) -> tuple[int, bool]:
            model = torch.nn.Linear(2, 2)
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            steps = 0
            with dpwa.attach(model, file, f"w{rank + 1}") as node:
                while True:
                    model(torch.ones(1, 2)).sum().backward()
                    node.step(optimizer)
                    steps += 1
                    if node.should_stop(rank == 1 and steps >= 3):
                        break
            return steps, node.finish().averaged  # again

        self.assertEqual(all_at_once(lambda: run(0), lambda: run(1)), [(4, True)] * 2)

    def test_nodes_with_another_optimizer_end_with_one_line(self) -> None:
        file = cluster(self.folder, 2, COLLECTIVE)

        def run(rank: int) -> str:
            model = self.model()
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1 + rank)
            with self.assertRaises(dpwa.Error) as caught, dpwa.attach(model, file, f"w{rank + 1}") as node:
                self.loss(model, rank, 0).backward()
                node.step(optimizer)
            return str(caught.exception)

        for line in all_at_once(lambda: run(0), lambda: run(1)):
            self.assertRegex(line, r"^node 'w[12]' ends at clock 0.*lr 0.1.*lr 1.1[^\n]*$")

    def test_others_shrink_where_a_process_is_killed_and_take_it_in_again(self) -> None:
        self.lose_one("shrink")

    def test_others_train_apart_where_a_process_is_killed_and_take_it_in_again(self) -> None:
        self.lose_one("gossip")

    def test_arrays_that_train_apart_take_the_steps_of_their_own_gradients(self) -> None:
        self.lose_one("gossip", train_array)

    def lose_one(self, policy: str, train: Any = None) -> None:
        train = train or train_module
        file = cluster(self.folder, 3, COLLECTIVE, f"collective: {{on_lost_rank: {policy}, start_wait_ms: {PATIENCE:.0f}s}}")
        here = f"import sys; sys.path[:0] = {[PACKAGE, str(Path(__file__).parent)]!r}; "
        start = f"{here}import collective_test; collective_test.{train.__name__}({file!r}, 'w3', lambda node: False)"

        def third() -> subprocess.Popen[str]:
            process = subprocess.Popen([sys.executable, "-c", start], stdout=subprocess.PIPE, text=True)
            self.addCleanup(process.kill)
            return process

        processes = [third()]
        sizes: list[list[int]] = [[], []]
        together = threading.Event()

        def ends(node: Any, rank: int) -> bool:
            sizes[rank].append(node.size)
            if rank == 0 and sizes[0].count(3) == 5:
                processes[0].kill()
            if rank == 0 and node.size == 2 and len(processes) == 1:
                processes.append(third())
            if 2 in sizes[rank] and node.size == 3:
                together.set()
            return bool(node.should_stop(together.is_set() and sizes[rank][-5:] == [3] * 5))

        weights = all_at_once(lambda: train(file, "w1", lambda node: ends(node, 0)),
                              lambda: train(file, "w2", lambda node: ends(node, 1)))  # fmt: skip
        processes[1].kill()
        for process in processes:
            process.communicate(timeout=PATIENCE)
        self.assertTrue(all(np.array_equal(one, two) for one, two in zip(*weights)))

    @unittest.skipUnless(EMBEDDED, "needs the C++ example")
    def test_nodes_in_cpp_and_in_python_refuse_each_other_with_the_engine(self) -> None:
        file = cluster(self.folder, 2, COLLECTIVE)
        with subprocess.Popen([EMBEDDED, file, "w1"], stderr=subprocess.PIPE, text=True) as other:
            with self.assertRaisesRegex(dpwa.Error, r"'w1' differs: engine of backend collective: .*dpwa \(Python\)"):
                dpwa.attach(self.model(), file, "w2").start()
            said = other.communicate(timeout=PATIENCE)[1]
        self.assertNotEqual(other.returncode, 0)
        self.assertIn("differs: engine of backend collective", said)


def train_array(file: str, name: str, ends: Any) -> Any:
    """As train_module()."""
    values = np.zeros(3, np.float32)

    def update(gradients: Any) -> None:
        values[...] -= gradients["w"]

    node = dpwa.attach_arrays({"w": values}, file, name)
    node.start()
    while True:
        node.step(gradients={"w": np.full(3, 0.25 * (node.rank + 1), np.float32)}, update=update)
        if ends(node):
            break
    node.leave()
    return [values]


def train_module(file: str, name: str, ends: Any) -> Any:
    """Of one node, until `ends`: the bytes of its parameters."""
    torch.set_num_threads(1)
    model = Torch.model()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    node = dpwa.attach(model, file, name)
    node.start()
    step = 0
    while True:
        optimizer.zero_grad()
        Torch.loss(model, node.rank, step).backward()
        node.step(optimizer)
        step += 1
        if ends(node):
            break
    weights = [one.detach().numpy().copy() for one in model.parameters()]
    node.leave()
    return weights


if __name__ == "__main__":
    unittest.main()
