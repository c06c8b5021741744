"""The bars of dpwa's data path, and whether a benchmark run met them. Pure: no files, no clock.

Except for the costs of small operations, bars are ratios of figures of one run, so they do not depend on the machine.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lib.bench_results import GB, MB, Document, Results, relative

Measure = Callable[[Results], "float | None"]

MET, MISSED, NOT_MEASURED = "met", "missed", "not measured"


def figure(value: float) -> str:
    """With three decimals below ten, so that a bar missed by little does not look met."""
    if value == 0 or value >= 100:
        return f"{value:.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.3f}"


@dataclass(frozen=True)
class Bar:
    name: str
    bound: float
    measure: Measure
    at_least: bool = True  # else at most
    unit: str = ""

    @property
    def target(self) -> str:
        bound = f"{self.bound:g}" if self.unit else f"{self.bound:.2f}"
        return f"{'≥' if self.at_least else '≤'} {bound}{self.unit}"


@dataclass(frozen=True)
class Judged:
    bar: Bar
    value: float | None

    @property
    def verdict(self) -> str:
        if self.value is None:
            return NOT_MEASURED
        met = self.value >= self.bar.bound if self.bar.at_least else self.value <= self.bar.bound
        return MET if met else MISSED

    @property
    def text(self) -> str:
        return "–" if self.value is None else f"{figure(self.value)}{self.bar.unit}"


def of_bare_sockets(size: int, nodes: int) -> Measure:
    def measure(results: Results) -> float | None:
        pull = results.pull(bytes=size, nodes=nodes)
        return pull["ratio_to_raw"]["median"] if pull and "ratio_to_raw" in pull else None

    return measure


def processor_cost(results: Results) -> float | None:
    pull = results.pull(bytes=100 * MB, nodes=4)
    return pull["cpu_s_per_gb"] if pull else None


def of_peer(name: str, nodes: int = 4, **settings: str) -> Measure:
    def measure(results: Results) -> float | None:
        peer = results.first(kind="peer", name=name, bytes=100 * MB, nodes=nodes)
        return relative(results.all_pulling(bytes=100 * MB, nodes=nodes, **settings), peer)

    return measure


def of_plain(nodes: int, plain: dict[str, str], bytes: int = 100 * MB, **settings: str) -> Measure:
    """A pull with some settings, of the same with others."""

    def measure(results: Results) -> float | None:
        size = {"bytes": bytes, "nodes": nodes}
        return relative(results.pull(**size, **settings), results.pull(**size, **plain))

    return measure


def least(*measures: Measure) -> Measure:
    """The worst of those that were measured, for a bound that is at least something."""

    def measure(results: Results) -> float | None:
        values = [value for one in measures if (value := one(results)) is not None]
        return min(values, default=None)

    return measure


def firewall_share(results: Results) -> float | None:
    """What finding the norms and what is not finite adds to the pass that lands 100 MB, of a pull of them."""
    memory, pull = results.first(kind="memory"), results.pull(bytes=100 * MB, nodes=2)
    if memory is None or pull is None:
        return None
    passes = {one["name"]: one for one in memory["results"] if one["dtype"] == "float32" and one["threads"] == 1}
    if not {"land_difference", "plain_difference"} <= passes.keys():
        return None
    gigabytes = pull["bytes"] / GB
    extra_s = gigabytes / passes["land_difference"]["gb_per_s"] - gigabytes / passes["plain_difference"]["gb_per_s"]
    return max(extra_s, 0.0) / (pull["latency_us"]["median"] / 1e6)


def memory_beyond(results: Results) -> float | None:
    values = [one.get("memory_beyond_parameters_mib") for one in results.pulls]
    return max((value for value in values if value is not None), default=None)


def arrived_us(step: Document) -> float | None:
    return step["arrived"].get("step_us", {}).get("median")


def step_of_hand_written(results: Results) -> float | None:
    """The worst of the models that are large enough for memory to be what counts."""
    steps = [one for one in results.select(kind="step") if one["parameters"] >= 10 * MB]
    ratios = [one["ratio_to_hand_written"] for one in steps]
    return min((ratio for ratio in ratios if ratio is not None), default=None)


def small_step(results: Results) -> float | None:
    step = results.first(kind="step", parameters=100_000, tensors=100)
    return arrived_us(step) if step else None


def attached_step(results: Results) -> float | None:
    """How much longer a step of an attached trainer takes: the worse of those with a pull and those without."""
    step = results.first(kind="step", parameters=100_000, tensors=100)
    groups = step.get("attached", {}).values() if step else ()
    return max((one["beyond_embedded_us"] for one in groups if "beyond_embedded_us" in one), default=None)


def in_python(key: str, parameters: int) -> Callable[[Results], float | None]:
    """Of a step in Python: the worse of those with a pull and those without."""

    def worse(results: Results) -> float | None:
        step = results.first(kind="step", parameters=parameters, tensors=100)
        groups = step.get("in_python", {}).values() if step else ()
        found = [one[key]["median"] if key == "step_us" else one[key] for one in groups if key in one]
        return max(found, default=None)

    return worse


def longest_wait(results: Results) -> float | None:
    return max((one["waited_us_max"] for one in results.select(kind="step")), default=None)


def small_pull(results: Results) -> float | None:
    pull = results.pull(bytes=200, nodes=2, ping_pong=True)
    return pull["latency_ratio_to_raw"]["median"] if pull and "latency_ratio_to_raw" in pull else None


def collective_step(results: Results) -> float | None:
    """The worst of the models and numbers of nodes."""
    ratios = [one["ratio_to_ddp"] for one in results.select(kind="collective")]
    return max((ratio["median"] for ratio in ratios if ratio), default=None)


def collective_added(results: Results) -> float | None:
    """Of the cnn, the worst of 2 and 4 nodes."""
    ratios = [one.get("added_ratio_to_ddp") for one in results.select(kind="collective", model="cnn")]
    return max((ratio["median"] for ratio in ratios if ratio), default=None)


def engine(name: str, size: int) -> Measure:
    """Of 4 nodes: the throughput in units of Gloo's."""

    def measure(results: Results) -> float | None:
        document = results.first(kind="engines", bytes=size, nodes=4)
        ratios = [one.get("ratio_to_gloo") for one in document["engines"] if one["name"] == name] if document else []
        return ratios[0]["median"] if ratios and ratios[0] else None

    return measure


def store(ratio: str, **wanted: object) -> Measure:
    """A ratio of a measurement of backend kvstore, whose values arrived by the wanted path."""

    def measure(results: Results) -> float | None:
        one = results.first(kind="kvstore", **wanted)
        return one[ratio]["median"] if one and one.get(ratio) else None

    return measure


def two_bit_pushes(results: Results) -> float | None:
    one = results.first(kind="kvstore", compression="2bit", bytes=100 * MB)
    return one["bytes"] / one["pushed_bytes"] if one else None


STEP: dict[str, object] = {"bytes": 100 * MB, "workers": 4, "servers": 2, "optimizer": "momentum"}
PAIR: dict[str, object] = {"bytes": 100 * MB, "workers": 1, "servers": 1, "optimizer": "none", "compression": "none"}
OFF, SAME_HOST, INT8 = {"checksum": "off"}, {"transport": "same_host"}, {"encoding": "int8"}
BARS = (
    Bar("1 MB, of bare sockets (the worse of 1 pair and 4 nodes)", 0.70, least(*(of_bare_sockets(MB, n) for n in (2, 4)))),
    Bar("10 MB, of bare sockets (the worse of both)", 0.70, least(*(of_bare_sockets(10 * MB, n) for n in (2, 4)))),
    Bar("100 MB, 1 pair, of bare sockets", 0.80, of_bare_sockets(100 * MB, 2)),
    Bar("1 GB, 1 pair, of bare sockets", 0.80, of_bare_sockets(GB, 2)),
    Bar("100 MB, 4 nodes, of bare sockets", 0.80, of_bare_sockets(100 * MB, 4)),
    Bar("100 MB, 4 nodes, processor seconds per GB", 0.38, processor_cost, at_least=False),
    Bar("c10d Gloo all-reduce, 100 MB, 4 nodes: times its throughput", 2.0, of_peer("c10d Gloo all-reduce")),
    Bar(
        "Open MPI tcp, 100 MB, 4 nodes, checksum off: times its throughput",
        1.05,
        of_peer("Open MPI tcp sendrecv and blend", **OFF),
    ),
    Bar("same host, 100 MB, 4 nodes: times dpwa's TCP", 2.0, of_plain(4, {}, **SAME_HOST)),
    Bar(
        "same host, 100 MB, 4 nodes: times Open MPI shared memory",
        1.7,
        of_peer("Open MPI shared memory sendrecv and blend", **SAME_HOST),
    ),
    Bar("checksum on, of off, 100 MB (the worst)", 0.80, least(of_plain(2, OFF), of_plain(4, OFF))),
    Bar(
        "encrypted (psk), of plain, 100 MB (the worst)",
        0.28,
        least(of_plain(2, {}, security="psk"), of_plain(4, {}, security="psk")),
    ),
    Bar(
        "int8, times fp32 over TCP, 10 and 100 MB (the worst)",
        1.0,
        least(*(of_plain(n, {}, bytes=size, **INT8) for n in (2, 4) for size in (10 * MB, 100 * MB))),
    ),
    Bar("statistics of the firewall, of a pull of 100 MB", 0.10, firewall_share, False),
    Bar("memory beyond parameters, snapshots and landing (the most)", 4.0, memory_beyond, False, " MiB"),
    Bar("step with a pull, ≥ 10 M parameters: hand-written loop / step (the worst)", 0.90, step_of_hand_written),
    Bar("step with a pull, 100 k parameters in 100 tensors", 100.0, small_step, False, " µs"),
    Bar("step of an attached trainer, 100 k parameters, beyond embedded", 100.0, attached_step, False, " µs"),
    Bar("step in Python, 100 k parameters in 100 tensors", 150.0, in_python("step_us", 100_000), False, " µs"),
    Bar("step in Python, 10 M parameters: times the step in C++", 1.10, in_python("times_embedded", 10_000_000), False),
    Bar("longest wait of a step for the network", 0.0, longest_wait, False, " µs"),
    Bar("pull of 200 bytes: times the latency of bare sockets", 1.5, small_pull, False),
    Bar("collective: step, of DistributedDataParallel's (the worst)", 1.0, collective_step, False),
    Bar("collective: what communication adds to a step of the cnn, of DDP's", 0.5, collective_added, False),
    Bar("collective: 100 MB in lent memory, 4 nodes: times Gloo", 3.0, engine("dpwa, lent memory", 100 * MB)),
    Bar("collective: 100 MB in any memory, 4 nodes: times Gloo", 1.3, engine("dpwa", 100 * MB)),
    Bar("collective: 100 MB over TCP, 4 nodes: times Gloo", 1.3, engine("dpwa, TCP", 100 * MB)),
    Bar("collective: 100 MB over TCP by psk, 4 nodes: times Gloo in plain text", 0.5, engine("dpwa, psk", 100 * MB)),
    Bar("collective: 400 kB, 4 nodes: times Gloo", 10.0, engine("dpwa", 400_000)),
    Bar("collective: 4 kB, 4 nodes: times Gloo", 4.0, engine("dpwa", 4_000)),
    Bar("collective: engine mpi, 100 MB, 4 nodes: times Gloo", 1.25, engine("mpi", 100 * MB)),
    Bar("kvstore: 100 MB, 1 worker, 1 server, TCP: times ps-lite", 3.0, store("ratio_to_ps_lite", transport="tcp", **PAIR)),
    Bar("kvstore: step, 4 workers, 2 servers, TCP: times Gloo", 1.0, store("ratio_to_gloo", transport="tcp", **STEP)),
    Bar("kvstore: step, 4 workers, 2 servers, same host: times Gloo", 1.5, store("ratio_to_gloo", **SAME_HOST, **STEP)),
    Bar(
        "kvstore: push and pull of 200 bytes: times a bare-socket ping-pong",
        3.0,
        store("latency_ratio_to_raw", bytes=200, transport="tcp"),
        at_least=False,
    ),
    Bar("kvstore: 2-bit pushes move so many times fewer bytes", 15.9, two_bit_pushes),
)


def judge(results: Results) -> list[Judged]:
    return [Judged(bar, bar.measure(results)) for bar in BARS]
