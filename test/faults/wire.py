"""The wire protocol of docs/PROTOCOL.md, written from the document alone: enough of it for attackers and observers."""

from __future__ import annotations

import hashlib
import struct
from dataclasses import dataclass

MAGIC = b"DPWA"
HEADER_BYTES = 32
(HELLO, WELCOME, REJECT, MANIFEST_REQUEST, MANIFEST, PULL, SNAPSHOT, NOT_MODIFIED, NOT_READY, BUSY, ERROR,
 STATUS_REQUEST, STATUS) = range(1, 14)
MEMBERS = 30
MEMBERS_CAPABILITY = 1 << 30
NODE, OBSERVER = 1, 2
JOINING, READY, FINISHED = 1, 2, 3
EMPTY = b"\0\0\0\0"  # the body of a message without fields: its checksum


def _crc_table() -> tuple[int, ...]:
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return tuple(table)


_TABLE = _crc_table()


def crc32c(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ _TABLE[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


def header(kind: int, request: int, length: int, version: int = 1) -> bytes:
    start = MAGIC + struct.pack("<BBHIIQI", version, kind, 0, request, 0, length, 0)
    return start + struct.pack("<I", crc32c(start))


def checked(fields: bytes) -> bytes:
    return fields + struct.pack("<I", crc32c(fields))


def frame(kind: int, request: int, fields: bytes = b"") -> bytes:
    body = checked(fields)
    return header(kind, request, len(body)) + body


def string(text: str) -> bytes:
    data = text.encode()
    return struct.pack("<H", len(data)) + data


def parse_header(data: bytes) -> tuple[int, int, int]:
    """Type, request id and length of the body. ValueError for what no sound peer sends."""
    if data[:4] != MAGIC or struct.unpack("<I", data[28:])[0] != crc32c(data[:28]):
        raise ValueError("not a frame")
    return data[5], struct.unpack_from("<I", data, 8)[0], struct.unpack_from("<Q", data, 16)[0]


def vector_fingerprint(elements: int) -> bytes:
    """Of a model that is one float32 vector named x: that of dpwa_vector_trainer."""
    tensor = struct.pack("<I", 1) + string("x") + struct.pack("<BBBQ", 1, 1, 1, elements)
    return hashlib.sha256(b"dpwa-manifest-1" + tensor).digest()


def hello(role: int, cluster: str, node: str, incarnation: int, fingerprint: bytes = bytes(32),
          capabilities: int = 0b11110) -> bytes:
    fields = struct.pack("<B3xIQ", role, capabilities, incarnation) + fingerprint
    return frame(HELLO, 1, fields + string(cluster) + string(node))


@dataclass
class Welcome:
    state: int
    lineage: int
    clock: float
    node: str
    incarnation: int = 1
    capabilities: int = 0b11110

    def encode(self, request: int) -> bytes:
        fields = struct.pack("<B3xIQQd", self.state, self.capabilities, self.incarnation, self.lineage, self.clock)
        return frame(WELCOME, request, fields + string(self.node) + string(""))

    @classmethod
    def decode(cls, body: bytes) -> Welcome:
        state, capabilities, incarnation, lineage, clock = struct.unpack_from("<B3xIQQd", body)
        size = struct.unpack_from("<H", body, 32)[0]
        return cls(state, lineage, clock, body[34:34 + size].decode(), incarnation, capabilities)


@dataclass
class Pull:
    known: int = 0
    offset: int = 0
    length: int = 0
    deadline_ms: int = 2000
    chunk_bytes: int = 1 << 19
    codec: int = 1
    flags: int = 0

    def encode(self, request: int) -> bytes:
        return frame(PULL, request, struct.pack("<QQQIIBB2x", self.known, self.offset, self.length, self.deadline_ms,
                                                self.chunk_bytes, self.codec, self.flags))

    @classmethod
    def decode(cls, body: bytes) -> Pull:
        return cls(*struct.unpack_from("<QQQIIBB", body))


@dataclass
class Head:
    """The head of a SNAPSHOT."""

    version: int
    lineage: int
    clock: float
    loss: float = 0.0
    weight: float = 1.0
    time_us: int = 0
    offset: int = 0
    length: int = 0
    chunk_bytes: int = 1 << 19
    state: int = READY
    codec: int = 1
    flags: int = 0

    def encode(self) -> bytes:
        return checked(struct.pack("<QQdddqQQIBBB21x", self.version, self.lineage, self.clock, self.loss, self.weight,
                                   self.time_us, self.offset, self.length, self.chunk_bytes, self.state, self.codec,
                                   self.flags))

    @classmethod
    def decode(cls, body: bytes) -> Head:
        return cls(*struct.unpack_from("<QQdddqQQIBBB", body))


@dataclass
class Claim:
    """One entry of MEMBERS."""

    name: str
    port: int
    incarnation: int
    status: int = 1  # 1 alive, 2 suspect, 3 dead, 4 left
    refutation: int = 0
    addresses: tuple[str, ...] = ("127.0.0.1",)

    def encode(self) -> bytes:
        fields = struct.pack("<BBHIQ", self.status, len(self.addresses), self.port, self.refutation, self.incarnation)
        return fields + string(self.name) + b"".join(string(address) for address in self.addresses)


def members(request: int, claims: list[Claim], known: int = 0, digest: int = 0, part: int = 0) -> bytes:
    """The sender's own claim comes first."""
    entries = b"".join(claim.encode() for claim in claims)
    return frame(MEMBERS, request, struct.pack("<IQIH", known, digest, part, len(claims)) + entries)


def snapshot(request: int, head: Head, chunks: list[bytes], length_lie: int = 0) -> bytes:
    """A whole SNAPSHOT; `length_lie` is added to the length that the frame announces."""
    parts = [struct.pack("<II", len(chunk), crc32c(chunk)) + chunk for chunk in chunks]
    body = head.encode() + b"".join(parts)
    return header(SNAPSHOT, request, len(body) + length_lie) + body


def cut(payload: bytes, chunk_bytes: int) -> list[bytes]:
    return [payload[at:at + chunk_bytes] for at in range(0, len(payload), chunk_bytes)]


def payload_of(body: bytes) -> bytes:
    """The raw payload of a SNAPSHOT's body. ValueError where a checksum is wrong."""
    at, payload = 96, b""
    while at < len(body):
        size, crc = struct.unpack_from("<II", body, at)
        chunk = body[at + 8:at + 8 + size]
        if crc32c(chunk) != crc:
            raise ValueError("a chunk's checksum is wrong")
        payload += chunk
        at += 8 + size
    return payload
