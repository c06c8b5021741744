"""Trains one small model by two processes of this machine, each of which sees half of the classes, and prints what it
was worth: python -m dpwa.demo [--nodes 2] [--seconds 10]. Needs torch."""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

CLASSES, FEATURES, HIDDEN, BATCH = 10, 64, 128, 32


def free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def samples(generator: Any, labels: Any) -> Any:
    """Points around the centres of their classes, the same on every node."""
    import torch

    centres = torch.randn((CLASSES, FEATURES), generator=torch.Generator().manual_seed(1))
    return centres[labels] + 1.5 * torch.randn((len(labels), FEATURES), generator=generator)


def train(file: str, name: str, seconds: float) -> None:
    """One node. Prints a line of JSON."""
    import torch
    from torch.nn import functional

    import dpwa

    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(FEATURES, HIDDEN), torch.nn.ReLU(), torch.nn.Linear(HIDDEN, CLASSES))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
    node = dpwa.attach(model, file, name)
    torch.set_num_threads(node.threads)
    own = torch.tensor_split(torch.arange(CLASSES), node.size)[node.rank]
    generator = torch.Generator().manual_seed(node.rank)
    test_labels = torch.arange(2000) % CLASSES
    test = samples(torch.Generator().manual_seed(99), test_labels)

    def accuracy() -> float:
        with torch.no_grad():
            return float((model(test).argmax(1) == test_labels).double().mean())

    blends = steps = 0
    with node:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            labels = own[torch.randint(len(own), (BATCH,), generator=generator)]
            loss = functional.cross_entropy(model(samples(generator, labels)), labels)
            optimizer.zero_grad()
            loss.backward()
            report = node.step(optimizer, loss)
            steps, blends = steps + 1, blends + (report.outcome == "mixed")
            time.sleep(0.002)
        before = accuracy()
    ended = node.finish()
    found = {"name": name, "classes": len(own), "steps": steps, "blends": blends, "before": before}
    print(json.dumps({**found, "after": accuracy(), "participants": ended.participants}), flush=True)


def table(found: list[dict[str, Any]], alone: dict[str, Any]) -> str:
    lines = ["node   classes   steps   blends a step   its model   averaged model"]
    for one in found:
        share = one["blends"] / max(1, one["steps"])
        lines.append(f"{one['name']:<7}{one['classes']:>7}{one['steps']:>8}{share:>16.2f}{one['before']:>12.1%}"
                     f"{one['after']:>17.1%}")  # fmt: skip
    lines.append(f"alone  {alone['classes']:>7}{alone['steps']:>8}{'':>16}{alone['before']:>12.1%}")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m dpwa.demo", description=__doc__)
    parser.add_argument("--nodes", type=int, default=2, choices=range(2, 6), metavar="2..5")
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--as-node", nargs=2, metavar=("FILE", "NAME"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.as_node:
        train(*options.as_node, options.seconds)
        return 0
    with tempfile.TemporaryDirectory(prefix="dpwa-demo-") as folder:
        names = [f"w{rank + 1}" for rank in range(options.nodes)]
        entries = [f"  - {{name: {name}, host: 127.0.0.1, port: {port}}}"
                   for name, port in zip(names, free_ports(len(names)))]  # fmt: skip
        for backend in ("gossip", "null"):
            text = ["cluster: demo", f"backend: {backend}", "log: {level: warn}", "nodes:", *entries, ""]
            Path(folder, f"{backend}.yaml").write_text("\n".join(text), encoding="utf-8")

        def started(backend: str, name: str) -> subprocess.Popen[str]:
            command = [sys.executable, "-m", "dpwa.demo", "--seconds", str(options.seconds)]
            command += ["--as-node", str(Path(folder, f"{backend}.yaml")), name]
            return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=dict(os.environ))

        print(f"{options.nodes} processes train for {options.seconds:g} s by gossip, then one alone", flush=True)
        found = []
        for backend, who in (("gossip", names), ("null", names[:1])):
            nodes, began, shown = [started(backend, name) for name in who], time.monotonic(), 0
            while any(node.poll() is None for node in nodes):
                time.sleep(0.1)
                if (waited := int(time.monotonic() - began)) >= shown + 2:
                    shown = waited
                    print(f"  {backend}: {waited} s", file=sys.stderr, flush=True)
            texts = [node.communicate()[0] for node in nodes]
            if failed := [name for name, node in zip(who, nodes) if node.returncode]:
                print(f"failed: {', '.join(failed)}", file=sys.stderr)
                return 1
            found += [json.loads(text.splitlines()[-1]) for text in texts]
    print(table(found[:-1], found[-1]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
