"""dpwa-bench prints the documents that docs/PERFORMANCE.md promises. Nothing is said about how fast."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
BENCH = Path(os.environ.get("DPWA_BENCH", ROOT / "build/release/bin/dpwa-bench"))
HAS_STEP = os.environ.get("DPWA_BENCH_STEP", "yes") == "yes"
HAS_COLLECTIVE = os.environ.get("DPWA_BENCH_COLLECTIVE", "yes") == "yes"
SANITIZED = bool(os.environ.get("DPWA_SANITIZE"))
# Bytes of a push. A server that answers none within a second, as one under a sanitizer on a busy machine, gets it again.
LARGE = 10**6 if SANITIZED else 10**7
QUANTILES = {"median", "p99"}
RANGE = {"min", "median", "max"}
FIGURES = {"pulls", "failed", "gb_per_s", "latency_us", "cpu_s_per_gb", "peak_rss_mib", "windows"}
BRIEFLY = ("--seconds", "0.05", "--windows", "1", "--attempts", "1")  # of collective
SETTINGS = {"version", "instruction_set", "transparent_huge_pages", "cores", "cpu", "kernel"}


def bench(*arguments: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    done = subprocess.run([str(BENCH), *arguments], capture_output=True, text=True, timeout=240, check=False)
    if done.returncode != code:
        raise AssertionError(f"{arguments}: exit code {done.returncode}: {done.stderr}")
    return done


def document(*arguments: str) -> dict[str, Any]:
    return json.loads(bench(*arguments, "--json").stdout)


def check_figures(case: unittest.TestCase, data: dict[str, Any]) -> None:
    case.assertLessEqual(FIGURES, set(data))
    case.assertGreater(data["pulls"], 0)
    case.assertGreater(data["gb_per_s"], 0)
    case.assertEqual(set(data["latency_us"]), QUANTILES)
    case.assertEqual(set(data["windows"]["gb_per_s"]), RANGE)


class Pull(unittest.TestCase):
    def test_pull(self) -> None:
        data = document("pull", "--bytes", "200", "--seconds", "0.2")
        check_figures(self, data)
        self.assertEqual((data["kind"], data["bytes"], data["nodes"]), ("pull", 200, 2))
        self.assertEqual((data["transport"], data["encoding"], data["security"]), ("tcp", "fp32", "insecure"))
        self.assertEqual((data["checksum"], data["blend"], data["failed"]), ("on", False, {}))
        self.assertEqual(set(data["trainer_latency_us"]), QUANTILES)
        self.assertIsNone(data["memory_beyond_parameters_mib"])
        self.assertLessEqual(
            SETTINGS | {"congestion_control", "chunk_bytes", "huge_pages", "requested_transport"}, set(data["settings"])
        )
        self.assertEqual(data["settings"]["congestion_control"], ["reno"])
        self.assertEqual(set(data["noise"]), {"noisy", "spread", "other_load", "steal", "reasons"})

    def test_pull_of_all_beside_raw(self) -> None:
        data = document("pull", "--bytes", "1MB", "--all-pull", "3", "--seconds", "0.2", "--blend", "--with-raw")
        check_figures(self, data)
        self.assertEqual((data["nodes"], data["pulling_nodes"], data["blend"]), (3, 3, True))
        check_figures(self, data["raw"])
        self.assertEqual(set(data["ratio_to_raw"]), RANGE)
        self.assertGreater(data["ratio_to_raw"]["median"], 0)
        self.assertEqual(set(data["latency_ratio_to_raw"]), RANGE)
        self.assertIsNotNone(data["memory_beyond_parameters_mib"])

    def test_pages_mapped_from_peers_are_no_memory_of_a_node(self) -> None:
        arguments = ("--bytes", "32MB", "--all-pull", "3", "--seconds", "0.2")
        data = document("pull", *arguments, "--transport", "same_host")
        check_figures(self, data)
        if data["transport"] != "same_host":
            self.skipTest("this system does not hand over memory")
        self.assertGreater(data["peers_mapped_mib"], 30)
        if not SANITIZED:  # a sanitizer keeps several bytes for each
            self.assertLess(data["memory_beyond_parameters_mib"], 30)
        self.assertEqual(document("pull", *arguments)["peers_mapped_mib"], 0)

    def test_pull_beside_sockets_that_check(self) -> None:
        data = document("pull", "--bytes", "1MB", "--seconds", "0.2", "--with-raw", "--with-checked-raw")
        self.assertEqual(data["raw"].keys(), data["checked_raw"].keys())
        check_figures(self, data["checked_raw"])
        for key in ("ratio_to_raw", "ratio_to_checked_raw", "latency_ratio_to_checked_raw"):
            self.assertEqual(set(data[key]), RANGE)
        done = bench("pull", "--bytes", "10KB", "--seconds", "0.1", "--with-checked-raw")
        for words in ("throughput", "bare sockets", "that check and land new versions"):
            self.assertIn(words, done.stdout)

    def test_the_latency_beside_bare_sockets(self) -> None:
        data = document("pull", "--bytes", "200", "--seconds", "0.2", "--ping-pong", "--with-raw")
        self.assertTrue(data["ping_pong"])
        self.assertEqual(set(data["latency_ratio_to_raw"]), RANGE)
        for side in (data, data["raw"]):  # a thread that waits, and one that pulls
            self.assertGreater(side["trainer_latency_us"]["median"], side["latency_us"]["median"])

    def test_a_size_that_ends_within_a_chunk_and_a_page_under_other_settings(self) -> None:
        other = ("--checksum", "off", "--security", "psk", "--instruction-set", "baseline")
        data = document("pull", "--bytes", "1234567", "--seconds", "0.1", "--all-pull", "2", "--with-raw", *other)
        self.assertEqual((data["bytes"], data["checksum"], data["security"]), (1234564, "off", "psk"))
        self.assertEqual((data["settings"]["instruction_set"], data["settings"]["chunk_bytes"]), ("baseline", 524288))
        check_figures(self, data)
        check_figures(self, data["raw"])
        data = document("pull", "--bytes", "4MB", "--encoding", "int8", "--seconds", "0.3")
        self.assertLess(data["settings"]["tcp_bytes_per_pull"], 0.3 * data["bytes"])
        self.assertEqual(data["settings"]["bytes_per_pull"], data["bytes"])


class Store(unittest.TestCase):
    def test_kvstore(self) -> None:
        briefly = ("--seconds", "0.05")
        data = document("kvstore", "--bytes", str(LARGE), "--workers", "2", "--servers", "2", *briefly)
        check_figures(self, data)
        self.assertEqual((data["kind"], data["bytes"], data["workers"], data["servers"]), ("kvstore", LARGE, 2, 2))
        self.assertEqual((data["type"], data["transport"], data["optimizer"]), ("dist_sync", "tcp", "none"))
        self.assertEqual(data["pushed_bytes"], LARGE)
        self.assertGreater(data["tcp_bytes"], 2 * LARGE)  # push and answer
        self.assertEqual(set(data["settings"]) & SETTINGS, SETTINGS)
        small = document("kvstore", "--bytes", "200", "--ping-pong", *briefly)
        self.assertEqual(set(small["latency_ratio_to_raw"]), RANGE)
        other = document("kvstore", "--bytes", "1MB", "--type", "dist_async", "--optimizer", "momentum", *briefly)
        self.assertEqual((other["type"], other["optimizer"]), ("dist_async", "momentum"))
        self.assertIn("--optimizer", bench("kvstore", "--type", "dist_async", code=2).stderr)
        many = ("--bytes", "400kB", "--keys", "200", "--servers", "2", "--optimizer", "sgd", "--replicas", "1")
        data = document("kvstore", *many, *briefly)
        self.assertEqual((data["keys"], data["replicas"], data["pushed_bytes"]), (200, 1, 400_000))
        self.assertIn("two servers", bench("kvstore", "--replicas", "1", code=2).stderr)
        self.assertIn("--keys", bench("kvstore", "--bytes", "100", "--keys", "200", code=2).stderr)
        data = document("kvstore", "--bytes", str(LARGE), "--compression", "2bit", *briefly)
        self.assertAlmostEqual(data["pushed_bytes"] / data["bytes"], 1 / 16, delta=0.0001)
        # All that TCP carried: the push, and the answer that is not compressed.
        self.assertLess(data["tcp_bytes"], 1.07 * data["bytes"])

    def test_processes_of_one_host_move_next_to_nothing_over_tcp(self) -> None:
        for type_ in ((), ("--type", "dist_async", "--optimizer", "sgd")):
            size = ("--bytes", str(LARGE), "--workers", "2", "--servers", "2", "--seconds", "0.3")
            data = document("kvstore", *size, "--transport", "same_host", *type_)
            self.assertEqual((data["transport"], data["pushed_bytes"]), ("same_host", LARGE))
            self.assertLess(data["tcp_bytes"], 10**5)

    def test_a_peer_of_the_store_is_measured_in_turn_or_absent(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            peer = Path(folder, "peer")
            peer.write_text(
                "#!/bin/sh\nread job\necho '{\"ready\": true, \"name\": \"a peer\"}'\n"
                "while read command; do echo '{\"times_ns\": [1000000000], \"cpu_s\": 1.0}'; done\n",
                encoding="utf-8",
            )
            peer.chmod(0o755)
            data = document("kvstore", "--bytes", "1MB", "--seconds", "0.05", "--ps-lite", str(peer))
            self.assertEqual((data["ps_lite"]["name"], data["ps_lite"]["step_us"]["median"]), ("a peer", 1_000_000))
            self.assertGreater(data["ratio_to_ps_lite"]["median"], 1)
            peer.write_text("#!/bin/sh\nexit 1\n", encoding="utf-8")
            data = document("kvstore", "--bytes", "1MB", "--seconds", "0.05", "--ps-lite", str(peer))
            self.assertIn("ended", data["ps_lite"]["absent"])
            self.assertIsNone(data["ratio_to_ps_lite"])


class Step(unittest.TestCase):
    def test_step(self) -> None:
        if not HAS_STEP:
            self.assertIn("LibTorch", bench("step", code=2).stderr)
            return
        few = ("--parameters", "1000", "--tensors", "3", "--seconds", "0.2", "--threads", "1", "--attached")
        data = document("step", *few)
        attached = data["attached"]
        self.assertGreater(attached["arrived"]["steps"], 0)
        self.assertEqual(attached["arrived"]["steps"] + attached["not_arrived"]["steps"], data["steps"])
        medians = [one["arrived"]["step_us"]["median"] for one in (attached, data)]
        self.assertAlmostEqual(attached["arrived"]["beyond_embedded_us"], medians[0] - medians[1])
        self.assertEqual((data["kind"], data["parameters"], data["tensors"], data["bytes"]), ("step", 1000, 3, 4000))
        self.assertGreater(data["arrived"]["steps"], 0)
        for key in ("send_us", "wait_us", "step_us"):
            self.assertEqual(set(data["arrived"][key]), QUANTILES)
        self.assertEqual(data["waited_us_max"], 0)
        self.assertEqual([one["threads"] for one in data["hand_written"]], [1])
        self.assertEqual(set(data["allocations_per_step"]), {"trainer", "process"})
        self.assertGreater(data["ratio_to_hand_written"], 0)


@unittest.skipUnless(HAS_STEP, "needs LibTorch")
class Training(unittest.TestCase):
    ON_CPU = ("--device", "cpu", "--model", "mlp", "--batch", "4", "--seconds", "0.05")

    def check(self, data: dict[str, Any], backend: str, nodes: int) -> None:
        self.assertEqual((data["kind"], data["backend"], data["nodes"]), ("train", backend, nodes))
        self.assertEqual((data["model"], data["batch"], data["device"]), ("mlp", 4, "cpu"))
        for loop in ("plain", "blocking", "exchange"):
            self.assertEqual(set(data[loop]["step_us"]), RANGE)
            self.assertGreater(data[loop]["step_us"]["min"], 0)
        self.assertEqual(set(data["times_the_plain_step"]), {"blocking", "exchange"})
        self.assertIn("--torch-python", data["ddp"]["absent"])

    def test_gossip(self) -> None:
        data = document("step", *self.ON_CPU)
        self.check(data, "gossip", 1)
        self.assertEqual(data["peers"], 1)
        self.assertGreater(data["exchange"]["published"], 0.5)
        data = document("step", *self.ON_CPU, "--nodes", "2")
        self.check(data, "gossip", 2)
        self.assertEqual(data["peers"], 0)
        self.assertIn("publishes", bench("step", *self.ON_CPU, "--step-time", "5").stdout)

    def test_kvstore(self) -> None:
        for type_ in ("dist_sync", "dist_async", "local"):
            data = document("kvstore", *self.ON_CPU, "--type", type_)
            self.check(data, "kvstore", 1)
            self.assertEqual(data["type"], type_)
            if type_ != "local":
                self.assertEqual(data["exchange"]["published"], 1)
        self.assertIn("--device", bench("kvstore", "--type", "local", code=2).stderr)

    @unittest.skipUnless(HAS_COLLECTIVE, "needs backend collective")
    def test_collective(self) -> None:
        self.check(document("collective", *self.ON_CPU), "collective", 2)

    def test_a_device_that_is_not_there_is_one_line(self) -> None:
        for device in ("nowhere", "cuda:99", "cuda:999"):
            done = bench("step", "--device", device, code=2)
            self.assertEqual((done.stdout, done.stderr.count("dpwa-bench: ")), ("", 1))
            self.assertRegex(done.stderr, f"'{device}' is not accepted.*accepted: cpu")


class Collective(unittest.TestCase):
    def test_collective(self) -> None:
        if not HAS_COLLECTIVE:
            self.assertIn("LibTorch", bench("collective", code=2).stderr)
            return
        data = document("collective", "--batch", "4", *BRIEFLY)
        self.assertEqual((data["kind"], data["model"], data["nodes"]), ("collective", "mlp", 2))
        self.assertEqual((data["parameters"], data["bytes"]), (2_002_506, 4 * 2_002_506))
        self.assertEqual(set(data["dpwa"]["step_us"]), QUANTILES)
        self.assertEqual(set(data["dpwa"]["hidden_share"]), RANGE)
        self.assertGreater(data["allreduce_us"]["min"], 0)
        self.assertGreater(data["dpwa"]["cpu_us"]["min"], 0)
        self.assertIsNone(data["ratio_to_ddp"])
        self.assertIn("--torch-python", data["ddp"]["absent"])

    @unittest.skipUnless(HAS_COLLECTIVE and importlib.util.find_spec("torch"), "needs torch in this Python")
    def test_both_sides_of_collective_train_the_same(self) -> None:
        script = str(ROOT / "bench/peers/ddp_step.py")
        peer = ("--torch-python", sys.executable, "--ddp-script", script)
        for model in ("cnn", "resnet18"):
            data = document("collective", "--model", model, "--batch", "2", *BRIEFLY, *peer)
            self.assertNotIn("absent", data["ddp"])
            self.assertGreater(data["ratio_to_ddp"]["min"], 0)
            self.assertAlmostEqual(data["dpwa"]["loss"], data["ddp"]["loss"], places=3)

    def test_a_peer_that_cannot_run_is_absent_with_its_reason(self) -> None:
        if not HAS_COLLECTIVE:
            self.skipTest("needs LibTorch")
        with tempfile.TemporaryDirectory() as folder:
            script = Path(folder, "ddp.py")
            script.write_text("print('{\"error\": \"no such peer\"}', flush=True)", encoding="utf-8")
            peer = ("--torch-python", sys.executable, "--ddp-script", str(script))
            data = document("collective", "--batch", "2", *BRIEFLY, *peer)
        self.assertEqual(data["ddp"], {"absent": "no such peer"})
        self.assertIsNone(data["ratio_to_ddp"])

    def test_engines(self) -> None:
        if not HAS_COLLECTIVE:
            self.skipTest("needs LibTorch")
        data = document("collective", "--engines", "--bytes", "1MB", *BRIEFLY)
        engines = {one["name"]: one for one in data["engines"]}
        self.assertEqual(set(engines), {"dpwa", "dpwa, lent memory", "dpwa, TCP", "dpwa, psk", "gloo", "nccl", "mpi"})
        for one in engines.values():
            if "absent" in one:
                self.assertTrue(one["absent"])
            else:
                self.assertGreater(one["gb_per_s"], 0)
        for name in ("dpwa", "gloo"):
            self.assertNotIn("absent", engines[name])


class Others(unittest.TestCase):
    def test_settings_that_the_nodes_refuse_are_wrong_usage_without_the_file(self) -> None:
        self.assertIn("of memory", bench("pull", "--bytes", "4000000GB", code=1).stderr)
        for option, value, word in (
            ("--encoding", "fp7", "transport.encoding: 'fp7'"),
            ("--security", "rot13", "security.mode: 'rot13'"),
            ("--instruction-set", "avx9000", "'avx9000'"),
        ):
            done = bench("pull", option, value, code=2)
            self.assertEqual(done.stdout, "")
            last = done.stderr.splitlines()[-1]
            self.assertTrue(last.startswith("dpwa-bench: ") and word in last and "cluster.yaml" not in last, last)

    def test_memory(self) -> None:
        data = document("memory", "--bytes", "1MB", "--threads", "2", "--windows", "1")
        names = {one["name"] for one in data["results"]}
        self.assertLessEqual({"memcpy", "publish_copy", "delta", "lerp", "land_difference", "new_buffer", "plain_difference"}, names)
        dtypes = {one["dtype"] for one in data["results"] if one["name"] == "delta"}
        self.assertEqual(dtypes, {"float32", "float64", "float16", "bfloat16"})
        self.assertEqual({one["threads"] for one in data["results"]}, {1, 2})
        self.assertTrue(all(one["gb_per_s"] > 0 for one in data["results"]))

    def test_choice(self) -> None:
        data = document("choice", "--nodes", "3,300", "--pulls", "10")
        self.assertEqual((data["kind"], data["pulls_per_node"]), ("choice", 10))
        self.assertEqual([one["nodes"] for one in data["results"]], [3, 300])
        few, many = data["results"]
        self.assertEqual(few["records_per_node"], 2)
        self.assertGreater(many["records_per_node"], 5)
        self.assertLessEqual(many["records_per_node"], 10)
        for one in data["results"]:
            self.assertGreater(one["choose_ns"], 0)
            self.assertEqual(set(one["windows"]["choose_ns"]), RANGE)
            if not SANITIZED:  # its allocator counts by itself
                self.assertGreater(one["bytes_per_node"], 500)
                self.assertGreater(one["table_bytes_per_node"], 500)
        if not SANITIZED:
            self.assertLess(many["bytes_per_node"], 100_000)
            self.assertLess(many["table_bytes_per_node"], 300_000)
        self.assertIn("time of a choice", bench("choice", "--nodes", "3", "--pulls", "2").stdout)

    def test_compare(self) -> None:
        data = document("pull", "--bytes", "10KB", "--seconds", "0.1")
        data["gb_per_s"] = 1.0
        data["windows"]["gb_per_s"] = {"min": 0.9, "median": 1.0, "max": 1.1}
        with tempfile.TemporaryDirectory() as folder:
            old, new = Path(folder, "old.json"), Path(folder, "new.json")
            old.write_text(json.dumps(data), encoding="utf-8")
            self.assertIn("1.00", bench("compare", str(old), str(old)).stdout)
            data["gb_per_s"] /= 10
            for value in RANGE:
                data["windows"]["gb_per_s"][value] /= 10
            new.write_text(json.dumps(data), encoding="utf-8")
            self.assertIn("WORSE", bench("compare", str(old), str(new), code=1).stdout)
            new.write_text("no JSON", encoding="utf-8")
            self.assertEqual(bench("compare", str(old), str(new), code=2).stdout, "")

    def test_a_result_that_cannot_be_written(self) -> None:
        self.assertRegex(bench("--version").stdout, r"^dpwa-bench [0-9.]+\n$")
        programs = [BENCH, *sorted(BENCH.parent.glob("dpwa-measure*"))]
        for program in programs:
            for redirected in (">/dev/full", ">&-"):
                shell = ["sh", "-c", f'exec "$@" {redirected}', "sh", str(program), "--help"]
                done = subprocess.run(shell, stderr=subprocess.PIPE, text=True, timeout=240, check=False)
                self.assertEqual(done.returncode, 1, (program, redirected))
                self.assertIn(": cannot write the result\n", done.stderr)


if __name__ == "__main__":
    unittest.main()
