"""The cluster files of a benchmark: nodes w1, w2, ... on loopback, in a folder that is gone at the end."""

from __future__ import annotations

import contextlib
import os
import secrets
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from lib.bench_options import WrongUsage


@dataclass
class NodeSettings:
    """Values of the cluster file: the loader of the nodes says which it accepts."""

    transport: str = "tcp"  # tcp, same_host
    encoding: str = "fp32"
    security: str = "insecure"
    key_file: str = ""  # empty: psk gets a key of its own
    checksum: str = "on"
    daemon: bool = False  # gossip.daemon


def node_name(index: int) -> str:
    return f"w{index + 1}"


def same_host(transport: str) -> str:
    return "auto" if transport == "same_host" else "off"


def entry(name: str, port: int) -> str:
    return f"  - {{name: {name}, host: 127.0.0.1, port: {port}}}"


def cluster_text(settings: NodeSettings, ports: list[int]) -> str:
    lines = ["cluster: bench", "nodes:", *(entry(node_name(i), port) for i, port in enumerate(ports))]
    lines += [f"gossip: {{timeout_ms: 60s, daemon: {'true' if settings.daemon else 'false'}}}"]
    lines += ["transport:", f"  same_host: {same_host(settings.transport)}"]
    lines += [f"  encoding: {settings.encoding}", f"  checksum: {settings.checksum}"]
    lines += ["security:", f"  mode: {settings.security}"]
    lines += [f'  key_file: "{settings.key_file}"'] if settings.key_file else []
    return "\n".join([*lines, "log: {level: warn}", ""])


@contextlib.contextmanager
def cluster_file(text: str) -> Iterator[str]:
    """cluster.yaml with the text; what the loader says about it is said without the name, which nobody has seen."""
    with tempfile.TemporaryDirectory(prefix="dpwa-bench-") as folder:
        path = Path(folder, "cluster.yaml")
        path.write_text(text, encoding="utf-8")
        try:
            yield str(path)
        except WrongUsage as error:
            words = str(error)
            raise WrongUsage(words.partition(": ")[2] if words.startswith(str(path)) else words) from None


@contextlib.contextmanager
def new_key_file() -> Iterator[str]:
    with tempfile.TemporaryDirectory(prefix="dpwa-bench-") as folder:
        path = Path(folder, "cluster.key")
        with open(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="ascii") as file:
            file.write(f"{secrets.token_hex(32)}\n")
        yield str(path)


@contextlib.contextmanager
def node_file(settings: NodeSettings, ports: list[int]) -> Iterator[str]:
    """The cluster file of nodes that pull, and with psk a key for the length of the run."""
    with contextlib.ExitStack() as stack:
        if settings.security == "psk" and not settings.key_file:
            settings = NodeSettings(**{**vars(settings), "key_file": stack.enter_context(new_key_file())})
        yield stack.enter_context(cluster_file(cluster_text(settings, ports)))
