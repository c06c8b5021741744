"""bench_report.py and its parts: what a benchmark run says about the bars, its Markdown, the marks in the document."""

from __future__ import annotations

import contextlib
import io
import json
import subprocess
import tempfile
import unittest
from pathlib import Path
from typing import Any
from unittest import mock

import scripts_path
from lib import bench_bars, bench_tables
from lib.bench_bars import MET, MISSED, NOT_MEASURED
from lib.bench_results import MB, Results, relative

try:
    import bench_report
except ModuleNotFoundError:
    bench_report = None
try:
    import plot_bench
except ModuleNotFoundError:
    plot_bench = None

QUIET = {"noisy": False, "reasons": []}


def windows(median: float) -> dict[str, Any]:
    return {"count": 5, "gb_per_s": {"min": 0.9 * median, "median": median, "max": 1.1 * median}}


def pull(size: int, nodes: int, rate: float, ratio: float | None = None, **fields: Any) -> dict[str, Any]:
    transport = fields.get("transport", "tcp")
    document = {
        **{"kind": "pull", "bytes": size, "nodes": nodes, "pulling_nodes": 1 if nodes == 2 else nodes},
        **{"transport": transport, "encoding": "fp32", "checksum": "on", "security": "insecure", "blend": False},
        **{"gb_per_s": rate, "cpu_s_per_gb": 0.3, "latency_us": {"median": 20, "p99": 40}, "windows": windows(rate)},
        **{"peak_rss_mib": 400, "memory_beyond_parameters_mib": 1.5, "peers_mapped_mib": 0, "noise": QUIET},
        "settings": {"requested_transport": transport, "cpu": "a processor", "cores": 2, "version": "1"},
    }
    if ratio is not None:
        document["ratio_to_raw"] = {"min": ratio - 0.1, "median": ratio, "max": ratio + 0.1}
        document["latency_ratio_to_raw"] = {"min": 1.1, "median": 1.2, "max": 1.3}
        document["raw"] = {"gb_per_s": rate / ratio, "windows": windows(rate / ratio)}
    return {**document, **fields}


def step(parameters: int, tensors: int, arrived: float | None, ratio: float | None) -> dict[str, Any]:
    quantiles = {} if arrived is None else {"step_us": {"median": arrived, "p99": 2 * arrived}}
    return {
        **{"kind": "step", "parameters": parameters, "tensors": tensors, "waited_us_max": 0, "noise": QUIET},
        **{"arrived": quantiles, "not_arrived": {"step_us": {"median": 1, "p99": 2}}},
        **{"ratio_to_hand_written": ratio, "ratio_to_one_pass": ratio, "publish_ratio_to_copy": 0.9},
    }


def peer(name: str, nodes: int, rate: float) -> dict[str, Any]:
    figures = {"gb_per_s": rate, "cpu_s_per_gb": 0.5, "windows": windows(rate), "congestion_control": "cubic"}
    return {"kind": "peer", "name": name, "bytes": 100 * MB, "nodes": nodes, **figures}


def collective(model: str, nodes: int, ratio: float | None) -> dict[str, Any]:
    range_ = {"min": 0.8, "median": 0.9, "max": 1.0}
    side = {"step_us": {"median": 9000, "p99": 12000}, "local_step_us": {**range_, "median": 5000}}
    side["hidden_share"] = range_
    ratio_ = None if ratio is None else {"min": ratio - 0.1, "median": ratio, "max": ratio + 0.1}
    return {
        **{"kind": "collective", "model": model, "bytes": 8 * MB, "nodes": nodes, "noise": QUIET, "dpwa": side},
        **{"ddp": {"absent": "no torch"} if ratio is None else side, "ratio_to_ddp": ratio_},
        "allreduce_us": {"min": 1, "median": 4000, "max": 5000},
    }


def engines(mpi: float | None) -> dict[str, Any]:
    measured = {"gb_per_s": 2.0, "windows": {"count": 5, "allreduce_us": {"min": 1, "median": 200_000, "max": 2}}}
    ratio = {"min": mpi, "median": mpi, "max": mpi}
    other = {"name": "mpi", "absent": "no MPI"} if mpi is None else {"name": "mpi", **measured, "ratio_to_gloo": ratio}
    document = {"kind": "engines", "bytes": 100 * MB, "nodes": 4, "noise": QUIET}
    return {**document, "engines": [{"name": "gloo", **measured}, other]}


def store(transport: str, workers: int = 1, size: int = 100 * MB, **fields: Any) -> dict[str, Any]:
    document = {
        **{"kind": "kvstore", "bytes": size, "workers": workers, "servers": (workers + 1) // 2, "type": "dist_sync"},
        **{"transport": transport, "optimizer": "none", "compression": "none", "pushed_bytes": size, "noise": QUIET},
        **{"gb_per_s": 4.0, "cpu_s_per_gb": 0.5, "latency_us": {"median": 50_000, "p99": 60_000}},
    }
    return {**document, **fields}


def range_of(value: float) -> dict[str, float]:
    return {"min": value, "median": value, "max": value}


def memory(**rates: float) -> dict[str, Any]:
    one = {"name": "memcpy", "dtype": "float32", "meaning": "a copy", "gb_per_s": 12.0}
    passes = [{**one, "threads": 1}, {**one, "threads": 2}]
    passes += [{**one, "threads": 1, "name": name, "gb_per_s": rate} for name, rate in rates.items()]
    return {"kind": "memory", "bytes": MB, "results": passes, "noise": QUIET}


def choice(**fields: Any) -> dict[str, Any]:
    def of(nodes: int, known: float, kept: float, nanoseconds: float) -> dict[str, Any]:
        range_ = {"min": 0.9 * nanoseconds, "median": nanoseconds, "max": 1.1 * nanoseconds}
        figures = {"records_per_node": known, "bytes_per_node": kept, "choose_ns": nanoseconds}
        return {"nodes": nodes, **figures, "windows": {"count": 5, "choose_ns": range_}}

    sizes = [of(100, 63.4, 12_345.6, 400), of(10_000, 99.5, 22_000, 2000)]
    return {"kind": "choice", "pulls_per_node": 100, "results": sizes, "noise": QUIET, **fields}


def results(*measured: dict[str, Any], skipped: tuple[dict[str, str], ...] = ()) -> Results:
    head = {"schema": 1, "time": "2000-01-01 00:00", "plan": "quick", "seconds": 1}
    return Results({**head, "results": list(measured), "skipped": list(skipped)})


def verdicts(*measured: dict[str, Any]) -> dict[str, tuple[str, str]]:
    return {one.bar.name: (one.text, one.verdict) for one in bench_bars.judge(results(*measured))}


PAIR = "100 MB, 1 pair, of bare sockets"
NODES = "100 MB, 4 nodes, of bare sockets"
COST = "100 MB, 4 nodes, processor seconds per GB"
MPI = "Open MPI tcp, 100 MB, 4 nodes, checksum off: times its throughput"
SHARED = "same host, 100 MB, 4 nodes: times dpwa's TCP"
CHECKSUM = "checksum on, of off, 100 MB (the worst)"
MEMORY = "memory beyond parameters, snapshots and landing (the most)"
FIREWALL = "statistics of the firewall, of a pull of 100 MB"
LOOP = "step with a pull, ≥ 10 M parameters: hand-written loop / step (the worst)"
SMALL_STEP = "step with a pull, 100 k parameters in 100 tensors"
IN_PYTHON = ("step in Python, 100 k parameters in 100 tensors", "step in Python, 10 M parameters: times the step in C++")
ATTACHED = "step of an attached trainer, 100 k parameters, beyond embedded"
STEPS = "collective: step, of DistributedDataParallel's (the worst)"
ENGINE = "collective: engine mpi, 100 MB, 4 nodes: times Gloo"
ONE_MB = "1 MB, of bare sockets (the worse of 1 pair and 4 nodes)"
INT8 = "int8, times fp32 over TCP, 10 and 100 MB (the worst)"
SMALL_PULL = "pull of 200 bytes: times the latency of bare sockets"
PS_LITE = "kvstore: 100 MB, 1 worker, 1 server, TCP: times ps-lite"
GLOO_TCP = "kvstore: step, 4 workers, 2 servers, TCP: times Gloo"
GLOO_SHARED = "kvstore: step, 4 workers, 2 servers, same host: times Gloo"
SMALL_PUSH = "kvstore: push and pull of 200 bytes: times a bare-socket ping-pong"
TWO_BIT = "kvstore: 2-bit pushes move so many times fewer bytes"


class Bars(unittest.TestCase):
    def test_a_run_without_measurements_judges_nothing(self) -> None:
        self.assertEqual(set(verdicts().values()), {("–", NOT_MEASURED)})

    def test_bars_of_the_store_come_from_the_measurement_that_they_name(self) -> None:
        step = {"workers": 4, "optimizer": "momentum"}
        at = verdicts(
            store("tcp", ratio_to_ps_lite=range_of(3.0), type="dist_sync"),
            store("tcp", **step, ratio_to_gloo=range_of(0.99)),
            store("same_host", **step, ratio_to_gloo=range_of(1.5)),
            store("tcp", size=200, latency_ratio_to_raw=range_of(3.1)),
            store("tcp", compression="2bit", pushed_bytes=100 * MB / 16 + 400),
        )
        self.assertEqual(at[PS_LITE], ("3.000", MET))
        self.assertEqual(at[GLOO_TCP], ("0.990", MISSED))
        self.assertEqual(at[GLOO_SHARED], ("1.500", MET))
        self.assertEqual(at[SMALL_PUSH], ("3.100", MISSED))
        self.assertEqual(at[TWO_BIT], ("16.0", MET))
        self.assertEqual(verdicts(store("tcp", compression="2bit"))[TWO_BIT], ("1.000", MISSED))
        absent = verdicts(store("tcp", **step, gloo={"absent": "no torch"}, ratio_to_gloo=None))
        self.assertEqual(absent[GLOO_TCP][1], NOT_MEASURED)
        text = bench_tables.report(results(store("same_host", 4, ratio_to_gloo=range_of(1.6))), 2)
        self.assertIn("| 100 MB | 4 / 2 | dist_sync | same host | 4.00 | 0.50 |", text)
        self.assertIn("1.60 (1.60–1.60)", text)

    def test_each_bar_reads_the_measurement_that_it_names_and_the_worst_of_several(self) -> None:
        mpi, off = "Open MPI tcp sendrecv and blend", pull(100 * MB, 4, 4.4, 0.8, checksum="off")
        fp32 = [pull(size, 2, 4) for size in (10 * MB, 100 * MB)]
        small, large = (pull(size, 2, rate, encoding="int8") for size, rate in ((10 * MB, 4.4), (100 * MB, 4)))
        met = (collective("mlp", 2, None), collective("mlp", 4, 1.0))
        for name, measured, expected in (
            (ONE_MB, (pull(MB, 2, 3, 0.75), pull(MB, 4, 3, 0.69)), ("0.690", MISSED)),
            (ONE_MB, (pull(MB, 2, 3, 0.75),), ("0.750", MET)),
            (INT8, (*fp32, small, large), ("1.000", MET)),
            (INT8, (*fp32, small), ("1.100", MET)),
            (MPI, (off, peer(mpi, 4, 4.0)), ("1.100", MET)),
            (MPI, (off, peer(mpi, 4, 4.4)), ("1.000", MISSED)),
            (MPI, (off, peer(mpi, 2, 4.0)), ("–", NOT_MEASURED)),  # of another number of nodes
            (STEPS, (collective("mlp", 2, None),), ("–", NOT_MEASURED)),
            (STEPS, met, ("1.000", MET)),
            (STEPS, (*met, collective("resnet18", 2, 1.01)), ("1.010", MISSED)),
            (ENGINE, (engines(None),), ("–", NOT_MEASURED)),
            (ENGINE, (engines(1.25),), ("1.250", MET)),
            (ENGINE, (engines(1.2),), ("1.200", MISSED)),
            (SMALL_PULL, (pull(200, 2, 0.01, 0.8),), ("–", NOT_MEASURED)),
            (SMALL_PULL, (pull(200, 2, 0.01, 0.8, ping_pong=True),), ("1.200", MET)),
        ):
            with self.subTest(name, expected=expected):
                self.assertEqual(verdicts(*measured)[name], expected)

    def test_a_bound_itself_is_met_and_what_is_beyond_it_missed(self) -> None:
        at = verdicts(pull(100 * MB, 2, 5, 0.80), pull(100 * MB, 4, 5, 0.7999, cpu_s_per_gb=0.38))
        self.assertEqual(at[PAIR], ("0.800", MET))
        self.assertEqual(at[NODES][1], MISSED)
        self.assertEqual(at[COST], ("0.380", MET))
        self.assertEqual(verdicts(pull(100 * MB, 4, 5, 0.8, cpu_s_per_gb=0.381))[COST][1], MISSED)

    def test_other_sizes_nodes_and_settings_are_not_taken_for_the_bar(self) -> None:
        others = (pull(10 * MB, 2, 5, 0.9), pull(100 * MB, 2, 5, 0.9, checksum="off"), pull(100 * MB, 2, 5))
        both = pull(100 * MB, 2, 5, 0.9, pulling_nodes=2)
        self.assertEqual(verdicts(*others, both)[PAIR][1], NOT_MEASURED)

    def test_same_host_is_compared_by_the_bare_sockets_that_ran_in_turn(self) -> None:
        tcp, shared = pull(100 * MB, 4, 4, 0.8), pull(100 * MB, 4, 6, 2.0, transport="same_host")
        self.assertEqual(verdicts(tcp, shared)[SHARED], ("2.500", MET))
        self.assertAlmostEqual(relative(shared, pull(100 * MB, 4, 4)), 1.5)

    def test_a_pull_that_fell_back_to_tcp_is_neither_path(self) -> None:
        fallen = pull(100 * MB, 4, 4, 0.9)
        fallen["settings"]["requested_transport"] = "same_host"
        judged = verdicts(fallen)
        self.assertEqual((judged[NODES][1], judged[SHARED][1]), (NOT_MEASURED, NOT_MEASURED))

    def test_the_worst_of_several_counts(self) -> None:
        checked = [pull(100 * MB, nodes, 4, ratio) for nodes, ratio in ((2, 0.9), (4, 0.6))]
        plain = [pull(100 * MB, nodes, 4, 1.0, checksum="off") for nodes in (2, 4)]
        self.assertEqual(verdicts(*checked, *plain)[CHECKSUM], ("0.600", MISSED))
        plenty = pull(MB, 2, 1, 0.8, memory_beyond_parameters_mib=4.5)
        self.assertEqual(verdicts(pull(100 * MB, 2, 4, 0.8), plenty)[MEMORY], ("4.500 MiB", MISSED))

    def test_the_statistics_of_the_firewall_are_what_they_add_to_a_landing(self) -> None:
        pull_of_20_ms = pull(100 * MB, 2, 5, 0.8, latency_us={"median": 20_000, "p99": 40_000})
        both = memory(land_difference=8.0, plain_difference=10.0)  # 12.5 and 10 ms
        self.assertEqual(verdicts(both, pull_of_20_ms)[FIREWALL], ("0.125", MISSED))
        self.assertEqual(verdicts(memory(land_difference=8, plain_difference=8), pull_of_20_ms)[FIREWALL], ("0", MET))
        for alone in (memory(land_difference=8), memory(plain_difference=8)):
            self.assertEqual(verdicts(alone, pull_of_20_ms)[FIREWALL][1], NOT_MEASURED)
        self.assertEqual(verdicts(both)[FIREWALL][1], NOT_MEASURED)

    def test_steps_without_an_arrived_pull_are_not_measured(self) -> None:
        none = verdicts(step(100_000, 100, None, None), step(10_000_000, 2, None, None))
        self.assertEqual((none[SMALL_STEP][1], none[LOOP][1]), (NOT_MEASURED, NOT_MEASURED))
        some = verdicts(step(100_000, 100, 99, 0.1), step(10_000_000, 2, 900, 0.95), step(10_000_000, 100, 900, 0.85))
        self.assertEqual((some[SMALL_STEP], some[LOOP]), (("99.0 µs", MET), ("0.850", MISSED)))

    def test_an_attached_step_is_judged_by_the_worse_of_its_groups(self) -> None:
        one = step(100_000, 100, 50, 0.5)
        self.assertEqual(verdicts(one)[ATTACHED][1], NOT_MEASURED)
        quantiles = {"step_us": {"median": 120.0, "p99": 200.0}}
        one["attached"] = {"arrived": {"steps": 0}, "not_arrived": {**quantiles, "beyond_embedded_us": 70.0}}
        self.assertEqual(verdicts(one)[ATTACHED], ("70.0 µs", MET))
        one["attached"]["arrived"] = {**quantiles, "beyond_embedded_us": 100.5}
        self.assertEqual(verdicts(one)[ATTACHED][1], MISSED)
        rows = bench_tables.steps(results(one))
        self.assertTrue(any("100, attached" in row and "120 µs" in row for row in rows), rows)

    def test_a_step_in_python_is_judged_by_the_worse_of_its_groups(self) -> None:
        small, large = step(100_000, 100, 50, 0.5), step(10_000_000, 100, 900, 0.95)
        self.assertEqual([verdicts(small, large)[bar][1] for bar in IN_PYTHON], [NOT_MEASURED] * 2)
        quantiles = {"step_us": {"median": 120.0, "p99": 200.0}, "times_embedded": 1.2}
        small["in_python"] = large["in_python"] = {"arrived": {"steps": 0}, "not_arrived": quantiles}
        judged = verdicts(small, large)
        self.assertEqual([judged[bar] for bar in IN_PYTHON], [("120 µs", MET), ("1.200", MISSED)])
        rows = bench_tables.steps(results(small))
        self.assertTrue(any("100, in Python" in row and "120 µs" in row for row in rows), rows)


def full() -> Results:
    return results(
        memory(),
        pull(200, 2, 0.01, 0.8, ping_pong=True, raw={"latency_us": {"median": 9, "p99": 12}}),
        pull(200, 2, 0.01, 0.8, memory_beyond_parameters_mib=None),
        pull(100 * MB, 2, 5, 0.8, noise={"noisy": True, "reasons": ["other work took 12 % of the processors"]}),
        pull(100 * MB, 2, 8, 1.2, transport="same_host", peers_mapped_mib=300),
        pull(100 * MB, 2, 5, 0.8, encoding="int8"),
        pull(100 * MB, 4, 5, 0.8),
        peer("c10d Gloo all-reduce", 4, 2.0),
        step(100_000, 100, 50, 0.5),
        choice(),
        collective("mlp", 2, 0.95),
        collective("mlp", 4, None),
        store("tcp", ratio_to_ps_lite=range_of(3.5)),
        engines(None),
        skipped=({"title": "step 100M", "reason": "needs LibTorch (there is no /some/where/dpwa-bench-step)"},),
    )


class Tables(unittest.TestCase):
    def test_every_section_of_a_full_run_is_there_in_the_wanted_level(self) -> None:
        text = bench_tables.report(full(), 3)
        for title, _ in bench_tables.SECTIONS:
            self.assertIn(f"\n### {title}\n", f"\n{text}")

    def test_every_row_of_a_table_has_the_cells_of_its_header(self) -> None:
        width = 0
        for line in bench_tables.report(full(), 2).splitlines():
            cells = line.count("|") if line.startswith("|") else 0
            self.assertTrue(cells in (0, width) or width == 0, line)
            width = cells

    def test_a_run_of_next_to_nothing_leaves_sections_out(self) -> None:
        text = bench_tables.report(results(pull(200, 2, 0.01)), 2)
        self.assertIn("## Pulls by size", text)
        self.assertNotIn("## Peers", text)
        self.assertIn("The machine was quiet.", text)

    def test_noise_and_what_was_left_out_are_said_without_folders(self) -> None:
        text = bench_tables.report(full(), 2)
        self.assertIn("noisy during 1 of 14 measurements", text)
        self.assertIn("- pull 100 MB 1 pair tcp fp32: other work took 12 % of the processors", text)
        self.assertIn("~5.00", text)
        self.assertIn("- step 100M: needs LibTorch (there is no dpwa-bench-step)", text)
        self.assertNotIn("/some", text)

    def test_a_fall_back_is_said(self) -> None:
        fallen = pull(100 * MB, 2, 4)
        fallen["settings"]["requested_transport"] = "same_host"
        self.assertIn("Asked for same_host and got tcp: 100 MB, 1 pair.", bench_tables.report(results(fallen), 2))

    def test_the_choice_of_a_peer_has_a_row_for_each_size_of_the_cluster(self) -> None:
        noisy = choice(noise={"noisy": True, "reasons": ["the windows differ by 30 %"]})
        text = bench_tables.report(results(choice(), noisy), 2)
        self.assertIn("| 100 | 100 | 63.40 | 12.346 KB | 0.4 µs (0.36 µs–0.44 µs) |", text)
        self.assertIn("| 10,000 | 100 | 99.50 | 22 KB | 2 µs (1.8 µs–2.2 µs) |", text)
        self.assertIn("| ~2 µs (1.8 µs–2.2 µs) |", text)
        self.assertIn("| 2 µs (1.8 µs–2.2 µs) | – |", text)
        with_tables = choice()
        for one in with_tables["results"]:
            one["table_bytes_per_node"] = 300.0 * one["nodes"]
        self.assertIn("| 2 µs (1.8 µs–2.2 µs) | 3 MB |", bench_tables.report(results(with_tables), 2))
        self.assertIn("- choice of a peer: the windows differ by 30 %", text)


@unittest.skipIf(bench_report is None, "the Python tools of .venv are not there")
class Report(unittest.TestCase):
    def setUp(self) -> None:
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = Path(scratch.name)
        self.folder.joinpath("bench.json").write_text(json.dumps(full().document), encoding="utf-8")
        self.document = self.folder / "PERFORMANCE.md"

    def run_report(self, *arguments: str) -> tuple[int, str, str]:
        out, err = io.StringIO(), io.StringIO()
        with (
            mock.patch("sys.argv", ["bench_report.py", str(self.folder), *arguments]),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
        ):
            return bench_report.main(), out.getvalue(), err.getvalue()

    def test_it_writes_the_report_and_prints_the_bars(self) -> None:
        code, out, _ = self.run_report()
        self.assertEqual(code, 0)
        self.assertIn("not measured", out)
        self.assertIn("the machine was noisy", out)
        self.assertIn("# Benchmark of dpwa\n", self.folder.joinpath("report.md").read_text(encoding="utf-8"))

    def test_only_the_text_between_the_marks_is_replaced(self) -> None:
        before, after = f"# Performance\n\nprose\n\n{bench_report.BEGIN}", f"{bench_report.END}\n\n## More\n"
        self.document.write_text(f"{before}\nold\n{after}", encoding="utf-8")
        self.assertEqual(self.run_report("--docs", str(self.document))[0], 0)
        text = self.document.read_text(encoding="utf-8")
        self.assertTrue(text.startswith(before) and text.endswith(after))
        self.assertEqual(("### Bars" in text, "### Peers" in text, "old" in text), (True, False, False))
        data = self.folder.joinpath("data/benchmark.csv").read_text(encoding="utf-8")
        self.assertRegex(data, r"\nBars,bar,target,measured,\n(.*\n)*Peers,")
        self.assertEqual(self.run_report("--docs", str(self.document))[0], 0)
        self.assertEqual(self.document.read_text(encoding="utf-8"), text)

    def test_a_document_without_marks_is_left_alone(self) -> None:
        self.document.write_text("prose\n", encoding="utf-8")
        code, _, err = self.run_report("--docs", str(self.document))
        self.assertEqual((code, err.count("\n")), (1, 1))
        self.assertEqual(self.document.read_text(encoding="utf-8"), "prose\n")

    def test_a_folder_without_results_is_one_line(self) -> None:
        self.folder.joinpath("bench.json").unlink()
        code, _, err = self.run_report()
        self.assertEqual((code, err.count("\n")), (1, 1))

    @unittest.skipIf(plot_bench is None, "matplotlib is not there")
    def test_the_plot_is_drawn(self) -> None:
        self.assertEqual(plot_bench.draw(self.folder).read_bytes()[:4], b"\x89PNG")


class Script(unittest.TestCase):
    def run_script(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        script = scripts_path.SCRIPTS / "bench.sh"
        return subprocess.run([str(script), *arguments], capture_output=True, text=True, timeout=240, check=False)

    def test_wrong_usage_starts_nothing(self) -> None:
        for arguments in (["--fast"], ["--against"], ["--against", "no/such/file.json"]):
            with self.subTest(arguments):
                done = self.run_script(*arguments)
                self.assertEqual((done.returncode, done.stdout), (2, ""))
                self.assertEqual(done.stderr.count("\n"), 1, done.stderr)


if __name__ == "__main__":
    unittest.main()
