#!/usr/bin/env python3
"""dpwa-train under srun, in a Slurm of its own: munged, slurmctld, and two slurmd with networks of their own.

usage: slurm_test.py DPWA_TRAIN [TORCHRUN]

Prints a line that ctest takes for a skipped test where Slurm is not installed, or cannot be started here.
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

from growth import Growth

PROGRAMS = ("srun", "sinfo", "slurmctld", "slurmd", "munged", "ip", "unshare")
PATIENCE_S = 120
TRAIN = ""
TORCHRUN: str | None = None
SAMPLES = Path(__file__).resolve().parents[2] / "samples" / "slurm"
# The controller is in namespaces of this process, which has a bridge to those of the nodes.
OUTSIDE = ["unshare", "--net", "--mount", "--uts", "sh", "-c", "hostname ctl && exec \"$@\"", "sh"]
HOSTS = {"ctl": "10.88.0.1", "n1": "10.88.0.2", "n2": "10.88.0.3"}
NODE = """hostname "$1" && touch "$2" && { read _ || true; } && ip link set lo up && ip address add "$3/24" dev eth0 &&
ip link set eth0 up && exec slurmd -D -f "$4\""""


def run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)


class Slurm:
    """A controller and two nodes, each a host with a network of its own, without accounts or cgroups."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.daemons: list[subprocess.Popen[bytes]] = []
        programs = [str(Path(program).parent) for program in (TRAIN, TORCHRUN) if program]
        self.environment = {**os.environ, "SLURM_CONF": str(folder / "slurm.conf"),
                            "PATH": ":".join([*programs, os.environ["PATH"]])}

    def begin(self) -> None:
        folder = self.folder
        (folder / "hosts").write_text("127.0.0.1 localhost\n" + "".join(f"{at} {name}\n" for name, at in HOSTS.items()),
                                      encoding="ascii")
        run("mount", "--bind", str(folder / "hosts"), "/etc/hosts")
        run("ip", "link", "set", "lo", "up")
        run("ip", "link", "add", "bridge", "type", "bridge")
        run("ip", "address", "add", HOSTS["ctl"] + "/24", "dev", "bridge")
        run("ip", "link", "set", "bridge", "up")
        key = folder / "munge.key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o400)
        for name in ("state", "spool"):
            (folder / name).mkdir()
        lines = [
            "ClusterName=test", f"SlurmctldHost=ctl({HOSTS['ctl']})", "SlurmUser=root",
            "SlurmdUser=root", "AuthType=auth/munge", f"AuthInfo=socket={folder}/munge.sock",
            "ProctrackType=proctrack/linuxproc", "TaskPlugin=task/none", "MpiDefault=none", "ReturnToService=2",
            "SchedulerType=sched/backfill", "SelectType=select/cons_tres", "SelectTypeParameters=CR_CPU",
            "SlurmdParameters=config_overrides", f"StateSaveLocation={folder}/state",
            f"SlurmdSpoolDir={folder}/spool/%n",
            f"SlurmctldPidFile={folder}/ctld.pid", f"SlurmdPidFile={folder}/%n.pid",
            f"SlurmctldLogFile={folder}/ctld.log", f"SlurmdLogFile={folder}/%n.log",
            "JobCompType=jobcomp/none", "AccountingStorageType=accounting_storage/none",
            "PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP",
            *(f"NodeName={name} NodeAddr={at} CPUs=16 State=UNKNOWN" for name, at in HOSTS.items() if name != "ctl"),
        ]
        (folder / "slurm.conf").write_text("\n".join(lines) + "\n", encoding="utf-8")
        self.start("munged", "--foreground", "--force", f"--socket={folder}/munge.sock", f"--key-file={key}",
                   f"--pid-file={folder}/munge.pid", f"--seed-file={folder}/munge.seed",
                   f"--log-file={folder}/munge.log")
        self.wait_until((folder / "munge.sock").exists)
        self.start("slurmctld", "-D", "-f", str(folder / "slurm.conf"))
        for name in ("n1", "n2"):
            self.begin_node(name)
        self.wait_until(self.is_idle)

    def begin_node(self, name: str) -> None:
        there = self.folder / f"{name}.there"
        node = self.start("unshare", "--net", "--uts", "sh", "-c", NODE, "sh", name, str(there), HOSTS[name],
                          str(self.folder / "slurm.conf"))
        self.wait_until(there.exists)
        run("ip", "link", "add", name, "type", "veth", "peer", "name", "eth0", "netns", str(node.pid))
        run("ip", "link", "set", name, "master", "bridge", "up")
        assert node.stdin is not None
        node.stdin.close()  # ends its `read`

    def start(self, *command: str) -> subprocess.Popen[bytes]:
        with open(self.folder / "daemons.log", "ab") as log:
            self.daemons.append(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=log, stderr=log,
                                                 env=self.environment))
        return self.daemons[-1]

    def wait_until(self, condition, log: Path | None = None) -> None:
        end = time.monotonic() + PATIENCE_S
        while not condition():
            if time.monotonic() > end or any(daemon.poll() is not None for daemon in self.daemons):
                logs = [self.folder / "daemons.log", *([log] if log is not None and log.exists() else [])]
                raise RuntimeError("".join(file.read_text(encoding="utf-8", errors="replace")[-4000:] for file in logs))
            time.sleep(0.2)

    def is_idle(self) -> bool:
        return self.ask("sinfo", "-h", "-o", "%D %T", check=False).split() == ["2", "idle"]

    def ask(self, *words: str, check: bool = True) -> str:
        return subprocess.run(words, env=self.environment, stdout=subprocess.PIPE, text=True, check=check).stdout

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


def write_cluster(folder: Path, backend: str) -> None:
    key = folder / "cluster.key"
    key.write_text("ab" * 32 + "\n", encoding="ascii")
    key.chmod(0o600)
    (folder / "cluster.yaml").write_text(f"backend: {backend}\nsecurity: {{mode: psk, key_file: {key}}}\n",
                                         encoding="utf-8")


def lines_of(file: Path) -> int:
    return file.read_text(encoding="utf-8").count("\n") if file.exists() else 0


class Launched(unittest.TestCase):
    slurm: Slurm

    def train(self, folder: Path, backend: str, *flags: str, launcher: tuple[str, ...] = (),
              more: tuple[str, ...] = ()) -> subprocess.Popen[str]:
        write_cluster(folder, backend)
        options = ["--config", str(folder / "cluster.yaml"), "--run-dir", str(folder / "run"), "--data", "synthetic"]
        options += ["--threads", "1", "--quiet", *(more or ("--steps", "60"))]
        return self.slurm.srun(*flags, *launcher, TRAIN, *options)

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

    def test_torchrun_starts_the_nodes_on_two_hosts(self) -> None:
        if TORCHRUN is None:
            self.skipTest("torchrun is not installed")
        torchrun = (TORCHRUN, "--no-python", "--nnodes=2", "--nproc-per-node=2", "--rdzv-backend=c10d",
                    "--rdzv-endpoint=n1:29500", "--rdzv-id=test")
        for backend in ("gossip", "collective"):
            with self.subTest(backend=backend), tempfile.TemporaryDirectory() as name:
                process = self.train(Path(name), backend, "-N2", "--ntasks-per-node=1", launcher=torchrun)
                output, code = self.ended(process)
                self.assertEqual(code, 0, output)
                results = self.results(Path(name), 0, 1, 2, 3)
                self.assertEqual([each["averaged_model"]["participants"] for each in results], [4] * 4, output)
                self.assertEqual(len({each["averaged_model"]["test_loss"] for each in results}), 1, output)

    def test_the_samples_write_checkpoints_and_are_queued_again_after_a_notice(self) -> None:
        samples = {"train.sbatch": ("--ntasks-per-node=2", 4)}
        if TORCHRUN is not None:
            samples["torchrun.sbatch"] = ("--ntasks-per-node=1", 8)
        for sample, (flag, count) in samples.items():
            with self.subTest(sample=sample), tempfile.TemporaryDirectory() as name:
                self.preempt(Path(name), sample, flag, count)

    def preempt(self, folder: Path, sample: str, flag: str, count: int) -> None:
        """A job of the sample, on a run that lasts."""
        write_cluster(folder, "gossip")
        text = (SAMPLES / sample).read_text(encoding="utf-8")
        data = "--data synthetic --quiet"
        self.assertIn(data, text)
        (folder / sample).write_text(text.replace(data, data + " --steps 1000000 --step-time 50 --threads 1"),
                                     encoding="utf-8")
        job = self.slurm.ask("sbatch", "--parsable", "--cpus-per-task=1", flag, f"--chdir={folder}",
                             str(folder / sample)).strip()
        self.addCleanup(self.slurm.ask, "scancel", job)
        runs = folder / "runs" / job
        log = folder / f"dpwa-{job}.log"

        def train() -> bool:
            return all(lines_of(runs / f"rank{rank}.metrics.jsonl") > 5 for rank in range(count))

        def is_queued_again() -> bool:
            return "Restarts=1 " in self.slurm.ask("scontrol", "--oneliner", "show", "job", job)

        self.slurm.wait_until(train, log)
        self.slurm.ask("scancel", "--signal=USR2", job)
        self.slurm.wait_until(is_queued_again, log)
        for rank in range(count):
            result = json.loads((runs / f"rank{rank}.result.json").read_text(encoding="utf-8"))
            self.assertTrue(result["preempted"])
            self.assertTrue((runs / "points" / f"rank{rank}.{result['steps']}.ckpt").exists())

    def test_a_job_of_a_sample_that_fails_is_not_queued_again(self) -> None:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            (folder / "cluster.yaml").write_text("backend: wrong\n", encoding="utf-8")
            job = self.slurm.ask("sbatch", "--parsable", "--cpus-per-task=1", "--ntasks-per-node=2",
                                 f"--chdir={folder}", str(SAMPLES / "train.sbatch")).strip()
            before = folder / "runs" / job / "rank0.result.json"  # as of an earlier start
            before.parent.mkdir(parents=True, exist_ok=True)
            before.write_text('{"preempted": true}', encoding="utf-8")
            os.utime(before, (0, 0))

            def has_failed() -> bool:
                return "JobState=FAILED" in self.slurm.ask("scontrol", "--oneliner", "show", "job", job)

            self.slurm.wait_until(has_failed, folder / f"dpwa-{job}.log")
            self.assertIn(" Restarts=0 ", self.slurm.ask("scontrol", "--oneliner", "show", "job", job))
            self.assertIn("ExitCode=2:0", self.slurm.ask("scontrol", "--oneliner", "show", "job", job))

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
            self.slurm.wait_until(lambda: lines_of(metrics) > 20)
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
                self.slurm.wait_until(lambda m=metrics: lines_of(m) > 20)
            job = self.slurm.ask("squeue", "-h", "-t", "R", "-o", "%A").strip()
            self.slurm.ask("scancel", "--signal=USR2", job)
            output, code = self.ended(process)
            self.assertEqual(code, 0, output)
            for rank, result in enumerate(self.results(Path(name), 0, 1, 2)):
                self.assertTrue(result["preempted"])
                self.assertTrue((points / f"rank{rank}.{result['steps']}.ckpt").exists())

    def test_a_second_step_joins_the_nodes_of_the_first(self) -> None:
        def command(count: int) -> list[str]:
            return ["srun", "-w", "n1", f"-n{count}", "--kill-on-bad-exit=0"]
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
    global TRAIN, TORCHRUN
    TRAIN, *more = sys.argv[1:]
    missing = [program for program in PROGRAMS if shutil.which(program) is None]
    if missing or subprocess.run([*OUTSIDE, "true"], check=False, capture_output=True).returncode != 0:
        print(f"SKIPPED: {', '.join(missing) + ' not installed' if missing else 'no namespaces can be made here'}")
        return
    if "outside" not in more:
        os.execvp(OUTSIDE[0], [*OUTSIDE, sys.executable, __file__, TRAIN, *more, "outside"])
    TORCHRUN = shutil.which(more[0])
    with tempfile.TemporaryDirectory(prefix="dpwa-slurm-") as name:
        Launched.slurm = Slurm(Path(name))
        try:
            try:
                Launched.slurm.begin()
            except (OSError, RuntimeError, subprocess.CalledProcessError) as error:
                print(f"SKIPPED: no Slurm of its own can be started here: {error}")
                return
            program = unittest.main(argv=sys.argv[:1], verbosity=2, exit=False)
        finally:
            Launched.slurm.stop()
            run("umount", "/etc/hosts")
    sys.exit(not program.result.wasSuccessful())


if __name__ == "__main__":
    main()
