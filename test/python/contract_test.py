"""What a training loop may rely on whatever `backend` the cluster file names, as test/adapters has it for C++: in every
back end, with parameters of every floating-point type. Nodes are threads of this process."""

from __future__ import annotations

import json
import math
import subprocess
import sys
import threading
import unittest
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from nodes import CLI, PATIENCE, WithServers, all_at_once, cluster

import dpwa

try:
    import torch
    from torch import nn
except ImportError as error:
    raise unittest.SkipTest("without torch") from error

from contract_net import Data, Net, Participant, equal, sgd
from gloo import group_of

DTYPES = (torch.float32, torch.float16, torch.bfloat16, torch.float64)
ONE = (torch.float32,)
LAZY = "timeout_ms: 60s, finish_wait_ms: 60s"


class Contract:
    """The tests of all back ends, each with files of `settings()`."""

    nodes = 2
    has_status = True
    rounds: tuple[str, ...] = ()  # what begins like this has not the bits of the plain loop, where a node is alone

    def settings(self) -> list[str]:
        raise NotImplementedError

    def attach(self: Any, model: Any, file: str, rank: int, count: int) -> Any:
        return dpwa.attach(model, file, f"w{rank + 1}")

    def file(self: Any, setting: str, nodes: int) -> str:
        return cluster(self.folder, nodes, *setting.split("\n"))

    def each(self: Any, dtypes: Sequence[Any] = DTYPES) -> Iterator[tuple[str, Any, Any]]:
        return ((setting, dtype, self.subTest(setting, dtype=dtype)) for setting in self.settings() for dtype in dtypes)

    def run_nodes(self: Any, setting: str, dtype: Any, body: Callable[[Participant], Any], nodes: int = 0) -> list[Any]:
        count = nodes or self.nodes
        file, together = self.file(setting, count), threading.Barrier(count)
        models = [Net(rank + 1, dtype) for rank in range(count)]
        optimizers = [sgd(model) for model in models]  # before attach(): parameters keep their identity

        def run(rank: int) -> Any:
            node = self.attach(models[rank], file, rank, count)
            try:
                return body(Participant(rank, models[rank], optimizers[rank], Data(rank, dtype), node, together))
            except BaseException:
                together.abort()  # nobody waits for this one
                raise
            finally:
                node.leave()

        return all_at_once(*(lambda rank=rank: run(rank) for rank in range(count)))

    def test_nodes_begin_with_the_weights_of_the_first(self: Any) -> None:
        for setting, dtype, here in self.each():
            with here:
                first = Net(1, dtype)

                def begin(own: Participant, first: Any = first) -> None:
                    held = {id(one) for one in own.model.parameters()}
                    own.node.start()
                    own.meet()
                    self.assertTrue(equal(own.model, first))
                    self.assertEqual({id(one) for one in own.model.parameters()}, held)
                    self.assertIs(own.model.tied.weight, own.model.scores.weight)
                    own.meet()

                self.run_nodes(setting, dtype, begin)

    def test_one_node_trains_as_torch_does(self: Any) -> None:
        for setting, dtype, here in self.each():
            with here:
                plain = Net(1, dtype)
                optimizer, data = sgd(plain), Data(0, dtype)
                for _ in range(10):
                    optimizer.zero_grad()
                    data.loss(plain).backward()
                    optimizer.step()

                def train(own: Participant, plain: Any = plain, dtype: Any = dtype) -> None:
                    own.node.start()
                    for step in range(10):
                        self.assertEqual(own.step().clock, step + 1)
                    self.assertEqual(own.node.finish().participants, 1)
                    near = 10 * torch.finfo(dtype).eps ** 0.8
                    for (name, mine), its in zip(own.model.state_dict().items(), plain.state_dict().values()):
                        bound = near if name.startswith(self.rounds) else 0
                        torch.testing.assert_close(mine, its, rtol=bound, atol=bound, msg=name)

                self.run_nodes(setting, dtype, train, nodes=1)

    def test_the_loop_lowers_the_loss_and_ends_with_one_model(self: Any) -> None:
        for setting, dtype, here in self.each():
            with here:

                def train(own: Participant) -> tuple[float, Any, int]:
                    own.node.start()
                    own.meet()
                    exchanges, late = 0, []
                    for step in range(150):
                        loss = own.backward()
                        report = own.node.step(own.optimizer, loss)
                        late += [loss.item()] if step >= 100 else []
                        exchanges += report.outcome in ("mixed", "averaged", "updated")
                        self.assertTrue(0 <= report.factor <= 1 and math.isfinite(report.clock) and report.clock > 0)
                        self.assertTrue(not report.peer or report.peer != f"w{own.rank + 1}")
                    self.assertEqual(own.node.state_dict()["clock"], report.clock)
                    own.meet()  # nobody leaves before
                    return sum(late) / len(late), own.node.finish(), exchanges

                models: list[Any] = []

                def noted(own: Participant) -> Any:
                    models.append(own.model)
                    return train(own)

                ends = self.run_nodes(setting, dtype, noted)
                for late, ended, _ in ends:
                    self.assertLess(late, 0.5)  # untrained: 0.7
                    self.assertEqual((ended.participants, ended.averaged), (self.nodes, self.nodes > 1))
                self.assertEqual(sum(exchanges for _, _, exchanges in ends) > 0, self.nodes > 1)
                for model in models:
                    self.assertTrue(equal(model, models[0]))
                    self.assertTrue(all(torch.isfinite(one).all() for one in model.state_dict().values()))

    def test_gradients_of_several_batches_add_up_and_are_clipped(self: Any) -> None:
        for setting, dtype, here in self.each(ONE):
            with here:

                def train(own: Participant) -> None:
                    own.node.start()
                    own.meet()
                    for _ in range(3):
                        own.optimizer.zero_grad()
                        with own.node.accumulate():
                            own.data.loss(own.model).backward()
                        loss = own.data.loss(own.model)
                        loss.backward()
                        own.node.average_gradients()
                        nn.utils.clip_grad_norm_(own.model.parameters(), 0.1)
                        own.node.step(own.optimizer, loss)
                    own.meet()
                    own.node.finish()
                    self.assertTrue(all(torch.isfinite(one).all() for one in own.model.state_dict().values()))

                self.run_nodes(setting, dtype, train)

    def test_a_parameter_that_only_passes_under_accumulate_use_counts(self: Any) -> None:
        for setting, dtype, here in self.each(ONE):
            with here:

                def train(own: Participant, dtype: Any = dtype) -> None:
                    own.node.start()
                    own.meet()
                    before = own.model.spare.weight.detach().clone()
                    own.optimizer.zero_grad()
                    with own.node.accumulate():
                        own.model.spare(torch.ones(1, 2, dtype=dtype)).sum().backward()
                    loss = own.data.loss(own.model)
                    loss.backward()
                    own.node.step(own.optimizer, loss)
                    own.meet()
                    own.node.finish()
                    self.assertTrue((own.model.spare.weight < before).all())

                self.run_nodes(setting, dtype, train)

    def test_a_loss_of_any_kind_does_no_harm(self: Any) -> None:
        losses = (math.nan, math.inf, -1.0, 3, torch.ones(1, 1, dtype=torch.bfloat16), torch.tensor(1.0, requires_grad=True))
        for setting, dtype, here in self.each(ONE):
            with here:

                def train(own: Participant) -> None:
                    own.node.start()
                    own.meet()
                    for loss in losses:
                        self.assertTrue(0 <= own.step(loss).factor <= 1)
                    own.backward()
                    own.node.step(own.optimizer)
                    own.meet()
                    own.node.finish()
                    self.assertTrue(all(torch.isfinite(one).all() for one in own.model.state_dict().values()))

                self.run_nodes(f"{setting}\ninterpolation: {{method: loss}}", dtype, train)

    def test_a_node_that_left_trains_on_alone(self: Any) -> None:
        for setting, dtype, here in self.each(ONE):
            with here:

                def train(own: Participant) -> None:
                    own.node.start()
                    own.step()
                    own.meet()
                    own.node.leave()
                    before = own.model.hidden.weight.detach().clone()
                    own.step()
                    self.assertFalse(torch.equal(own.model.hidden.weight, before))
                    self.assertFalse(own.node.finish().averaged)

                self.run_nodes(setting, dtype, train)

    def test_a_checkpoint_goes_on_at_its_clock(self: Any) -> None:
        for setting, dtype, here in self.each(ONE):
            with here:

                def train(own: Participant) -> None:
                    state = own.node.state_dict()
                    own.node.load_state_dict({**state, "clock": 17.0})
                    own.node.start()
                    self.assertEqual(own.step().clock, 18)
                    self.assertEqual(own.node.state_dict()["clock"], 18)
                    own.node.finish()

                self.run_nodes(setting, dtype, train, nodes=1)

    def test_a_parameter_may_be_frozen_for_a_while_and_a_frozen_one_stays_so(self: Any) -> None:
        for setting, dtype, here in self.each(ONE):
            with here:

                def train(own: Participant) -> None:
                    own.node.start()
                    own.meet()
                    for trains in (False, True):
                        own.model.hidden.requires_grad_(trains)
                        own.step()
                    own.model.fixed.requires_grad_(True)
                    loss = own.backward()
                    with self.assertRaisesRegex(dpwa.UsageError, "tensor 'fixed' is no longer frozen; call attach"):
                        own.node.step(own.optimizer, loss)
                    own.model.fixed.requires_grad_(False)
                    own.node.step(own.optimizer, loss)
                    own.meet()
                    own.node.finish()

                self.run_nodes(setting, dtype, train)

    def test_a_scaler_that_is_off_makes_plain_steps(self: Any) -> None:
        off = torch.amp.GradScaler("cpu", enabled=False)
        for setting, dtype, here in self.each(ONE):
            with here:

                def train(own: Participant) -> None:
                    own.node.start()
                    for step in range(2):
                        before = own.model.hidden.weight.detach().clone()
                        report = own.node.step(own.optimizer, own.backward(), scaler=off)
                        self.assertEqual((report.clock, report.skipped_steps), (step + 1, 0))
                        self.assertFalse(torch.equal(own.model.hidden.weight, before))
                    own.node.finish()

                self.run_nodes(setting, dtype, train, nodes=1)

    def test_a_call_at_a_wrong_time_is_one_error_and_changes_nothing(self: Any) -> None:
        def check(own: Participant) -> None:
            node = own.node

            def refuse(*calls: Callable[[], Any]) -> None:
                for call in calls:
                    before = [one.clone() for one in own.model.state_dict().values()]
                    with self.assertRaises(dpwa.UsageError) as refused:
                        call()
                    self.assertNotIn("\n", str(refused.exception))
                    for one, now in zip(before, own.model.state_dict().values()):
                        self.assertTrue(torch.equal(one, now))

            refuse(lambda: node.step(own.optimizer), node.update_send, node.update_wait, node.average_gradients)
            node.start()
            own.meet()
            refuse(node.start, node.update_wait, lambda: node.require_same("a", "b"), lambda: node.mark_model("a", "b"),
                   lambda: node.load_state_dict({"clock": 1.0}))  # fmt: skip
            loss = own.backward()
            node.average_gradients()
            refuse(node.average_gradients)
            node.step(own.optimizer, loss)
            refuse(node.start, node.update_wait)
            own.meet()
            self.assertEqual(node.finish().participants, self.nodes)
            self.assertEqual(node.finish().participants, self.nodes)  # the same again
            refuse(node.start)

        for setting in self.settings():
            with self.subTest(setting):
                self.run_nodes(setting, torch.float32, check)

    def test_numbers_of_the_program_are_in_its_status(self: Any) -> None:
        def shown() -> list[Any]:
            words = [CLI, "status", "--json", "--timeout-ms", "60000", f"{self.folder}/cluster.yaml"]
            asked = subprocess.run(words, capture_output=True, check=True)
            return [one["status"].get("shown") for one in json.loads(asked.stdout)["nodes"]]

        def check(own: Participant) -> Any:
            self.assertRaises(dpwa.UsageError, own.node.show, "accuracy", 0)
            own.node.start()
            own.meet()
            for value in (0.25, 0.5):
                own.node.show("accuracy", value)
            own.node.show("test loss", torch.tensor(math.nan))
            for name in ("", "a\n", "x" * 41):
                self.assertRaisesRegex(dpwa.UsageError, "accepted: 1 to 40", own.node.show, name, 1)
            for more in range(14):
                own.node.show(f"{more}", more)
            self.assertRaisesRegex(dpwa.UsageError, "16 others", own.node.show, "x", 1)
            own.meet()
            found = shown() if own.rank == 0 and self.has_status else []
            own.meet()
            own.node.finish()
            own.node.show("after the end", 1)
            return found

        for setting in self.settings():
            with self.subTest(setting):
                want = {"accuracy": 0.5, "test loss": None, **{f"{more}": more for more in range(14)}}
                found = self.run_nodes(setting, torch.float32, check)[0]
                self.assertEqual(found, [want] * len(found))
                self.assertEqual(len(found), self.nodes if self.has_status else 0)


class Null(Contract, WithServers):
    nodes = 1
    has_status = False

    def settings(self) -> list[str]:
        return ["backend: 'null'"]


class Gossip(Contract, WithServers):
    def settings(self) -> list[str]:
        return [f"gossip: {{start_wait_ms: 60s, {LAZY}}}"]


class Waiting(Contract, WithServers):
    """Gossip that waits for its pulls, and blends as the original did."""

    def settings(self) -> list[str]:
        return [f"gossip: {{start_wait_ms: 60s, {LAZY}, step_budget_ms: 50, blend: lerp}}"]


class Collective(Contract, WithServers):
    def settings(self) -> list[str]:
        return [f"backend: collective\ncollective: {{start_wait_ms: {PATIENCE:.0f}s, on_lost_rank: {policy}}}"
                for policy in ("stop", "shrink", "gossip")]  # fmt: skip


class ProcessGroups(Contract, WithServers):
    """Back end collective on groups of torch.distributed."""

    groups = 0
    has_status = False

    def settings(self) -> list[str]:
        return ["backend: collective", "backend: collective\ncollective: {bucket_bytes: 0, average_buffers: true}"]

    def file(self, setting: str, nodes: int) -> str:
        self.groups += 1
        return super().file(setting, nodes)

    def attach(self, model: Any, file: str, rank: int, count: int) -> Any:
        return dpwa.attach(model, file, f"w{rank + 1}", group=group_of(f"{file}.{self.groups}", rank, count))


class Servers(Contract, WithServers):
    rounds = ("",)

    def settings(self) -> list[str]:
        return ["type: dist_sync", "type: dist_async", "type: dist_ssp, staleness: 2"]

    def file(self, setting: str, nodes: int) -> str:
        keys, *more = setting.split("\n")
        return self.start(nodes, keys, *more)


class Workers(Servers):
    rounds = ("norm.running",)  # servers add up the changes

    def settings(self) -> list[str]:
        return ["type: dist_sync, update: worker"]


class Local(Contract, WithServers):
    nodes = 1
    has_status = False

    def settings(self) -> list[str]:
        return [f"backend: kvstore\nkvstore: {{type: {one}}}" for one in ("local_update_cpu", "local_allreduce_cpu")]


if __name__ == "__main__":
    unittest.main()
