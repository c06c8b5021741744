"""The sections of a benchmark report in Markdown: each takes the results and gives its lines, none where nothing of it
was measured."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from lib.bench_bars import NOT_MEASURED, judge
from lib.bench_results import GB, KB, MB, Document, Results, fell_back, nodes_text, relative, size_text, time_text

NONE = "–"
SIZES = (200, 10 * KB, MB, 10 * MB, 100 * MB, GB)
GROUPS = (2, 4)


def table(header: Iterable[str], rows: list[list[str]]) -> list[str]:
    """Nothing when there are no rows."""
    if not rows:
        return []
    head = list(header)
    lines = [head, ["---"] * len(head), *rows]
    return [f"| {' | '.join(line)} |" for line in lines] + [""]


def number(value: float | None) -> str:
    if value is None:
        return NONE
    if value >= 100:
        return f"{value:.0f}"
    return f"{value:.2f}" if value >= 0.1 or value == 0 else f"{value:.2g}"


def spread(range_: Document | None) -> str:
    """The median of the windows, and the lowest and highest."""
    if range_ is None:
        return NONE
    return f"{range_['median']:.2f} ({range_['min']:.2f}–{range_['max']:.2f})"


def both(quantiles: Document | None) -> str:
    return NONE if not quantiles else f"{time_text(quantiles['median'])} / {time_text(quantiles['p99'])}"


def rate(one: Document) -> str:
    mark = "~" if one.get("noise", {}).get("noisy") else ""
    return mark + number(one["gb_per_s"])


def mib(value: float | None) -> str:
    return NONE if value is None else f"{value:.1f} MiB"


def who(one: Document) -> str:
    return nodes_text(one["nodes"], one.get("pulling_nodes", one["nodes"]))


def pull_cells(one: Document) -> list[str]:
    """What every table of pulls shows of one."""
    return [
        rate(one),
        spread(one.get("ratio_to_raw")),
        number(one["cpu_s_per_gb"]),
        both(one["latency_us"]),
    ]


PULL_HEADER = ["GB/s", "of bare sockets", "CPU s/GB", "latency: median / p99"]


def grid(results: Results, **wanted: Any) -> list[Document]:
    """Pulls by size and number of nodes."""
    every = (results.pull(bytes=size, nodes=nodes, **wanted) for size in SIZES for nodes in GROUPS)
    return [one for one in every if one is not None]


def machine(results: Results, brief: bool = False) -> list[str]:
    settings = results.settings
    used = ", ".join(settings.get("congestion_control", [])) or NONE
    rows = [
        ("processor", f"{settings.get('cpu', NONE)}, {settings.get('cores', NONE)} cores"),
        ("kernel", settings.get("kernel", NONE)),
        ("congestion control", f"{used} on loopback; the system's: {settings.get('system_congestion_control', NONE)}"),
        ("transparent huge pages", settings.get("transparent_huge_pages", NONE)),
        ("buffers on huge pages", f"{100 * settings['huge_pages']:.0f} %" if "huge_pages" in settings else NONE),
        ("chunk", f"{settings['chunk_bytes'] / 1024:g} KiB" if "chunk_bytes" in settings else NONE),
        ("vector instructions", settings.get("instruction_set", NONE)),
        ("version", f"dpwa {settings.get('version', NONE)}"),
        ("run", f"{results.document['time']}, {results.document['plan']}, {results.document['seconds']} s"),
    ]
    kept = ("processor", "congestion control", "version", "run") if brief else [name for name, _ in rows]
    return table(["", ""], [[name, str(value)] for name, value in rows if name in kept])


def bars(results: Results) -> list[str]:
    rows = [[one.bar.name, one.bar.target, one.text, one.verdict] for one in judge(results)]
    lines = table(["bar", "target", "measured", ""], rows)
    if results.noisy:
        lines += [f"The machine was not quiet during {len(results.noisy)} of {len(results.all)} measurements.", ""]
    return lines


def memory(results: Results) -> list[str]:
    found = results.first(kind="memory")
    if not found:
        return []
    rates = {(one["name"], one["dtype"], one["threads"]): one for one in found["results"]}
    threads = sorted({one["threads"] for one in found["results"]})
    passes = dict.fromkeys((one["name"], one["dtype"], one["meaning"]) for one in found["results"])
    rows = []
    for name, dtype, meaning in passes:
        cells = [rates.get((name, dtype, count)) for count in threads]
        rows.append([f"`{name}`", dtype, *(number(one and one["gb_per_s"]) for one in cells), meaning])
    header = [f"{count} thread{'s' if count > 1 else ''}" for count in threads]
    return [
        f"GB/s over vectors of {size_text(found['bytes'])}, out of cache.",
        "",
        *table(["pass", "dtype", *header, "meaning"], rows),
    ]


def pulls(results: Results) -> list[str]:
    rows = [[size_text(one["bytes"]), who(one), *pull_cells(one)] for one in grid(results)]
    return table(["TCP", "nodes", *PULL_HEADER], rows)


def same_host(results: Results) -> list[str]:
    rows = []
    for one in grid(results, transport="same_host"):
        tcp = results.pull(bytes=one["bytes"], nodes=one["nodes"])
        rows.append([size_text(one["bytes"]), who(one), *pull_cells(one), number(relative(one, tcp))])
    return table(["same host", "nodes", *PULL_HEADER, "of dpwa's TCP"], rows)


def gossip(results: Results) -> list[str]:
    """Both paths of a pull, side by side."""
    rows = []
    for one in grid(results):
        shared = results.pull(bytes=one["bytes"], nodes=one["nodes"], transport="same_host")
        memory = [rate(shared), number(shared["cpu_s_per_gb"])] if shared else [NONE, NONE]
        rows.append([size_text(one["bytes"]), who(one), *pull_cells(one), *memory])
    return table(["TCP", "nodes", *PULL_HEADER, "same host: GB/s", "same host: CPU s/GB"], rows)


def variants(results: Results) -> list[str]:
    """Encodings, checksums, encryption, the blend as a part of the pull."""
    kinds: list[tuple[str, Document]] = [
        ("fp32, checksum on (default)", {}),
        ("checksum off", {"checksum": "off"}),
        *((name, {"encoding": name}) for name in ("fp16", "bf16", "int8")),
        ("encrypted (psk)", {"security": "psk"}),
        ("and blended", {"blend": True}),
    ]
    rows = []
    for size in (10 * MB, 100 * MB):
        for nodes in GROUPS:
            plain = results.pull(bytes=size, nodes=nodes)
            found = [(name, results.pull(bytes=size, nodes=nodes, **settings)) for name, settings in kinds]
            present = [(name, one) for name, one in found if one is not None]
            if len(present) < 2:
                continue
            for name, one in present:
                wire = one["settings"].get("tcp_bytes_per_pull", 0) / 1e6
                cells = [*pull_cells(one), number(relative(one, plain)), f"{wire:.1f} MB"]
                rows.append([name, size_text(size), who(one), *cells])
    header = ["", "fp32 parameters", "nodes", *PULL_HEADER, "of the default", "sent per pull"]
    return table(header, rows)


def small(results: Results) -> list[str]:
    rows = []
    for size in (200, 10 * KB):
        pull = results.pull(bytes=size, nodes=2, ping_pong=True)
        if pull is None:
            continue
        raw = pull.get("raw", {})
        shared = results.pull(bytes=size, nodes=2, transport="same_host")
        cells = [both(pull["latency_us"]), both(raw.get("latency_us")), spread(pull.get("latency_ratio_to_raw"))]
        cells += [both(one.get("trainer_latency_us")) for one in (pull, raw)]
        rows.append([size_text(size), *cells, both(shared and shared["latency_us"])])
    seen = "as the trainer sees it"
    header = ["", "pull over TCP", "bare sockets", "times bare sockets", seen, f"bare sockets, {seen}", "same host"]
    return table(header, rows)


def steps(results: Results) -> list[str]:
    rows = []
    for one in results.select(kind="step"):
        longest = time_text(one["waited_us_max"]) if one["waited_us_max"] else "0"
        ratios = [number(one[key]) for key in ("ratio_to_hand_written", "ratio_to_one_pass", "publish_ratio_to_copy")]
        cells = [both(one[group].get("step_us")) for group in ("arrived", "not_arrived")]
        rows.append([f"{one['parameters']:,}", str(one["tensors"]), *cells, *ratios, longest])
        for key, words in (("attached", "attached"), ("in_python", "in Python")):
            if key in one:
                cells = [both(one[key][group].get("step_us")) for group in ("arrived", "not_arrived")]
                rows.append([f"{one['parameters']:,}", f"{one['tensors']}, {words}", *cells, *["–"] * 4])
    header = ["parameters", "tensors", "with a pull", "without", "copy, then blend / step", "one pass / step"]
    return table([*header, "copy / step without", "longest wait"], rows)


def choices(results: Results) -> list[str]:
    """What the nodes of a cluster keep of their peers, and the time of choosing one."""
    rows = []
    for document in results.select(kind="choice"):
        mark = "~" if document["noise"]["noisy"] else ""
        for one in document["results"]:
            times = [time_text(one["windows"]["choose_ns"][key] / 1000) for key in ("median", "min", "max")]
            memory_text = size_text(round(one["bytes_per_node"]))
            cells = [number(one["records_per_node"]), memory_text, f"{mark}{times[0]} ({times[1]}–{times[2]})"]
            table_bytes = one.get("table_bytes_per_node")  # not in documents of earlier versions
            cells.append("–" if table_bytes is None else size_text(round(table_bytes)))
            rows.append([f"{one['nodes']:,}", f"{document['pulls_per_node']:,}", *cells])
    return table(["nodes", "pulls before", "peers known", "memory of a node", "time of a choice", "member table"], rows)


def collectives(results: Results, brief: bool = False) -> list[str]:
    rows = []
    for one in results.select(kind="collective"):
        ours, ddp = one["dpwa"], one["ddp"]
        mark = "~" if one["noise"]["noisy"] else ""
        other = f"absent: {without_folders(ddp['absent'])}" if "absent" in ddp else both(ddp["step_us"])
        hidden = [spread(side.get("hidden_share")) for side in (ours, ddp)]
        cells = [mark + both(ours["step_us"]), other, spread(one["ratio_to_ddp"])]
        cells.append(spread(one.get("added_ratio_to_ddp")))
        if not brief:
            cells += [time_text(ours["local_step_us"]["median"]), time_text(one["allreduce_us"]["median"]), *hidden]
        rows.append([one["model"], f"{one['bytes'] / MB:.1f} MB", str(one["nodes"]), *cells])
    header = ["", "gradients", "nodes", "step: median / p99", "of DistributedDataParallel", "ratio"]
    header.append("what communication adds: ratio")
    if not brief:
        header += ["without communication", "all-reduce alone", "hidden", "hidden by DDP"]
    return table(header, rows)


def engines(results: Results) -> list[str]:
    rows = []
    for document in results.select(kind="engines"):
        mark = "~" if document["noise"]["noisy"] else ""
        for one in document["engines"]:
            absent = "absent" in one
            ratio = one.get("ratio_to_gloo")
            rate_text = f"absent: {without_folders(one['absent'])}" if absent else mark + number(one["gb_per_s"])
            took = NONE if absent else time_text(one["windows"]["allreduce_us"]["median"])
            nodes = str(document["nodes"])
            cells = [rate_text, took, spread(ratio), one.get("setting") or NONE]
            rows.append([one["name"], size_text(document["bytes"]), nodes, *cells])
    return table(["engine", "vector", "nodes", "GB/s, all nodes", "an all-reduce", "of gloo", "setting"], rows)


def stores(results: Results, brief: bool = False) -> list[str]:
    rows = []
    for one in results.select(kind="kvstore"):
        if brief and (one["bytes"] in (MB, 10 * MB) or (one["workers"], one["servers"]) not in ((1, 1), (4, 2))):
            continue
        kind = one["type"] + "".join(f", {one[key]}" for key in ("optimizer", "compression") if one[key] != "none")
        path = "same host" if one["transport"] == "same_host" else "TCP"
        others = [spread(one.get(f"ratio_to_{peer}")) for peer in ("gloo", "ps_lite")]
        cells = [rate(one), number(one["cpu_s_per_gb"]), both(one["latency_us"]), spread(one.get("latency_ratio_to_raw"))]
        size = size_text(one["bytes"])
        rows.append([size, f"{one['workers']} / {one['servers']}", kind, path, *cells, *others])
    header = ["", "workers / servers", "", "", "GB/s, both ways", "CPU s/GB", "push and pull: median / p99"]
    return table([*header, "times bare sockets", "speed, of Gloo's step", "speed, of ps-lite"], rows)


def memory_use(results: Results) -> list[str]:
    rows = []
    for one in results.pulls:
        beyond = one.get("memory_beyond_parameters_mib")
        if beyond is None or one["encoding"] != "fp32" or one["checksum"] != "on":
            continue
        kind = "same host" if one["transport"] == "same_host" else "TCP"
        kind += ", blending" if one["blend"] else ""
        mapped = one.get("peers_mapped_mib")
        rows.append([size_text(one["bytes"]), who(one), kind, mib(one["peak_rss_mib"]), mib(mapped), mib(beyond)])
    return table(["", "nodes", "", "peak of a node", "of it mapped from peers", "beyond the full-size buffers"], rows)


def peers(results: Results) -> list[str]:
    rows = []
    for one in results.select(kind="peer"):
        size = {"bytes": one["bytes"], "nodes": one["nodes"]}
        ours = [results.all_pulling(**size), results.all_pulling(**size, transport="same_host")]
        ratios = [number(relative(pull, one)) for pull in ours]
        cells = [rate(one), number(one["cpu_s_per_gb"]), one.get("congestion_control", NONE)]
        rows.append([one["name"], size_text(one["bytes"]), str(one["nodes"]), *cells, *ratios])
    header = ["", "vector", "nodes", "GB/s, all nodes", "CPU s/GB", "congestion control"]
    return table([*header, "dpwa TCP, times", "dpwa same host, times"], rows)


def without_folders(text: str) -> str:
    """Paths cut to their last part: a report names no machine's folders."""
    return re.sub(r"(?<![\w.])/(?:[\w.+-]+/)+", "", text)


def title_of(one: Document) -> str:
    if one["kind"] == "step":
        return f"step {one['parameters']:,} in {one['tensors']} tensors"
    if one["kind"] == "choice":
        return "choice of a peer"
    words = [one.get("name", one["kind"]), *([one["model"]] if "model" in one else []), size_text(one["bytes"])]
    words += [who(one)] if "nodes" in one else []
    words += [str(one[key]) for key in ("mode", "transport", "encoding") if key in one]
    words += ["checksum off"] if one.get("checksum") == "off" else []
    words += [one["security"]] if one.get("security", "insecure") != "insecure" else []
    words += ["blending"] if one.get("blend") else []
    return " ".join(words)


def remarks(results: Results) -> list[str]:
    """When the machine was noisy, what fell back, what was left out."""
    lines = []
    if results.noisy:
        lines += [f"The machine was noisy during {len(results.noisy)} of {len(results.all)} measurements (~):", ""]
        lines += [f"- {title_of(one)}: {'; '.join(one['noise']['reasons'])}" for one in results.noisy]
    else:
        lines.append("The machine was quiet.")
    for one in results.select(kind="pull"):
        if fell_back(one):
            asked = one["settings"]["requested_transport"]
            lines += ["", f"Asked for {asked} and got {one['transport']}: {size_text(one['bytes'])}, {who(one)}."]
    if results.skipped:
        lines += ["", "Left out:", ""]
        lines += [f"- {one['title']}: {without_folders(one['reason'])}" for one in results.skipped]
    unjudged = [one.bar.name for one in judge(results) if one.verdict == NOT_MEASURED]
    if unjudged:
        lines += ["", f"Bars not measured: {'; '.join(unjudged)}."]
    return [*lines, ""]


Sections = tuple[tuple[str, Callable[[Results], list[str]]], ...]
SECTIONS: Sections = (
    ("Machine and settings", machine),
    ("Bars", bars),
    ("Pulls by size", pulls),
    ("Same host", same_host),
    ("Encodings, checksums, encryption", variants),
    ("Small pulls", small),
    ("What a step adds", steps),
    ("Choice of a peer", choices),
    ("Steps of backend collective", collectives),
    ("Engines of backend collective", engines),
    ("Pushes and pulls of backend kvstore", stores),
    ("Memory of a node", memory_use),
    ("Peers", peers),
    ("Memory limits", memory),
    ("Noise, and what was left out", remarks),
)


# For a document: a table for each back end. The data beside it have all others.
BRIEF: Sections = (
    ("Machine and settings", lambda results: machine(results, brief=True)),
    ("Bars", bars),
    ("Backend gossip", gossip),
    ("Backend collective", lambda results: collectives(results, brief=True)),
    ("Backend kvstore", lambda results: stores(results, brief=True)),
)


def records(results: Results) -> list[list[str]]:
    """All tables of a report as rows, each after the title of its section. The first row of a table has its names."""
    return [
        [title, *line[2:-2].split(" | ")]
        for title, section in SECTIONS
        for line in section(results)
        if line.startswith("|") and not line.startswith("| ---")
    ]


def report(results: Results, level: int, sections: Sections = SECTIONS) -> str:
    """All sections that have something to say, under headings of the level."""
    text = []
    for title, section in sections:
        lines = section(results)
        if lines:
            text += [f"{'#' * level} {title}", "", *lines]
    return "\n".join(text).rstrip() + "\n"
