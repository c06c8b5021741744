"""The pure parts of the fault campaign: schedules, the wire, and that every invariant can be violated."""

from __future__ import annotations

import asyncio
import re
import unittest
from collections import Counter
from pathlib import Path

import invariants
import kills
import network
import proxy
import schedule
import wire
from campaign import parse, seeds_of, settings_for
from schedule import Fault

NAMES = ["w1", "w2", "w3", "w4"]
KINDS = ("kill", "stop", "flap", "kill_most", "attack", *schedule.LINK_KINDS)
GOLDEN = Path(__file__).resolve().parents[1] / "dpwa" / "wire" / "golden.hex"


def golden(name: str) -> bytes:
    _, _, rest = GOLDEN.read_text(encoding="ascii").partition(f"# dpwa protocol version 1: {name}, ")
    digits = rest.partition("\n")[2].partition("#")[0]
    return bytes.fromhex(digits.replace("\n", " "))


def step(number: int, at_ms: float, **changed: object) -> invariants.Line:
    return {"step": number, "at_ms": at_ms, "gossip_ms": 0.5, "waited_ms": 0.0, "finite": True, "twin_gap": 0.0,
            "clock": float(number), "outcome": "mixed", "probe": [0.0, 0.0], **changed}


class Members(unittest.TestCase):
    def test_the_message_is_that_of_the_document(self) -> None:
        sent = golden("members")
        claims = [
            wire.Claim("w1", 7001, 0x1112131415161718, 1, 0, ("10.0.0.1", "fe80::1")),
            wire.Claim("w2", 7002, 3, 2, 1, ("10.0.0.2",)),
            wire.Claim("w3", 65535, 4, 3, 1 << 31, ("::1",)),
            wire.Claim("w4", 1, 5, 4, 2, ("127.0.0.1",)),
        ]
        self.assertEqual(sent, wire.members(0x01020304, claims, 4, 0x0102030405060708, 2))


class Schedules(unittest.TestCase):
    def test_the_same_seed_gives_the_same_bytes_and_another_does_not(self) -> None:
        def make(seed: int) -> str:
            return schedule.to_json(schedule.generate(seed, NAMES, ["m1"], 20, KINDS))
        self.assertEqual(make(3), make(3))
        self.assertNotEqual(make(3), make(4))
        self.assertEqual(schedule.to_json(schedule.from_json(make(3))), make(3))

    def test_faults_are_over_in_time_and_half_of_the_nodes_are_always_left(self) -> None:
        for seed in range(100):
            faults = schedule.generate(seed, NAMES, ["m1"], 20, KINDS)
            self.assertGreater(len(faults), 10)
            self.assertEqual(max(one.end for one in faults), 20)
            for fault in faults:
                self.assertGreaterEqual(fault.at, 0)
                beside = [one for one in faults if one.at <= fault.at < one.end]
                away = {name for one in beside if one.kind in ("kill", "stop", "flap", "partition") for name in one.targets}
                self.assertLessEqual(len(away), 2)
                killed = [name for one in beside if one.kind in schedule.PROCESS_KINDS for name in one.targets]
                self.assertEqual(len(killed), len(set(killed)))

    def test_all_kinds_and_behaviours_occur_over_the_seeds(self) -> None:
        faults = [one for seed in range(100) for one in schedule.generate(seed, NAMES, ["m1"], 20, KINDS)]
        self.assertEqual({one.kind for one in faults}, set(KINDS))
        self.assertEqual({one.values["behaviour"] for one in faults if one.kind == "attack"},
                         set(schedule.BEHAVIOURS))

    def test_most_seeds_run_with_the_default_firewall_and_every_policy_occurs(self) -> None:
        sample = Path(__file__).resolve().parents[2] / "samples" / "cluster.yaml"
        default = re.search(r"^  firewall: \{distance: (\w+)", sample.read_text(encoding="utf-8"), re.MULTILINE)
        assert default is not None
        drawn = Counter(settings_for(parse([]), seed, "").firewall for seed in range(100))
        self.assertGreater(drawn[default[1]], 50)
        self.assertEqual(set(drawn), {"warn", "clip", "refuse"})

    def test_seeds_are_read(self) -> None:
        self.assertEqual(seeds_of("1..3,7"), [1, 2, 3, 7])
        self.assertRaises(ValueError, seeds_of, "x")


class Wire(unittest.TestCase):
    def test_checksum_is_castagnoli(self) -> None:
        self.assertEqual(wire.crc32c(b"123456789"), 0xE3069283)

    def test_messages_are_those_of_the_golden_files(self) -> None:
        fingerprint = bytes(range(1, 33))
        request = 0x01020304
        hello = wire.hello(wire.NODE, "digits", "w1", 0x1122334455667788, fingerprint, capabilities=2)
        self.assertEqual(hello[32:], golden("hello_node")[32:])
        self.assertEqual(wire.frame(wire.STATUS_REQUEST, request), golden("status_request"))
        self.assertEqual(wire.frame(wire.NOT_READY, request), golden("not_ready"))
        pull = golden("pull")
        self.assertEqual(wire.Pull.decode(pull[32:]).encode(request), pull)

    def test_a_snapshot_is_decoded_and_encoded_again(self) -> None:
        data = golden("snapshot")
        kind, request, size = wire.parse_header(data[:32])
        self.assertEqual((kind, size), (wire.SNAPSHOT, len(data) - 32))
        head, payload = wire.Head.decode(data[32:]), wire.payload_of(data[32:])
        self.assertEqual(wire.snapshot(request, head, wire.cut(payload, head.chunk_bytes)), data)
        self.assertRaises(ValueError, wire.payload_of, data[32:-1] + b"\xff")


class Links(unittest.TestCase):
    def test_corruption_hits_every_nth_byte_however_the_stream_is_cut(self) -> None:
        data = bytes(100)
        whole = proxy._corrupt(data, 0, 7)
        self.assertEqual([at for at in range(100) if whole[at]], list(range(6, 100, 7)))
        pieces = b"".join(proxy._corrupt(data[at:at + 9], at, 7) for at in range(0, 100, 9))
        self.assertEqual(pieces, whole)

    def test_a_one_way_partition_holds_what_the_small_side_sends_and_nothing_else(self) -> None:
        out = Fault(0, 1, "partition", ("w1",), {"direction": "out"})
        self.assertEqual(network.condition_of(("w1", "w2"), [out]), proxy.Condition(hold_out=True))
        self.assertEqual(network.condition_of(("w2", "w1"), [out]), proxy.Condition(hold_in=True))
        self.assertEqual(network.condition_of(("w2", "w3"), [out]), proxy.Condition())

    def test_a_link_forwards_and_resets(self) -> None:
        async def talk() -> None:
            async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                writer.write(await reader.read(100))
                try:
                    await reader.read(1)
                except ConnectionError:
                    pass
            server = await asyncio.start_server(echo, "127.0.0.1", 0)
            link = proxy.Link(server.sockets[0].getsockname()[1])
            reader, writer = await asyncio.open_connection("127.0.0.1", await link.listen())
            writer.write(b"hello")
            self.assertEqual(await reader.readexactly(5), b"hello")
            link.reset_all()
            with self.assertRaises(ConnectionError):
                await reader.readexactly(1)
            writer.close()
            await link.close()
            server.close()
        asyncio.run(talk())


class Life:
    """A process of kills.py that has ended: the lines of each of its lives."""

    def __init__(self, name: str, *lives: list[kills.Line], code: int = 0) -> None:
        self.name, self._lives, self.starts, self.running = name, lives, [0.0] * len(lives), self
        self.returncode, self.killed, self.frozen = code, [0.0] * (len(lives) - 1), []

    def poll(self) -> int:
        return self.returncode

    def lines(self, life: int) -> list[kills.Line]:
        return self._lives[life - 1]

    def all_lines(self) -> list[kills.Line]:
        return [line for life in self._lives for line in life]


class Kills(unittest.TestCase):
    def test_a_schedule_hits_one_or_two_and_of_two_servers_one_at_most(self) -> None:
        sizes = set()
        for seed in range(200):
            faults = kills.draw(seed, 8, 2, 6.0)
            victims = {fault.victim for fault in faults}
            self.assertEqual(len(victims), len(faults))
            self.assertLess(sum(victim >= 6 for victim in victims), 2)
            sizes.add(len(faults))
        self.assertEqual(sizes, {1, 2})

    def test_an_end_with_another_code_breaks_the_promise_unless_it_came_back_late(self) -> None:
        late = Life("w2", [{"at": 0.0}], [{"at": 9.5, "started": True}], code=1)
        kills.check_ends([Life("w1", [{"at": 0.0}]), late], first_end=10.0)
        with self.assertRaisesRegex(kills.Broken, "w2 ended with 1"):
            kills.check_ends([late], first_end=20.0)
        with self.assertRaisesRegex(kills.Broken, "w1 ended with 3"):
            kills.check_ends([Life("w1", [{"at": 0.0}], code=3)], first_end=20.0)

    def test_weights_after_a_step_together_are_equal(self) -> None:
        def life(name: str, crc: int, outcome: str = "averaged") -> Life:
            return Life(name, [{"at": 1.0, "step": 3, "outcome": outcome, "crc": crc}])

        kills.check_steps([life("w1", 1), life("w2", 1), life("w3", 2, "mixed")], collective=True)
        with self.assertRaisesRegex(kills.Broken, "w1 and w2 have different weights after step 3"):
            kills.check_steps([life("w1", 1), life("w2", 2)], collective=True)

    def test_the_models_at_the_end_are_equal_and_of_at_least_half(self) -> None:
        def life(name: str, crc: int, participants: int = 2, averaged: bool = True) -> Life:
            return Life(name, [{"at": 1.0, "finished": True, "averaged": averaged, "crc": crc, "participants": participants}])

        kills.check_models([life("w1", 1), life("w2", 1), life("w3", 2, 3)], 9.0)
        with self.assertRaisesRegex(kills.Broken, "w1 and w2 end with different models of 2 nodes"):
            kills.check_models([life("w1", 1), life("w2", 2)], 9.0)
        with self.assertRaisesRegex(kills.Broken, "only 0"):
            kills.check_models([life("w1", 1, averaged=False), life("w2", 1, averaged=False)], 9.0)

    def test_each_push_counts_once(self) -> None:
        def life(name: str, pushed: int, value: float, begun: int = 0, even: bool = True) -> Life:
            lines = [{"at": 0.0, "begins": n + 1} for n in range(pushed + begun)]
            lines += [{"at": 0.0, "step": n + 1, "dropped": 0} for n in range(pushed)]
            end = {"at": 1.0, "finished": True, "dropped": 0, "value": value, "even": even}
            return Life(name, lines + ([end] if not begun else []))

        kills.check_pushes([life("w1", 3, 6), life("w2", 2, 0, begun=1)])  # the one under way has counted
        kills.check_pushes([life("w1", 3, 5), life("w2", 2, 0, begun=1)])
        for value in (4, 7):
            with self.assertRaisesRegex(kills.Broken, "5 to 6 pushes have counted"):
                kills.check_pushes([life("w1", 3, value), life("w2", 2, 0, begun=1)])
        with self.assertRaisesRegex(kills.Broken, "slices of one value"):
            kills.check_pushes([life("w1", 3, 3, even=False)])

    def test_gaps_are_those_of_processes_that_were_not_hit(self) -> None:
        steps = [{"at": at, "step": 1} for at in (0.0, 1.0, 1.5, 9.0)]
        self.assertEqual(kills.gaps_of([Life("w1", steps), Life("w2", steps, steps)], since=1.2, until=2.0), [0.5, 7.5])


class Invariants(unittest.TestCase):
    """What is sound passes; each kind of violation is found."""

    def test_crash(self) -> None:
        self.assertEqual(invariants.crashes("w1", [(-9, True), (0, False)], ""), [])
        self.assertTrue(invariants.crashes("w1", [(-11, False)], ""))
        self.assertTrue(invariants.crashes("w1", [(66, False)], ""))
        self.assertTrue(invariants.crashes("w1", [(None, False)], ""))
        self.assertTrue(invariants.crashes("w1", [(0, False)], "WARNING: ThreadSanitizer: data race"))

    def test_hang_but_not_under_sigstop(self) -> None:
        self.assertEqual(invariants.hangs("w1", [0, 100, 200], 300, [], 1000), [])
        self.assertTrue(invariants.hangs("w1", [0, 100], 5000, [], 1000))
        self.assertEqual(invariants.hangs("w1", [0, 100], 5000, [(150, 4900)], 1000), [])

    def test_late_start(self) -> None:
        self.assertEqual(invariants.late_start("w1", [0, 900, 2000], 3000, [], 1000), [])
        self.assertTrue(invariants.late_start("w1", [0, 1100, 2000], 3000, [], 1000))
        self.assertTrue(invariants.late_start("w1", [0], 3000, [], 1000))

    def test_step_beyond_its_budget_but_not_under_sigstop(self) -> None:
        budget = invariants.Budget(20, allowance_ms=100, usual_ms=10)
        self.assertEqual(invariants.slow_steps("w1", [step(1, 500, waited_ms=25, gossip_ms=26)], [], budget), [])
        slow = [step(1, 500, gossip_ms=400)]
        self.assertTrue(invariants.slow_steps("w1", slow, [], budget))
        self.assertEqual(invariants.slow_steps("w1", slow, [(200, 450)], budget), [])
        self.assertTrue(invariants.slow_steps("w1", [step(1, 500, waited_ms=400)], [], budget))
        often = [step(i, 100 * i, gossip_ms=50) for i in range(50)]
        self.assertTrue(invariants.slow_steps("w1", often, [], budget))

    def test_parameters_torn_or_not_finite(self) -> None:
        self.assertEqual(invariants.bad_parameters("w1", [step(1, 0, twin_gap=1e-7)]), [])
        for bad in ({"finite": False}, {"probe": [None]}, {"twin_gap": 0.01}, {"clock": float("inf")}):
            self.assertTrue(invariants.bad_parameters("w1", [step(1, 0, **bad)]), bad)

    @staticmethod
    def tracks(apart_until_round: int) -> list[invariants.Track]:
        """Two nodes, 0.1 apart before 1000 ms; then far apart for so many rounds of 10 ms."""
        def values(node: int) -> list[invariants.Line]:
            return [step(i, 10 * i, probe=[node * (5.0 if 100 <= i <= 100 + apart_until_round else 0.1)])
                    for i in range(200)]
        return [invariants.Track(values(0)), invariants.Track(values(1))]

    def test_consensus(self) -> None:
        tracks = self.tracks(apart_until_round=7)
        steady = invariants.steady_state(tracks, 0, 900)
        assert steady is not None
        self.assertAlmostEqual(steady, 0.05)
        found = invariants.recovery(tracks, steady, 1000, 30)
        self.assertEqual(found.rounds, 8)
        self.assertEqual(invariants.no_consensus(found, 15, 3), [])
        self.assertTrue(invariants.no_consensus(found, 15, 0.01))
        late = invariants.recovery(self.tracks(apart_until_round=20), steady, 1000, 30)
        self.assertTrue(invariants.no_consensus(late, 15, 3))
        never = invariants.recovery(self.tracks(apart_until_round=90), steady, 1000, 30)
        self.assertTrue(invariants.no_consensus(never, 15, 3))

    def test_rounds_are_pulls_that_ended(self) -> None:
        track = invariants.Track([step(1, 10), step(2, 20, outcome="pending"), step(3, 30, outcome="timed_out")])
        self.assertEqual(track.round_end(0, 2), 30)
        self.assertIsNone(track.round_end(0, 3))

    def test_growth(self) -> None:
        self.assertEqual(invariants.growth("w1", "descriptors", [10, 200, 12], 10, 256, 16), [])
        self.assertTrue(invariants.growth("w1", "descriptors", [10, 300, 12], 10, 256, 16))
        self.assertTrue(invariants.growth("w1", "descriptors", [10, 200, 100], 10, 256, 16))

    def test_different_ends(self) -> None:
        def end(checksum: int, participants: int = 3) -> list[dict[str, object]]:
            return [{"step": 1}, {"finished": True, "checksum": checksum, "participants": participants}]

        same = {"w1": end(7), "w2": end(7), "w3": end(8, 1), "w4": [{"step": 1}], "w5": []}
        self.assertEqual(invariants.different_ends(same), [])
        self.assertTrue(invariants.different_ends({"w1": end(7), "w2": end(8)}))

    def test_silence(self) -> None:
        self.assertEqual(invariants.silent("w1", 1, 2), [])
        self.assertTrue(invariants.silent("w1", 3, 2))


if __name__ == "__main__":
    unittest.main()
