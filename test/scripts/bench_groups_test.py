"""What dpwa-bench makes of the answers of its processes: windows, memory, cluster files, who pulls from whom."""

from __future__ import annotations

import argparse
import os
import sys
import unittest
from pathlib import Path
from typing import Any

import scripts_path  # noqa: F401  (before the modules of scripts/)
from lib.bench_cluster import NodeSettings, cluster_file, cluster_text, node_file
from lib.bench_kvstore import elements_of_keys, store_text
from lib.bench_options import Failure, WrongUsage
from lib.bench_processes import Process, Window, closing, mapped_memory, require_memory
from lib.bench_pull import Topology, memory_beyond, raw_memory, transport_in_force
from lib.bench_step_peers import count_for
from lib.bench_windows import Series, window_count

# A heap on huge pages, a snapshot of the process itself and one of a peer, whose id begins alike.
SMAPS = """7f0000000000-7f0000400000 rw-p 00000000 00:00 0
Rss:                4096 kB
AnonHugePages:      2048 kB
ShmemPmdMapped:        0 kB
VmFlags: rd wr mr mw me ac
7f1000000000-7f1000400000 rw-s 00000000 00:01 77                         /memfd:dpwa-snapshot-123 (deleted)
Rss:                4100 kB
Pss:                2050 kB
AnonHugePages:         0 kB
ShmemPmdMapped:     4096 kB
7f2000000000-7f2000400000 r--s 00000000 00:01 78                         /memfd:dpwa-snapshot-1234 (deleted)
Rss:                3000 kB
Shared_Clean:       3000 kB
ShmemPmdMapped:     2048 kB
"""


class Memory(unittest.TestCase):
    def test_only_snapshots_of_other_processes_count_as_mapped_from_peers(self) -> None:
        self.assertEqual(mapped_memory(SMAPS, 123), {"peers_kib": 3000, "huge_kib": 2048 + 4096})

    def test_the_owner_is_told_by_the_whole_id(self) -> None:
        self.assertEqual(mapped_memory(SMAPS, 1234)["peers_kib"], 4100)
        self.assertEqual(mapped_memory(SMAPS, 12)["peers_kib"], 4100 + 3000)

    def test_nothing_to_read_means_nothing_mapped(self) -> None:
        self.assertEqual(mapped_memory("", 1), {"peers_kib": 0, "huge_kib": 0})

    def test_memory_beyond_the_buffers_leaves_out_the_code_and_what_is_mapped_of_peers(self) -> None:
        nodes = [{"peak_kib": 11000 + 4000, "peers_kib": 0}, {"peak_kib": 11000 + 9100, "peers_kib": 5000}]
        small = [{"peak_kib": 11000, "peers_kib": 0}, {"peak_kib": 11008, "peers_kib": 8}]
        self.assertEqual(memory_beyond(nodes, small, 4 * 1024 * 1000, 1024), 1024 * 100 + 1024)

    def test_what_does_not_fit_is_said_before_it_starts(self) -> None:
        require_memory(1)
        with self.assertRaisesRegex(Failure, "of memory"):
            require_memory(4e18)


class Windows(unittest.TestCase):
    def test_a_window_sums_its_nodes_and_has_the_median_of_their_medians(self) -> None:
        node = {"pulls": 2, "bytes": 10**9, "trainer_latency_ns": [], "failed": {"skipped": 1}}
        slow = {**node, "ns": 10**9, "latency_ns": [9000, 9000]}
        window = Window.of([{**node, "ns": 5 * 10**8, "latency_ns": [1000, 3000]}, slow, slow], 0.6, 7)
        self.assertEqual((window.pulls, window.bytes, window.gb_per_s, window.latency_us), (6, 3 * 10**9, 4, 9))
        self.assertEqual((window.failed, window.tcp_bytes), ({"skipped": 3}, 7))
        self.assertAlmostEqual(window.cpu_s_per_gb, 0.2)

    def test_figures_are_medians_of_windows_and_latencies_quantiles_over_all_nodes(self) -> None:
        windows = [Window(10, 10**9, rate, 1 / rate, 0, 5, {"skipped": 2}) for rate in (4.0, 6.0, 5.0)]
        windows[0].latencies_us, windows[1].latencies_us = [1, 2], [9]
        windows[0].trainer_latencies_us, windows[1].trainer_latencies_us = [3, 4], [9]
        memory = [{"peak_kib": 1024, "peers_kib": 512}, {"peak_kib": 2048, "peers_kib": 0}]
        figures = Series("dpwa", None, windows, memory).figures()
        self.assertEqual((figures["pulls"], figures["failed"], figures["gb_per_s"]), (30, {"skipped": 6}, 5))
        self.assertAlmostEqual(figures["cpu_s_per_gb"], 0.2)
        self.assertEqual(figures["latency_us"], {"median": 2, "p99": 9})
        self.assertEqual(figures["trainer_latency_us"]["median"], 4)
        self.assertEqual((figures["peak_rss_mib"], figures["peers_mapped_mib"]), (2, 0.5))
        self.assertEqual(figures["windows"]["gb_per_s"], {"min": 4, "median": 5, "max": 6})

    def test_short_measurements_have_fewer_windows(self) -> None:
        self.assertEqual([window_count(seconds) for seconds in (0.05, 0.9, 1, 3)], [3, 3, 5, 5])

    def test_a_window_has_as_many_steps_as_fit_and_enough_for_a_median(self) -> None:
        self.assertEqual(count_for(1, 10_000), 100)
        self.assertEqual(count_for(0.5, 1e6), 3)
        self.assertEqual(count_for(0.5, 1e6, fewest=4), 4)
        self.assertEqual(count_for(600, 0), 1_000_000)

    def test_the_path_in_force_shows_in_what_the_kernel_counted_on_tcp(self) -> None:
        self.assertEqual(transport_in_force(1.001e9, 10**9), "tcp")
        self.assertEqual(transport_in_force(0.26e9, 10**9), "tcp")  # int8
        self.assertEqual(transport_in_force(0.0001e9, 10**9), "same_host")
        self.assertEqual(transport_in_force(0, 200), "same_host")


class Clusters(unittest.TestCase):
    def test_the_file_asks_for_what_is_to_be_measured(self) -> None:
        text = cluster_text(NodeSettings(checksum="off"), [24001, 24002])
        for line in ("  - {name: w2, host: 127.0.0.1, port: 24002}", "  checksum: off"):
            self.assertIn(f"\n{line}\n", text)
        self.assertIn("same_host: off", text)
        text = cluster_text(NodeSettings(transport="same_host", security="psk", key_file="k"), [1])
        self.assertIn("same_host: auto", text)
        self.assertIn('mode: psk\n  key_file: "k"\n', text)

    def test_psk_without_a_key_file_gets_a_key_for_the_length_of_the_run(self) -> None:
        with node_file(NodeSettings(security="psk"), [24001]) as file:
            text = Path(file).read_text(encoding="utf-8")
            key = Path(text.partition('key_file: "')[2].partition('"')[0])
            self.assertRegex(key.read_text(encoding="ascii"), "^[0-9a-f]{64}\n$")
            self.assertEqual(key.stat().st_mode & 0o777, 0o600)
        self.assertFalse(key.parent.exists() or Path(file).parent.exists())

    def test_what_the_loader_refuses_ends_in_its_words_without_the_file(self) -> None:
        with self.assertRaises(WrongUsage) as caught, cluster_file("") as file:
            raise WrongUsage(f"{file}:3: transport.encoding: 'fp7' is unknown")
        self.assertEqual(str(caught.exception), "transport.encoding: 'fp7' is unknown")

    def test_of_a_pair_the_first_pulls_from_the_second_of_all_every_one_from_any(self) -> None:
        pairs = Topology(200, pairs=2)
        self.assertEqual((pairs.nodes, pairs.pulling_nodes), (4, 2))
        self.assertEqual([pairs.pulls(node) for node in range(4)], [True, False, True, False])
        self.assertEqual([pairs.partner(node) for node in (2, 3)], [3, 2])
        every = Topology(200, all_pull=3)
        self.assertEqual((every.nodes, every.pulls(1), every.partner(1)), (3, True, None))
        self.assertEqual(raw_memory(Topology(100), "in_place"), 300)
        self.assertEqual(raw_memory(Topology(100), "checked"), 700)

    def test_keys_grow_in_equal_steps_and_hold_all_elements(self) -> None:
        elements = elements_of_keys(400_000, 200)
        self.assertEqual((len(elements), sum(elements)), (200, 100_000))
        self.assertLess(elements[0], elements[-1])
        self.assertAlmostEqual(elements[-1] / (sum(elements) / 200), 2, delta=0.1)
        self.assertEqual(elements_of_keys(400, 1), [100])

    def test_the_file_of_a_store_names_workers_and_servers(self) -> None:
        facts = {"workers": 1, "servers": 2, "type": "dist_sync", "replicas": 1, "compression": "2bit"}
        text = store_text(argparse.Namespace(transport="tcp", **facts), [1, 2, 3])
        for line in ("  - {name: w1, host: 127.0.0.1, port: 1}", "    - {name: s2, host: 127.0.0.1, port: 3}",
                     "  replicas: 1", "  compression: {type: 2bit}"):  # fmt: skip
            self.assertIn(f"\n{line}\n", text)


class Processes(unittest.TestCase):
    def process(self, program: str, *job: Any) -> Process:
        process = Process([sys.executable, "-c", program], *job)
        self.addCleanup(process.close)
        return process

    def test_a_process_answers_line_by_line(self) -> None:
        echo = "import sys\nfor line in sys.stdin: print(line, end=line, flush=True)"
        process = self.process(echo, {"a": 1})
        self.assertEqual([process.receive(), process.receive()], [{"a": 1}, {"a": 1}])

    def test_what_a_process_reports_and_its_end_are_failures(self) -> None:
        with self.assertRaisesRegex(Failure, "no such peer"):
            self.process("print('{\"error\": \"no such peer\"}')").receive()
        with self.assertRaisesRegex(WrongUsage, "refused"):
            self.process("print('{\"error\": \"refused\", \"usage\": true}')").receive()
        with self.assertRaisesRegex(Failure, "has ended"):
            self.process("").ask({"do": "mark"})
        with self.assertRaisesRegex(Failure, "no/such"):
            Process(["no/such/program"])

    def test_a_process_keeps_to_the_core_that_it_is_given(self) -> None:
        tell = "import json, os; print(json.dumps({'cores': list(os.sched_getaffinity(0))}))"
        usable = sorted(os.sched_getaffinity(0))
        for core in (0, 1, len(usable)):
            process = Process([sys.executable, "-c", tell], core=core)
            self.addCleanup(process.close)
            self.assertEqual(process.receive()["cores"], [usable[core % len(usable)]])

    def test_processes_are_gone_at_the_end(self) -> None:
        process = self.process("import sys; sys.stdin.read()")
        with closing(process):
            os.kill(process.child.pid, 0)
        self.assertIsNotNone(process.child.returncode)


if __name__ == "__main__":
    unittest.main()
