#!/usr/bin/env python3
"""Trains a cluster of dpwa-train under a firewall policy, with or without a liar, and prints how it went.

Three honest nodes and a liar, or with `--lie none` four honest nodes. The liar lies as soon as it has seen weights, with
every checksum right. Seeds are paired: every policy trains the same split, order and initial weights.
"""

from __future__ import annotations

import argparse
import array
import asyncio
import json
import math
import os
import statistics
import struct
import sys
import tempfile
from pathlib import Path

import wire
from attackers import Attacker

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY / "scripts"))
from lib.ports import first_free_port  # noqa: E402

LIES = ("none", "huge", "inverted", "nan", "stuck", "late")


class Liar(Attacker):
    """Knows no model beforehand, and computes each lie once: a real model takes long to checksum here."""

    def __init__(self, name: str, cluster: str, honest: dict[str, tuple[str, int]], lie: str, seed: int) -> None:
        super().__init__(name, cluster, 1, honest, seed)
        self.lie = lie
        self._chunks: tuple[bytes, int, bytes] | None = None

    async def _welcome(self, writer: asyncio.StreamWriter, request: int) -> None:
        state = wire.READY if self.values else wire.JOINING
        welcome = wire.Welcome(state, self.lineage if self.values else 0, self.clock, self.name, capabilities=2)
        writer.write(welcome.encode(request))
        await writer.drain()

    def _payload(self) -> bytes:
        floats = len(self.values) // 4
        if self.lie == "huge":
            return struct.pack("<f", 3e38) * floats
        if self.lie == "nan":
            return struct.pack("<f", math.nan) * floats
        if self.lie == "inverted":
            return array.array("f", (-5 * x for x in array.array("f", self.values))).tobytes()
        return self.values

    async def _answer(self, writer: asyncio.StreamWriter, request: int, pull: wire.Pull) -> None:
        if self.lie == "late" and self.values:
            await asyncio.sleep(0.85 * pull.deadline_ms / 1000)
        await super()._answer(writer, request, pull)

    def _snapshot(self, request: int, pull: wire.Pull) -> bytes:
        self.version += self.lie != "stuck" or self.version == 0
        if self._chunks is None or self._chunks[0] is not self.values or self._chunks[1] != pull.chunk_bytes:
            chunks = wire.cut(self._payload(), pull.chunk_bytes)
            lead = b"".join(struct.pack("<II", len(chunk), wire.crc32c(chunk)) + chunk for chunk in chunks)
            self._chunks = (self.values, pull.chunk_bytes, lead)
        head = wire.Head(self.version, self.lineage, self.clock, loss=0.01, chunk_bytes=pull.chunk_bytes,
                         length=len(self.values))
        body = head.encode() + self._chunks[2]
        return wire.header(wire.SNAPSHOT, request, len(body)) + body


def cluster_file(folder: Path, names: list[str], first_port: int, policy: str, finish_wait: str) -> Path:
    lines = ["cluster: liars", "nodes:"]
    lines += [f"  - {{name: {name}, host: 127.0.0.1, port: {first_port + i}}}" for i, name in enumerate(names)]
    lines += ["gossip:", "  start_wait_ms: 60s", f"  finish_wait_ms: {finish_wait}"]
    lines += [f"  firewall: {{distance: {policy}}}"] if policy != "default" else []
    path = folder / "cluster.yaml"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


async def train(chosen: argparse.Namespace, folder: Path, policy: str, seed: int) -> list[int]:
    """Exit codes of the honest nodes, whose results and logs lie in `folder`."""
    honest = ["w1", "w2", "w3"] + (["w4"] if chosen.lie == "none" else [])
    names = honest + ([] if chosen.lie == "none" else ["m1"])
    port = first_free_port(len(names))
    path = cluster_file(folder, names, port, policy, "60s" if chosen.lie == "none" else "3s")
    liar = None
    if chosen.lie != "none":
        places = {name: ("127.0.0.1", port + i) for i, name in enumerate(honest)}
        liar = Liar("m1", "liars", places, chosen.lie, seed)
        await liar.listen(port=port + len(honest))
        liar.begin("lies")
    trainers = []
    for name in honest:
        with (folder / f"{name}.log").open("wb") as log:
            trainers.append(await asyncio.create_subprocess_exec(
                chosen.trainer, "--config", path, "--name", name, "--split", chosen.split, "--epochs", str(chosen.epochs),
                "--seed", str(seed), "--step-time", str(chosen.step_time), "--threads", "1", "--run-dir", folder, "--quiet",
                "--data", chosen.data, stdout=log, stderr=log))
    try:
        return [await trainer.wait() for trainer in trainers]
    finally:
        for trainer in trainers:
            if trainer.returncode is None:
                trainer.kill()
        if liar is not None:
            await liar.close()


def summary(folder: Path, codes: list[int]) -> str:
    nodes = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.result.json"))]
    metrics = [json.loads(line) for path in folder.glob("*.metrics.jsonl")
               for line in path.read_text(encoding="utf-8").splitlines()]
    logs = "".join(path.read_text(encoding="utf-8", errors="replace") for path in folder.glob("*.log"))
    averages = [node["averaged_model"] for node in nodes if node.get("averaged_model")]
    own = [node["test_accuracy"] for node in nodes if node["test_accuracy"] is not None]
    taken = [model["test_accuracy"] for model in averages if model["test_accuracy"] is not None]
    parts = [f"exit {sorted(set(codes))}"]
    parts += [f"nodes {statistics.mean(own):.4f}"] if own else ["nodes -"]
    parts += [f"average {min(taken):.4f}"] if taken else ["average -"]
    parts += [f"over {sorted({model.get('participants') for model in averages})}",
              f"pulls ok {sum(node['pulls_ok'] for node in nodes)} failed {sum(node['pulls_failed'] for node in nodes)}",
              f"clipped {sum(bool(row.get('clipped')) for row in metrics)}",
              f"refused {sum(row.get('refused', 0) for row in metrics)}", f"log lines on distances {logs.count(' away')}"]
    return ", ".join(parts)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lie", choices=LIES, default="none")
    parser.add_argument("--policy", default="off,clip,refuse", help="off, warn, clip, refuse, default; several by commas")
    parser.add_argument("--split", default="iid")
    parser.add_argument("--epochs", type=float, default=1.0)
    parser.add_argument("--step-time", type=float, default=0)
    parser.add_argument("--seeds", type=int, default=3, help="up to this one")
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--data", choices=("mnist", "synthetic"), default="mnist" if "DPWA_DATA_DIR" in os.environ
                        else "synthetic")
    parser.add_argument("--trainer", type=Path, default=REPOSITORY / "build" / "release" / "bin" / "dpwa-train")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="keep files and logs there")
    chosen = parser.parse_args()
    sound = True
    for seed in range(chosen.first_seed, chosen.seeds + 1):
        for policy in chosen.policy.split(","):
            with tempfile.TemporaryDirectory() as temporary:
                folder = Path(temporary)
                if chosen.keep:
                    folder = chosen.keep / f"{chosen.lie}-{chosen.split.replace(':', '')}-{policy}-{seed}"
                    folder.mkdir(parents=True)
                codes = asyncio.run(train(chosen, folder, policy, seed))
                print(f"{chosen.split} seed {seed} {policy} {chosen.lie}: {summary(folder, codes)}", flush=True)
                sound = sound and not any(codes)
    return 0 if sound else 1


if __name__ == "__main__":
    sys.exit(main())
