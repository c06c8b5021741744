#!/usr/bin/env python3
"""Whether `dpwa why` is right: clusters of real processes in which something goes wrong, and in which nothing does.

usage: campaign.py --seeds 1..20 [--cases 3] [--build build/release]

Each seed is a cluster (cases.py). It is judged while it is healthy, and then in each case within ten seconds. A host is a
network namespace, a control group, and a /proc/stat made from the accounts of that group, so that it has its own
processors; time that a hypervisor takes is made up there. Packets between hosts go through relay.py. Needs root, control
groups of version 1 and the Python package of the build. Exit code 1: fewer than 95 % of the cases or 99 % of the healthy
judgements are right.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from cases import ABSENT, PROCESSORS, Cluster, Fault, is_right, make_cluster  # noqa: E402
from relay import PORT  # noqa: E402

OBSERVER = "watcher"
GROUPS = [Path("/sys/fs/cgroup/cpu"), Path("/sys/fs/cgroup/cpuacct")]
LIMIT_S = 10.0  # from the fault to the answer
TAKES_EFFECT_S = 3.0
NICE = "-10"  # the builds of others on this machine are no part of a case


def ticks(seconds: float) -> int:
    return int(seconds * os.sysconf("SC_CLK_TCK"))


class Host:
    """One or two processors, and what its processes did with them."""

    def __init__(self, folder: Path, group: str, name: str, processors: int) -> None:
        self.processors, self.stolen_share = processors, 0.0
        self.stat, self.boot = folder / f"{name}.stat", folder / f"{name}.boot"
        self.boot.write_text(f"host-{name}\n", encoding="ascii")
        self.group = f"{group}/{name}"
        for root in GROUPS:
            for path in ("", "/nodes", "/others"):
                (root / (self.group + path)).mkdir(parents=True)
        self.programs: list[subprocess.Popen[bytes]] = []
        self.pids: list[int] = []  # whose main threads may wait for a disk
        self.begun = self.last = time.monotonic()
        self.disk_s = self.stolen_s = 0.0
        self.account()

    def set(self, file: str, value: int, part: str = "nodes") -> None:
        (GROUPS[0] / self.group / part / file).write_text(str(value), encoding="ascii")

    def waits_for_disk(self) -> bool:
        for pid in self.pids:
            with contextlib.suppress(OSError):
                if Path(f"/proc/{pid}/stat").read_bytes().rpartition(b") ")[2][:1] == b"D":
                    return True
        return False

    def account(self) -> None:
        now = time.monotonic()
        passed, self.last = now - self.last, now
        self.disk_s += passed if self.waits_for_disk() else 0.0
        self.stolen_s += passed * self.stolen_share * self.processors
        busy_s = int((GROUPS[1] / self.group / "cpuacct.usage").read_text(encoding="ascii")) / 1e9
        idle_s = max(0.0, (now - self.begun) * self.processors - busy_s - self.disk_s - self.stolen_s)
        line = f"cpu  {ticks(busy_s)} 0 0 {ticks(idle_s)} {ticks(self.disk_s)} 0 0 {ticks(self.stolen_s)} 0 0\n"
        text = line + "".join(f"cpu{i} 0 0 0 0 0 0 0 0 0 0\n" for i in range(self.processors))
        descriptor = os.open(self.stat, os.O_WRONLY | os.O_CREAT, 0o600)
        os.pwrite(descriptor, text.ljust(500).encode("ascii"), 0)
        os.close(descriptor)

    def close(self) -> None:
        for program in self.programs:
            program.kill()
            program.wait()
        for root in GROUPS:
            for path in ("/nodes", "/others", ""):
                with contextlib.suppress(OSError):
                    (root / (self.group + path)).rmdir()


class Run:
    """A cluster with its processes."""

    def __init__(self, cluster: Cluster, build: Path, folder: Path) -> None:
        self.cluster, self.build, self.folder = cluster, build, folder
        self.prefix, self.group = f"why{os.getpid()}", f"dpwa-why-{os.getpid()}"
        self.names = cluster.nodes + cluster.servers
        hosts = ["all"] if cluster.one_host else [*self.names, OBSERVER]
        self.addresses = {name: f"10.199.0.{i + 1}" for i, name in enumerate(hosts)}
        self.hosts = {name: Host(folder, self.group, name, 2 if cluster.one_host else 1) for name in hosts
                      if name != OBSERVER}  # fmt: skip
        (GROUPS[0] / self.group / "cpu.shares").write_text("16000", encoding="ascii")  # the kernel has threads, too
        self.plain = {"elements": cluster.elements, "work_s": cluster.work_s, "pause_s": cluster.pause_s, "threads": 0,
                      "disk_s": 0, "stall": False, "shift": 0, "rate": 0.1, "by_servers": cluster.backend == "dist_async"}  # fmt: skip
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.ended = threading.Event()
        self.accountant = threading.Thread(target=self.account)

    def host(self, name: str) -> Host:
        return self.hosts["all" if self.cluster.one_host else name]

    def account(self) -> None:
        while not self.ended.wait(0.05):
            for host in self.hosts.values():
                host.account()

    def __enter__(self) -> Run:
        environment = {**os.environ, "DPWA_WHY_PREFIX": self.prefix}
        words = [f"{name}={address}" for name, address in self.addresses.items()]
        self.relay = subprocess.Popen(["chrt", "-r", "10", sys.executable, HERE / "relay.py", *words], text=True,
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)
        assert self.relay.stdout and self.relay.stdin
        if self.relay.stdout.readline() != "ready\n":
            raise RuntimeError("no network")
        self.accountant.start()
        self.write_file()
        for name in self.names:
            self.control(name)
            self.start(name)
        return self

    def __exit__(self, *_: object) -> None:
        for process in self.processes.values():
            process.kill()
            process.wait()
        self.ended.set()
        if self.accountant.is_alive():
            self.accountant.join()
        self.relay.stdin.close()  # type: ignore[union-attr]
        self.relay.wait()
        for host in self.hosts.values():
            host.close()
        for root in GROUPS:
            with contextlib.suppress(OSError):
                (root / self.group).rmdir()

    def write_file(self) -> None:
        backend = self.cluster.backend
        at = {name: (self.addresses.get(name, "127.0.0.1"), PORT if not self.cluster.one_host else PORT + i)
              for i, name in enumerate(self.names)}  # fmt: skip
        lists = {kind: ", ".join(f"{{name: {name}, host: {at[name][0]}, port: {at[name][1]}}}" for name in names)
                 for kind, names in (("nodes", self.cluster.nodes), ("servers", self.cluster.servers))}  # fmt: skip
        lines = [f"backend: {'kvstore' if backend.startswith('dist_') else backend}", f"nodes: [{lists['nodes']}]",
                 "log: {level: warn}", "transport: {same_host: off}", "security: {mode: insecure}"]  # fmt: skip
        if backend == "collective":
            lines.append("collective: {on_lost_rank: shrink, lost_after_ms: 20s}")
        if backend.startswith("dist_"):
            update = "worker" if backend == "dist_sync" else "server"
            lines.append(f"kvstore: {{type: {backend}, update: {update}, lost_after_ms: 20s, servers: [{lists['servers']}]}}")
        self.file = self.folder / "cluster.yaml"
        self.file.write_text("\n".join(lines) + "\n", encoding="utf-8")

    def control(self, name: str, **changes: Any) -> None:
        target = self.folder / f"{name}.json"
        new = target.with_suffix(".new")
        new.write_text(json.dumps({**self.plain, **changes}), encoding="utf-8")
        new.rename(target)

    def within(self, name: str) -> list[str]:
        return ["ip", "netns", "exec", self.prefix + ("all" if self.cluster.one_host else name)]

    def start(self, name: str) -> None:
        host = self.host(name)
        joins = "".join(f"echo $$ >{root / host.group / 'nodes'}/cgroup.procs; " for root in GROUPS)
        shell = (f"{joins}mount --bind {host.stat} /proc/stat; mount --bind {host.boot} /proc/sys/kernel/random/boot_id; "
                 'exec "$@"')  # fmt: skip
        program = ([self.build / "bin/dpwa", "kvserver", "--config", self.file, "--name", name]
                   if name in self.cluster.servers
                   else [sys.executable, HERE / "trainer.py", self.file, name, self.folder / f"{name}.json"])  # fmt: skip
        with open(self.folder / f"{name}.log", "ab") as log:
            process = subprocess.Popen(
                ["unshare", "-m", "nice", "-n", NICE, "sh", "-c", shell, "sh", *self.within(name), *program],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                env={**os.environ, "PYTHONPATH": str(self.build / "python"), "OMP_NUM_THREADS": "1"})  # fmt: skip
        self.processes[name] = process
        host.pids.append(process.pid)
        if not self.cluster.one_host:
            self.pin(name, self.names.index(name) % 2)

    def pin(self, name: str, processor: int | None) -> None:
        """All threads of the process, and what it starts."""
        for thread in os.listdir(f"/proc/{self.processes[name].pid}/task"):
            with contextlib.suppress(OSError):
                os.sched_setaffinity(int(thread), {0, 1} if processor is None else {processor})

    def tell(self, **words: Any) -> None:
        assert self.relay.stdin
        self.relay.stdin.write(json.dumps(words) + "\n")
        self.relay.stdin.flush()

    def why(self, seconds: int = 4) -> list[dict[str, Any]]:
        command = ["nice", "-n", NICE, *self.within(OBSERVER), self.build / "bin/dpwa", "why", self.file, "--json",
                   "--seconds", str(seconds)]  # fmt: skip
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        except subprocess.TimeoutExpired:
            return []  # later than the answer may be
        if done.returncode != 0:
            raise RuntimeError(done.stderr)
        return list(json.loads(done.stdout)["findings"])

    def status(self) -> list[dict[str, Any]]:
        command = [*self.within(OBSERVER), self.build / "bin/dpwa", "status", self.file, "--json"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        return [node.get("status") or node for node in json.loads(done.stdout)["nodes"]] if done.stdout else []

    def wait_until_trained(self, seconds: float) -> None:
        """Until each node has trained for so long."""
        until = time.monotonic() + 60
        begun: dict[str, int] = {}
        while time.monotonic() < until and all(process.poll() is None for process in self.processes.values()):
            counts = {node.get("node", ""): node.get("steps", {}).get("count", 0) for node in self.status()}
            if len(counts) == len(self.cluster.nodes) and all(counts.values()):
                begun = begun or counts
                least = seconds / (self.cluster.work_s + self.cluster.pause_s) / 2
                if all(counts[name] - begun[name] >= least for name in counts):
                    return
            time.sleep(0.3)
        logs = "".join((self.folder / f"{name}.log").read_text(encoding="utf-8")[-600:] for name in self.names)
        raise RuntimeError(f"the nodes do not train: {logs}")

    def alone(self, names: tuple[str, ...]) -> None:
        """Processors are few here: those of these hosts have one, all others the other one."""
        if not self.cluster.one_host:
            for name in self.names:
                self.pin(name, 1 if name in names else 0)

    def inject(self, fault: Fault) -> None:
        cause, at, values, plain = fault.cause, fault.at, fault.values, self.plain
        node = at[0]
        if cause in PROCESSORS:
            self.alone(at)
        if cause == "gone":
            self.processes[node].kill()
            self.processes[node].wait()
        elif cause == "cut off":
            self.tell(down=node)
        elif cause == "frozen":
            self.processes[node].send_signal(signal.SIGSTOP)
        elif cause == "stalled":
            self.control(node, stall=True)
        elif cause == "stolen processor time":
            self.host(node).stolen_share = values["share"]
            self.control(node, pause_s=plain["pause_s"] + plain["work_s"] / (1 - values["share"]))
        elif cause == "too many nodes":
            for name in at:
                self.control(name, threads=values["threads"])
        elif cause == "other programs":
            self.start_programs(self.host(node), values, (0, 1) if self.cluster.one_host else (1,))
        elif cause == "limited processors":
            self.limit(at, values)
        elif cause == "slow processor":
            step_s = plain["work_s"] + plain["pause_s"]
            self.control(node, work_s=plain["work_s"] + values["times"] * step_s)
        elif cause == "slow program":
            self.control(node, pause_s=values["times"] * plain["pause_s"])
        elif cause == "disk":
            self.control(node, disk_s=values["times"] * plain["pause_s"])
        elif cause == "lossy link" or cause == "slow link":
            self.tell(pair=at, **values)
        elif cause == "one-way link":
            self.tell(deaf=at)
        else:  # of learning: a shift or a rate
            for name in at:
                self.control(name, **values)

    def start_programs(self, host: Host, values: dict[str, Any], processors: tuple[int, ...]) -> None:
        host.set("cpu.shares", values["shares"], "others")
        joins = "".join(f"echo $$ >{root / host.group / 'others'}/cgroup.procs; " for root in GROUPS)
        for i in range(values["programs"]):
            command = ["nice", "-n", NICE, "taskset", "-c", str(processors[i % len(processors)]), "sh", "-c",
                       joins + "while :; do :; done"]  # fmt: skip
            host.programs.append(subprocess.Popen(command))

    def limit(self, at: tuple[str, ...], values: dict[str, Any]) -> None:
        if values["pins"]:
            for name in at:
                self.pin(name, 0)
                self.control(name, pause_s=0.002, work_s=0.01)
            return
        host, period_us = self.host(at[0]), 100_000
        needs = self.plain["work_s"] / (self.plain["work_s"] + self.plain["pause_s"])
        host.set("cpu.cfs_period_us", period_us)
        host.set("cpu.cfs_quota_us", max(1000, int(period_us * needs * values["share"])))

    def heal(self) -> None:
        self.tell(up=True)
        for name in self.cluster.nodes:
            self.control(name)
        for host in self.hosts.values():
            host.stolen_share = 0.0
            host.set("cpu.cfs_quota_us", -1)
            for program in host.programs:
                program.kill()
                program.wait()
            host.programs = []
        for name in self.names:
            self.pin(name, None if self.cluster.one_host else self.names.index(name) % 2)


@contextlib.contextmanager
def watching() -> Iterator[None]:
    """This process, what watches and what carries packets run elsewhere, not where the processors are taken."""
    group = GROUPS[0] / f"dpwa-why-watch-{os.getpid()}"
    group.mkdir()
    (group / "cpu.shares").write_text("200000", encoding="ascii")
    real_time = group / "cpu.rt_runtime_us"
    if real_time.exists():  # else the relay may have no priority of its own
        real_time.write_text("500000", encoding="ascii")
    (group / "cgroup.procs").write_text(str(os.getpid()), encoding="ascii")
    try:
        yield
    finally:
        (GROUPS[0] / "cgroup.procs").write_text(str(os.getpid()), encoding="ascii")
        with contextlib.suppress(OSError):
            if real_time.exists():
                real_time.write_text("0", encoding="ascii")  # the group goes later, and its share with it
            group.rmdir()


class Tally:
    def __init__(self) -> None:
        self.right, self.all, self.latest_s = 0, 0, 0.0

    def add(self, is_one: bool) -> None:
        self.right, self.all = self.right + is_one, self.all + 1

    def __str__(self) -> str:
        return f"{self.right} of {self.all}"


def describe(findings: list[dict[str, Any]]) -> str:
    return "".join(f"\n      {one['where']}: {one['cause']}; {one['evidence']}" for one in findings) or " nothing"


def judge(run: Run, healthy: Tally, single: Tally, double: Tally, verbose: bool) -> None:
    cluster = run.cluster
    print(f"seed {cluster.seed}: {cluster}", flush=True)
    run.wait_until_trained(6)
    for faults in ((), *cluster.cases):
        if faults:
            run.wait_until_trained(4)
        begun = time.monotonic()
        for fault in faults:
            run.inject(fault)
        if faults:
            time.sleep(TAKES_EFFECT_S)
        findings = run.why()
        took_s = time.monotonic() - begun
        tally = (healthy, single, double)[len(faults)]
        right = is_right(faults, findings) and took_s <= LIMIT_S
        tally.add(right)
        tally.latest_s = max(tally.latest_s, took_s)
        what = "; ".join(map(str, faults)) or "healthy"
        print(f"  {'right' if right else 'WRONG'} {took_s:.1f} s: {what}" +
              (f": found{describe(findings)}" if verbose or not right else ""), flush=True)  # fmt: skip
        if any(fault.cause in ABSENT for fault in faults):
            return
        if faults:
            run.heal()


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--seeds", default="1..5", help="FIRST..LAST")
    parser.add_argument("--cases", type=int, default=3, help="of each cluster")
    parser.add_argument("--build", type=Path, default=HERE.parents[2] / "build/release")
    parser.add_argument("--verbose", action="store_true", help="print what was found in each case")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # its hosts, and what loads them, end with it
    first, _, last = options.seeds.partition("..")
    healthy, single, double, failed = Tally(), Tally(), Tally(), 0
    for seed in range(int(first), int(last or first) + 1):
        with tempfile.TemporaryDirectory(prefix="dpwa-why-") as folder:
            run = Run(make_cluster(seed, options.cases), options.build.resolve(), Path(folder))
            try:
                with watching(), run:
                    judge(run, healthy, single, double, options.verbose)
            except RuntimeError as error:
                failed += 1
                print(f"  seed {seed} could not be run: {error}", flush=True)
    wrong = single.all + double.all - single.right - double.right
    print(f"healthy: {healthy} right; one cause: {single} right; two causes: {double} right; "
          f"answered within {max(single.latest_s, double.latest_s):.1f} s; clusters that did not start: {failed}")  # fmt: skip
    enough = wrong <= 0.05 * (single.all + double.all) and healthy.all - healthy.right <= 0.01 * healthy.all
    return 0 if enough else 1


if __name__ == "__main__":
    sys.exit(main())
