#!/usr/bin/env python3
"""dpwa-train as the pods of a Job: processes with their own network, host name, process numbers and files.

usage: pods_test.py DPWA_TRAIN

A stand-in for Kubernetes: each pod is the first process of its namespaces, runs as a user of its own without
capabilities, reads the cluster's key as a Secret of its group, and finds the others by a name that has the addresses of
all pods. Pods are killed and replaced at another address. Prints a line that ctest takes for a skipped test where
namespaces cannot be made.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

PATIENCE_S = 120
USER = "10001"
TRAIN = ""
PREFIX = f"dpwa{os.getpid()}"


def run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)


def as_user(*command: str) -> list[str]:
    return ["setpriv", f"--reuid={USER}", f"--regid={USER}", f"--groups={USER}", "--bounding-set=-all",
            "--inh-caps=-all", "--no-new-privs", *command]


class Pod:
    """One process that a Job has started, and its folder."""

    def __init__(self, job: Job, index: int, address: str) -> None:
        self.name = f"train-{index}"
        self.address = address
        self.log = job.folder / f"{self.name}.{address}.log"
        self.network = f"{PREFIX}-{address.rsplit('.', 1)[1]}"
        run("ip", "netns", "add", self.network)
        cable = f"v{address.rsplit('.', 1)[1]}"
        run("ip", "-n", job.network, "link", "add", cable, "type", "veth", "peer", "name", "eth0", "netns", self.network)
        run("ip", "-n", job.network, "link", "set", cable, "master", "bridge", "up")
        run("ip", "-n", self.network, "link", "set", "lo", "up")
        run("ip", "-n", self.network, "address", "add", f"{address}/24", "dev", "eth0")
        run("ip", "-n", self.network, "link", "set", "eth0", "up")
        mounts = " && ".join([
            f"hostname {self.name}", f"mount --bind {job.hosts} /etc/hosts", "mount -t proc proc /proc",
            f"mount -t tmpfs secret {job.secret}", f"cp {job.key} {job.secret}/cluster.key",
            f"chgrp {USER} {job.secret}/cluster.key", f"chmod 0440 {job.secret}/cluster.key",
            f"mount -o remount,ro {job.secret}"])
        trainer = as_user(TRAIN, "--config", str(job.file), "--data", "synthetic", "--steps", "1000000", "--step-time",
                          "20", "--threads", "1", "--quiet", "--run-dir", str(job.runs), "--checkpoint",
                          str(job.runs))
        environment = {**os.environ, "JOB_COMPLETION_INDEX": str(index), "WORLD_SIZE": "8", "DPWA_HOST": address,
                       "DPWA_GRACE_S": "30", "KUBERNETES_SERVICE_HOST": "10.96.0.1", "HOME": "/tmp"}
        with self.log.open("wb") as log:
            self.engine = subprocess.Popen(
                ["ip", "netns", "exec", self.network, "unshare", "--uts", "--mount", "--pid", "--fork", "--kill-child",
                 "sh", "-c", f"{mounts} && exec \"$@\"", "sh", *trainer],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment)

    def first_process(self) -> int:
        """The number that the first process of the pod has outside."""
        children = Path(f"/proc/{self.engine.pid}/task/{self.engine.pid}/children").read_text(encoding="ascii").split()
        return int(children[0])

    def signal(self, number: int) -> None:
        os.kill(self.first_process(), number)

    def said(self, words: str) -> bool:
        return words in self.log.read_text(encoding="utf-8", errors="replace")

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
    """Starts and replaces pods, and keeps the addresses of those that there are under the name of the service."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.chmod(0o755)
        self.runs = folder / "runs"
        self.runs.mkdir()
        self.runs.chmod(0o777)
        self.hosts = folder / "hosts"
        self.secret = folder / "secret"
        self.secret.mkdir()
        self.key = folder / "cluster.key"
        self.key.write_text("ab" * 32 + "\n", encoding="ascii")
        self.file = folder / "cluster.yaml"
        self.file.write_text(f"backend: gossip\nseeds: [train]\nsecurity: {{mode: psk, key_file: {self.secret}/cluster.key}}\n",
                             encoding="utf-8")
        self.pods: dict[int, Pod] = {}
        self.addresses = 1
        self.network = f"{PREFIX}-hub"
        run("ip", "netns", "add", self.network)
        run("ip", "-n", self.network, "link", "add", "bridge", "type", "bridge")
        run("ip", "-n", self.network, "link", "set", "bridge", "up")

    def start(self, index: int) -> Pod:
        self.addresses += 1
        old = self.pods.pop(index, None)
        if old is not None:
            old.remove()
        address = f"10.77.0.{self.addresses}"
        there = [pod.address for pod in self.pods.values()] + [address]
        self.hosts.write_text("127.0.0.1 localhost\n" + "".join(f"{each} train\n" for each in there), encoding="ascii")
        self.pods[index] = Pod(self, index, address)
        return self.pods[index]

    def steps(self, index: int) -> list[dict]:
        file = self.runs / f"train-{index}.metrics.jsonl"
        if not file.exists():
            return []
        return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines() if line.endswith("}")]

    def end(self) -> None:
        for pod in self.pods.values():
            pod.remove()
        subprocess.run(["ip", "netns", "delete", self.network], check=False, capture_output=True)


class Pods(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory(prefix="dpwa-pods-", dir="/tmp")
        self.addCleanup(folder.cleanup)
        self.job = Job(Path(folder.name))
        self.addCleanup(self.job.end)

    def until(self, what: str, holds) -> None:
        end = time.monotonic() + PATIENCE_S
        while not holds():
            logs = "".join(pod.log.read_text(encoding="utf-8", errors="replace") for pod in self.job.pods.values())
            ended = [pod.name for pod in self.job.pods.values() if pod.engine.poll() is not None]
            self.assertLess(time.monotonic(), end, f"not in time: {what}\n{logs}")
            self.assertEqual(ended, [], f"ended before {what}:\n{logs}")
            time.sleep(0.1)

    def blends(self, index: int, peer: int, after: int = 0) -> bool:
        return any(line.get("peer") == f"train-{peer}" and line.get("outcome") == "mixed"
                   for line in self.job.steps(index)[after:])

    def test_two_pods_become_eight_and_three_and_none_is_started_again(self) -> None:
        job = self.job
        first = job.start(0)
        job.start(1)
        self.until("two pods train together", lambda: self.blends(0, 1) and self.blends(1, 0))
        process = first.first_process()
        for index in range(2, 8):
            job.start(index)
        for index in range(2, 8):
            pod = job.pods[index]
            self.until(f"{pod.name} joins", lambda p=pod: p.said("took over the weights"))
        self.until("the first one blends with those that joined",
                   lambda: sum(self.blends(0, peer) for peer in range(2, 8)) >= 3)
        leaving = {index: job.pods.pop(index) for index in (1, 3, 4, 5, 6)}
        for pod in leaving.values():
            self.addCleanup(pod.remove)
            pod.signal(signal.SIGUSR2)
        for index, pod in leaving.items():
            self.assertEqual(pod.engine.wait(PATIENCE_S), 143, pod.log.read_text(encoding="utf-8"))
            result = json.loads((job.runs / f"train-{index}.result.json").read_text(encoding="utf-8"))
            self.assertTrue(result["preempted"])
            self.assertTrue((job.runs / f"train-{index}.{result['steps']}.ckpt").exists())
        steps = len(job.steps(0))
        self.until("three go on", lambda: self.blends(0, 2, steps) and self.blends(0, 7, steps))
        self.assertEqual(first.first_process(), process)

    def test_a_killed_pod_is_replaced_at_another_address(self) -> None:
        job = self.job
        first, second = job.start(0), job.start(1)
        self.until("two pods train together", lambda: self.blends(0, 1) and self.blends(1, 0))
        second.signal(signal.SIGKILL)
        second.engine.wait(PATIENCE_S)
        steps = len(job.steps(0))
        again = job.start(1)
        self.until("the other one takes up the new one",
                   lambda: again.said("took over the weights") and self.blends(0, 1, steps))

        first.signal(signal.SIGTERM)
        first.signal(signal.SIGTERM)
        self.assertEqual(first.engine.wait(PATIENCE_S), 143, first.log.read_text(encoding="utf-8"))
        result = json.loads((job.runs / "train-0.result.json").read_text(encoding="utf-8"))
        self.assertEqual((result["interrupted"], result["preempted"]), (True, False))
        self.assertTrue((job.runs / f"train-0.{result['steps']}.ckpt").exists())
        self.assertIsNone(again.engine.poll())


def obstacle() -> str:
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
    if subprocess.run(as_user(TRAIN, "--version"), check=False, capture_output=True).returncode != 0:
        return f"another user cannot run {TRAIN}"
    return ""


if __name__ == "__main__":
    TRAIN = sys.argv.pop(1)
    if why := obstacle():
        print(f"SKIPPED: {why}")
        sys.exit(0)
    unittest.main(verbosity=2)
