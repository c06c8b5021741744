"""One run: a cluster, its schedule of faults, and what was observed of it."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import certificates
import schedule
from attackers import Attacker, Identity
from cluster import Life, Node, ask_status, make_key, now_ms
from invariants import ROUND_ENDS
from network import Network
from schedule import Fault
from settings import CLUSTER, KEY_FILE, Settings, cluster_file
from tasks import end_all

WARM_ROUNDS = 40
TAIL_ROUNDS = 40
OBSERVER = "observer"


class Failed(Exception):
    """The run could not continue; what it says is a violation."""


@dataclass
class Observed:
    """All that the invariants look at."""

    nodes: list[Node]
    warm_ms: tuple[float, float] = (0.0, 0.0)
    healed_ms: float = 0.0
    watched_ms: float = 0.0  # until when steps were awaited
    exits: dict[str, list[tuple[int | None, bool]]] = field(default_factory=dict)
    failure: str = ""
    attacks_answered: int = 0


class Run:
    def __init__(self, settings: Settings, folder: Path, faults: list[Fault], network: Network,
                 progress: Callable[[str], None]) -> None:
        self.settings, self.folder, self.faults, self.network = settings, folder, faults, network
        self.progress = progress
        self.nodes: dict[str, Node] = {}
        self.attackers: dict[str, Attacker] = {}
        self.observed = Observed([])
        self.observer: ssl.SSLContext | None = None
        self._watch_on = True

    async def execute(self) -> Observed:
        watcher = asyncio.ensure_future(self._watch())
        phases = asyncio.ensure_future(self._phases())
        # Each phase has a limit of its own; this one is for mistakes of the campaign.
        limit_s = self.settings.seconds + 400 * max(1.0, self.settings.slowness / 2)
        try:
            done, _ = await asyncio.wait({phases}, timeout=limit_s)
            if not done:
                raise Failed(f"the campaign itself did not end within {limit_s:.0f} s")
            phases.result()
        except Failed as failure:
            self.observed.failure = str(failure)
        finally:
            self._watch_on = False
            await end_all([watcher, phases])
            for attacker in self.attackers.values():
                await attacker.close()
            for node in self.nodes.values():
                node.read_lines()
                node.end()
            await self.network.close()
        return self.observed

    # Phases.

    async def _phases(self) -> None:
        await self._set_up()
        await self._start()
        await self._inject()
        await self._settle()
        self._watch_on = False
        await self._finish()

    async def _set_up(self) -> None:
        settings = self.settings
        real = await self.network.open(settings.names)
        if settings.security == "psk":
            make_key(settings.cli, self.folder / KEY_FILE)
        elif settings.security == "mtls":
            certificates.make(self.folder, [*settings.names, *settings.attackers, OBSERVER])
            self.observer = certificates.context(self.folder, OBSERVER, calls=True)
        for name in settings.attackers:
            attacker = Attacker(name, CLUSTER, settings.elements, real, settings.seed, self._identity_of(name))
            host = self.network.own_host
            self.attackers[name] = attacker
            real_attacker = (host, await attacker.listen(host))
            self.network.add_outsider(name, real_attacker)
        for name in settings.names:
            config = self.folder / f"{name}.yaml"
            text = cluster_file(settings, name, self.network.addresses_for(name), self.folder)
            config.write_text(text, encoding="utf-8")
            node = Node(name, real[name], config, self.folder / f"{name}.jsonl", self.folder / f"{name}.log")
            self.nodes[name] = node
            self.observed.nodes.append(node)

    def _identity_of(self, attacker: str) -> Identity | None:
        if self.settings.security != "mtls":
            return None
        return Identity(certificates.context(self.folder, attacker, calls=True),
                        certificates.context(self.folder, attacker, calls=False))

    def _launch(self, node: Node) -> None:
        settings = self.settings
        command = [str(settings.trainer), str(node.config), node.name, str(node.output), "--until",
                   str(self.folder / "finish"), "--step-ms", str(settings.step_ms), "--elements",
                   str(settings.elements), "--spread", str(settings.spread_percent)]
        node.start(self.network.command(node.name, command), settings.environment)

    async def _start(self) -> None:
        self.progress("starting")
        for node in self.nodes.values():
            self._launch(node)
        await self._until(lambda: all(node.life.started_ms for node in self.nodes.values()), 60, "start")
        begin = now_ms()
        self.progress("warming up")
        await self._until(lambda: self._rounds_since(begin) >= WARM_ROUNDS, 60, "make their first rounds")
        # The first rounds lead from equal parameters to the steady state.
        self.observed.warm_ms = (begin + (now_ms() - begin) / 4, now_ms())

    async def _inject(self) -> None:
        begin = now_ms()
        tasks = [asyncio.ensure_future(self._run_fault(fault, begin)) for fault in self.faults]
        try:
            await asyncio.gather(*tasks)
        finally:
            await end_all(tasks)
            for node in self.nodes.values():
                if node.runs:
                    node.go_on()

    async def _settle(self) -> None:
        self.progress("all healed")
        healed = now_ms()
        await self._until(lambda: all(node.life.started_ms for node in self.nodes.values()), 60, "start again")
        self.observed.healed_ms = max(healed, *(node.life.started_ms or 0 for node in self.nodes.values()))
        try:
            await self._until(lambda: self._rounds_since(self.observed.healed_ms) >= TAIL_ROUNDS, 45,
                              "make rounds after the last fault")
        finally:
            self.observed.watched_ms = now_ms()

    async def _finish(self) -> None:
        self.progress("finishing")
        for attacker in self.attackers.values():
            self.observed.attacks_answered += attacker.answered
            await attacker.close()
        (self.folder / "finish").touch()
        deadline = now_ms() + 90_000
        while now_ms() < deadline and any(node.runs for node in self.nodes.values()):
            await asyncio.sleep(0.05)
        for node in self.nodes.values():
            self.observed.exits[node.name] = [
                (life.process.poll(), life.ended_ms is not None) for life in node.lives]

    # Faults.

    async def _run_fault(self, fault: Fault, begin_ms: float) -> None:
        await asyncio.sleep(max(0.0, begin_ms / 1000 + fault.at - now_ms() / 1000))
        self.progress(f"{fault.kind} {' > '.join(fault.targets)}")
        end = begin_ms / 1000 + fault.end
        if fault.kind == "attack":
            attacker = self.attackers[fault.targets[0]]
            attacker.begin(str(fault.values["behaviour"]))
            await asyncio.sleep(max(0.0, end - now_ms() / 1000))
            await attacker.end()
        elif fault.kind in ("kill", "kill_most"):
            nodes = [self.nodes[name] for name in fault.targets]
            for node in nodes:
                self._must_run(node)
                node.kill()
            await asyncio.sleep(max(0.0, end - now_ms() / 1000))
            for node in nodes:
                node.read_lines()
                self._launch(node)
        elif fault.kind in ("stop", "flap"):
            node = self.nodes[fault.targets[0]]
            self._must_run(node)
            node.stop()
            while fault.kind == "flap" and now_ms() / 1000 < end:
                await asyncio.sleep(0.03)
                node.go_on()
                await asyncio.sleep(0.03)
                node.stop()
            await asyncio.sleep(max(0.0, end - now_ms() / 1000))
            node.go_on()
        else:
            await self.network.begin(fault)
            await asyncio.sleep(max(0.0, end - now_ms() / 1000))
            await self.network.end(fault)

    @staticmethod
    def _must_run(node: Node) -> None:
        if not node.runs:
            raise Failed(f"{node.name}: ended by itself with code {node.life.process.poll()}")

    # Watching.

    def _rounds_since(self, since_ms: float) -> int:
        """Of the node with the fewest."""
        fewest = 1 << 30
        for node in self.nodes.values():
            count = 0
            for line in reversed(node.lines):
                if line.get("at_ms", since_ms + 1) <= since_ms:
                    break
                count += line.get("outcome") in ROUND_ENDS
            fewest = min(fewest, count)
        return fewest

    async def _until(self, condition: Callable[[], bool], patience_s: float, what: str) -> None:
        deadline = now_ms() + patience_s * 1000 * max(1.0, self.settings.slowness / 2)
        while not condition():
            for node in self.nodes.values():
                self._must_run(node)
            if now_ms() > deadline:
                raise Failed(f"not all nodes {what} within {(patience_s * max(1.0, self.settings.slowness / 2)):.0f} s")
            await asyncio.sleep(0.05)

    async def _watch(self) -> None:
        turn = 0
        while self._watch_on:
            if any(not node.lives for node in self.nodes.values()) or not self.nodes:
                await asyncio.sleep(0.05)
                continue
            for node in self.nodes.values():
                node.read_lines()
                node.measure()
            # One node's status at a time: asking must not be a load of its own.
            node = [*self.nodes.values()][turn % len(self.nodes)]
            turn += 1
            await self._ask(node)
            await asyncio.sleep(0.2 if self.settings.nodes > 4 else 0.1)

    async def _ask(self, node: Node) -> None:
        life: Life = node.life
        if not node.runs or node.stopped_ms is not None or life.started_ms is None:
            return
        if self.settings.security == "psk":
            return  # an observer needs the key as well; the steps tell whether the node lives
        status = await ask_status(node.address, CLUSTER, 3.0 * self.settings.slowness, self.observer)
        undisturbed = node.life is life and node.runs and node.stopped_ms is None
        if status is not None:
            node.silent_status = 0
            node.statuses.append(status)
        elif undisturbed:
            node.silent_status += 1
            node.longest_silent_status = max(node.longest_silent_status, node.silent_status)


def make_schedule(settings: Settings) -> list[Fault]:
    kinds = ("kill", "stop", "flap", "kill_most", "attack", "attack", "attack", "attack")
    kinds += ("interface", "delay") if settings.netns else schedule.LINK_KINDS
    return schedule.generate(settings.seed, settings.names, settings.attackers, settings.seconds, kinds,
                             settings.left_out)
