"""A gossip run that grows from two processes to eight and shrinks to three, by two starts of a launcher."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))

from lib.ports import first_free_port  # noqa: E402

PATIENCE_S = 120
RANKS = ("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID")


class Growth:
    """`command(count)` starts that many processes of what follows it."""

    def __init__(self, train: str, command, environment: dict[str, str]) -> None:
        self.train = train
        self.command = command
        self.environment = environment
        self.folder = Path()
        self.launchers: list[subprocess.Popen[bytes]] = []

    def start(self, name: str, count: int, port: int) -> None:
        options = ["--config", str(self.folder / "cluster.yaml"), "--name", f"{name}-%r", "--run-dir", str(self.folder),
                   "--checkpoint", str(self.folder), "--data", "synthetic", "--steps", "1000000", "--step-time", "20",
                   "--threads", "1", "--quiet"]
        environment = {**self.environment, "DPWA_PORT": str(port)}
        with (self.folder / f"{name}.log").open("wb") as log:
            self.launchers.append(subprocess.Popen([*self.command(count), self.train, *options], env=environment,
                                                   stdin=subprocess.DEVNULL, stdout=log, stderr=log))

    def processes(self) -> dict[str, int]:
        """By name; its rank fills in the name, so that the variables of the launcher tell who is who."""
        found = {}
        for entry in Path("/proc").glob("[0-9]*"):
            try:
                words, lines = ((entry / file).read_bytes().decode(errors="replace").split("\0")
                                for file in ("cmdline", "environ"))
            except OSError:
                continue
            variables = dict(line.split("=", 1) for line in lines if "=" in line)
            ranks = [variables[key] for key in RANKS if key in variables]
            if words[0] == self.train and str(self.folder) in words and ranks:
                found[words[words.index("--name") + 1].replace("%r", ranks[0])] = int(entry.name)
        return found

    def peers(self, name: str, after: int = 0) -> set[str]:
        """With which the node has blended, after so many steps, or, where negative, in the last ones."""
        file = self.folder / f"{name}.metrics.jsonl"
        lines = file.read_text(encoding="utf-8").splitlines()[after:] if file.exists() else []
        steps = (json.loads(line) for line in lines if line.endswith("}"))
        return {step["peer"] for step in steps if step.get("outcome") == "mixed"}

    def until(self, what: str, holds) -> None:
        end = time.monotonic() + PATIENCE_S
        while not holds():
            ended = [launcher.poll() for launcher in self.launchers]
            if time.monotonic() > end or any(code is not None for code in ended):
                logs = "".join(file.read_text(encoding="utf-8", errors="replace") for file in self.folder.glob("*.log"))
                raise AssertionError(f"not in time, or ended ({ended}): {what}\n{logs}")
            time.sleep(0.1)

    def notice(self, names: list[str]) -> None:
        running = self.processes()
        for name in names:
            os.kill(running[name], signal.SIGUSR2)

    def run(self) -> None:
        with tempfile.TemporaryDirectory(prefix="dpwa-growth-") as folder:
            self.folder = Path(folder)
            port = first_free_port(8)
            seeds = f"127.0.0.1:{port}, 127.0.0.1:{port + 1}"
            (self.folder / "cluster.yaml").write_text(f"backend: gossip\nseeds: [{seeds}]\n", encoding="utf-8")
            try:
                self._grow_and_shrink(port)
            finally:
                for launcher in self.launchers:
                    if launcher.poll() is None:
                        launcher.terminate()
                        launcher.wait(PATIENCE_S)

    def _grow_and_shrink(self, port: int) -> None:
        self.start("first", 2, port)
        self.until("two train together", lambda: self.peers("first-0") and self.peers("first-1"))
        before = self.processes()
        self.start("more", 6, port + 2)
        more = [f"more-{rank}" for rank in range(6)]
        self.until("all eight train together",
                   lambda: all(self.peers(name) for name in more) and len(self.peers("first-0")) > 3)
        self.notice(more[:5])
        for name in more[:5]:
            result = self.folder / f"{name}.result.json"
            self.until(f"{name} ends", lambda n=name: n not in self.processes())
            written = json.loads(result.read_text(encoding="utf-8"))
            assert written["preempted"], written
            assert (self.folder / f"{name}.{written['steps']}.ckpt").exists(), name
        self.until("three go on", lambda: self.peers("first-0", -30) == {"first-1", "more-5"})
        running = self.processes()
        assert {name: running[name] for name in before} == before, (before, running)
        self.notice(list(running))
        for launcher in self.launchers:
            assert launcher.wait(PATIENCE_S) == 0, launcher.args
