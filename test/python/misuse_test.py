"""What programs do to a node besides training: exceptions, cells of a notebook, threads, forks, compiled models, and
signals to a process. One line, and nothing left behind."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
import unittest
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from nodes import PACKAGE, PATIENCE, InFolder, all_at_once, cluster

import dpwa
import numpy as np

try:
    import torch
except ImportError:
    torch = None  # type: ignore[assignment]

ALONE = "gossip: {start_wait_ms: 0}"
BACK_ENDS = ("'null'", "gossip", "collective")


class Misuse(InFolder):
    def alone(self, backend: str) -> str:
        return cluster(self.folder, 1, f"backend: {backend}", *([ALONE] if backend == "gossip" else []))

    def test_an_exception_in_the_loop_leaves_and_the_name_can_be_used_again(self) -> None:
        for backend in BACK_ENDS:
            with self.subTest(backend):
                file = self.alone(backend)
                for _ in range(2):
                    with self.assertRaisesRegex(ZeroDivisionError, "^division by zero$"):
                        with dpwa.attach_arrays({"w": np.zeros(3)}, file, "w1") as node:
                            node.step(gradients={"w": np.zeros(3)}, update=lambda mean: None)
                            1 / 0  # noqa: B018
                    self.assertEqual(node.step(gradients={"w": np.zeros(3)}, update=lambda mean: None).outcome, "skipped")
                self.assertEqual([one.name for one in threading.enumerate() if one is not threading.main_thread()], [])

    def test_a_node_can_leave_after_an_interrupt_at_any_moment(self) -> None:
        def interrupt(*_: Any) -> None:
            raise KeyboardInterrupt

        self.addCleanup(signal.signal, signal.SIGALRM, signal.signal(signal.SIGALRM, interrupt))
        file = self.alone("'null'")
        for moment in range(1, 301):
            node = dpwa.attach_arrays({"w": np.zeros(3)}, file, "w1")
            node.start()
            with self.subTest(moment), self.assertRaises(KeyboardInterrupt):
                signal.setitimer(signal.ITIMER_REAL, moment * 7e-6)
                while True:
                    node.step(loss=0.0)
            node.leave()

    def test_the_others_go_on_after_an_exception(self) -> None:
        file = cluster(self.folder, 2, "backend: collective", f"collective: {{on_lost_rank: shrink, start_wait_ms: {PATIENCE:.0f}s}}")

        def run(rank: int) -> int:
            own = {"w": np.zeros(3)}
            with dpwa.attach_arrays(own, file, f"w{rank + 1}") as node:
                while True:
                    participants = node.step(gradients={"w": np.ones(3)}, update=lambda mean: None).participants
                    if rank == 1 and participants == 2:
                        raise KeyError("of the program")
                    if node.size == 1:
                        return participants

        def fails() -> None:
            with self.assertRaisesRegex(KeyError, "of the program"):
                run(1)

        self.assertEqual(all_at_once(lambda: run(0), fails)[0], 1)

    @unittest.skipIf(torch is None, "needs torch in this Python")
    def test_cells_of_a_notebook_may_run_twice(self) -> None:
        cells = ("import dpwa, torch\n"
                 "model = torch.nn.Linear(4, 2) if 'model' not in globals() else model\n"
                 "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
                 "node = dpwa.attach(model, file, 'w1')\n",
                 "node.start()\n",
                 "for _ in range(3):\n"
                 "    optimizer.zero_grad()\n"
                 "    model(torch.ones(1, 4)).sum().backward()\n"
                 "    report = node.step(optimizer)\n")  # fmt: skip
        for backend in BACK_ENDS:
            with self.subTest(backend):
                names: dict[str, Any] = {"file": self.alone(backend)}
                for cell in cells * 3:
                    exec(cell, names)
                exec(cells[2], names)  # the loop alone again
                self.assertEqual(names["report"].clock, 6)
                # Only the last node still has hooks, and it takes them along.
                hooks = [one._post_accumulate_grad_hooks or () for one in names["model"].parameters()]
                self.assertEqual({len(one) for one in hooks}, {int(backend == "collective")})
                with self.assertRaisesRegex(dpwa.UsageError, r"start\(\) a second time"):
                    exec(cells[1], names)
                names["node"].finish()
                self.assertEqual({len(one._post_accumulate_grad_hooks or ()) for one in names["model"].parameters()}, {0})

    def test_a_start_that_was_interrupted_leaves_and_the_name_can_be_used_again(self) -> None:
        for backend in ("gossip: {start_wait_ms: 600s, min_nodes: 2}", "backend: collective\ncollective: {start_wait_ms: 600s}",
                        "backend: collective\ncollective: {start_wait_ms: 600s, on_lost_rank: gossip}"):  # fmt: skip
            with self.subTest(backend):
                file = Path(cluster(self.folder, 2, *backend.split("\n")))
                first, *_ = re.findall(r"port: (\d+)", file.read_text(encoding="utf-8"))
                alone = Path(self.folder, "alone.yaml")
                alone.write_text(f"nodes: [{{name: w1, port: {first}}}]\ngossip: {{start_wait_ms: 50}}\nlog: {{level: error}}\n",
                                 encoding="utf-8")  # fmt: skip
                text = f"""
import sys; sys.path.insert(0, {PACKAGE!r})
import dpwa, numpy
node = dpwa.attach_arrays({{"w": numpy.zeros(3)}}, {str(file)!r}, "w1")
try:
    print("waits", flush=True)
    node.start()
except KeyboardInterrupt: pass
node.leave()
while True:  # until what goes on in the background has left
    again = dpwa.attach_arrays({{"w": numpy.zeros(3)}}, {str(alone)!r}, "w1")
    try: again.start()
    except dpwa.Error: continue
    break
again.leave()
print("again", flush=True)
"""
                self.assertEqual(self.interrupted(text), ["again"])

    def test_a_call_beside_another_one_is_refused_and_harms_nothing(self) -> None:
        file = cluster(self.folder, 2, "backend: collective", f"collective: {{start_wait_ms: {PATIENCE:.0f}s}}")
        nodes = [dpwa.attach_arrays({"w": np.zeros(3)}, file, f"w{rank + 1}") for rank in range(2)]
        all_at_once(nodes[0].start, nodes[1].start)

        def step(rank: int) -> Any:
            return nodes[rank].step(gradients={"w": np.full(3, rank)}, update=lambda mean: means.append(mean["w"].copy()))

        means: list[Any] = []
        refused: list[str] = []

        def beside() -> None:  # the first node waits for the second, which makes its step afterwards
            until = time.monotonic() + PATIENCE
            while not refused and time.monotonic() < until:
                try:
                    nodes[0].reload()
                except dpwa.UsageError as error:
                    refused.append(str(error))
            step(1)

        report, _ = all_at_once(lambda: step(0), beside)
        self.assertRegex(refused[0], r"^the node is in another call; accepted: one at a time, by one thread[^\n]*$")
        self.assertEqual((report.outcome, report.clock), ("averaged", 1))
        np.testing.assert_array_equal(means, np.full((2, 3), 0.5))
        all_at_once(nodes[0].finish, nodes[1].finish)

    def test_threads_that_step_one_node_get_one_line_or_a_step(self) -> None:
        node = dpwa.attach_arrays({"w": np.zeros(1000)}, self.alone("gossip"), "w1")
        steps, lines = [0, 0], set()

        def run(index: int) -> None:
            for _ in range(500):
                try:
                    node.step(loss=1.0)
                    steps[index] += 1
                except dpwa.UsageError as error:
                    lines.add(str(error))

        with node:
            all_at_once(lambda: run(0), lambda: run(1))
            before = node.state_dict()["clock"]
            self.assertLessEqual(sum(steps), before)
            if node.is_in_step:
                node.update_wait()
            self.assertEqual(node.step().clock - before, 1)
        for line in lines:
            self.assertRegex(line, "^the node is in another call|belongs between two steps|belongs after update_send")

    @unittest.skipIf(torch is None, "needs torch in this Python")
    def test_workers_of_a_data_loader_may_be_forked_after_attach(self) -> None:
        model = torch.nn.Linear(3, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        data = torch.utils.data.TensorDataset(torch.randn(32, 3))
        with dpwa.attach(model, self.alone("gossip"), "w1") as node:
            for _ in range(2):
                for (x,) in torch.utils.data.DataLoader(data, batch_size=8, num_workers=2, multiprocessing_context="fork"):
                    optimizer.zero_grad()
                    model(x).square().mean().backward()
                    report = node.step(optimizer)
        self.assertEqual(report.clock, 8)

    @unittest.skipIf(torch is None, "needs torch in this Python")
    def test_a_compiled_model_trains_as_it_does_otherwise_in_one_graph(self) -> None:
        def train(backend: str, compiles: Any) -> list[Any]:
            torch.manual_seed(1)
            model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
            run, attached = compiles(model)
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            with dpwa.attach(attached, self.alone(backend), "w1") as node:
                for step in range(4):
                    optimizer.zero_grad()
                    loss = run(torch.arange(4.0) + step).square().sum()
                    loss.backward()
                    node.step(optimizer, loss)
            return [one.detach().clone() for one in model.parameters()]

        def compiled(model: Any) -> Any:
            return torch.compile(model, backend="aot_eager", fullgraph=True), model

        def compiled_before(model: Any) -> Any:
            whole = torch.compile(model, backend="aot_eager", fullgraph=True)
            return whole, whole

        for backend in BACK_ENDS:
            wanted = train(backend, lambda model: (model, model))
            for way in (compiled, compiled_before):
                with self.subTest(backend, way=way.__name__):
                    torch._dynamo.reset()
                    torch._dynamo.utils.counters.clear()
                    for own, other in zip(train(backend, way), wanted):
                        torch.testing.assert_close(own, other)
                    self.assertEqual(torch._dynamo.utils.counters["stats"]["unique_graphs"], 1)
                    self.assertEqual(dict(torch._dynamo.utils.counters["graph_break"]), {})

    def test_the_others_go_on_where_a_process_is_killed_or_stopped(self) -> None:
        for sent in (signal.SIGKILL, signal.SIGSTOP):
            with self.subTest(sent.name):
                file = cluster(self.folder, 2, f"gossip: {{start_wait_ms: {PATIENCE:.0f}s, finish_wait_ms: 1s, timeout_ms: 500}}")
                text = f"import sys, time; sys.path.insert(0, {PACKAGE!r}); import dpwa, numpy\n"
                text += f"with dpwa.attach_arrays({{'w': numpy.ones(100)}}, {file!r}, 'w2') as node:\n"
                text += "  while True: node.step(loss=1.0); time.sleep(0.005)\n"
                with subprocess.Popen([sys.executable, "-c", text]) as other:
                    node = dpwa.attach_arrays({"w": np.zeros(100)}, file, "w1")
                    node.start()
                    until = time.monotonic() + PATIENCE
                    while node.step(loss=1.0).outcome != "mixed" and time.monotonic() < until:
                        time.sleep(0.005)
                    os.kill(other.pid, sent)
                    for _ in range(20):
                        report = node.step(loss=1.0)
                    self.assertTrue(np.isfinite(report.clock))
                    self.assertEqual(node.finish().participants, 1)
                    other.kill()


if __name__ == "__main__":
    unittest.main()
