"""The Python package, in processes and threads of its own: what a program with PyTorch or NumPy sees of it."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import threading
import time
import unittest
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from nodes import CLI, EMBEDDED, PACKAGE, PATIENCE, InFolder, all_at_once, cluster, embedded_net

import dpwa
import numpy as np
from lib.ports import free_ports

try:
    import torch
except ImportError:
    torch = None  # type: ignore[assignment]


PATIENT = "gossip: {start_wait_ms: 60s, finish_wait_ms: 60s, timeout_ms: 60s}"


class Core(InFolder):
    def test_the_module_shows_one_symbol_and_needs_no_torch(self) -> None:
        (library,) = Path(PACKAGE, "dpwa").glob("_core.*.so")
        symbols = subprocess.run(["nm", "-D", library], capture_output=True, text=True, check=True).stdout.splitlines()
        defined = [line.split()[-1] for line in symbols if " T " in line or " W " in line and not line.startswith(" ")]
        self.assertEqual(defined, ["PyInit__core"])
        self.assertEqual([line for line in symbols if "c10" in line or "torch" in line], [])

    def test_the_version_is_that_of_the_program(self) -> None:
        said = subprocess.run([CLI, "--version"], capture_output=True, text=True, check=True).stdout
        self.assertIn(dpwa.__version__, said)

    def test_a_wrong_file_is_one_line_with_the_key_and_what_is_accepted(self) -> None:
        file = cluster(self.folder, 1, "gossip: {timeot_ms: 5}")
        with self.assertRaisesRegex(dpwa.ConfigError, r"cluster.yaml:3: gossip.timeot_ms: unknown key.*accepted: ") as it:
            dpwa.attach_arrays({"w": np.zeros(3)}, file, "w1")
        self.assertNotIn("\n", str(it.exception))
        with self.assertRaisesRegex(dpwa.ConfigError, "w9"):
            dpwa.attach_arrays({"w": np.zeros(3)}, cluster(self.folder, 1), "w9")


class Arrays(InFolder):
    def test_arrays_of_numpy_are_averaged_in_place(self) -> None:
        file = cluster(self.folder, 2, PATIENT)
        own = [{"w": np.full(1000, float(rank), np.float32), "n": np.array([rank])} for rank in range(2)]

        def run(rank: int) -> Any:
            with dpwa.attach_arrays(own[rank], file, f"w{rank + 1}") as node:
                started = float(own[rank]["w"][0])
                own[rank]["w"] += rank
                report = node.step(loss=1.0)
            return started, report, node.finish()

        (first, report, ended), (second, _, _) = all_at_once(lambda: run(0), lambda: run(1))
        self.assertEqual(first, second)
        self.assertTrue(0 < report.clock <= 1)  # less after a blend
        self.assertEqual((ended.averaged, ended.participants), (True, 2))
        np.testing.assert_array_equal(own[0]["w"], own[1]["w"])
        # The mean of both, or of what one of them has blended before.
        self.assertTrue(first < own[0]["w"][0] < first + 1)

    def test_values_that_cannot_be_written_come_back(self) -> None:
        fixed = np.arange(4.0)
        fixed.flags.writeable = False
        node = dpwa.attach_arrays({"w": fixed}, cluster(self.folder, 1, "backend: 'null'"), "w1")
        node.start()
        with self.assertRaisesRegex(dpwa.UsageError, "array 'w' cannot be written; accepted: values="):
            node.step(1.0)
        node.step(values={"w": fixed + 1})
        np.testing.assert_array_equal(node.values["w"], np.arange(1.0, 5.0))
        np.testing.assert_array_equal(fixed, np.arange(4.0))
        with self.assertRaisesRegex(dpwa.UsageError, r"array 'w' has the shape \(3,\); it had \(4,\)"):
            node.step(values={"w": np.zeros(3)})
        with self.assertRaisesRegex(dpwa.UsageError, "they were w"):
            node.step(values={"v": fixed})
        node.finish()

    def test_calls_in_another_order_are_refused_with_the_call(self) -> None:
        node = dpwa.attach_arrays({"w": np.zeros(3)}, cluster(self.folder, 1, "backend: 'null'"), "w1")
        with self.assertRaisesRegex(dpwa.UsageError, r"step\(\) before start\(\)"):
            node.step()
        with self.assertRaisesRegex(dpwa.UsageError, r"set_batch_size\(\) before start\(\)"):
            node.set_batch_size(8)
        node.start()
        with self.assertRaisesRegex(dpwa.UsageError, r"start\(\) a second time"):
            node.start()
        with self.assertRaisesRegex(dpwa.UsageError, "require_same"):
            node.require_same("--lr", 1)
        node.step()
        self.assertEqual(node.state_dict()["clock"], 1)
        node.leave()
        self.assertEqual(node.step().clock, 1)  # stands still from now on
        self.assertFalse(node.finish().averaged)

    def test_arguments_of_other_kinds_are_refused_in_one_line(self) -> None:
        file, own = cluster(self.folder, 1, "backend: 'null'"), np.zeros(6)
        wrong: tuple[tuple[str, dict[str, Any]], ...] = (
            ("name 1; accepted", {"name": 1}), ("threads 'a'; accepted", {"threads": "a"}),
            ("threads 0; accepted", {"threads": 0}), ("join 'h:1'; accepted", {"join": "h:1"}))  # fmt: skip
        for words, more in wrong:
            with self.assertRaisesRegex(dpwa.ConfigError, f"^attach\\(\\): {words}"):
                dpwa.attach_arrays({"w": own}, **{"file": file, "name": "w1", **more})
        with self.assertRaisesRegex(dpwa.ModelError, "the memory of array 'b' is also that of 'a'"):
            dpwa.attach_arrays({"b": own[2:], "c": np.zeros(3), "a": own[:3]}, file, "w1")
        with dpwa.attach_arrays({"b": own[3:], "a": own[:3]}, file, "w1", threads=np.int64(1)) as node:
            for loss in ("low", [1.0], {}, np.ones(2)):
                with self.assertRaisesRegex(dpwa.UsageError, "in place of a number; accepted: a number, or"):
                    node.step(loss)
                with self.assertRaisesRegex(dpwa.UsageError, "in place of a number"):
                    node.show("accuracy", loss)
            for samples in (-1, 0.5, math.nan, math.inf, None):
                with self.assertRaisesRegex(dpwa.UsageError, "set_batch_size.*; accepted: 0 or more"):
                    node.set_batch_size(samples)
            node.set_batch_size(np.float32(3))
            self.assertEqual(node.step(np.ones(1)).clock, 1)

    def test_arrays_that_were_copied_and_not_written_are_told(self) -> None:
        file = Path(cluster(self.folder, 1, "backend: 'null'"))
        file.write_text(file.read_text(encoding="utf-8").replace("level: error", "level: warn"), encoding="utf-8")
        text = f"import sys; sys.path.insert(0, {PACKAGE!r}); import dpwa, numpy\nw = numpy.zeros(3)\n"
        text += f"node = dpwa.attach_arrays({{'w': w}}, {str(file)!r}, 'w1')\n"
        text += "with node:\n  for _ in range(3):\n    WRITE\n    node.step(1.0)\n"
        for write, told in (("w = w + 1", 1), ("w += 1", 0)):
            done = subprocess.run([sys.executable, "-c", text.replace("WRITE", write)], capture_output=True, text=True,
                                  timeout=PATIENCE, check=True)  # fmt: skip
            self.assertEqual(done.stderr.count("no array was written since the step before"), told, done.stderr)

    def test_the_update_of_the_program_keeps_what_was_blended_before_it(self) -> None:
        file = cluster(self.folder, 2, "gossip: {start_wait_ms: 60s}")  # replies are blended at the next step
        turn = threading.Barrier(2)

        def run(rank: int) -> None:
            own = {"w": np.zeros(1000, np.float32)}
            node = dpwa.attach_arrays(own, file, f"w{rank + 1}")
            node.start()
            if rank == 1:
                own["w"][...] = 8
                node.step()
            turn.wait(PATIENCE)
            blends, until = 0, time.monotonic() + PATIENCE
            while rank == 0 and blends < 1 and time.monotonic() < until:
                before = float(own["w"][0])
                if node.step(gradients={"w": own["w"] * 0}, update=lambda mean: None).outcome == "mixed":
                    self.assertGreater(own["w"][0], before)
                    blends += 1
                time.sleep(0.005)  # as a program that computes: the reply comes between two steps
            turn.wait(PATIENCE)
            self.assertEqual(blends, 0 if rank else 1)
            node.leave()

        all_at_once(lambda: run(0), lambda: run(1))

    def test_a_process_that_was_forked_may_end_and_is_not_the_node(self) -> None:
        with dpwa.attach_arrays({"w": np.zeros(3)}, cluster(self.folder, 1, "gossip: {start_wait_ms: 0}"), "w1") as node:
            child = os.fork()
            if child == 0:
                try:
                    node.step()
                except dpwa.UsageError as error:
                    del node
                    os._exit(0 if "forked" in str(error) else 2)
                os._exit(3)
            self.assertEqual(os.waitpid(child, 0)[1], 0)
            self.assertEqual(node.step().clock, 1)

    def test_ctrl_c_ends_the_wait_for_other_nodes(self) -> None:
        file = cluster(self.folder, 2, "gossip: {start_wait_ms: 1h}")
        text = f"import sys; sys.path.insert(0, {PACKAGE!r}); import dpwa, numpy\n"
        text += f"node = dpwa.attach_arrays({{'w': numpy.zeros(3)}}, {file!r}, 'w1')\n"
        text += "try:\n  print('waits', flush=True)\n  node.start()\n"
        text += "except KeyboardInterrupt: print('interrupted', flush=True)\n"
        # The signal may come before the call, or while it waits: then the node has left.
        text += "try: print(node.step().outcome, flush=True)\nexcept dpwa.UsageError: print('skipped', flush=True)"
        self.assertEqual(self.interrupted(text), ["interrupted", "skipped"])


class Command(InFolder):
    def run_dpwa(self, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, "-m", "dpwa.command", *words], capture_output=True, text=True,
                              cwd=self.folder, timeout=PATIENCE, env={**os.environ, "PYTHONPATH": PACKAGE,
                                                                      "XDG_STATE_HOME": self.folder, **environment})  # fmt: skip

    def test_run_starts_the_nodes_of_a_file_with_a_program_in_python_and_stop_ends_them(self) -> None:
        file = cluster(self.folder, 2, PATIENT)
        trainer = Path(self.folder, "train.py")
        trainer.write_text(f"#!{sys.executable}\nimport sys, time; sys.path.insert(0, {PACKAGE!r})\n"
                           "import dpwa, numpy\n"
                           "node = dpwa.attach_arrays({'w': numpy.zeros(3)}, sys.argv[2], sys.argv[4])\n"
                           "with node:\n  while '--for-ever' in sys.argv: node.step(); time.sleep(0.01)\n")  # fmt: skip
        trainer.chmod(0o755)
        ran = self.run_dpwa("run", file, DPWA_TRAIN=str(trainer))
        self.assertEqual(ran.returncode, 0, ran.stderr)
        ran = self.run_dpwa("run", file, "--detach", "--", "--for-ever", DPWA_TRAIN=str(trainer))
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertIn(f"dpwa stop {file} ends them", ran.stderr)
        self.assertEqual(self.run_dpwa("stop", file).returncode, 0)

    def test_run_without_a_trainer_is_one_line_and_other_words_are_those_of_the_program(self) -> None:
        ran = self.run_dpwa("run", "cluster.yaml", DPWA_TRAIN="")
        self.assertEqual((ran.returncode, ran.stderr.count("\n")), (1, 1))
        self.assertIn("DPWA_TRAIN", ran.stderr)
        self.assertIn(dpwa.__version__, self.run_dpwa("--version").stdout)

    def test_the_rank_of_a_launcher_names_the_node(self) -> None:
        file = cluster(self.folder, 2, "backend: 'null'")
        text = f"import sys; sys.path.insert(0, {PACKAGE!r}); import dpwa, numpy\n"
        text += f"print(dpwa.attach_arrays({{'w': numpy.zeros(3)}}, {file!r}).name)"
        torchrun = {"RANK": "1", "WORLD_SIZE": "2", "LOCAL_RANK": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "1"}
        said = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True,
                              env={**os.environ, **torchrun})  # fmt: skip
        self.assertEqual(said.stdout, "w2\n")

    @unittest.skipIf(torch is None, "needs torch in this Python")
    def test_processes_of_a_launcher_find_one_another_without_nodes_and_without_a_file(self) -> None:
        (port,) = free_ports(1)
        text = f"import sys; sys.path.insert(0, {PACKAGE!r}); import dpwa, numpy\n"
        text += "w = numpy.zeros(3)\n"
        text += "with dpwa.attach_arrays({'w': w}, *sys.argv[1:]) as node:\n  w += node.rank\n  node.reload()\n"
        text += "print(node.name, node.size, node.finish().participants, w[0])"
        file = Path(self.folder, "cluster.yaml")
        file.write_text(f"cluster: unlisted\n{PATIENT}\n", encoding="utf-8")
        for words in ([], [str(file)]):
            with self.subTest(words):
                processes = [subprocess.Popen([sys.executable, "-c", text, *words], stdout=subprocess.PIPE, text=True,
                                              env={**os.environ, "RANK": str(rank), "WORLD_SIZE": "2", "LOCAL_RANK": str(rank),
                                                   "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)})
                             for rank in range(2)]  # fmt: skip
                said = [process.communicate(timeout=PATIENCE)[0] for process in processes]
                if words:  # without a file no node waits long for the other at its end
                    self.assertEqual(said, ["rank0 2 2 0.5\n", "rank1 2 2 0.5\n"])
                else:
                    self.assertEqual([line.split()[:2] for line in said], [["rank0", "2"], ["rank1", "2"]])
        with self.assertRaisesRegex(dpwa.ConfigError, "without a file: no launcher .* accepted: a cluster file, or torchrun"):
            dpwa.attach_arrays({"w": np.zeros(3)})


    def test_processes_that_seeds_bring_together_need_no_list_and_no_meeting(self) -> None:
        ports = free_ports(2)
        text = f"import sys, time; sys.path.insert(0, {PACKAGE!r}); import dpwa, numpy\n"
        text += "w = numpy.zeros(3)\n"
        text += "with dpwa.attach_arrays({'w': w}, sys.argv[1]) as node:\n"
        text += "  for _ in range(50): node.step(); time.sleep(0.002)\n"
        text += "  w[...] = node.name == 'rank1'\n"
        text += "print(node.name, node.finish().participants, w[0])"
        file = Path(self.folder, "cluster.yaml")
        file.write_text(f"cluster: by-seeds\nseeds: ['127.0.0.1:{ports[0]}']\n{PATIENT}\n", encoding="utf-8")
        processes = [subprocess.Popen([sys.executable, "-c", text, str(file)], stdout=subprocess.PIPE, text=True,
                                      env={**os.environ, "RANK": str(rank), "DPWA_HOST": "127.0.0.1", "DPWA_PORT": str(port)})
                     for rank, port in enumerate(ports)]  # fmt: skip
        said = [process.communicate(timeout=PATIENCE)[0] for process in processes]
        self.assertEqual(said, ["rank0 2 0.5\n", "rank1 2 0.5\n"])


@unittest.skipIf(torch is None, "needs torch in this Python")
class Torch(InFolder):
    @staticmethod
    def model(seed: int) -> Any:
        torch.manual_seed(seed)
        nn = torch.nn
        return nn.Sequential(nn.Conv2d(2, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(144, 5))

    @staticmethod
    def backward(model: Any) -> Any:
        loss = torch.nn.functional.cross_entropy(model(torch.randn(4, 2, 8, 8)), torch.randint(5, (4,)))
        model.zero_grad()
        loss.backward()
        return loss

    def alone(self, model: Any, *more: str) -> Any:
        return dpwa.attach(model, cluster(self.folder, 1, *(more or ("backend: 'null'",))), "w1")

    def test_two_nodes_start_with_common_weights_blend_and_end_with_one_model(self) -> None:
        file = cluster(self.folder, 2, PATIENT)
        models = [self.model(rank) for rank in range(2)]
        together = threading.Barrier(2)
        blends = [0, 0]

        def run(rank: int) -> Any:
            model = models[rank]
            optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
            node = dpwa.attach(model, file, f"w{rank + 1}")
            node.start()
            first = model[0].weight.detach().clone()
            steps = 0
            done = False
            while not done:
                blends[rank] += node.step(optimizer, self.backward(model)).outcome == "mixed"
                steps += 1
                together.wait(PATIENCE)  # both have stepped
                done = all(blends)
                together.wait(PATIENCE)  # and both have looked at the blends
            return first, steps, node.finish()

        (first, steps, ended), (other, _, _) = all_at_once(lambda: run(0), lambda: run(1))
        self.assertTrue(torch.equal(first, other))
        self.assertEqual(ended.participants, 2)
        for one, two in zip(models[0].state_dict().values(), models[1].state_dict().values()):
            self.assertTrue(torch.equal(one, two))
        self.assertEqual(int(models[0][1].num_batches_tracked), steps)

    def test_parameters_keep_identity_values_and_strides(self) -> None:
        model = self.model(1).to(memory_format=torch.channels_last)
        before = {name: value.clone() for name, value in model.state_dict().items()}
        weight = model[0].weight
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        with self.alone(model) as node:
            self.assertIs(model[0].weight, weight)
            self.assertEqual(weight.stride(), before["0.weight"].stride())
            for name, value in model.state_dict().items():
                self.assertTrue(torch.equal(value, before[name]))
            node.step(optimizer, self.backward(model))
        self.assertFalse(torch.equal(weight, before["0.weight"]))
        torch.save(model.state_dict(), Path(self.folder, "model.pt"))  # of several types
        for name, value in torch.load(Path(self.folder, "model.pt")).items():
            self.assertTrue(torch.equal(value, model.state_dict()[name]))

    def test_volumes_keep_their_strides(self) -> None:
        model = torch.nn.Conv3d(2, 4, 3).to(memory_format=torch.channels_last_3d)
        before, strides = model.weight.detach().clone(), model.weight.stride()
        self.alone(model)
        self.assertTrue(torch.equal(model.weight, before))
        self.assertEqual(model.weight.stride(), strides)

    def test_a_model_that_was_changed_is_refused_with_the_tensor(self) -> None:
        model = self.model(1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        with self.alone(model) as node:
            model[4].weight.data = model[4].weight.data.clone()
            with self.assertRaisesRegex(dpwa.UsageError, "tensor '4.weight' is no longer what it was; call attach"):
                node.step(optimizer, self.backward(model))
            node.leave()
        model = self.model(1)
        with self.alone(model) as node:
            model[4].weight = torch.nn.Parameter(model[4].weight.detach().clone())
            with self.assertRaisesRegex(dpwa.UsageError, "another tensor in place of '4.weight'; call attach"):
                node.step(torch.optim.SGD(model.parameters(), lr=0.1), self.backward(model))
            node.leave()
        model = self.model(1)
        with self.alone(model) as node:
            model.append(torch.nn.Linear(5, 5))
            with self.assertRaisesRegex(dpwa.UsageError, "list of parameters and buffers"):
                node.update_send(1.0)
            node.leave()

    def test_a_change_in_a_large_model_is_found_within_some_steps_and_at_the_end(self) -> None:
        model = torch.nn.Sequential(*(torch.nn.Linear(2, 2) for _ in range(40)))
        with self.alone(model) as node:
            node.update_send(1.0)
            node.update_wait()
            model[20].bias.data = model[20].bias.data.clone()
            with self.assertRaisesRegex(dpwa.UsageError, "tensor '20.bias' is no longer"):
                for _ in range(3):
                    node.update_send(1.0)
                    node.update_wait()
            with self.assertRaisesRegex(dpwa.UsageError, "tensor '20.bias' is no longer"):
                node.update_send(1.0)
            with self.assertRaisesRegex(dpwa.UsageError, "tensor '20.bias' is no longer"):
                node.finish()
            node.leave()
        with self.alone(model) as node:
            model[3].weight = torch.nn.Parameter(model[3].weight.detach().clone())
            with self.assertRaisesRegex(dpwa.UsageError, "another tensor in place of '3.weight'"):
                node.finish()
            node.leave()

    def test_a_parameter_of_a_large_model_that_is_no_longer_frozen_is_found_within_some_steps(self) -> None:
        model = torch.nn.Sequential(*(torch.nn.Linear(2, 2) for _ in range(40)))
        for layer in model[:39]:
            layer.requires_grad_(False)
        with self.alone(model) as node:
            for number in (0, 20, 38):
                model[number].bias.requires_grad_(True)
                with self.assertRaisesRegex(dpwa.UsageError, f"tensor '{number}.bias' is no longer frozen; call"):
                    for _ in range(8):
                        node.update_send(1.0)
                        node.update_wait()
                model[number].bias.requires_grad_(False)
            model[38].weight.requires_grad_(True)
            with self.assertRaisesRegex(dpwa.UsageError, "tensor '38.weight' is no longer frozen"):
                node.finish()
            node.leave()

    def test_models_that_cannot_be_shared_are_refused(self) -> None:
        nn = torch.nn
        frozen, tied, empty = self.model(1), nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4)), nn.ReLU()
        frozen.requires_grad_(False)
        tied[1].weight.data = tied[0].weight.data
        complex_model = nn.Sequential(nn.Linear(2, 2, dtype=torch.complex64))
        meta = nn.Linear(2, 2, device="meta")
        for model, words in ((frozen, "frozen"), (tied, "memory is also that of '0.weight'"), (empty, "no parameters"),
                             (complex_model, "'0.weight': .*complex64"), (meta, "on meta")):  # fmt: skip
            with self.assertRaisesRegex(dpwa.ModelError, words):
                self.alone(model)

    def test_halves_make_a_step_and_the_last_ones_of_another_order_are_refused(self) -> None:
        model = self.model(1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        with self.alone(model) as node:
            node.update_send(self.backward(model))
            optimizer.step()
            with self.assertRaisesRegex(dpwa.UsageError, "update_send"):
                node.update_send(1.0)
            self.assertEqual(node.update_wait().clock, 1)
            with self.assertRaisesRegex(dpwa.UsageError, "update_wait"):
                node.update_wait()

    def test_a_step_that_the_scaler_skips_is_counted_and_is_no_step(self) -> None:
        model = self.model(1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        scaler = torch.amp.GradScaler("cpu", init_scale=4.0)
        with self.alone(model, "gossip: {start_wait_ms: 0}") as node:
            loss = self.backward(model)
            scaler.scale(loss.detach())
            model[4].weight.grad[0, 0] = float("inf")
            weight = model[4].weight.detach().clone()
            report = node.step(optimizer, loss, scaler=scaler)
            self.assertEqual((report.skipped_steps, report.clock), (1, 0))
            self.assertTrue(torch.equal(weight, model[4].weight))
            loss = self.backward(model)
            scaler.scale(loss.detach())
            report = node.step(optimizer, loss, scaler=scaler)
            self.assertEqual((report.skipped_steps, report.clock), (1, 1))
            self.assertFalse(torch.equal(weight, model[4].weight))

    def test_a_step_whose_optimizer_fails_is_followed_by_another(self) -> None:
        model = self.model(1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        with self.alone(model, "gossip: {start_wait_ms: 0}") as node:
            loss = self.backward(model)
            with self.assertRaises(AttributeError):
                node.step(None, loss)
            self.assertGreaterEqual(node.step(optimizer, loss).clock, 1)
        with self.assertRaisesRegex(dpwa.ModelError, "takes a torch.nn.Module, not str"):
            dpwa.attach("model")
        with self.assertRaisesRegex(dpwa.ModelError, "arrays by their names"):
            dpwa.attach_arrays([np.zeros(3)])

    def test_a_checkpoint_of_a_node_goes_on_at_its_clock(self) -> None:
        with self.alone(self.model(1), "gossip: {start_wait_ms: 0}") as node:
            for _ in range(3):
                node.update_send(1.0)
                node.update_wait()
            state = json.loads(json.dumps(node.state_dict()))
        self.assertEqual(state["clock"], 3)
        node = self.alone(self.model(1), "gossip: {start_wait_ms: 0}")
        node.load_state_dict(state)
        with node:
            self.assertEqual(node.state_dict()["clock"], 3)

    @unittest.skipUnless(EMBEDDED, "needs the C++ example")
    def test_nodes_in_cpp_and_in_python_train_one_model(self) -> None:
        file = cluster(self.folder, 2, PATIENT)
        model = embedded_net()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        blends = 0
        with subprocess.Popen([EMBEDDED, file, "w1"], stdout=subprocess.PIPE, text=True) as other:
            node = dpwa.attach(model, file, "w2")
            node.start()
            steps = 0
            while steps < 500 or (not blends and steps < 100_000):
                steps += 1
                data = torch.rand(32, 2) * 2 - 1
                loss = torch.nn.functional.nll_loss(model(data), (data.square().sum(1) < 0.6).long())
                optimizer.zero_grad()
                loss.backward()
                blends += node.step(optimizer, loss).outcome == "mixed"
            ended = node.finish()
            said = other.communicate(timeout=PATIENCE)[0]
        self.assertEqual(other.returncode, 0)
        self.assertIn("accuracy", said)
        self.assertGreater(blends, 0)
        self.assertEqual((ended.averaged, ended.participants), (True, 2))


@unittest.skipUnless(os.environ.get("DPWA_OTHER_PYTHON"), "needs another Python with the package and torch")
class OtherPython(InFolder):
    def test_nodes_with_another_python_and_torch_train_one_model(self) -> None:
        file = cluster(self.folder, 2, PATIENT)
        processes = [subprocess.Popen([python, "-m", "dpwa.demo", "--seconds", "3", "--as-node", file, name],
                                      stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": path})
                     for python, name, path in ((sys.executable, "w1", PACKAGE), (os.environ["DPWA_OTHER_PYTHON"], "w2", ""))]  # fmt: skip
        said = [json.loads(process.communicate(timeout=PATIENCE)[0]) for process in processes]
        self.assertEqual([one["participants"] for one in said], [2, 2])
        self.assertEqual(said[0]["after"], said[1]["after"])
        self.assertGreater(said[0]["blends"] + said[1]["blends"], 0)


class Demo(unittest.TestCase):
    @unittest.skipIf(torch is None, "needs torch in this Python")
    def test_the_demo_prints_a_table(self) -> None:
        run = subprocess.run([sys.executable, "-m", "dpwa.demo", "--seconds", "1"], check=True, capture_output=True,
                             text=True, timeout=PATIENCE, env={**os.environ, "PYTHONPATH": PACKAGE})  # fmt: skip
        rows = [line.split()[0] for line in run.stdout.splitlines()[1:]]
        self.assertEqual(rows, ["node", "w1", "w2", "alone"])


if __name__ == "__main__":
    unittest.main()
