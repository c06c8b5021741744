"""docs/PROTOCOL.md is enough: a second implementation, in Python, meets a real node and finishes a run with it."""

from __future__ import annotations

import json
import math
import os
import socket
import struct
import subprocess
import tempfile
import threading
import time
import unittest
from collections.abc import Callable
from pathlib import Path

import scripts_path  # noqa: F401  (before the modules of scripts/)
import protocol_messages as wire
from lib.ports import free_ports
from protocol_client import Caller, Connection
from protocol_messages import Hello, Member, Pull, Rejected, Snapshot, Tensor

TRAINER = os.environ.get("DPWA_VECTOR_TRAINER", "")
ELEMENTS = 5000
BYTES = 4 * ELEMENTS
MODEL = [Tensor("x", 1, 1, (ELEMENTS,))]
PATIENCE = 240.0  # longer than anything takes on a loaded machine
CAPABILITIES = wire.ALL_CODECS | wire.MEMBERS_BIT


def as_float32(value: float) -> float:
    return struct.unpack("<f", struct.pack("<f", value))[0]


def mean_of(models: list[list[float]]) -> bytes:
    """The final average, folded as the paper says."""
    mean = models[0]
    for count, model in enumerate(models[1:], start=2):
        keep, add = as_float32(1 - 1 / count), as_float32(1 / count)
        mean = [as_float32(as_float32(x * keep) + as_float32(y * add)) for x, y in zip(mean, model)]
    return struct.pack(f"<{len(mean)}f", *mean)


class SecondNode:
    """Node w2: serves what the test gives it, one thread a connection."""

    def __init__(self, port: int):
        self.me = Member("w2", port, int(time.time() * 1e6))
        self.others: list[Member] = []  # that it has heard of
        self.state = wire.JOINING
        self.snapshot: Snapshot | None = None
        self.values = b""
        self.served_for_final_average = threading.Event()
        self.faults: list[str] = []
        self.listener = socket.create_server(("127.0.0.1", port))
        threading.Thread(target=self.accept, daemon=True).start()

    def hello(self, **changes: object) -> Hello:
        hello = Hello("test", "w2", self.me.incarnation, wire.fingerprint(MODEL), CAPABILITIES)
        for name, value in changes.items():
            setattr(hello, name, value)
        return hello

    def finish(self, lineage: int, clock: float, values: list[float]) -> None:
        self.values = struct.pack(f"<{len(values)}f", *values)
        self.snapshot = Snapshot(
            1, lineage, clock, math.nan, 1.0, int(time.time() * 1e6), 0, 0, 0, wire.FINISHED, wire.RAW, wire.FINAL
        )
        self.state = wire.FINISHED

    def close(self) -> None:
        self.listener.close()

    def accept(self) -> None:
        while True:
            try:
                link, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(link,), daemon=True).start()

    def serve(self, link: socket.socket) -> None:
        connection = Connection(link)
        try:
            kind, request_id, body = connection.read_frame()
            caller = Hello.parse(body)
            wire.require(kind == wire.HELLO and caller.cluster == "test", "HELLO")
            wire.require(caller.node == "" or caller.fingerprint == wire.fingerprint(MODEL), "another model")
            known = self.snapshot
            welcome = wire.Welcome(
                self.state,
                CAPABILITIES,
                self.me.incarnation,
                known.lineage if known else 0,
                known.clock if known else 0.0,
                "w2",
            )
            connection.send(wire.WELCOME, request_id, welcome.body())
            while True:
                kind, request_id, body = connection.read_frame()
                reply, answer = self.answer(kind, body)
                connection.send(reply, request_id, answer)
        except (EOFError, OSError):
            pass
        except (ValueError, struct.error) as fault:
            self.faults.append(str(fault))
        finally:
            connection.close()

    def answer(self, kind: int, body: bytes) -> tuple[int, bytes]:
        if kind == wire.MEMBERS:
            wire.parse_members(body)
            return wire.MEMBERS, wire.members_body([self.me, *self.others])
        wire.require(kind == wire.PULL, f"message {kind}")
        pull = Pull.parse(body)
        if self.snapshot is None:
            return wire.NOT_READY, wire.EMPTY
        if pull.known_version == self.snapshot.version:
            return wire.NOT_MODIFIED, wire.EMPTY
        length = pull.length or BYTES - pull.offset
        wire.require(pull.codec == wire.RAW and pull.offset + length <= BYTES, "PULL")
        part = self.values[pull.offset : pull.offset + length]
        chunks = [part[at : at + pull.chunk_bytes] for at in range(0, length, pull.chunk_bytes)]
        reply = Snapshot(**(self.snapshot.__dict__ | {"offset": pull.offset, "length": length}))
        reply.chunk_bytes, reply.payloads = pull.chunk_bytes, chunks
        if pull.flags & wire.FOR_FINAL_AVERAGE:
            self.served_for_final_average.set()
        return wire.SNAPSHOT, reply.body()


@unittest.skipUnless(os.access(TRAINER, os.X_OK), "DPWA_VECTOR_TRAINER names no program")
class Protocol(unittest.TestCase):
    def setUp(self) -> None:
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = Path(scratch.name)
        self.port, second = free_ports(2)
        self.node = SecondNode(second)
        self.addCleanup(self.node.close)
        nodes = f"nodes: [{{name: w1, port: {self.port}}}, {{name: w2, port: {second}}}]\n"
        file = self.folder / "cluster.yaml"
        gossip = "gossip: {start_wait_ms: 300, finish_wait_ms: 60000, timeout_ms: 10000, firewall: {distance: off}}\n"
        file.write_text("cluster: test\n" + nodes + gossip, encoding="utf-8")
        command = [TRAINER, str(file), "w1", str(self.folder / "w1.jsonl"), "--until", str(self.folder / "end")]
        command += ["--elements", str(ELEMENTS), "--step-ms", "50"]
        self.log = (self.folder / "w1.log").open("w+", encoding="utf-8")
        self.addCleanup(self.log.close)
        self.trainer = subprocess.Popen(command, stderr=self.log)
        self.addCleanup(self.trainer.wait)
        self.addCleanup(self.trainer.kill)
        self.until("w1 is ready", lambda: self.state_of_w1() == wire.READY)

    def until(self, what: str, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE
        while not condition():
            if time.monotonic() > deadline or self.trainer.poll() not in (None, 0):
                self.log.seek(0)
                self.fail(f"waited in vain until {what}; {self.node.faults}\n{self.log.read()}")
            time.sleep(0.01)

    def state_of_w1(self) -> int:
        try:
            with Caller(self.port) as caller:
                return caller.hello(Hello("test")).state
        except OSError:
            return 0

    def call(self) -> Caller:
        caller = Caller(self.port)
        self.addCleanup(caller.close)
        caller.hello(self.node.hello())
        return caller

    def snapshot(self, caller: Caller, pull: Pull) -> Snapshot:
        """What a pull brings, sooner or later."""
        found: list[Snapshot] = []

        def asked() -> bool:
            answer = caller.pull(pull)
            found.extend([answer] if isinstance(answer, Snapshot) else [])
            return bool(found)

        self.until("a pull brings a snapshot", asked)
        return found[0]

    def test_handshake_and_refusals(self) -> None:
        with Caller(self.port) as caller:
            welcome = caller.hello(self.node.hello())
        self.assertEqual((welcome.node, welcome.state), ("w1", wire.READY))
        self.assertEqual(welcome.capabilities, CAPABILITIES | wire.LEDGER_BIT)  # which this peer does not keep
        self.assertNotEqual((welcome.incarnation, welcome.lineage), (0, 0))
        other = [Tensor("y", 1, 1, (ELEMENTS,))]
        refused = {
            2: ({"cluster": "other"}, None),
            3: ({"node": "w9", "capabilities": wire.ALL_CODECS}, None),  # may join, but not without MEMBERS
            4: ({"fingerprint": wire.fingerprint(other)}, other),
            5: ({"node": "w1"}, None),
        }
        for code, (changes, tensors) in refused.items():
            with self.subTest(code), Caller(self.port) as caller, self.assertRaises(Rejected) as refusal:
                caller.hello(self.node.hello(**changes), tensors)
            self.assertEqual(refusal.exception.code, code)
            self.assertNotIn("\n", refusal.exception.reason)
            if code == 4:
                self.assertIn("'y'", refusal.exception.reason)
        with Caller(self.port) as caller:
            caller.link.sendall(wire.frame(wire.HELLO, 7, self.node.hello().body(), version=2))
            kind, request_id, body = caller.read_frame()
            self.assertEqual((kind, request_id), (wire.REJECT, 0))
            self.assertEqual(Rejected(body).code, 1)
        with Caller(self.port) as caller:  # any other fault ends the connection without a word
            broken = bytearray(wire.frame(wire.HELLO, 7, self.node.hello().body()))
            broken[-1] ^= 1
            caller.link.sendall(broken)
            with self.assertRaises((EOFError, ConnectionResetError)):
                caller.read_frame()

    def test_pulls(self) -> None:
        caller = self.call()
        whole = self.snapshot(caller, Pull())
        values = whole.floats()
        self.assertEqual((whole.offset, whole.length, len(values)), (0, BYTES, ELEMENTS))
        self.assertEqual((whole.state, whole.flags, whole.weight), (wire.READY, 0, 1.0))
        self.assertTrue(all(math.isfinite(value) for value in values))
        # The trainer's second half repeats the first: nothing is out of place, and nothing torn.
        self.assertTrue(values[: ELEMENTS // 2] == values[ELEMENTS // 2 :])

        versions = [whole.version]

        def unchanged() -> bool:
            answer = caller.pull(Pull(known_version=versions[-1]))
            if isinstance(answer, Snapshot):
                versions.append(answer.version)
            return answer == wire.NOT_MODIFIED

        self.until("NOT_MODIFIED", unchanged)
        self.assertEqual(versions, sorted(set(versions)))

        block = self.snapshot(caller, Pull(offset=64 * 10, length=64 * 5))
        self.assertEqual(len(block.floats()), 16 * 5)
        self.assertEqual(caller.pull(Pull(offset=1, length=64)), wire.ERROR)

    def test_a_range_that_no_snapshot_has_is_answered_with_error(self) -> None:
        for pull in (Pull(offset=64, length=BYTES), Pull(length=2, codec=wire.INT8)):
            self.assertEqual(self.call().pull(pull), wire.ERROR)

    def test_encodings(self) -> None:
        caller = self.call()
        # The weights that training begins with are all the same, and exact in any encoding.
        self.until("training moves the weights", lambda: len(set(self.snapshot(caller, Pull()).floats())) > 100)
        for codec, error in ((wire.FP16, 2.0**-11), (wire.BF16, 2.0**-8), (wire.INT8, 2.0**-7)):
            pairs: list[tuple[Snapshot, Snapshot]] = []

            def of_one_version() -> bool:
                raw, coded = self.snapshot(caller, Pull()), self.snapshot(caller, Pull(codec=codec))
                pairs.extend([(raw, coded)] if raw.version == coded.version else [])
                return bool(pairs)

            self.until("two pulls bring one version", of_one_version)
            raw, coded = (snapshot.floats() for snapshot in pairs[0])
            self.assertEqual(len(coded), ELEMENTS)
            self.assertFalse(coded == raw)
            for at in range(0, ELEMENTS, 16):  # of a chunk, as 4,096 bytes hold whole blocks
                largest = max(abs(value) for value in raw[at : at + 16])
                for x, y in zip(raw[at : at + 16], coded[at : at + 16]):
                    scale = largest if codec == wire.INT8 else abs(x)
                    self.assertLessEqual(abs(x - y), error * scale + 3.1e-8)

    def test_members(self) -> None:
        caller = self.call()
        heard = caller.members([self.node.me])
        self.assertEqual(heard.total, 2)
        w1 = heard.members[0]
        self.assertEqual((w1.name, w1.port, w1.status), ("w1", self.port, 1))
        self.node.others = [w1]
        # Both know the same processes now.
        again = caller.members([self.node.me, w1])
        self.assertEqual(again.digest, wire.digest([self.node.me, *again.members[:1]]))

    def test_status(self) -> None:
        with Caller(self.port) as caller:
            caller.hello(Hello("test"))
            status = json.loads(caller.status())
        self.assertEqual(status["node"], "w1")

    def test_the_final_average(self) -> None:
        self.call().members([self.node.me])
        (self.folder / "end").touch()
        self.until("w1 has finished", lambda: self.state_of_w1() == wire.FINISHED)
        caller = self.call()
        final = self.snapshot(caller, Pull(flags=wire.FULL | wire.FOR_FINAL_AVERAGE))
        self.assertEqual((final.state, final.flags), (wire.FINISHED, wire.FINAL))
        own = [math.cos(e) for e in range(ELEMENTS)]
        own = [as_float32(value) for value in own]
        self.node.finish(final.lineage, final.clock, own)
        self.until("w1 took part", self.node.served_for_final_average.is_set)
        self.assertEqual(self.trainer.wait(PATIENCE), 0)
        lines = (self.folder / "w1.jsonl").read_text(encoding="utf-8").splitlines()
        report = json.loads(lines[-1])
        self.assertEqual(report["participants"], 2)
        self.assertEqual(report["checksum"], wire.crc32c(mean_of([final.floats(), own])))
        self.assertEqual(self.node.faults, [])


if __name__ == "__main__":
    unittest.main()
