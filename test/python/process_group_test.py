"""Back end collective on the program's own process group, as attach(group=...) has it: processes that meet over Gloo."""

from __future__ import annotations

import multiprocessing
import os
import signal
import socket
import subprocess
import sys
import time
import unittest
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from nodes import CLI, PACKAGE, PATIENCE, InFolder, cluster

import dpwa
import numpy as np

try:
    import collective_test as plain
    import torch
    import torch.distributed as dist
    import torch.distributed.nn  # later it would keep the group of the process for ever
    from device_test import on_a_device
    from gloo import group_of
    from torch import nn
except ImportError as error:
    raise unittest.SkipTest("without torch") from error

os.environ["GLOO_SOCKET_IFNAME"] = "lo"  # the name of this host may lead nowhere
COLLECTIVE = "backend: collective"


def serve(pipe: Any) -> None:
    """A process that is a rank of one group after the other."""
    torch.set_num_threads(1)
    while task := pipe.recv():
        body, store, file, rank, size, given = task
        dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=size)
        try:
            answer = body(file, rank, size, *given)
        except BaseException as error:
            answer = error
        dist.destroy_process_group()
        pipe.send(answer)


class Workers:
    def __init__(self) -> None:
        self._context = multiprocessing.get_context("spawn")
        self._own: list[tuple[Any, Any]] = []

    def take(self, count: int) -> list[tuple[Any, Any]]:
        self._own = [one for one in self._own if one[0].is_alive()]
        while len(self._own) < count:
            pipe, its = self._context.Pipe()
            process = self._context.Process(target=serve, args=(its,), daemon=True)
            process.start()
            its.close()
            self._own.append((process, pipe))
        return self._own[:count]

    def stop(self) -> None:
        for process, pipe in self._own:
            if process.is_alive():
                pipe.send(None)
            process.join(PATIENCE)


def attach(model: Any, file: str, rank: int) -> Any:
    return dpwa.attach(model, file, f"w{rank + 1}", group=dist.group.WORLD)


def line_of(body: Callable[[], Any]) -> str:
    """Of the error that ends it."""
    try:
        body()
    except dpwa.Error as error:
        return str(error)
    return "no error"


def numbers(*names: str) -> Any:
    """A model whose gradients are what the test says."""
    model = nn.Module()
    for name in names:
        model.register_parameter(name, nn.Parameter(torch.zeros(2)))
    return model


def pull(model: Any, **gradients: float) -> None:
    sum(getattr(model, name).sum() * value for name, value in gradients.items()).backward()


def sgd(model: Any, rate: float = 1.0) -> Any:
    return torch.optim.SGD(model.parameters(), lr=rate)


# --- on a rank


def train_mean(file: str, rank: int, size: int) -> Any:
    model = plain.Torch.model()
    held = [id(one) for one in model.parameters()]
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    with attach(model, file, rank) as node:
        assert (node.name, node.rank, node.size, node.averages_gradients) == (f"w{rank + 1}", rank, size, True)
        for step in range(4):
            loss = plain.Torch.loss(model, rank, step)
            optimizer.zero_grad()
            loss.backward()
            report = node.step(optimizer, loss)
    assert held == [id(one) for one in model.parameters()] and model.unused.grad is None
    return model.state_dict(), report, node.finish()


def train_branches(_: str, rank: int, __: int) -> Any:
    """Each rank has a gradient of another parameter, and no file."""
    model = numbers("first", "second", "third")
    optimizer = sgd(model)
    with dpwa.attach(model, group=dist.group.WORLD) as node:
        for _step in range(2):
            optimizer.zero_grad()
            pull(model, **({"first": 2.0} if rank else {"second": 4.0}))
            node.step(optimizer)
    return node.name, [one.tolist() for one in model.parameters()], model.third.grad is None


def train_weighted(file: str, rank: int, _: int) -> Any:
    model = numbers("w")
    optimizer, means = sgd(model), []
    with attach(model, file, rank) as node:
        for sizes in ((3, 1), (8, 8), (2, 6)):
            node.set_batch_size(sizes[rank])
            optimizer.zero_grad()
            pull(model, w=4.0 * (1 + rank))
            node.step(optimizer)
            means.append(model.w.grad[0].item())
    return means


def train_accumulated(file: str, rank: int, _: int) -> Any:
    model = numbers("early", "w")
    optimizer = sgd(model)
    with attach(model, file, rank) as node:
        with node.accumulate():
            pull(model, early=4.0, w=3.0)
        pull(model, w=5.0)
        node.average_gradients()
        means = [one.grad[0].item() for one in model.parameters()]
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        clock = node.step(optimizer).clock
        optimizer.zero_grad()
        pull(model, w=1.0)
        second = line_of(lambda: pull(model, w=1.0))
        node.leave()
    return means, clock, second, model.w.tolist()


def train_scaled(file: str, rank: int, _: int) -> Any:
    model = numbers("w")
    optimizer, scaler = sgd(model), torch.amp.GradScaler("cpu", init_scale=4.0)
    with attach(model, file, rank) as node:
        reports = []
        for value in (float("inf") if rank else 1.0, 1.0):
            optimizer.zero_grad()
            scaler.scale(model.w.sum() * value).backward()
            reports.append(node.step(optimizer, scaler=scaler))
    return [(one.skipped_steps, one.clock) for one in reports], model.w.tolist(), scaler.get_scale()


def train_uneven(file: str, rank: int, _: int) -> Any:
    model = plain.Torch.model()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    participants = []
    with attach(model, file, rank) as node:
        for step in range(2 + 2 * rank):
            optimizer.zero_grad()
            plain.Torch.loss(model, rank, step).backward()
            report = node.step(optimizer)
            participants.append(report.participants)
    return report.clock, participants, model.state_dict(), node.finish()


def train_until_told(file: str, rank: int, _: int) -> Any:
    model = numbers("w")
    optimizer = sgd(model)
    with attach(model, file, rank) as node:
        while True:
            optimizer.zero_grad()
            pull(model, w=1.0)
            report = node.step(optimizer)
            if node.should_stop(rank == 1 and report.clock == 3):
                break
    return report.clock, node.finish().averaged


def train_unlike(file: str, rank: int, _: int, what: str) -> str:
    model = numbers("w")
    if what == "model" and rank:
        model.w = nn.Parameter(torch.zeros(3))
    node = attach(model, file, rank)
    if what == "host":
        socket.gethostname = lambda: f"host{rank}"
    if what == "setting":
        node.require_same("rate", 0.5 + rank)
    if what == "mark":
        node.mark_model("classes", 10 + rank)
    if what == "form":
        node.share(np.zeros(1 + rank))
    optimizer = sgd(model, 1.0 + rank if what == "optimizer" else 1.0)

    def steps() -> None:
        with node:
            for step in range(3):
                optimizer.zero_grad()
                pull(model, w=1.0)
                node.step(optimizer)
                if what == "weights" and step == 0 and rank == 1:
                    model.w.data += 1

    line = line_of(steps)
    pull(model, w=1.0)  # without a node, as often as the program likes
    pull(model, w=1.0)
    node.leave()
    return line


def train_resumed(file: str, rank: int, _: int) -> Any:
    """Rank 1 is ahead."""
    torch.manual_seed(rank)
    model = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    model[1].running_mean += rank
    model[1].num_batches_tracked += rank
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    if rank == 1:
        model(torch.ones(2, 2)).square().sum().backward()
        optimizer.step()
    position = np.array([10 * rank])
    node = attach(model, file, rank)
    node.share(position)
    node.load_state_dict({"clock": 7.0 * rank})
    node.start()
    begins = {name: one.clone() for name, one in model.state_dict().items()}
    optimizer.zero_grad()
    model(torch.randn(4, 2)).square().sum().backward()
    clock = node.step(optimizer).clock
    node.finish()
    return begins, position.tolist(), clock, node.state_dict(), model.state_dict()


def train_until_killed(file: str, rank: int, _: int) -> Any:
    model = numbers("w")
    optimizer = sgd(model)
    node = attach(model, file, rank)

    def steps() -> None:
        with node:
            for step in range(4):
                if step == 2:
                    Path(file).with_name(f"step{rank}").touch()
                while rank == 2 and step == 2:
                    if all(Path(file).with_name(f"step{one}").exists() for one in range(2)):
                        os.kill(os.getpid(), signal.SIGKILL)
                    time.sleep(0.01)
                optimizer.zero_grad()
                pull(model, w=1.0)
                node.step(optimizer)

    line = line_of(steps)
    node.leave()
    before = model.w.tolist()
    report = node.step(optimizer)  # that of the optimizer alone
    return line, report.outcome, before != model.w.tolist(), node.finish().averaged


def train_until_one_raises(file: str, rank: int, _: int, where: str) -> Any:
    model = numbers("first", "w")
    optimizer = sgd(model)

    def steps() -> None:
        with attach(model, file, rank) as node:
            for step in range(3):
                optimizer.zero_grad()
                pull(model, w=1.0)
                if where == "average":
                    node.average_gradients()
                if rank == 1 and (where != "step" or step == 1):
                    raise dpwa.Error("the program has failed")
                node.step(optimizer)

    return line_of(steps)


class ProcessGroup(InFolder):
    workers: Workers

    @classmethod
    def setUpClass(cls) -> None:
        cls.workers = Workers()
        cls.addClassCleanup(cls.workers.stop)

    def setUp(self) -> None:
        super().setUp()
        self.groups = 0

    def on_ranks(self, size: int, body: Callable[..., Any], *given: Any, keys: tuple[str, ...] = ()) -> list[Any]:
        """What body(file, rank, size, *given) gives on each. Raises what the first one has raised."""
        file = cluster(self.folder, size, COLLECTIVE, *keys)
        self.groups += 1
        own = self.workers.take(size)
        for rank, (_, pipe) in enumerate(own):
            pipe.send((body, str(Path(self.folder, f"store{self.groups}")), file, rank, size, given))
        answers = []
        for _, pipe in own:
            self.assertTrue(pipe.poll(PATIENCE))
            try:
                answers.append(pipe.recv())
            except EOFError:
                answers.append("killed")
        for answer in answers:
            if isinstance(answer, BaseException):
                raise answer
        return answers

    def test_ranks_take_the_step_of_the_mean_gradient(self) -> None:
        for size, keys in ((2, ()), (2, ("collective: {bucket_bytes: 0}",)), (3, ())):
            with self.subTest(size=size, keys=keys):
                answers = self.on_ranks(size, train_mean, keys=keys)
                first, report, ended = answers[0]
                self.assertEqual((report.outcome, report.participants, report.clock), ("averaged", size, 4))
                self.assertEqual(report.bytes, 4 * sum(one.numel() for one in plain.Torch.model().parameters()))
                self.assertEqual((ended.averaged, ended.participants, ended.enough), (True, size, True))
                for state, *_ in answers:
                    for (name, own), other in zip(state.items(), first.values()):
                        self.assertTrue(torch.equal(own, other), name)
                wanted = plain.Torch().reference(size, 4)
                for (name, _), one in zip(plain.Torch.model().named_parameters(), wanted):
                    if size == 2:
                        self.assertTrue(torch.equal(first[name], one), name)
                    torch.testing.assert_close(first[name], one.data)  # of three the sums have another order

    def test_a_gradient_on_one_rank_counts_on_all_and_no_file_is_needed(self) -> None:
        for rank, (name, values, is_none) in enumerate(self.on_ranks(2, train_branches)):
            self.assertEqual((name, values, is_none), (f"rank{rank}", [[-2.0] * 2, [-4.0] * 2, [0.0] * 2], True))

    def test_gradients_weigh_as_many_samples_as_they_have(self) -> None:
        self.assertEqual(self.on_ranks(2, train_weighted), [[5.0, 6.0, 7.0]] * 2)

    def test_passes_add_up_under_accumulate_and_are_clipped(self) -> None:
        for means, clock, second, weights in self.on_ranks(2, train_accumulated):
            self.assertEqual((means, clock), ([4.0, 8.0], 1))
            self.assertRegex(second, "^a second backward pass before step[^\n]*$")
            self.assertEqual(weights, [-np.float32(8 / (160**0.5 + 1e-6))] * 2)

    def test_a_step_that_the_scaler_skips_is_skipped_by_all(self) -> None:
        for answer in self.on_ranks(2, train_scaled):
            self.assertEqual(answer, ([(1, 1), (1, 2)], [-1.0, -1.0], 2.0))

    def test_ranks_that_end_at_different_times_end_with_the_model_of_the_last(self) -> None:
        (clock, both, first, ended), (its_clock, fewer, other, _) = self.on_ranks(2, train_uneven)
        self.assertEqual((clock, its_clock, both, fewer), (2, 4, [2, 2], [2, 2, 1, 1]))
        self.assertTrue(ended.averaged)
        for (name, mine), its in zip(first.items(), other.values()):
            self.assertTrue(torch.equal(mine, its), name)

    def test_all_end_after_the_same_step_where_one_wants_to(self) -> None:
        self.assertEqual(self.on_ranks(2, train_until_told), [(4, True)] * 2)

    def test_ranks_that_are_not_alike_end_with_one_line(self) -> None:
        for what, words in (("model", r"tensor 'w': 'w1': float32 \[2\] .*; 'w2': float32 \[3\]"),
                            ("setting", "rate: 'w1': 0.5; 'w2': 1.5"), ("mark", "classes: 'w1': 10; 'w2': 11"),
                            ("form", r"the state of the program: 'w1': float64 \[1\]; 'w2': float64 \[2\]"),
                            ("optimizer", "their optimizers: 'w1': parameter group 1: .*lr 1.0.*; 'w2': .*lr 2.0"),
                            ("weights", "the weights of 'w2' differ from those of the other nodes")):  # fmt: skip
            with self.subTest(what):
                for line in self.on_ranks(2, train_unlike, what):
                    self.assertRegex(line, f"^node 'w[12]' ends at clock [01], because [^\n]*{words}[^\n]*$")
        subprocess.run([CLI, "keygen", "--output", Path(self.folder, "cluster.key")], check=True, capture_output=True)
        secured = "security: {mode: psk, key_file: cluster.key}"
        for keys, line in (((secured,), "unencrypted, which security.mode psk does not allow beyond this machine; accepted"),
                           ((secured, "collective: {plaintext: true}"), "no error")):  # fmt: skip
            for said in self.on_ranks(2, train_unlike, "host", keys=keys):
                self.assertIn(line, said)

    def test_all_go_on_from_the_rank_that_is_furthest(self) -> None:
        (begins, position, clock, state, ends), (its, _, _, _, other) = self.on_ranks(2, train_resumed)
        self.assertEqual((position, clock, state), ([10], 8, {"clock": 8}))
        self.assertEqual(begins["1.num_batches_tracked"], 2)
        for (name, mine), one in zip(begins.items(), its.values()):
            self.assertTrue(torch.equal(mine, one), name)
        for (name, mine), one in zip(ends.items(), other.values()):  # the momentum is that of rank 1 too
            self.assertTrue(torch.equal(mine, one), name)

    def test_others_end_with_one_line_where_a_rank_is_killed(self) -> None:
        *others, killed = self.on_ranks(3, train_until_killed)
        self.assertEqual(killed, "killed")
        for line, *after in others:
            self.assertRegex(line, "^node 'w[12]' ends at clock 2, because backend collective needs every rank of the "
                                   "process group: [^\n]+$")  # fmt: skip
            self.assertEqual(after, ["skipped", True, False])

    def test_others_hear_of_a_rank_that_leaves(self) -> None:
        for where, clock in (("backward", 0), ("average", 0), ("step", 1)):
            with self.subTest(where):
                line, own = self.on_ranks(2, train_until_one_raises, where)
                self.assertEqual(own, "the program has failed")
                self.assertRegex(line, f"^node 'w1' ends at clock {clock}, because [^\n]*'w2' has left$")


class OneProcess(InFolder):
    def group(self, size: int = 1) -> Any:
        return group_of(str(Path(self.folder, f"store{size}")), 0, size)

    def test_what_does_not_fit_the_group_is_refused_with_the_key(self) -> None:
        group = self.group()
        for key, accepted in (("on_lost_rank: shrink", "stop"), ("on_lost_rank: gossip", "stop"), ("engine: dpwa", "auto"),
                              ("engine: gloo", "auto"), ("compression: bf16", "none")):  # fmt: skip
            file = cluster(self.folder, 1, COLLECTIVE, f"collective: {{{key}}}")
            with self.assertRaisesRegex(dpwa.ConfigError, f"collective.{key} is not .*; accepted: {accepted}, or "):
                dpwa.attach(nn.Linear(1, 1), file, "w1", group=group)
        daemon = f"gossip: {{daemon: true}}\n{COLLECTIVE}"
        for nodes, keys, words in ((2, COLLECTIVE, "nodes: 2, and the process group has 1 ranks; accepted: as many"),
                                   (1, "backend: gossip", "backend: 'gossip' does not .*; accepted: collective, or"),
                                   (1, daemon, "gossip.daemon: .*; accepted: false")):  # fmt: skip
            with self.assertRaisesRegex(dpwa.ConfigError, words):
                dpwa.attach(nn.Linear(1, 1), cluster(self.folder, nodes, *keys.split("\n")), "w1", group=group)
        with self.assertRaisesRegex(dpwa.ConfigError, "accepted: neither name nor join"):
            dpwa.attach(nn.Linear(1, 1), None, "w1", group=group)
        with self.assertRaisesRegex(dpwa.ConfigError, "no process group that this process is in; accepted: one of torch"):
            dpwa.attach(nn.Linear(1, 1), group=-100)  # type: ignore[arg-type]
        with self.assertRaisesRegex(dpwa.ModelError, "'weight' .*complex64; accepted: real"):
            dpwa.attach(nn.Linear(1, 1, dtype=torch.complex64), group=group)

    def test_a_model_on_a_device_trains_on_a_group_alone(self) -> None:
        model = numbers("w")
        with on_a_device():
            with self.assertRaisesRegex(dpwa.ModelError, r"accepted on a device: .*collective with attach\(group=...\)"):
                dpwa.attach(model, cluster(self.folder, 1, COLLECTIVE), "w1")
            with dpwa.attach(model, group=self.group()) as node:
                pull(model, w=1.0)
                report = node.step(sgd(model), model.w.sum())
        self.assertEqual((report.participants, report.clock, model.w.tolist()), (1, 1, [-1.0, -1.0]))

    def test_a_model_that_is_attached_again_leaves_its_first_node(self) -> None:
        model, group = numbers("w"), self.group()
        first = dpwa.attach(model, group=group)
        first.start()
        with dpwa.attach(model, group=group) as node:
            pull(model, w=1.0)
            self.assertEqual(node.step(sgd(model)).clock, 1)
        self.assertFalse(first.finish().averaged)

    def test_a_start_to_which_others_do_not_come_ends(self) -> None:
        file = cluster(self.folder, 2, COLLECTIVE, "collective: {start_wait_ms: 1}")
        text = f"""
import sys, threading; sys.path[:0] = {[PACKAGE, str(Path(__file__).parent)]!r}
import dpwa, gloo, torch
groups = [None, None]
def meet(rank): groups[rank] = gloo.group_of({self.folder!r} + "/store", rank, 2)
other = threading.Thread(target=meet, args=(1,))
other.start()
meet(0)
other.join()
model = torch.nn.Linear(1, 1)
try: dpwa.attach(model, {file!r}, "w1", group=groups[0]).start()
except dpwa.Error as error: first = str(error)
nodes = [dpwa.attach(model, group=group) for group in groups]
try:
    print("waits", flush=True)
    nodes[0].start()
except KeyboardInterrupt: print("interrupted")
print(first, flush=True)
import os; os._exit(0)  # the other rank never comes
"""
        interrupted, line = self.interrupted(text)
        self.assertEqual(interrupted, "interrupted")
        self.assertRegex(line, "^node 'w1' ends at clock 0, because .*: not all ranks have come within 0.001 s$")


if __name__ == "__main__":
    unittest.main()
