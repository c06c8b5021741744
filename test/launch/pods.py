"""Pods for tests: processes with their own network, host name, process numbers and files, as Kubernetes makes them.

Each pod is the first process of its namespaces, runs as a user of its own without capabilities, reads the cluster's key
as a Secret of its group, and finds the others by the service's name, which has the addresses of all pods, or by theirs.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

PATIENCE_S = 120
USER = "10001"
PREFIX = f"dpwa{os.getpid()}"
DOCKERFILE = Path(__file__).parents[2] / "samples/docker/Dockerfile"
# What starts the program in the images.
STARTER = json.loads(re.findall("^ENTRYPOINT (.*)", DOCKERFILE.read_text(encoding="utf-8"), re.MULTILINE)[-1])[:-1]


def run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)


def as_user(*command: str) -> list[str]:
    return ["setpriv", f"--reuid={USER}", f"--regid={USER}", f"--groups={USER}", "--bounding-set=-all",
            "--inh-caps=-all", "--no-new-privs", *command]


class Pod:
    """One process that a Job has started, and its folder."""

    def __init__(self, job: Job, name: str, address: str, command: list[str], variables: dict[str, str]) -> None:
        self.name = name
        self.address = address
        self.log = job.folder / f"{name}.{address}.log"
        self.network = f"{PREFIX}-{address.rsplit('.', 1)[1]}"
        run("ip", "netns", "add", self.network)
        cable = f"v{address.rsplit('.', 1)[1]}"
        ends = "type", "veth", "peer", "name", "eth0", "netns", self.network
        run("ip", "-n", job.network, "link", "add", cable, *ends)
        run("ip", "-n", job.network, "link", "set", cable, "master", "bridge", "up")
        run("ip", "-n", self.network, "link", "set", "lo", "up")
        run("ip", "-n", self.network, "address", "add", f"{address}/24", "dev", "eth0")
        run("ip", "-n", self.network, "link", "set", "eth0", "up")
        mounts = " && ".join([
            f"hostname {name}", f"mount --bind {job.hosts} /etc/hosts", "mount -t proc proc /proc",
            f"mount -t tmpfs secret {job.secret}", f"cp {job.key} {job.secret}/cluster.key",
            f"chgrp {USER} {job.secret}/cluster.key", f"chmod 0440 {job.secret}/cluster.key",
            f"mount -o remount,ro {job.secret}"])
        environment = {**os.environ, "DPWA_HOST": address, "DPWA_GRACE_S": "30",
                       "KUBERNETES_SERVICE_HOST": "10.96.0.1", "HOME": "/tmp", **variables}
        with self.log.open("wb") as log:
            self.engine = subprocess.Popen(
                ["ip", "netns", "exec", self.network, "unshare", "--uts", "--mount", "--pid", "--fork", "--kill-child",
                 "sh", "-c", f"{mounts} && exec \"$@\"", "sh", *as_user(*STARTER, *command)],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment)

    def first_process(self) -> int:
        """The number that the first process of the pod has outside."""
        children = Path(f"/proc/{self.engine.pid}/task/{self.engine.pid}/children").read_text(encoding="ascii").split()
        return int(children[0])

    def signal(self, number: int) -> None:
        os.kill(self.first_process(), number)

    def text(self) -> str:
        return self.log.read_text(encoding="utf-8", errors="replace")

    def said(self, words: str) -> bool:
        return words in self.text()

    def remove(self) -> None:
        # With the first process all others of the pod end, and so does the one outside that waits for it.
        if self.engine.poll() is None:
            try:
                self.signal(signal.SIGKILL)
            except (OSError, IndexError):  # it has just ended, or not begun
                self.engine.kill()
            self.engine.wait()
        subprocess.run(["ip", "netns", "delete", self.network], check=False, capture_output=True)


class Job:
    """Starts and replaces pods, and keeps the addresses of those that there are under their names."""

    def __init__(self, folder: Path, train: Path, settings: str) -> None:
        self.folder = folder
        self.train_program = train
        folder.chmod(0o755)
        self.runs = folder / "runs"
        self.runs.mkdir()
        self.runs.chmod(0o777)
        self.hosts = folder / "hosts"
        self.hosts.touch()
        self.secret = folder / "secret"
        self.secret.mkdir()
        self.key = folder / "cluster.key"
        self.key.write_text("ab" * 32 + "\n", encoding="ascii")
        self.file = folder / "cluster.yaml"
        security = f"security: {{mode: psk, key_file: {self.secret}/cluster.key}}"
        self.file.write_text(f"{settings}\n{security}\n", encoding="utf-8")
        self.pods: dict[str, Pod] = {}
        self.addresses = 1
        self.network = f"{PREFIX}-hub"
        run("ip", "netns", "add", self.network)
        run("ip", "-n", self.network, "link", "add", "bridge", "type", "bridge")
        run("ip", "-n", self.network, "link", "set", "bridge", "up")

    def start(self, name: str, command: list[str], variables: dict[str, str]) -> Pod:
        self.addresses += 1
        old = self.pods.pop(name, None)
        if old is not None:
            old.remove()
        address = f"10.77.0.{self.addresses}"
        there = {each.name: each.address for each in self.pods.values()} | {name: address}
        lines = "127.0.0.1 localhost\n" + "".join(f"{at} train {each}.train\n" for each, at in there.items())
        with self.hosts.open("r+b") as file:  # never empty: pods read it at any time
            file.write(lines.encode())
            file.truncate()
        self.pods[name] = Pod(self, name, address, command, variables)
        return self.pods[name]

    def train(self, index: int, variables: dict[str, str] | None = None) -> Pod:
        """A pod of an Indexed Job, or with other variables."""
        command = [str(self.train_program), "--config", str(self.file), "--data", "synthetic", "--steps", "1000000",
                   "--step-time", "20", "--threads", "1", "--quiet", "--run-dir", str(self.runs), "--checkpoint",
                   str(self.runs)]
        indexed = {"JOB_COMPLETION_INDEX": str(index), "WORLD_SIZE": "8"}
        return self.start(f"train-{index}", command, indexed if variables is None else variables)

    def member(self, index: int) -> Pod:
        """A pod of a StatefulSet, which the file lists by its name."""
        return self.train(index, {"DPWA_NAME": f"train-{index}"})

    def server(self, index: int) -> Pod:
        name = f"server-{index}"
        program = self.train_program.parent / "dpwa"
        return self.start(name, [str(program), "kvserver", "--config", str(self.file), "--name", name], {})

    def kill(self, name: str) -> None:
        pod = self.pods.pop(name)
        pod.remove()

    def status(self) -> dict[str, dict]:
        """By name, what `dpwa status` shows in the first pod: of servers, and of nodes the part of the back end."""
        pod = next(iter(self.pods.values()))
        ask = as_user(str(self.train_program.parent / "dpwa"), "status", str(self.file), "--json")
        found = subprocess.run(["nsenter", f"--target={pod.first_process()}", "--net", "--mount", "--uts", *ask],
                               check=False, capture_output=True, text=True)
        if found.returncode != 0:
            raise AssertionError(found.stderr)
        document = json.loads(found.stdout)
        parts = {node["name"]: node.get("status", {}) for node in document["nodes"] + document.get("servers", [])}
        return {name: part.get("kvstore") or part for name, part in parts.items()}

    def steps(self, index: int) -> list[dict]:
        file = self.runs / f"train-{index}.metrics.jsonl"
        if not file.exists():
            return []
        return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines() if line.endswith("}")]

    def end(self) -> None:
        for pod in self.pods.values():
            pod.remove()
        subprocess.run(["ip", "netns", "delete", self.network], check=False, capture_output=True)


class PodTest(unittest.TestCase):
    train_program = Path()
    job: Job

    def begin(self, settings: str) -> Job:
        folder = tempfile.TemporaryDirectory(prefix="dpwa-pods-", dir="/tmp")
        self.addCleanup(folder.cleanup)
        self.job = Job(Path(folder.name), self.train_program, settings)
        self.addCleanup(self.job.end)
        return self.job

    def until(self, what: str, holds) -> None:
        end = time.monotonic() + PATIENCE_S
        while not holds():
            logs = "".join(f"--- {pod.name} {pod.address}\n{pod.text()}" for pod in self.job.pods.values())
            ended = [pod.name for pod in self.job.pods.values() if pod.engine.poll() is not None]
            self.assertLess(time.monotonic(), end, f"not in time: {what}\n{logs}")
            self.assertEqual(ended, [], f"ended before {what}:\n{logs}")
            time.sleep(0.1)


def obstacle(train: Path) -> str:
    """Why pods cannot be made here; empty: they can."""
    if os.geteuid() != 0:
        return "not root"
    missing = [program for program in ("ip", "unshare", "setpriv") if shutil.which(program) is None]
    if missing:
        return f"{missing[0]} is not installed"
    probe = subprocess.run(["unshare", "--net", "--uts", "--mount", "--pid", "--fork", "sh", "-c",
                            "mount -t tmpfs none /mnt && ip link add veth1 type veth peer name veth2"],
                           check=False, capture_output=True)
    if probe.returncode != 0:
        return "namespaces cannot be made here"
    if subprocess.run(as_user(str(train), "--version"), check=False, capture_output=True).returncode != 0:
        return f"another user cannot run {train}"
    return ""
