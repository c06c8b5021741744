#!/usr/bin/env python3
"""dpwa-train under srun, in a Slurm of its own: munged, slurmctld and two slurmd on this machine.

usage: slurm_test.py DPWA_TRAIN

Prints a line that ctest takes for a skipped test where Slurm is not installed, or cannot be started here.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))

from growth import Growth  # noqa: E402
from lib.ports import free_ports  # noqa: E402

PROGRAMS = ("srun", "sinfo", "slurmctld", "slurmd", "munged")
PATIENCE_S = 120
TRAIN = ""


class Slurm:
    """A controller and two nodes, one with a host name of its own, without accounts or cgroups."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.daemons: list[subprocess.Popen[bytes]] = []
        self.environment = {**os.environ, "SLURM_CONF": str(folder / "slurm.conf")}

    def begin(self) -> None:
        folder = self.folder
        nodes = [socket.gethostname(), f"{socket.gethostname()}-2"]
        controller, *ports = free_ports(3)
        key = folder / "munge.key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o400)
        for name in ("state", "spool"):
            (folder / name).mkdir()
        lines = [
            "ClusterName=test", "SlurmctldHost=localhost", f"SlurmctldPort={controller}", "SlurmUser=root",
            "SlurmdUser=root", "AuthType=auth/munge", f"AuthInfo=socket={folder}/munge.sock",
            "ProctrackType=proctrack/linuxproc", "TaskPlugin=task/none", "MpiDefault=none", "ReturnToService=2",
            "SchedulerType=sched/backfill", "SelectType=select/cons_tres", "SelectTypeParameters=CR_CPU",
            "SlurmdParameters=config_overrides", f"StateSaveLocation={folder}/state",
            f"SlurmdSpoolDir={folder}/spool/%n",
            f"SlurmctldPidFile={folder}/ctld.pid", f"SlurmdPidFile={folder}/%n.pid",
            f"SlurmctldLogFile={folder}/ctld.log", f"SlurmdLogFile={folder}/%n.log",
            "JobCompType=jobcomp/none", "AccountingStorageType=accounting_storage/none",
            "PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP",
        ]
        for node, port in zip(nodes, ports):
            lines.append(f"NodeName={node} NodeAddr=127.0.0.1 Port={port} CPUs=8 State=UNKNOWN")
        (folder / "slurm.conf").write_text("\n".join(lines) + "\n", encoding="utf-8")
        self.start("munged", "--foreground", "--force", f"--socket={folder}/munge.sock", f"--key-file={key}",
                   f"--pid-file={folder}/munge.pid", f"--seed-file={folder}/munge.seed", f"--log-file={folder}/munge.log")
        self.wait_until((folder / "munge.sock").exists)
        self.start("slurmctld", "-D", "-f", str(folder / "slurm.conf"))
        for node in nodes:
            # slurmd knows its node by the name of its host: the second one gets a name of its own.
            self.start("unshare", "--uts", "sh", "-c", 'hostname "$1" && exec slurmd -D -f "$2"', "sh", node,
                       str(folder / "slurm.conf"))
        self.wait_until(self.is_idle)

    def start(self, *command: str) -> None:
        with open(self.folder / "daemons.log", "ab") as log:
            self.daemons.append(subprocess.Popen(command, stdout=log, stderr=log, env=self.environment))

    def wait_until(self, condition) -> None:
        end = time.monotonic() + 60
        while not condition():
            if time.monotonic() > end or any(daemon.poll() is not None for daemon in self.daemons):
                raise RuntimeError((self.folder / "daemons.log").read_text(encoding="utf-8", errors="replace")[-2000:])
            time.sleep(0.2)

    def is_idle(self) -> bool:
        command = ["sinfo", "-h", "-o", "%D %T"]
        found = subprocess.run(command, env=self.environment, capture_output=True, text=True, check=False)
        return found.stdout.split() == ["2", "idle"]

    def srun(self, *words: str) -> subprocess.Popen[str]:
        pipe, both = subprocess.PIPE, subprocess.STDOUT
        return subprocess.Popen(["srun", *words], env=self.environment, text=True, stdout=pipe, stderr=both)

    def stop(self) -> None:
        for daemon in reversed(self.daemons):
            daemon.send_signal(signal.SIGTERM)
        for daemon in self.daemons:
            try:
                daemon.wait(20)
            except subprocess.TimeoutExpired:
                daemon.kill()


class Launched(unittest.TestCase):
    slurm: Slurm

    def train(self, folder: Path, backend: str, *flags: str, more: tuple[str, ...] = ()) -> subprocess.Popen[str]:
        (folder / "cluster.yaml").write_text(f"backend: {backend}\n", encoding="utf-8")
        options = ["--config", str(folder / "cluster.yaml"), "--run-dir", str(folder / "run"), "--data", "synthetic"]
        return self.slurm.srun(*flags, TRAIN, *options, "--threads", "1", "--quiet", *(more or ("--steps", "60")))

    def ended(self, process: subprocess.Popen[str]) -> tuple[str, int]:
        """Its output and exit code; ended here where it does not by itself."""
        try:
            output, _ = process.communicate(timeout=PATIENCE_S)
        except subprocess.TimeoutExpired:
            process.terminate()
            output, _ = process.communicate()
            self.fail("srun did not end: " + output)
        return output, process.returncode

    def results(self, folder: Path, *ranks: int) -> list[dict]:
        files = [folder / "run" / f"rank{rank}.result.json" for rank in ranks]
        return [json.loads(file.read_text(encoding="utf-8")) for file in files]

    def test_srun_starts_the_nodes_on_one_host_and_on_two(self) -> None:
        for backend in ("gossip", "collective"):
            for flags in (("-N1", "-n3"), ("-N2", "-n3")):
                with self.subTest(backend=backend, flags=flags), tempfile.TemporaryDirectory() as name:
                    process = self.train(Path(name), backend, *flags)
                    output, code = self.ended(process)
                    self.assertEqual(code, 0, output)
                    losses = {result["averaged_model"]["test_loss"] for result in self.results(Path(name), 0, 1, 2)}
                    self.assertEqual(len(losses), 1, output)

    def test_a_script_s_rank_that_contradicts_slurm_is_refused(self) -> None:
        with tempfile.TemporaryDirectory() as name:
            process = self.train(Path(name), "gossip", "-n2", "--export=ALL,RANK=2,WORLD_SIZE=3")
            output, code = self.ended(process)
            self.assertEqual(code, 2)
            self.assertEqual(output.count("environment: RANK: 2 contradicts Slurm, "), 2, output)

    def test_survivors_of_a_killed_rank_train_to_their_end(self) -> None:
        with tempfile.TemporaryDirectory() as name:
            process = self.train(Path(name), "gossip", "-N1", "-n3", more=("--steps", "400", "--step-time", "10"))
            metrics = Path(name, "run", "rank1.metrics.jsonl")
            self.slurm.wait_until(lambda: metrics.exists() and metrics.read_text(encoding="utf-8").count("\n") > 20)
            os.kill(self.process_of_rank(Path(name), 1), signal.SIGKILL)
            output, code = self.ended(process)
            self.assertEqual(code, 137, output)
            results = self.results(Path(name), 0, 2)
            self.assertEqual([result["steps"] for result in results], [400, 400])
            self.assertEqual([result["averaged_model"]["participants"] for result in results], [2, 2])

    def test_a_notice_of_preemption_is_a_checkpoint_and_no_failure(self) -> None:
        with tempfile.TemporaryDirectory() as name:
            points = Path(name, "points")
            points.mkdir()
            process = self.train(Path(name), "gossip", "-N2", "-n3", more=(
                "--steps", "1000000", "--step-time", "10", "--checkpoint", str(points)))
            for rank in range(3):
                metrics = Path(name, "run", f"rank{rank}.metrics.jsonl")
                self.slurm.wait_until(lambda m=metrics: m.exists() and m.read_text(encoding="utf-8").count("\n") > 20)
            environment = self.slurm.environment
            job = subprocess.run(["squeue", "-h", "-o", "%A"], env=environment, capture_output=True, text=True, check=True)
            subprocess.run(["scancel", "--signal=USR2", job.stdout.strip()], env=environment, check=True)
            output, code = self.ended(process)
            self.assertEqual(code, 0, output)
            for rank, result in enumerate(self.results(Path(name), 0, 1, 2)):
                self.assertTrue(result["preempted"])
                self.assertTrue((points / f"rank{rank}.{result['steps']}.ckpt").exists())

    def test_a_second_step_joins_the_nodes_of_the_first(self) -> None:
        def command(count: int) -> list[str]:
            return ["srun", "-N1", f"-n{count}", "--kill-on-bad-exit=0"]
        Growth(TRAIN, command, self.slurm.environment).run()

    def process_of_rank(self, folder: Path, rank: int) -> int:
        for entry in Path("/proc").glob("[0-9]*"):
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
                variables = (entry / "environ").read_bytes().split(b"\0")
            except OSError:
                continue
            if words[0] == TRAIN.encode() and str(folder / "cluster.yaml").encode() in words:
                if f"SLURM_PROCID={rank}".encode() in variables:
                    return int(entry.name)
        raise AssertionError(f"rank {rank} does not run")


def main() -> None:
    global TRAIN
    TRAIN = sys.argv.pop(1)
    missing = [program for program in PROGRAMS if shutil.which(program) is None]
    if missing or os.geteuid() != 0:
        print(f"SKIPPED: {', '.join(missing) + ' not installed' if missing else 'Slurm of its own needs root'}")
        return
    with tempfile.TemporaryDirectory(prefix="dpwa-slurm-") as name:
        Launched.slurm = Slurm(Path(name))
        try:
            try:
                Launched.slurm.begin()
            except (OSError, RuntimeError) as error:
                print(f"SKIPPED: no Slurm of its own can be started here: {error}")
                return
            program = unittest.main(exit=False)
        finally:
            Launched.slurm.stop()
    sys.exit(not program.result.wasSuccessful())


if __name__ == "__main__":
    main()
