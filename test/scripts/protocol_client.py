"""Connections of the second implementation of the wire protocol, whose messages are in protocol_messages.py."""

from __future__ import annotations

import socket

from protocol_messages import (
    BUSY,
    EMPTY,
    ERROR,
    HEADER,
    HELLO,
    MANIFEST,
    MANIFEST_REQUEST,
    MEMBERS,
    NOT_MODIFIED,
    NOT_READY,
    PULL,
    REJECT,
    SNAPSHOT,
    STATUS,
    STATUS_REQUEST,
    WELCOME,
    Exchange,
    Hello,
    Member,
    Pull,
    Reader,
    Rejected,
    Snapshot,
    Tensor,
    Welcome,
    crc32c,
    frame,
    manifest_body,
    members_body,
    parse_members,
    require,
    sealed,
)


class Connection:
    def __init__(self, link: socket.socket):
        self.link = link

    def close(self) -> None:
        self.link.close()

    def read(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            more = self.link.recv(count - len(data))
            if not more:
                raise EOFError("the connection was closed")
            data += more
        return data

    def read_frame(self) -> tuple[int, int, bytes]:
        """Type, request id and body."""
        header = self.read(32)
        magic, version, kind, flags, request_id, zero, length, zero2, crc = HEADER.unpack(header)
        require(magic == b"DPWA" and version == 1, "the magic or the version")
        require(crc32c(header[:28]) == crc, "the header's checksum is wrong")
        require((flags, zero, zero2) == (0, 0, 0), "a reserved field")
        return kind, request_id, self.read(length)

    def send(self, kind: int, request_id: int, body: bytes) -> None:
        self.link.sendall(frame(kind, request_id, body))


class Caller(Connection):
    """One connection to a node: HELLO, then requests."""

    def __init__(self, port: int, timeout: float = 120):
        super().__init__(socket.create_connection(("127.0.0.1", port), timeout))
        self.request_id = 0

    def __enter__(self) -> Caller:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def ask(self, kind: int, body: bytes, reply_kinds: tuple[int, ...]) -> tuple[int, bytes]:
        self.request_id += 1
        self.send(kind, self.request_id, body)
        reply, request_id, answer = self.read_frame()
        if reply == REJECT:
            raise Rejected(answer)
        require(reply in reply_kinds, f"message {reply} is no answer to {kind}")
        require(request_id == self.request_id, "an answer to another request")
        return reply, answer

    def hello(self, hello: Hello, tensors: list[Tensor] | None = None) -> Welcome:
        kind, body = self.ask(HELLO, hello.body(), (WELCOME, MANIFEST_REQUEST))
        if kind == MANIFEST_REQUEST:
            require(body == EMPTY and tensors is not None, "MANIFEST_REQUEST")
            self.send(MANIFEST, self.request_id, sealed(manifest_body(tensors or [])))
            _, request_id, body = self.read_frame()
            require(request_id == self.request_id, "an answer to another request")
            raise Rejected(body)
        return Welcome.parse(body)

    def pull(self, pull: Pull) -> Snapshot | int:
        """The snapshot, or the type of the answer that is none."""
        kind, body = self.ask(PULL, pull.body(), (SNAPSHOT, NOT_MODIFIED, NOT_READY, BUSY, ERROR))
        if kind == SNAPSHOT:
            return Snapshot.parse(body, pull)
        require(kind == ERROR or body == EMPTY, "fields where there are none")
        return kind

    def members(self, known: list[Member], part: int = 0) -> Exchange:
        return parse_members(self.ask(MEMBERS, members_body(known, part), (MEMBERS,))[1])

    def status(self) -> str:
        _, body = self.ask(STATUS_REQUEST, EMPTY, (STATUS,))
        reader = Reader(body)
        (length,) = reader.take("I")
        (data,) = reader.take(f"{length}s")
        reader.end()
        return data.decode()
