"""The class KVStore of the Python package: the operations of MXNet's, over NumPy and torch."""

from __future__ import annotations

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from nodes import PACKAGE, WithServers, all_at_once, cluster

import dpwa
import numpy as np

try:
    import torch
except ImportError:
    torch = None  # type: ignore[assignment]


class Store(WithServers):
    def test_pushes_of_all_workers_add_up(self) -> None:
        file = self.start(2, "type: dist_sync", servers=2)

        def run(rank: int) -> None:
            with dpwa.KVStore(file, f"w{rank + 1}") as store:
                self.assertEqual((store.type, store.rank, store.num_workers), ("dist_sync", rank, 2))
                store.init(["w", "b"], [np.full((3, 2), 5 * rank, np.float32), np.zeros(())])
                with self.assertRaisesRegex(dpwa.Error, "push of key 'w'.*float32.2.,.*float32.3,2"):
                    store.push("w", np.zeros(2, np.float32))
                with self.assertRaisesRegex(dpwa.Error, "init of key 'w'.* it was initialised before"):
                    store.init("w", np.zeros((3, 2), np.float32))
                store.push("w", [np.full((3, 2), 1 + rank, np.float32), np.ones((3, 2), np.float32)])
                out, other = np.zeros((3, 2), np.float32), np.zeros((2, 3), np.float32).T
                self.assertEqual(store.pull("w", [out, other]), [1])
                np.testing.assert_array_equal(out, np.full((3, 2), 5, np.float32))
                np.testing.assert_array_equal(other, out)
                store.set_optimizer("momentum", learning_rate=0.5, rescale=1 / store.num_workers)
                both = np.ones(()), np.ones((3, 2), np.float32)
                store.pushpull(["b", "w"], list(both))
                self.assertEqual((float(both[0]), float(both[1][0, 0])), (-0.5, 4.5))
                rows, values = store.row_sparse_pull("w", np.array([2, 0, 2]))
                np.testing.assert_array_equal(rows, [0, 2])
                np.testing.assert_array_equal(values, np.full((2, 2), 4.5, np.float32))
                with self.assertRaisesRegex(dpwa.Error, "rows 0 to 3 of 3"):
                    store.row_sparse_pull("w", [0, 3])
                store.barrier()
                if rank == 0:
                    path = Path(self.folder, "states")
                    store.save_optimizer_states(path)
                    store.load_optimizer_states(path)
                    path.write_bytes(b"x")
                    with self.assertRaisesRegex(dpwa.Error, f"{path}: "):
                        store.load_optimizer_states(path)
                store.barrier()
                self.assertEqual((store.dropped_pushes(), store.num_dead_node()), (0, 0))

        all_at_once(lambda: run(0), lambda: run(1))

    def test_pushes_under_dist_async_need_an_optimizer_that_servers_know(self) -> None:
        file = self.start(1, "type: dist_async")
        with dpwa.KVStore(file, "w1") as store:
            store.init(3, np.zeros(4))
            with self.assertRaisesRegex(dpwa.Error, "type dist_async .* needs an optimizer"):
                store.push(3, np.ones(4))
            with self.assertRaisesRegex(dpwa.Error, "lamb.*sgd"):
                store.set_optimizer("lamb")
            with self.assertRaisesRegex(dpwa.Error, "no 'rate'; accepted: .*learning_rate"):
                store.set_optimizer("sgd", rate=1)
            store.set_optimizer("sgd", learning_rate=1)
            store.set_gradient_compression({"type": "fp16"})
            pushed = store.push_async(3, np.ones(4))
            self.assertEqual(pushed.wait(), [1])
            self.assertTrue(pushed.done())
            out = np.zeros(4)
            self.assertEqual(store.pull_async(3, out).wait(), [1])
            np.testing.assert_array_equal(out, np.full(4, -1.0))
            with self.assertRaisesRegex(dpwa.Error, "keys of this store are integers"):
                store.init("x", np.zeros(4))

    def test_a_store_leaves_though_the_program_keeps_a_handle(self) -> None:
        file = self.start(1, "type: dist_sync")
        for _ in range(2):  # the same worker again: the servers know that it has left
            with dpwa.KVStore(file, "w1") as store:
                store.init("w", np.zeros(3, np.float32))
                out = np.ones(3, np.float32)
                pending = store.pull_async("w", out)
                pending.wait()
            with self.assertRaisesRegex(dpwa.UsageError, "closed"):
                pending.wait()

    def test_what_needs_no_servers_is_refused_with_the_key(self) -> None:
        with self.assertRaisesRegex(dpwa.ConfigError, "kvstore.type: .* accepted: dist_sync"):
            dpwa.KVStore(cluster(self.folder, 1, "backend: kvstore", "kvstore: {type: local_update_cpu}"), "w1")

    def test_ctrl_c_ends_the_wait_for_pushes_of_others(self) -> None:
        file = self.start(2, "type: dist_sync")
        text = f"""
import sys, threading; sys.path.insert(0, {PACKAGE!r})
import dpwa, numpy
stores = {{}}
def make(name): stores[name] = dpwa.KVStore({file!r}, name); stores[name].init("w", numpy.zeros(3))
other = threading.Thread(target=make, args=("w2",))
other.start(); make("w1"); other.join()
try:
    store = stores["w1"]
    store.push("w", numpy.ones(3))
    print("waits", flush=True)
    store.pull("w", numpy.zeros(3))
except KeyboardInterrupt: print("interrupted", flush=True)
stores["w1"].close()  # the signal may have come before the call
try: stores["w1"].pull("w", numpy.zeros(3))
except dpwa.UsageError as error: print(error, flush=True)
"""
        self.assertEqual(self.interrupted(text), ["interrupted", "the store was closed, or one of its calls was interrupted"])

    @unittest.skipIf(torch is None, "needs torch in this Python")
    def test_tensors_are_values_and_torch_gives_the_optimizer(self) -> None:
        file = self.start(1, "type: dist_sync")
        with dpwa.KVStore(file, "w1") as store:
            weights = [torch.ones(2, 3, dtype=torch.bfloat16), torch.zeros(4)]
            store.broadcast(["a", "b"], weights, weights)
            store.set_optimizer(torch.optim.SGD(weights, lr=0.25))
            sparse = torch.sparse_coo_tensor([[0, 0]], [1.0, 3.0], (4,))
            store.push(["a", "b"], [[torch.ones(2, 3, dtype=torch.bfloat16)] * 2, sparse])
            turned = torch.zeros(3, 2, dtype=torch.bfloat16).t()
            store.pull(["a", "b"], [turned, weights[1]])
            self.assertTrue(torch.equal(turned, torch.full((2, 3), 0.5, dtype=torch.bfloat16)))
            self.assertEqual(weights[1].tolist(), [-1, 0, 0, 0])
            rows, values = store.row_sparse_pull("a", torch.tensor([1]))
            self.assertEqual((rows.tolist(), values.tolist()), ([1], [[0.5] * 3]))
            with self.assertRaisesRegex(dpwa.Error, "LBFGS"):
                store.set_optimizer(torch.optim.LBFGS(weights))


if __name__ == "__main__":
    unittest.main()
