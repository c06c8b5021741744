"""A second implementation of the wire protocol, written from docs/PROTOCOL.md and docs/ENCODINGS.md alone.

Standard library only, plain TCP. Slow, and just enough for protocol_test.py: what the papers do not say it cannot know.
"""

from __future__ import annotations

import hashlib
import math
import struct
from dataclasses import dataclass, field

HELLO, WELCOME, REJECT, MANIFEST_REQUEST, MANIFEST, PULL, SNAPSHOT = range(1, 8)
NOT_MODIFIED, NOT_READY, BUSY, ERROR, STATUS_REQUEST, STATUS = range(8, 14)
MEMBERS = 30
JOINING, READY, FINISHED = 1, 2, 3
RAW, FP16, BF16, INT8 = 1, 2, 3, 4
ALL_CODECS = sum(1 << codec for codec in (RAW, FP16, BF16, INT8))
LEDGER_BIT = 1 << 29
MEMBERS_BIT = 1 << 30
FULL, FOR_FINAL_AVERAGE = 1, 2  # flags of PULL
FINAL = 1  # flag of SNAPSHOT
HEADER = struct.Struct("<4sBBHIIQII")
HEAD = struct.Struct("<QQdddqQQIBBB21x")
MASK = (1 << 64) - 1


def _crc_table() -> list[int]:
    table = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
        table.append(value)
    return table


CRC_TABLE = _crc_table()


def crc32c(data: bytes) -> int:
    """The Castagnoli checksum of RFC 3720."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ CRC_TABLE[(crc ^ byte) & 255]
    return crc ^ 0xFFFFFFFF


def require(holds: bool, what: str) -> None:
    if not holds:
        raise ValueError(what)


def sealed(body: bytes) -> bytes:
    """A body with its checksum."""
    return body + struct.pack("<I", crc32c(body))


def text(value: str) -> bytes:
    data = value.encode()
    return struct.pack("<H", len(data)) + data


def frame(kind: int, request_id: int, body: bytes, version: int = 1) -> bytes:
    head = struct.pack("<4sBBHIIQI", b"DPWA", version, kind, 0, request_id, 0, len(body), 0)
    return head + struct.pack("<I", crc32c(head)) + body


EMPTY = sealed(b"")


class Reader:
    """The fields of a body, consumed exactly."""

    def __init__(self, body: bytes):
        require(crc32c(body[:-4]) == struct.unpack("<I", body[-4:])[0], "the body's checksum is wrong")
        self.data, self.at = body[:-4], 0

    def take(self, layout: str) -> tuple:
        values = struct.unpack_from("<" + layout, self.data, self.at)
        self.at += struct.calcsize("<" + layout)
        return values

    def text(self) -> str:
        (length,) = self.take("H")
        (data,) = self.take(f"{length}s")
        return data.decode()

    def end(self) -> None:
        require(self.at == len(self.data), "bytes are left over")


# --- models


@dataclass(frozen=True)
class Tensor:
    name: str
    dtype: int
    rule: int
    shape: tuple[int, ...]


def manifest_body(tensors: list[Tensor]) -> bytes:
    body = struct.pack("<I", len(tensors))
    for tensor in tensors:
        body += text(tensor.name) + struct.pack("<BBB", tensor.dtype, tensor.rule, len(tensor.shape))
        body += struct.pack(f"<{len(tensor.shape)}Q", *tensor.shape)
    return body


def fingerprint(tensors: list[Tensor]) -> bytes:
    return hashlib.sha256(b"dpwa-manifest-1" + manifest_body(tensors)).digest()


# --- members


@dataclass
class Member:
    name: str
    port: int
    incarnation: int
    addresses: list[str] = field(default_factory=lambda: ["127.0.0.1"])
    refutation: int = 0
    status: int = 1

    def runs(self) -> bool:
        return self.status in (1, 2)


def splitmix64(x: int) -> int:
    x = (x + 0x9E3779B97F4A7C15) & MASK
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & MASK
    x = (x ^ x >> 27) * 0x94D049BB133111EB & MASK
    return x ^ x >> 31


def hash_of(member: Member) -> int:
    hashed = 0xCBF29CE484222325
    for byte in member.name.encode():
        hashed = (hashed ^ byte) * 0x100000001B3 & MASK
    hashed = splitmix64(hashed)
    for number in (member.incarnation, member.refutation):
        hashed = splitmix64((splitmix64(hashed) + number) & MASK)
    return hashed


def digest(members: list[Member]) -> int:
    value = 0
    for member in members:
        if member.runs():
            value ^= hash_of(member)
    return value


@dataclass
class Exchange:
    total: int
    digest: int
    part: int
    members: list[Member]


def members_body(known: list[Member], part: int = 0) -> bytes:
    """All that is known, the sender first."""
    body = struct.pack("<IQIH", len(known), digest(known), part, len(known))
    for member in known:
        body += struct.pack("<BBH", member.status, len(member.addresses), member.port)
        body += struct.pack("<IQ", member.refutation, member.incarnation) + text(member.name)
        body += b"".join(text(address) for address in member.addresses)
    return sealed(body)


def parse_members(body: bytes) -> Exchange:
    reader = Reader(body)
    total, digested, part, count = reader.take("IQIH")
    members = []
    for _ in range(count):
        status, addresses, port, refutation, incarnation = reader.take("BBHIQ")
        name = reader.text()
        members.append(Member(name, port, incarnation, [reader.text() for _ in range(addresses)], refutation, status))
    reader.end()
    return Exchange(total, digested, part, members)


# --- messages


@dataclass
class Hello:
    cluster: str
    node: str = ""  # empty: an observer
    incarnation: int = 0
    fingerprint: bytes = bytes(32)
    capabilities: int = ALL_CODECS

    def body(self) -> bytes:
        role = 1 if self.node else 2
        fixed = struct.pack("<B3xIQ32s", role, self.capabilities, self.incarnation, self.fingerprint)
        return sealed(fixed + text(self.cluster) + text(self.node))

    @staticmethod
    def parse(body: bytes) -> Hello:
        reader = Reader(body)
        role, capabilities, incarnation, model = reader.take("B3xIQ32s")
        hello = Hello(reader.text(), reader.text(), incarnation, model, capabilities)
        reader.end()
        require((role == 2) == (hello.node == ""), "a role that does not fit the name")
        return hello


@dataclass
class Welcome:
    state: int
    capabilities: int
    incarnation: int
    lineage: int
    clock: float
    node: str
    same_host: str = ""

    def body(self) -> bytes:
        fixed = struct.pack(
            "<B3xIQQd", self.state, self.capabilities, self.incarnation, self.lineage, self.clock
        )
        return sealed(fixed + text(self.node) + text(self.same_host))

    @staticmethod
    def parse(body: bytes) -> Welcome:
        reader = Reader(body)
        welcome = Welcome(*reader.take("B3xIQQd"), reader.text(), reader.text())
        reader.end()
        return welcome


class Rejected(Exception):
    def __init__(self, body: bytes):
        reader = Reader(body)
        (self.code,) = reader.take("H")
        self.reason = reader.text()
        reader.end()
        super().__init__(f"{self.code}: {self.reason}")


@dataclass
class Pull:
    known_version: int = 0
    offset: int = 0
    length: int = 0
    deadline_ms: int = 20000
    chunk_bytes: int = 4096
    codec: int = RAW
    flags: int = 0

    LAYOUT = "QQQIIBB2x"

    def body(self) -> bytes:
        fields = (self.known_version, self.offset, self.length, self.deadline_ms, self.chunk_bytes)
        return sealed(struct.pack("<" + self.LAYOUT, *fields, self.codec, self.flags))

    @staticmethod
    def parse(body: bytes) -> Pull:
        reader = Reader(body)
        pull = Pull(*reader.take(Pull.LAYOUT))
        reader.end()
        return pull


@dataclass
class Snapshot:
    version: int
    lineage: int
    clock: float
    loss: float
    weight: float
    time_us: int
    offset: int
    length: int
    chunk_bytes: int
    state: int
    codec: int
    flags: int
    payloads: list[bytes] = field(default_factory=list)

    def head(self) -> bytes:
        numbers = (self.version, self.lineage, self.clock, self.loss, self.weight, self.time_us)
        place = (self.offset, self.length, self.chunk_bytes, self.state, self.codec, self.flags)
        return sealed(HEAD.pack(*numbers, *place))

    def body(self) -> bytes:
        chunks = [struct.pack("<II", len(data), crc32c(data)) + data for data in self.payloads]
        return self.head() + b"".join(chunks)

    @staticmethod
    def parse(body: bytes, asked: Pull) -> Snapshot:
        require(crc32c(body[:92]) == struct.unpack_from("<I", body, 92)[0], "the head's checksum is wrong")
        snapshot = Snapshot(*HEAD.unpack_from(body))
        require(math.isfinite(snapshot.clock) and snapshot.clock >= 0, "the clock")
        require(snapshot.chunk_bytes == asked.chunk_bytes and snapshot.codec == asked.codec, "not what was asked for")
        require(snapshot.offset == asked.offset and asked.length in (0, snapshot.length), "another range")
        at = 96
        for _ in range(math.ceil(snapshot.length / snapshot.chunk_bytes)):
            size, crc = struct.unpack_from("<II", body, at)
            payload = body[at + 8 : at + 8 + size]
            require(len(payload) == size and crc32c(payload) == crc, "a chunk's checksum is wrong")
            snapshot.payloads.append(payload)
            at += 8 + size
        require(at == len(body), "bytes are left over")
        return snapshot

    def floats(self) -> list[float]:
        """The elements of a model that is one float32 tensor."""
        return [value for payload in self.payloads for value in decode(payload, self.codec)]


def decode(payload: bytes, codec: int) -> list[float]:
    """One piece of float32 elements."""
    if codec == RAW:
        return list(struct.unpack(f"<{len(payload) // 4}f", payload))
    if codec == FP16:
        return list(struct.unpack(f"<{len(payload) // 2}e", payload))
    if codec == BF16:
        halves = struct.unpack(f"<{len(payload) // 2}H", payload)
        return [struct.unpack("<f", struct.pack("<I", half << 16))[0] for half in halves]
    values: list[float] = []
    for at in range(0, len(payload), 17):
        exponent, *codes = struct.unpack(f"<B{len(payload[at + 1 : at + 17])}b", payload[at : at + 17])
        unit = 2.0 ** (max(exponent, 7) - 133)
        values += [math.nan if exponent == 255 else code * unit for code in codes]
    return values
