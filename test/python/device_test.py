"""Models on a device, as the Python package exchanges them. A CPU stands for the device: its memory is not that of the
core, and events are over when the test says so."""

from __future__ import annotations

import gc
import sys
import threading
import unittest
from pathlib import Path
from typing import Any
from unittest import mock

sys.path.insert(0, str(Path(__file__).parent))

import kvstore_test
from nodes import PATIENCE, InFolder, all_at_once, cluster

import dpwa
import numpy as np

try:
    import torch
    from torch import nn
except ImportError as error:
    raise unittest.SkipTest("without torch") from error

from dpwa import device, torch_node

PATIENT = "gossip: {start_wait_ms: 60s, finish_wait_ms: 60s, timeout_ms: 60s}"


class Streams:
    """The interface of torch.cuda, with a list of what was asked of it."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.is_busy = False
        self._current = "training"
        self._streams = iter(("out", "in"))
        api = self

        class Event:
            stream = ""

            def record(self, stream: str) -> None:
                self.stream = stream

            def query(self) -> bool:
                return not api.is_busy

            def synchronize(self) -> None:
                api.log.append(f"wait for {self.stream}")

        self.Event = Event

    class Named(str):
        def wait_event(self, event: Any) -> None:
            self.api.log.append(f"{self} behind {event.stream}")  # type: ignore[attr-defined]

    def _named(self, name: str) -> Any:
        named = self.Named(name)
        named.api = self  # type: ignore[attr-defined]
        return named

    def Stream(self) -> Any:
        return self._named(next(self._streams))

    def current_stream(self) -> Any:
        return self._named(self._current)

    def synchronize(self) -> None:
        self.log.append("synchronize")

    def stream(self, stream: Any) -> Any:
        return mock.patch.object(self, "_current", str(stream))


def on_a_device(streams: Any = None) -> Any:
    """attach() takes models of the CPU for those of a device. streams: its interface; a class: each model has another."""
    made = lambda where: device.DevicePasses(where, streams() if isinstance(streams, type) else streams)  # noqa: E731
    return mock.patch.multiple(torch_node, is_on_host=lambda _: False, DevicePasses=made)


def net(seed: int) -> Any:
    """Tensors of several types, one of them frozen."""

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            torch.manual_seed(seed)
            self.conv = nn.Conv2d(3, 4, 3)
            self.norm = nn.BatchNorm2d(4)
            self.scores = nn.Linear(4, 2).to(torch.float64)
            self.fixed = nn.Parameter(torch.arange(3.0), requires_grad=False)

        def forward(self, x: Any) -> Any:
            return self.scores(self.norm(self.conv(x)).mean((2, 3)).double())

    return Net()


class Device(InFolder):
    def test_two_models_on_devices_blend_and_end_alike(self) -> None:
        file = cluster(self.folder, 2, PATIENT)
        models = [net(seed).to(memory_format=torch.channels_last) for seed in (1, 2)]
        together = threading.Barrier(2)
        blends = [0, 0]

        def run(rank: int) -> Any:
            model = models[rank]
            node = dpwa.attach(model, file, f"w{rank + 1}")
            optimizer = torch.optim.SGD(model.parameters(), 0.05)
            done = False
            with node:
                while not done:
                    loss = model(torch.randn(4, 3, 6, 6)).square().mean()
                    optimizer.zero_grad()
                    loss.backward()
                    blends[rank] += node.step(optimizer, loss).outcome == "mixed"
                    together.wait(PATIENCE)  # both have stepped
                    done = all(blends)
                    together.wait(PATIENCE)  # and both have looked at the blends
            return node.finish()

        with on_a_device():
            ended, _ = all_at_once(lambda: run(0), lambda: run(1))
        self.assertEqual((ended.averaged, ended.participants), (True, 2))
        for (name, mine), its in zip(models[0].state_dict().items(), models[1].state_dict().values()):
            self.assertTrue(torch.equal(mine, its), name)
        self.assertTrue(models[0].conv.weight.is_contiguous(memory_format=torch.channels_last))

    def test_a_model_on_a_device_and_one_on_the_host_are_one_model(self) -> None:
        file = cluster(self.folder, 2, PATIENT)
        model, plain = net(1), net(2)
        with on_a_device():
            node = dpwa.attach(model, file, "w1")
        other = dpwa.attach(plain, file, "w2")

        def run(one: Any) -> Any:
            with one:
                pass
            return one.finish()

        ended, _ = all_at_once(lambda: run(node), lambda: run(other))
        self.assertEqual((ended.averaged, ended.participants), (True, 2))
        for mine, its in zip(model.state_dict().values(), plain.state_dict().values()):
            self.assertTrue(torch.equal(mine, its))

    def test_a_blend_on_a_device_is_that_of_the_host(self) -> None:
        """Ranges that begin and end within a region, differences and values."""
        torch.manual_seed(3)
        regions = [(0, 4096, "float32", True), (4096, 512, "float64", True), (4608, 64, "int64", False)]
        passes = device.DevicePasses(torch.device("cpu"))
        passes.lay_out(regions)
        snapshot = np.frombuffer(torch.randn(4672 // 4).numpy().tobytes(), np.uint8).copy()
        passes.assign(snapshot)
        landed = np.concatenate([torch.randn(1024).numpy().view(np.uint8), torch.randn(64, dtype=torch.float64).numpy().view(np.uint8)])
        for offset, length in ((0, 4608), (64, 128), (4032, 128), (4160, 64)):
            for is_difference in (True, False):
                passes.assign(snapshot)
                passes.blend(landed[offset : offset + length], offset, is_difference, 0.25)
                out = np.zeros_like(snapshot)
                passes.copy_out(out)
                expected = snapshot.copy()
                for begin, size, dtype, _ in regions[:2]:
                    first, last = max(begin, offset), min(begin + size, offset + length)
                    if first >= last:
                        continue
                    own = torch.from_numpy(expected[first:last]).view(getattr(torch, dtype))
                    its = torch.from_numpy(landed[first:last].copy()).view(getattr(torch, dtype))
                    own.add_(its, alpha=0.25) if is_difference else own.lerp_(its, 0.25)
                np.testing.assert_array_equal(out, expected)

    def test_copies_have_streams_of_their_own_and_wait_for_no_more_than_they_need(self) -> None:
        streams = Streams()
        passes = device.DevicePasses(torch.device("cpu"), streams)
        passes.lay_out([(0, 64, "float32", True)])
        memory = np.zeros(64, np.uint8)
        passes.copy_out(memory)
        self.assertEqual(streams.log, ["out behind training"])
        streams.is_busy = True
        streams.log.clear()
        passes.copy_out(memory)  # while the staging memory is read
        self.assertEqual(streams.log, ["training behind out", "out behind training"])
        self.assertEqual(passes.copies_under_way(), 2)
        streams.log.clear()
        passes.fetch(memory, 0)
        self.assertEqual((passes.is_fetched(), passes.landing_is_free()), (False, False))
        self.assertEqual(streams.log, [])
        streams.is_busy = False
        self.assertEqual((passes.is_fetched(), passes.landing_is_free()), (True, True))
        self.assertEqual(passes.copies_under_way(), 0)
        passes.blend(memory, 0, False, 0.5)
        passes.fetch(memory, 0)  # not before the blend has read what came before
        self.assertEqual(streams.log, ["training behind in", "in behind training"])

    def test_a_loss_is_read_when_it_is_asked_for(self) -> None:
        streams = Streams()
        passes = device.DevicePasses(torch.device("cpu"), streams)
        passes.note_loss(torch.tensor([0.25]))
        passes.note_loss(3)
        self.assertEqual(streams.log, ["out behind training"])
        self.assertEqual((passes.loss(1), passes.loss(2)), (0.25, 3.0))
        self.assertEqual(streams.log, ["out behind training", "wait for out"])
        passes.note_loss(None)
        self.assertTrue(np.isnan(passes.loss(3)))
        for value in range(4, 40):  # a program may be so far ahead
            passes.note_loss(float(value))
        self.assertEqual([passes.loss(step) for step in (4, 5, 20, 20, 39)], [4, 5, 20, 20, 39])
        self.assertTrue(np.isnan(passes.loss(40)))

    def test_memory_is_locked_on_the_device_of_the_model(self) -> None:
        streams, seen = Streams(), []
        streams.device = lambda where: mock.patch.object(streams, "_current", f"stream of {where}")  # type: ignore[attr-defined]
        passes = device.DevicePasses(torch.device("cpu"), streams)
        passes.here(lambda: seen.append(str(streams.current_stream())))
        self.assertEqual(seen, ["stream of cpu"])

    def test_a_node_that_failed_is_one_line_and_its_memory_waits_for_copies(self) -> None:
        for daemon in ("false", "true"):
            with self.subTest(daemon=daemon):
                file = cluster(self.folder, 2, f"gossip: {{daemon: {daemon}, min_nodes: 2, start_wait_ms: 500ms}}")
                if daemon == "true":
                    self.run_process("node", file, "w1")
                streams = Streams()
                with on_a_device(streams):
                    node = dpwa.attach(nn.Linear(8, 8), file, "w1")
                with self.assertRaisesRegex(dpwa.Error, "min_nodes|fewer|only"):
                    node.start()
                self.assertEqual(streams.log[-1:], ["synchronize"])
                del node  # its session asks the passes until it has ended
                gc.collect()

    def test_memory_of_a_node_that_was_dropped_is_freed_behind_its_copies(self) -> None:
        streams = Streams()
        with on_a_device(streams):
            node = dpwa.attach(nn.Linear(2, 2), cluster(self.folder, 1, "gossip: {start_wait_ms: 0}"), "w1")
            node.start()
            streams.log.clear()
            del node
            gc.collect()
        self.assertEqual(streams.log[-1:], ["synchronize"])

    def test_a_store_without_servers_trains_a_model_on_a_device_alone(self) -> None:
        file = cluster(self.folder, 1, "backend: kvstore", "kvstore: {type: local_allreduce_device}")
        model = nn.Linear(3, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
        with on_a_device(Streams), dpwa.attach(model, file, "w1") as node:
            before = model.bias.detach().clone()
            model(torch.ones(1, 3)).sum().backward()
            self.assertEqual(node.step(optimizer, 1.0).clock, 1)
        self.assertTrue(torch.equal(model.bias.detach(), before - 0.5))

    def test_what_a_device_cannot_do_is_one_line(self) -> None:
        with on_a_device(), self.assertRaisesRegex(dpwa.ModelError, "collective; accepted on a device: gossip, kvstore"):
            dpwa.attach(nn.Linear(2, 2), cluster(self.folder, 2, "backend: collective"), "w1")
        with self.assertRaisesRegex(dpwa.ModelError, "meta, without memory"):
            dpwa.attach(nn.Linear(2, 2, device="meta"), cluster(self.folder, 1), "w1")
        streams = Streams()
        streams.is_current_stream_capturing = lambda: True  # type: ignore[attr-defined]
        with on_a_device(streams):
            node = dpwa.attach(nn.Linear(2, 2), cluster(self.folder, 1, "backend: 'null'"), "w1")
        with self.assertRaisesRegex(dpwa.UsageError, "while a CUDA graph is captured"):
            node.start()


class DeviceWorkers(kvstore_test.Torch):
    """Workers of a store, with values and gradients that are not in the memory of the core."""

    def setUp(self) -> None:
        super().setUp()
        self.enterContext(on_a_device(Streams))

    def test_a_program_that_writes_weights_or_gradients_that_have_left_is_refused(self) -> None:
        file = self.start(1, "type: dist_sync, update: server, min_workers: 1")
        model = nn.Linear(3, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
        with dpwa.attach(model, file, "w1") as node:
            before = model.bias.detach().clone()
            node.set_optimizer(optimizer)
            for _ in range(2):  # gradients leave in step(), so that there may be several passes
                model(torch.ones(1, 3)).sum().backward()
            nn.utils.clip_grad_value_(model.parameters(), 1.5)
            node.step(optimizer)
            self.assertTrue(torch.equal(model.bias.detach(), before - 0.75))
            with torch.no_grad():
                model.bias.zero_()
            with self.assertRaisesRegex(dpwa.UsageError, "tensor 'bias' was written by the program"):
                node.step(optimizer)
            node.leave()

    def test_a_pass_that_fails_is_followed_by_another(self) -> None:
        def fail(_: Any) -> None:
            raise RuntimeError("fails")

        file = self.start(1, "type: dist_sync, update: worker, min_workers: 1")
        model = nn.Sequential(nn.Linear(3, 2), nn.Linear(2, 1))
        with dpwa.attach(model, file, "w1") as node:
            optimizer = dpwa.Optimizer(torch.optim.SGD(model.parameters(), lr=0.5), node)
            hook = model[0].weight.register_hook(fail)
            with self.assertRaisesRegex(RuntimeError, "fails"):
                model(torch.ones(1, 3)).sum().backward()
            hook.remove()
            optimizer.zero_grad()
            model(torch.ones(1, 3)).sum().backward()
            self.assertTrue(node.is_averaged)
            optimizer.step()
            self.assertEqual(optimizer.report.clock, 1)

    # Nothing there depends on where a model is.
    test_what_does_not_fit_is_one_line = test_a_worker_with_another_model_ends_with_one_line = None  # type: ignore[assignment]
    test_ctrl_c_ends_the_wait_for_a_server_that_was_killed = None  # type: ignore[assignment]
    test_the_others_go_on_after_a_worker_was_killed = None  # type: ignore[assignment]
    test_workers_in_cpp_and_in_python_train_one_model = None  # type: ignore[assignment]


if __name__ == "__main__":
    unittest.main()
