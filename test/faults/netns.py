"""Every node in a network namespace of its own, on a bridge: its interface can be lost. Needs root."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess

from network import Address
from schedule import Fault

PORT = 7700


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True, text=True, timeout=120)


def why_not() -> str:
    """Why the mode cannot be had here; empty when it can."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    if shutil.which("ip") is None:
        return "there is no `ip` command"
    probe = Namespaces()
    try:
        probe.create(["probe"])
        return ""
    except (OSError, subprocess.SubprocessError) as error:
        detail = (getattr(error, "stderr", "") or str(error)).strip()
        return f"this kernel makes no namespaces with a bridge and veth pairs: {detail}"
    finally:
        probe.destroy()


class Namespaces:
    """Names begin with dpwa and this process's id; all are deleted by `close`, whatever happened."""

    def __init__(self) -> None:
        self._prefix = f"dpwa{os.getpid() % 1_000_000}"
        self._subnet = f"10.{200 + os.getpid() % 50}.{os.getpid() // 50 % 250}"
        self.own_host = f"{self._subnet}.1"
        self._hosts: dict[str, str] = {}
        self._outsiders: dict[str, Address] = {}
        self.netem = False

    def create(self, names: list[str]) -> None:
        bridge = self._prefix
        ip("link", "add", bridge, "type", "bridge")
        ip("address", "add", f"{self.own_host}/24", "dev", bridge)
        ip("link", "set", bridge, "up")
        for index, name in enumerate(names):
            space, outer = self._space(name), self._outer(name)
            self._hosts[name] = f"{self._subnet}.{index + 2}"
            ip("netns", "add", space)
            ip("link", "add", outer, "type", "veth", "peer", "name", "eth0", "netns", space)
            ip("link", "set", outer, "master", bridge, "up")
            ip("-n", space, "address", "add", f"{self._hosts[name]}/24", "dev", "eth0")
            ip("-n", space, "link", "set", "eth0", "up")
            ip("-n", space, "link", "set", "lo", "up")

    def destroy(self) -> None:
        for words in [*(("netns", "delete", self._space(name)) for name in self._hosts),
                      *(("link", "delete", self._outer(name)) for name in self._hosts),
                      ("link", "delete", self._prefix)]:
            subprocess.run(["ip", *words], check=False, capture_output=True, timeout=120)

    def _space(self, name: str) -> str:
        return f"{self._prefix}-{name}"

    def _outer(self, name: str) -> str:
        return f"{self._prefix}{name}"

    async def open(self, names: list[str]) -> dict[str, Address]:
        self.create(names)
        probe = subprocess.run(["tc", "qdisc", "add", "dev", self._outer(names[0]), "root", "netem", "delay", "0ms"],
                               check=False, capture_output=True, timeout=120) if shutil.which("tc") else None
        self.netem = probe is not None and probe.returncode == 0
        if self.netem:
            subprocess.run(["tc", "qdisc", "delete", "dev", self._outer(names[0]), "root"], check=False, timeout=120)
        else:
            print("  no netem here: no lost and late packets, interfaces go down all the same", flush=True)
        return {name: (host, PORT) for name, host in self._hosts.items()}

    def add_outsider(self, name: str, address: Address) -> None:
        self._outsiders[name] = address

    def addresses_for(self, own: str) -> dict[str, Address]:
        return {**{name: (host, PORT) for name, host in self._hosts.items()}, **self._outsiders}

    def command(self, name: str, command: list[str]) -> list[str]:
        return ["ip", "netns", "exec", self._space(name), *command]

    async def begin(self, fault: Fault) -> None:
        target = fault.targets[0]
        if fault.kind == "interface":
            ip("-n", self._space(target), "link", "set", "eth0", "down")
        elif fault.kind == "delay" and self.netem:
            subprocess.run(["tc", "qdisc", "replace", "dev", self._outer(target), "root", "netem", "delay",
                            f"{fault.values['milliseconds']}ms", "loss", "5%"], check=True, timeout=120)

    async def end(self, fault: Fault) -> None:
        target = fault.targets[0]
        if fault.kind == "interface":
            ip("-n", self._space(target), "link", "set", "eth0", "up")
        elif fault.kind == "delay" and self.netem:
            subprocess.run(["tc", "qdisc", "delete", "dev", self._outer(target), "root"], check=False, timeout=120)

    async def close(self) -> None:
        await asyncio.to_thread(self.destroy)
