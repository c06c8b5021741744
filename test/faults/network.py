"""How the nodes reach each other, and the faults of that: a mesh of proxies on loopback. netns.py has the other way."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Protocol

from proxy import Condition, Link
from schedule import Fault
from tasks import end_all

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))
from lib.ports import free_ports  # noqa: E402

Address = tuple[str, int]


class Network(Protocol):
    """`open` before anything else, `close` at the end, whatever happened."""

    own_host: str  # where this process can be reached by the nodes

    async def open(self, names: list[str]) -> dict[str, Address]:
        """Where each node is to listen."""

    def add_outsider(self, name: str, address: Address) -> None:
        """A peer of the cluster file that is no process of the campaign's cluster."""

    def addresses_for(self, own: str) -> dict[str, Address]:
        """What the cluster file of node `own` says."""

    def command(self, name: str, command: list[str]) -> list[str]:
        """What starts that node."""

    async def begin(self, fault: Fault) -> None: ...

    async def end(self, fault: Fault) -> None: ...

    async def close(self) -> None: ...


class ProxyMesh:
    """One proxy for every caller and called: each node has a cluster file of its own, which names the proxies."""

    own_host = "127.0.0.1"

    def __init__(self) -> None:
        self._real: dict[str, Address] = {}
        self._outsiders: dict[str, Address] = {}
        self._proxies: dict[tuple[str, str], Address] = {}
        self._links: dict[tuple[str, str], Link] = {}
        self._active: list[Fault] = []
        self._resetting: dict[int, asyncio.Task[None]] = {}

    async def open(self, names: list[str]) -> dict[str, Address]:
        # Proxies first: what they hold cannot be handed to a node.
        ports: dict[tuple[str, str], Link] = {}
        for caller in names:
            for called in names:
                if caller != called:
                    link = Link(0)
                    ports[caller, called] = link
                    self._proxies[caller, called] = (self.own_host, await link.listen())
        self._links = ports
        for name, port in zip(names, free_ports(len(names))):
            self._real[name] = (self.own_host, port)
        for (_, called), link in self._links.items():
            link.called_port = self._real[called][1]
        return dict(self._real)

    def add_outsider(self, name: str, address: Address) -> None:
        self._outsiders[name] = address

    def addresses_for(self, own: str) -> dict[str, Address]:
        inside = {name: real if name == own else self._proxies[own, name] for name, real in self._real.items()}
        return {**inside, **self._outsiders}

    def command(self, name: str, command: list[str]) -> list[str]:
        return command

    async def begin(self, fault: Fault) -> None:
        self._active.append(fault)
        self._apply(fault)
        if fault.kind == "reset":
            self._resetting[id(fault)] = asyncio.ensure_future(self._keep_resetting(fault))

    async def end(self, fault: Fault) -> None:
        self._active.remove(fault)
        self._apply(fault)
        task = self._resetting.pop(id(fault), None)
        if task is not None:
            task.cancel()

    async def close(self) -> None:
        await end_all(self._resetting.values())
        await asyncio.gather(*(link.close() for link in self._links.values()))

    async def _keep_resetting(self, fault: Fault) -> None:
        while True:
            self._links[fault.targets[0], fault.targets[1]].reset_all()
            await asyncio.sleep(0.05)

    def _apply(self, changed: Fault) -> None:
        for pair, link in self._links.items():
            if concerns(changed, pair):
                link.set(condition_of(pair, self._active))


def concerns(fault: Fault, pair: tuple[str, str]) -> bool:
    if fault.kind == "partition":
        return (pair[0] in fault.targets) != (pair[1] in fault.targets)
    return fault.targets == pair


def condition_of(pair: tuple[str, str], active: list[Fault]) -> Condition:
    """Of the link of a caller and a called node, under all faults that are active."""
    condition = Condition()
    for fault in active:
        if not concerns(fault, pair):
            continue
        values = fault.values
        if fault.kind == "partition":
            # "out": what the nodes on the small side send is lost, "in": what is sent to them.
            caller_inside = pair[0] in fault.targets
            lost = values["direction"]
            condition.hold_out |= lost == "both" or (lost == "out") == caller_inside
            condition.hold_in |= lost == "both" or (lost == "out") != caller_inside
        elif fault.kind == "blackhole":
            condition.hold_out |= values["direction"] == "out"
            condition.hold_in |= values["direction"] == "in"
        elif fault.kind == "throttle":
            condition.bytes_per_second = float(values["bytes_per_second"])
        elif fault.kind == "delay":
            condition.delay_s = float(values["milliseconds"]) / 1000
        elif fault.kind == "corrupt":
            condition.corrupt_every = int(values["every_bytes"])
        elif fault.kind == "truncate":
            condition.truncate_after = int(values["after_bytes"])
    return condition
