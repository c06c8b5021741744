"""A TCP proxy with faults: one listening port for every (caller, called) pair, so that it needs to know no protocol."""

from __future__ import annotations

import asyncio
import socket
import struct
from dataclasses import dataclass

from tasks import end_all

READ_BYTES = 1 << 16


@dataclass
class Condition:
    """What a link does to what passes; the defaults do nothing. `out` is from the caller to the called, `in` back."""

    hold_out: bool = False  # bytes wait, as a network that drops packets makes them wait for their retransmission
    hold_in: bool = False
    delay_s: float = 0.0
    bytes_per_second: float = 0.0  # 0 = as fast as it goes
    corrupt_every: int = 0  # one bit of every so many bytes is flipped; 0 = never
    truncate_after: int = -1  # a connection ends after so many bytes of the called side; -1 = never


def reset(writer: asyncio.StreamWriter) -> None:
    """Ends a connection with RST."""
    connection = writer.get_extra_info("socket")
    if connection is not None:
        try:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        except OSError:
            pass
    writer.transport.abort()


class Link:
    """From one caller to one called node. Single-threaded: the event loop's."""

    def __init__(self, port: int) -> None:
        self.called_port = port
        self.condition = Condition()
        self.connections = 0  # ever
        self._open: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._changed = asyncio.Event()
        self._server: asyncio.Server | None = None

    async def listen(self, host: str = "127.0.0.1") -> int:
        self._server = await asyncio.start_server(self._accept, host, 0, limit=READ_BYTES)
        return self._server.sockets[0].getsockname()[1]

    def set(self, condition: Condition) -> None:
        self.condition = condition
        self._changed.set()
        self._changed = asyncio.Event()

    def reset_all(self) -> None:
        for writer in [*self._open]:
            reset(writer)

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
        self.reset_all()
        await end_all(self._tasks)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        task = asyncio.current_task()
        if task is not None:
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        self._open.add(writer)
        far_writer: asyncio.StreamWriter | None = None
        try:
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self.called_port, limit=READ_BYTES)
            self._open.add(far_writer)
            pumps = {asyncio.ensure_future(self._pump(reader, far_writer, True)),
                     asyncio.ensure_future(self._pump(far_reader, writer, False))}
            try:
                await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
            finally:
                await end_all(pumps)
        except (OSError, asyncio.CancelledError):
            pass
        finally:
            for one in (writer, far_writer):
                if one is not None:
                    self._open.discard(one)
                    reset(one)

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, outward: bool) -> None:
        passed = 0
        while data := await reader.read(READ_BYTES):
            while self.condition.hold_out if outward else self.condition.hold_in:
                await self._changed.wait()
            now = self.condition
            if now.delay_s > 0:
                await asyncio.sleep(now.delay_s)
            if now.corrupt_every > 0:
                data = _corrupt(data, passed, now.corrupt_every)
            if now.truncate_after >= 0 and not outward:
                data = data[:max(0, now.truncate_after - passed)]
            if not data:
                return
            passed += len(data)
            await self._write(writer, data)

    async def _write(self, writer: asyncio.StreamWriter, data: bytes) -> None:
        while data:
            rate = self.condition.bytes_per_second
            piece = data if rate <= 0 else data[:max(1, int(rate / 20))]
            writer.write(piece)
            await writer.drain()
            data = data[len(piece):]
            if rate > 0:  # ends early when the condition does
                try:
                    await asyncio.wait_for(self._changed.wait(), len(piece) / rate)
                except asyncio.TimeoutError:
                    pass


def _corrupt(data: bytes, passed: int, every: int) -> bytes:
    """Flips a bit in each byte whose position in the stream, `passed` for the first, is the last of a run of `every`."""
    changed = bytearray(data)
    for at in range(every - 1 - passed % every, len(data), every):
        changed[at] ^= 1 << (passed + at) % 8
    return bytes(changed)
