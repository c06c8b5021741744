"""Peers that mean ill. Each stands as a node of the cluster file, answers calls, and calls the honest nodes itself."""

from __future__ import annotations

import asyncio
import math
import random
import ssl
import struct
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import wire
from tasks import end_all

CALLER_BEHAVIOURS = ("half_open", "connections", "requests", "noise", "slow_hello", "never_reads", "impersonate",
                     "huge_frame", "hoard", "bury", "crowd")
RAW = 1 << 1  # capabilities: codec 1


@dataclass
class Identity:
    """With which it passes for a node of the cluster; without one it speaks no TLS."""

    as_caller: ssl.SSLContext
    as_called: ssl.SSLContext


class Attacker:
    """Between attacks it is a node that has not got weights yet: in nobody's way. Single-threaded."""

    def __init__(self, name: str, cluster: str, elements: int, honest: dict[str, tuple[str, int]],
                 seed: int, identity: Identity | None = None) -> None:
        self.name, self.cluster, self.elements = name, cluster, elements
        self.honest = honest  # name and real address of each
        self.identity = identity
        self.behaviour = ""
        self.rng = random.Random(f"{seed}-{name}")
        self.fingerprint = wire.vector_fingerprint(elements)
        self.lineage, self.clock, self.version = 1, 1.0, 0
        self.values = b""  # the last snapshot seen of an honest node
        self.stale: tuple[float, bytes] | None = None  # what replay keeps serving
        self.answered = 0
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._busy: list[asyncio.Task[None]] = []

    async def listen(self, host: str = "127.0.0.1", port: int = 0) -> int:
        self._server = await asyncio.start_server(self._serve, host, port,
                                                  ssl=self.identity.as_called if self.identity else None)
        return self._server.sockets[0].getsockname()[1]

    def begin(self, behaviour: str) -> None:
        self.behaviour = behaviour
        if behaviour in CALLER_BEHAVIOURS:
            action: Callable[[], Awaitable[None]] = getattr(self, f"_{behaviour}")
            for _ in range(4):
                self._busy.append(asyncio.ensure_future(self._repeat(action)))
        else:
            self._busy.append(asyncio.ensure_future(self._watch()))

    async def end(self) -> None:
        self.behaviour = ""
        self.stale = None
        await end_all(self._busy)
        self._busy.clear()

    async def close(self) -> None:
        await self.end()
        if self._server is not None:
            self._server.close()
        await end_all(self._tasks)

    # Called: answers to honest nodes.

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is not None:
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        try:
            while True:
                kind, request, size = wire.parse_header(await reader.readexactly(wire.HEADER_BYTES))
                body = await reader.readexactly(size)
                if kind == wire.HELLO:
                    self.fingerprint = body[16:48]  # of the model that they train
                    await self._welcome(writer, request)
                elif kind == wire.PULL:
                    await self._answer(writer, request, wire.Pull.decode(body))
                else:
                    return
        except (OSError, ValueError, asyncio.IncompleteReadError, asyncio.CancelledError, struct.error):
            pass
        finally:
            writer.transport.abort()

    async def _welcome(self, writer: asyncio.StreamWriter, request: int) -> None:
        """Offers raw parameters only, so that nobody asks for another codec."""
        if self.behaviour in ("", *CALLER_BEHAVIOURS):
            welcome = wire.Welcome(wire.JOINING, 0, 0.0, self.name, capabilities=RAW)
        else:
            # Ahead of everybody: a node that starts pulls from the highest clock.
            welcome = wire.Welcome(wire.READY, self.lineage, self._clock() + 1000, self.name, capabilities=RAW)
        data = welcome.encode(request)
        if self.behaviour == "endless_welcome":
            data = wire.header(wire.WELCOME, request, 550) + bytes(100)
        writer.write(data)
        await writer.drain()
        if self.behaviour == "endless_welcome":
            await asyncio.sleep(60)

    def _clock(self) -> float:
        lies = {"clock_huge": 1e300, "clock_nan": math.nan, "clock_negative": -5.0}
        return lies.get(self.behaviour, self.clock)

    async def _answer(self, writer: asyncio.StreamWriter, request: int, pull: wire.Pull) -> None:
        self.answered += 1
        if self.behaviour in ("", *CALLER_BEHAVIOURS) or not self.values:
            writer.write(wire.frame(wire.NOT_READY, request))
            await writer.drain()
        elif self.behaviour == "silent":
            await asyncio.sleep(60)
        elif self.behaviour == "noise_reply":
            writer.write(self.rng.randbytes(self.rng.randint(1, 4000)))
            await writer.drain()
        else:
            data = self._snapshot(request, pull)
            if self.behaviour == "trickle":
                for at in range(len(data)):
                    writer.write(data[at:at + 1])
                    await writer.drain()
                    await asyncio.sleep(1)
            writer.write(data)
            await writer.drain()

    def _snapshot(self, request: int, pull: wire.Pull) -> bytes:
        """A lie with every checksum right, but where the checksum is the lie."""
        self.version += 1
        head = wire.Head(self.version, self.lineage, self._clock(), loss=0.01, chunk_bytes=pull.chunk_bytes,
                         length=len(self.values))
        payload, lie = self.values, 0
        floats = len(payload) // 4
        if self.behaviour == "nan":
            payload = struct.pack("<f", math.nan) * floats
        elif self.behaviour == "infinity":
            payload = struct.pack("<f", -math.inf) * floats
        elif self.behaviour == "far_away":
            payload = struct.pack(f"<{floats}f", *(100 * x + 50 for x in struct.unpack(f"<{floats}f", payload)))
        elif self.behaviour == "biased":
            payload = struct.pack(f"<{floats}f", *(1.3 * x for x in struct.unpack(f"<{floats}f", payload)))
        elif self.behaviour == "loss":
            head.loss = self.rng.choice((math.nan, -math.inf, math.inf, -1e300, 1e300))
        elif self.behaviour == "length_long":
            lie = self.rng.choice((1, 1 << 20, 1 << 62))
        elif self.behaviour == "length_short":
            lie = -self.rng.randint(1, 90)
        elif self.behaviour in ("replay", "replay_renumbered"):
            self.stale = self.stale or (self.clock, payload)
            head.clock, payload = self.stale
            if self.behaviour == "replay":
                head.version = 1
        elif self.behaviour == "other_lineage":
            head.lineage = self.lineage + 1 & (1 << 64) - 1 or 1
        elif self.behaviour == "wrong_request":
            request ^= 0x5A5A
        data = wire.snapshot(request, head, wire.cut(payload, pull.chunk_bytes), lie)
        if self.behaviour == "bad_checksum":
            data = data[:-1] + bytes([data[-1] ^ 1])
        elif self.behaviour == "chunk_length" and len(data) > 136:
            data = data[:128] + struct.pack("<I", self.rng.choice((0, 1 << 31, 7))) + data[132:]
        return data

    # Calling honest nodes.

    async def _repeat(self, action: Callable[[], Awaitable[None]]) -> None:
        while True:
            try:
                await action()
            except (OSError, ValueError, asyncio.IncompleteReadError):
                pass
            await asyncio.sleep(0.02)

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection(*self.rng.choice([*self.honest.values()]),
                                             ssl=self.identity.as_caller if self.identity else None)

    async def _greeted(self, name: str, incarnation: int,
                       capabilities: int = 0b11110) -> tuple[asyncio.StreamReader, asyncio.StreamWriter, bytes]:
        """A connection as node `name`, and the body of the WELCOME."""
        reader, writer = await self._connect()
        try:
            writer.write(wire.hello(wire.NODE, self.cluster, name, incarnation, self.fingerprint, capabilities))
            kind, _, size = wire.parse_header(await asyncio.wait_for(reader.readexactly(wire.HEADER_BYTES), 5))
            body = await reader.readexactly(size)
            if kind != wire.WELCOME:
                raise ValueError("refused")
            return reader, writer, body
        except BaseException:
            writer.transport.abort()
            raise

    async def _watch(self) -> None:
        """Keeps up with what the honest nodes hold: the best lies are close to the truth."""
        while True:
            try:
                reader, writer, _ = await self._greeted(self.name, 1)
                try:
                    writer.write(wire.Pull().encode(2))
                    lead = await asyncio.wait_for(reader.readexactly(wire.HEADER_BYTES), 5)
                    kind, _, size = wire.parse_header(lead)
                    body = await asyncio.wait_for(reader.readexactly(size), 5)
                    if kind == wire.SNAPSHOT:
                        head = wire.Head.decode(body)
                        self.lineage, self.values = head.lineage, wire.payload_of(body)
                        self.clock = head.clock if self.behaviour == "replay" else head.clock + 1
                finally:
                    writer.transport.abort()
            except (OSError, ValueError, asyncio.IncompleteReadError, asyncio.TimeoutError):
                pass
            await asyncio.sleep(0.5)

    async def _half_open(self) -> None:
        _, writer = await self._connect()
        try:
            writer.write(wire.hello(wire.NODE, self.cluster, self.name, 1, self.fingerprint)[:self.rng.randint(0, 60)])
            await asyncio.sleep(self.rng.uniform(0.5, 8))
        finally:
            writer.transport.abort()

    async def _connections(self) -> None:
        """As many as one process may hold to one node, idle."""
        address = self.rng.choice([*self.honest.values()])
        held: list[asyncio.StreamWriter] = []
        try:
            for _ in range(80):
                _, writer = await asyncio.open_connection(*address)
                held.append(writer)
            await asyncio.sleep(1)
        finally:
            for writer in held:
                writer.transport.abort()

    async def _hoard(self) -> None:
        """As _connections, but with the handshake done: nothing makes the node close these."""
        held: list[asyncio.StreamWriter] = []
        try:
            for _ in range(80):
                _, writer, _ = await self._greeted(self.name, 1)
                held.append(writer)
            await asyncio.sleep(1)
        finally:
            for writer in held:
                writer.transport.abort()

    async def _requests(self) -> None:
        reader, writer, _ = await self._greeted(self.name, 1)
        try:
            for request in range(2, 200):
                status = self.rng.random() < 0.5
                writer.write(wire.frame(wire.STATUS_REQUEST, request) if status else wire.Pull().encode(request))
                _, _, size = wire.parse_header(await asyncio.wait_for(reader.readexactly(wire.HEADER_BYTES), 5))
                await reader.readexactly(size)
        finally:
            writer.transport.abort()

    async def _noise(self) -> None:
        _, writer = await self._connect()
        try:
            good = wire.hello(wire.NODE, self.cluster, self.name, 1, self.fingerprint)
            data = self.rng.randbytes(self.rng.randint(1, 3000))
            if self.rng.random() < 0.5:
                changed = bytearray(good + data)
                changed[self.rng.randrange(len(good))] ^= 1 << self.rng.randrange(8)
                data = bytes(changed)
            writer.write(data)
            await asyncio.sleep(0.05)
        finally:
            writer.transport.abort()

    async def _slow_hello(self) -> None:
        _, writer = await self._connect()
        try:
            for byte in wire.hello(wire.NODE, self.cluster, self.name, 1, self.fingerprint):
                writer.write(bytes([byte]))
                await writer.drain()
                await asyncio.sleep(1)
        finally:
            writer.transport.abort()

    async def _never_reads(self) -> None:
        _, writer, _ = await self._greeted(self.name, 1)
        try:
            writer.transport.pause_reading()
            for request in range(2, 40):
                writer.write(wire.Pull(deadline_ms=1 << 30).encode(request))
                await asyncio.sleep(0.05)
            await asyncio.sleep(2)
        finally:
            writer.transport.abort()

    async def _impersonate(self) -> None:
        """Bears the name of an honest node, with an incarnation above any."""
        name = self.rng.choice([*self.honest])
        _, writer, _ = await self._greeted(name, (1 << 64) - 1 - self.rng.randrange(1000))
        writer.transport.abort()

    async def _huge_frame(self) -> None:
        _, writer = await self._connect()
        try:
            kind = self.rng.choice((wire.HELLO, wire.MANIFEST, wire.PULL, wire.STATUS))
            writer.write(wire.header(kind, 1, self.rng.choice((1 << 62, 25_000_000, 600, 3))) + bytes(5000))
            await asyncio.sleep(0.2)
        finally:
            writer.transport.abort()

    async def _tell(self, claims: list[wire.Claim]) -> None:
        """MEMBERS, as an honest node says it."""
        reader, writer, _ = await self._greeted(self.name, 1, wire.MEMBERS_CAPABILITY | RAW)
        try:
            own = wire.Claim(self.name, self._port(), 1)
            writer.write(wire.members(2, [own, *claims]))
            kind, _, _ = wire.parse_header(await asyncio.wait_for(reader.readexactly(wire.HEADER_BYTES), 5))
            self.answered += kind == wire.MEMBERS
        finally:
            writer.transport.abort()

    def _port(self) -> int:
        assert self._server is not None
        return self._server.sockets[0].getsockname()[1]

    async def _bury(self) -> None:
        """Says of honest nodes that they are dead or gone, for processes that begin as late as is believed."""
        soon_us = time.time_ns() // 1000 + self.rng.choice((0, 1, 80_000_000_000))
        await self._tell([wire.Claim(name, port, soon_us, self.rng.choice((2, 3, 4)), self.rng.choice((0, 1, 1 << 31)))
                          for name, (_, port) in self.honest.items()])

    async def _crowd(self) -> None:
        """Tells of nodes that there are not."""
        await self._tell([wire.Claim(f"none-{self.rng.randrange(1 << 40)}", self.rng.randint(1, 65535),
                                     time.time_ns() // 1000, addresses=(f"127.1.{self.rng.randrange(256)}.1",))
                          for _ in range(100)])
