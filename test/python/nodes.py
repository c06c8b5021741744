"""What the tests of the Python package share: a cluster file, processes, and nodes as threads."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
import unittest
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))

from lib.ports import free_ports

PACKAGE = os.path.abspath(os.environ["DPWA_PYTHON_PACKAGE"])
EMBEDDED = os.environ.get("DPWA_EMBEDDED", "")
CLI = os.path.abspath(os.environ["DPWA_CLI"])
PATIENCE = 240.0  # longer than anything takes on a loaded machine
sys.path.insert(0, PACKAGE)


def cluster(folder: str, nodes: int, *more: str) -> str:
    entries = [f"  - {{name: w{rank + 1}, host: 127.0.0.1, port: {port}}}"
               for rank, port in enumerate(free_ports(nodes))]  # fmt: skip
    path = Path(folder, "cluster.yaml")
    text = ["cluster: test", "log: {level: error}", *more, "nodes:", *entries, ""]
    path.write_text("\n".join(text), encoding="utf-8")
    return str(path)


def embedded_net() -> Any:
    """The model of the example in C++, examples/embed/embedded.cpp."""
    import torch

    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.hidden, self.scores = torch.nn.Linear(2, 32), torch.nn.Linear(32, 2)

        def forward(self, x: Any) -> Any:
            return torch.log_softmax(self.scores(torch.relu(self.hidden(x))), 1)

    return Net()


def all_at_once(*bodies: Callable[[], Any]) -> list[Any]:
    """Each on a thread of its own. Raises what the first one raised."""
    results: list[Any] = [None] * len(bodies)
    errors: list[BaseException] = []

    def run(index: int) -> None:
        try:
            results[index] = bodies[index]()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(index,)) for index in range(len(bodies))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    if errors:
        raise errors[0]
    return results


def with_one_that_ends_after_backward(models: list[Any], loss_of: Callable[[Any, int, int], Any], file: str,
                                      steps: int) -> list[Any]:  # fmt: skip
    """Two nodes of torch, of which the first ends between backward() and step() of its third step. What finish() gives."""
    import dpwa
    import torch

    def run(rank: int) -> Any:
        optimizer = torch.optim.SGD(models[rank].parameters(), lr=0.1)
        with dpwa.attach(models[rank], file, f"w{rank + 1}") as node:
            for step in range(steps):
                optimizer.zero_grad()
                loss = loss_of(models[rank], rank, step)
                loss.backward()
                if rank == 0 and step == 2:
                    break
                node.step(optimizer, loss)
        return node.finish()

    return all_at_once(lambda: run(0), lambda: run(1))


class InFolder(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def run_process(self, command: str, file: str, name: str) -> Any:
        process = subprocess.Popen([CLI, command, "--config", file, "--name", name], stderr=subprocess.DEVNULL)
        self.addCleanup(process.wait, PATIENCE)
        self.addCleanup(process.terminate)
        return process

    def interrupted(self, text: str) -> list[str]:
        """The lines of a program that is interrupted once it has said that it waits."""
        def heed() -> None:  # which a job in the background of a shell does not
            signal.signal(signal.SIGINT, signal.SIG_DFL)

        with subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.PIPE, text=True, preexec_fn=heed) as process:
            assert process.stdout
            self.assertEqual(process.stdout.readline(), "waits\n")
            process.send_signal(signal.SIGINT)
            said = process.stdout.read().splitlines()
            self.assertEqual(process.wait(PATIENCE), 0)
        return said


class WithServers(InFolder):
    def start(self, nodes: int, keys: str, *more: str, servers: int = 1) -> str:
        """A cluster file with running servers. `keys`: of kvstore. `more`: lines of the file."""
        listed = ", ".join(f"{{name: s{rank + 1}, host: 127.0.0.1, port: {port}}}"
                           for rank, port in enumerate(free_ports(servers)))  # fmt: skip
        file = cluster(self.folder, nodes, "backend: kvstore", f"kvstore: {{{keys}, start_wait_ms: {PATIENCE:.0f}s, "
                       f"servers: [{listed}]}}", *more)  # fmt: skip
        self.servers = [self.run_process("kvserver", file, f"s{rank + 1}") for rank in range(servers)]
        return file
