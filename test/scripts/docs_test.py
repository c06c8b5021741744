"""What a program can check in the documents: links, layers, configuration keys, options, figures, quoted code."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
import unittest
from pathlib import Path

import scripts_path  # noqa: F401  (before the modules of scripts/)
import update_key_reference

ROOT = Path(__file__).resolve().parents[2]
CLI = Path(os.environ.get("DPWA_CLI", ROOT / "build/release/bin/dpwa"))
SKIPPED_FOLDERS = {".git", ".venv", "build", "runs", "data"}
NODE = "nodes: [{name: w1, port: 24000}]\n"

# Heading of docs/CONFIGURATION.md -> a cluster file with the key UNKNOWN in that section.
PROBES = {
    "The file": NODE + "UNKNOWN: 1\n",
    "nodes": "nodes: [{name: w1, port: 24000, UNKNOWN: 1}]\n",
    "gossip": NODE + "gossip: {UNKNOWN: 1}\n",
    "gossip.firewall": NODE + "gossip: {firewall: {UNKNOWN: 1}}\n",
    "gossip.membership": NODE + "gossip: {membership: {UNKNOWN: 1}}\n",
    "collective": NODE + "collective: {UNKNOWN: 1}\n",
    "security": NODE + "security: {mode: insecure, UNKNOWN: 1}\n",
    "transport": NODE + "transport: {UNKNOWN: 1}\n",
    "observe": NODE + "observe: {UNKNOWN: 1}\n",
    "log": NODE + "log: {UNKNOWN: 1}\n",
}

COLUMNS = 120
# What a program writes into a document lies between two such lines.
MARKER_BEGIN = re.compile(r"<!-- (.+: begin|keys of .+) -->$")
MARKER_END = re.compile(r"<!-- (.+: end|end of keys) -->$")


def documents() -> list[Path]:
    """Every Markdown file of the repository."""
    found = []
    for folder, folders, files in os.walk(ROOT):
        folders[:] = [name for name in folders if name not in SKIPPED_FOLDERS and not name.startswith("build-")]
        found += [Path(folder, name) for name in files if name.endswith(".md")]
    return sorted(found)


def prose(document: Path) -> str:
    """The text without its code blocks."""
    return re.sub(r"^```.*?^```", "", document.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)


def anchors(document: Path) -> set[str]:
    """The names that headings can be linked by."""
    headings = re.findall(r"^#+ +(.+)$", prose(document), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


def tables(document: Path) -> dict[str, list[list[str]]]:
    """Heading (without backticks) -> the rows of its tables that begin with a `key`."""
    result: dict[str, list[list[str]]] = {}
    heading = ""
    for line in document.read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            heading = line.lstrip("# ").replace("`", "")
        elif line.startswith("| `"):
            result.setdefault(heading, []).append([cell.strip() for cell in line.strip("|").split("|")])
    return result


def keys(rows: list[list[str]]) -> set[str]:
    return {row[0].strip("`") for row in rows}


class Links(unittest.TestCase):
    def test_every_relative_link_leads_to_a_file_and_a_heading(self) -> None:
        broken = []
        for document in documents():
            for link in re.findall(r"\]\(([^)\s]+)\)", prose(document)):
                if re.match(r"[a-z]+:", link):
                    continue
                name, _, anchor = link.partition("#")
                target = (document.parent / name).resolve() if name else document
                if not target.exists() or (anchor and anchor not in anchors(target)):
                    broken.append(f"{document.relative_to(ROOT)}: {link}")
        self.assertEqual(broken, [])

    def test_every_file_named_in_code_style_exists(self) -> None:
        missing = []
        folders = "dpwa|adapters|interpolation|examples|scripts|test|samples|docs|cmake"
        pattern = re.compile(rf"`((?:{folders})/[\w./-]+\.\w+)`")
        for document in documents():
            for name in pattern.findall(prose(document)):
                if "NAME" not in name and not (ROOT / name).exists():
                    missing.append(f"{document.relative_to(ROOT)}: {name}")
        self.assertEqual(missing, [])


class Lines(unittest.TestCase):
    def test_no_line_of_a_document_is_longer_than_120_columns(self) -> None:
        long = []
        for document in documents():
            name = document.relative_to(ROOT)
            generated = False
            for number, line in enumerate(document.read_text(encoding="utf-8").splitlines(), start=1):
                generated = (generated or bool(MARKER_BEGIN.match(line))) and not MARKER_END.match(line)
                if len(line) > COLUMNS and not generated:
                    long.append(f"{name}:{number}: {len(line)} columns")
        self.assertEqual(long, [])


class Layers(unittest.TestCase):
    def test_the_table_of_layers_has_those_of_the_build_files(self) -> None:
        stated = {f"`{name}`" for file in ROOT.glob("dpwa/**/CMakeLists.txt")
                  for name in re.findall(r"dpwa_layer\(\s*(\w+)", file.read_text(encoding="utf-8"))}  # fmt: skip
        listed = {row[0] for row in tables(ROOT / "docs/ARCHITECTURE.md")["Layers"]}
        self.assertGreater(len(stated), 10)
        self.assertEqual(sorted(stated - listed), [], "layers without a row in docs/ARCHITECTURE.md")
        self.assertEqual(sorted(listed - stated), [], "rows in docs/ARCHITECTURE.md without a layer")


class Outcomes(unittest.TestCase):
    def test_the_page_on_the_adapter_has_the_values_of_an_outcome(self) -> None:
        header = (ROOT / "dpwa/rules/step_report.h").read_text(encoding="utf-8")
        known = re.findall(r"^  (\w+),", re.findall(r"enum class Outcome \{\n(.*?)\};", header, re.DOTALL)[0], re.MULTILINE)
        rows = tables(ROOT / "docs/ADAPTER.md")["What a step reports"]
        listed = [row[0].strip("`") for row in rows[[row[0] for row in rows].index("`outcome`", 1) + 1 :]]
        self.assertEqual(sorted(listed), sorted(known))


class Binary(unittest.TestCase):
    def test_a_binary_that_is_named_is_there(self) -> None:
        if "DPWA_CLI" in os.environ:
            self.assertTrue(os.access(CLI, os.X_OK), f"DPWA_CLI names {CLI}")


@unittest.skipUnless(os.access(CLI, os.X_OK), "there is no dpwa binary: DPWA_CLI names one")
class Configuration(unittest.TestCase):
    def setUp(self) -> None:
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.file = Path(scratch.name, "cluster.yaml")
        self.tables = tables(ROOT / "docs/CONFIGURATION.md")

    def check(self, text: str) -> subprocess.CompletedProcess[str]:
        self.file.write_text(text, encoding="utf-8")
        command = [str(CLI), "config", "check", str(self.file)]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    def accepted(self, text: str) -> set[str]:
        """What the loader says it accepts in place of a key that it does not know."""
        refused = self.check(text)
        self.assertEqual(refused.returncode, 2, refused)
        return set(refused.stderr.strip().rpartition("accepted: ")[2].split(", "))

    def test_the_documented_keys_are_those_that_the_loader_accepts(self) -> None:
        original = keys(self.tables["The original's form"])
        for heading, probe in PROBES.items():
            with self.subTest(heading):
                documented = keys(self.tables[heading]) | (original if heading == "The file" else set())
                self.assertEqual(documented, self.accepted(probe))

    def test_the_tables_of_keys_are_what_the_program_prints(self) -> None:
        document = update_key_reference.REFERENCE.read_text(encoding="utf-8")
        printed = update_key_reference.printed_tables(CLI)
        self.assertGreater(len(printed), 8)
        current = update_key_reference.with_tables(document, printed)
        self.assertEqual(document.splitlines(), current.splitlines(), f"run scripts/update_key_reference.py {CLI}")

    def test_the_annotated_sample_is_what_dpwa_init_prints(self) -> None:
        done = subprocess.run([str(CLI), "init", "-o", "-"], capture_output=True, text=True, check=True)
        sample = (ROOT / "samples/cluster.yaml").read_text(encoding="utf-8")
        printed, kept = (re.sub(r"cores: \[\d+\]", "cores: [0]", text) for text in (done.stdout, sample))
        self.assertEqual(kept.splitlines(), printed.splitlines(), f"run {CLI} init -o samples/cluster.yaml --force")

    def test_a_table_that_is_missing_in_the_document_is_named(self) -> None:
        with self.assertRaisesRegex(ValueError, "of \\[\\], and printed are those of \\['log'\\]"):
            update_key_reference.with_tables("no tables", {"log": ""})

    def test_the_documented_interpolation_keys_are_those_of_all_methods_together(self) -> None:
        methods = self.accepted(NODE + "interpolation: {method: UNKNOWN}\n")
        known = set[str]()
        for method in methods:
            known |= self.accepted(NODE + f"interpolation: {{method: {method}, UNKNOWN: 1}}\n")
        rows = self.tables["interpolation"]
        self.assertEqual(keys(rows), known)
        self.assertLessEqual(methods, set(re.findall(r"`(\w+)`", rows[0][2])))

    def test_a_documented_default_written_out_changes_nothing(self) -> None:
        plain = self.check(NODE).stdout
        checked = 0
        for heading in PROBES:
            for key, default, *_ in self.tables[heading]:
                if not default.startswith("`"):
                    continue
                with self.subTest(f"{heading}: {key}"):
                    probe = PROBES[heading].replace("UNKNOWN: 1", f"{key.strip('`')}: {default.strip('`')}")
                    written = self.check(probe)
                    self.assertEqual((written.returncode, written.stdout), (0, plain), written.stderr)
                    checked += 1
        self.assertGreater(checked, 20)

    def test_the_short_table_of_the_readme_is_part_of_the_long_one(self) -> None:
        short = keys(tables(ROOT / "README.md")["Configuration"])
        known = {f"{heading}.{key}" for heading, rows in self.tables.items() for key in keys(rows)}
        known |= keys(self.tables["The file"])
        self.assertLessEqual(short, known)


# A number as a document states it, and the line of the code that it repeats, in the same unit.
NUMBERS = [
    ("docs/OPERATIONS.md", r"asked again every (\d+) s or so", "dpwa/base/backoff.h", r"max = .*seconds\((\d+)\)"),
    ("docs/OPERATIONS.md", r"each peer every (\d+) s or so", "dpwa/base/backoff.h", r"max = .*seconds\((\d+)\)"),
    (
        "docs/ALGORITHMS.md",
        r"backs off, \d+ ms doubling to (\d+) s",
        "dpwa/base/backoff.h",
        r"max = .*seconds\((\d+)\)",
    ),
    ("docs/ALGORITHMS.md", r"backs off, (\d+) ms", "dpwa/base/backoff.h", r"initial = .*milliseconds\((\d+)\)"),
    (
        "docs/ALGORITHMS.md",
        r"cost no score and about (\d+) ms",
        "dpwa/rules/peer_table.cpp",
        r"declined_delay = .*\((\d+)\)",
    ),
    (
        "docs/ALGORITHMS.md",
        r"the same one every (\d+) s",
        "dpwa/rules/peer_table.cpp",
        r"between_forgiveness\{.*?\((\d+)\)",
    ),
    ("docs/ALGORITHMS.md", r"four at a time every (\d+) ms", "dpwa/net/visits.cpp", r"tick = .*\((\d+)\)"),
    (
        "docs/PROTOCOL.md",
        r"tries again after (\d+) s",
        "dpwa/net/same_host/peer_memory.h",
        r"pause_after_failure = .*\((\d+)\)",
    ),
    ("docs/PROTOCOL.md", r"included, (\d+) s after", "dpwa/net/server_options.h", r"handshake_timeout = .*\((\d+)\)"),
    ("docs/SECURITY.md", r"from accept to WELCOME \| (\d+) s", "dpwa/net/server_options.h", r"handshake_timeout = .*\((\d+)\)"),
    ("docs/PROTOCOL.md", r"replies in flight (\d+) ms", "dpwa/net/server_options.h", r"drain_time = .*\((\d+)\)"),
    ("docs/OPERATIONS.md", r"replies in flight (\d+) ms", "dpwa/net/server_options.h", r"drain_time = .*\((\d+)\)"),
    (
        "docs/PROTOCOL.md",
        r"once in (\d+) ms and by at most",
        "dpwa/rules/membership.h",
        r"refutation_pause = .*\((\d+)\)",
    ),
    ("docs/PROTOCOL.md", r"told this peer nothing for (\d+) s", "dpwa/rules/options.h", r"exchange = .*\((\d+)\)"),
    (
        "docs/PROTOCOL.md",
        r"believed that is more than (\d+),",
        "dpwa/rules/membership.h",
        r"max_refutation_jump = (\d+)",
    ),
    ("docs/PROTOCOL.md", r"held several for (\d+) ms", "dpwa/rules/readers.h", r"stall = .*\((\d+)\)"),
    ("docs/PROTOCOL.md", r"less than (\d+) ms ago", "dpwa/net/name_guard.h", r"answer_holds = .*\((\d+)\)"),
    ("docs/SECURITY.md", r"once in (\d+) ms a name", "dpwa/net/name_guard.h", r"answer_holds = .*\((\d+)\)"),
    (
        "docs/PROTOCOL.md",
        r"at least (\d+) s; of a full pull",
        "dpwa/gossip/gossip_node.cpp",
        r"shortest_reply_bound = .*\((\d+)\)",
    ),
    ("docs/PROTOCOL.md", r"a pause of (\d+) ms between", "dpwa/engine/final_average.cpp", r"pause = .*\((\d+)\)"),
    ("docs/FIREWALL.md", r"The last (\d+) distances", "dpwa/rules/distance_bound.h", r"window = (\d+)"),
    ("docs/OPERATIONS.md", r"At most (\d+) such", "dpwa/log/log.h", r"most_in_a_period = (\d+)"),
    ("docs/OPERATIONS.md", r"every (\d+) ms a new try", "dpwa/net/accept_loop.h", r"pause = .*\((\d+)\)"),
]


class Numbers(unittest.TestCase):
    def test_a_number_of_the_code_is_the_same_in_the_documents(self) -> None:
        for document, said, source, written in NUMBERS:
            with self.subTest(document=document, said=said):
                in_document = re.findall(said, re.sub(r"\s+", " ", (ROOT / document).read_text(encoding="utf-8")))
                in_code = re.findall(written, (ROOT / source).read_text(encoding="utf-8"))
                self.assertEqual((len(in_document), len(in_code)), (1, 1), "each is said once")
                self.assertEqual(in_document, in_code)


class Quotations(unittest.TestCase):
    def test_the_documented_options_are_those_of_dpwa_train(self) -> None:
        files = ("examples/train/options.cpp", "examples/train/command_line.h")
        source = "".join((ROOT / file).read_text(encoding="utf-8") for file in files)
        options = set(re.findall(r'(?:add|add_flag|add_option)\((?:app, )?"(--[a-z-]+)"', source))
        section = (ROOT / "docs/TRAINING.md").read_text(encoding="utf-8").split("## Options\n")[1].split("\n## ")[0]
        self.assertGreater(len(options), 15)
        self.assertEqual(set(re.findall(r"^- `(--[a-z-]+)", section, flags=re.MULTILINE)), options)

    def test_every_field_of_the_status_is_documented(self) -> None:
        """The names in quotes where the documents are made, and the names in backticks in their description."""
        files = ("dpwa/node/status_document.cpp", "dpwa/gossip/gossip_status.cpp")
        node = "".join((ROOT / file).read_text(encoding="utf-8") for file in files)
        lists = re.findall(r'move_to\(out, "(\w+)"\)', node)
        printed = {*re.findall(r'\bout\["(\w+)"\]', node), *lists, *(f"{name}_omitted" for name in lists)}
        command = (ROOT / "dpwa/observe/cluster_query.cpp").read_text(encoding="utf-8")
        printed |= set(re.findall(r'\b(?:document|node)\["(\w+)"\]', command))
        notes = (ROOT / "dpwa/collective/group_notes.cpp").read_text(encoding="utf-8")
        printed |= set(re.findall(r'\{"(\w+)", (?:notes\.|rank|membership)', notes))
        for source in ("dpwa/collective/collective_node.cpp", "dpwa/node/endpoint.cpp"):
            printed |= set(re.findall(r'notes\.set\("(\w+)"', (ROOT / source).read_text(encoding="utf-8")))
        self.assertGreater(len(printed), 60)
        section = (ROOT / "docs/OPERATIONS.md").read_text(encoding="utf-8").split("## Status\n")[1].split("\n## ")[0]
        said = {word for code in re.findall(r"`([^`\n]+)`", section) for word in re.findall(r"\w+", code)}
        self.assertEqual(sorted(printed - said), [])

    def test_the_loop_in_the_readme_is_part_of_the_embedding_example(self) -> None:
        readme = (ROOT / "README.md").read_text(encoding="utf-8")
        source = (ROOT / "examples/embed/embedded.cpp").read_text(encoding="utf-8")
        example = [line.strip() for line in source.splitlines()]
        block = readme.split("```cpp\n")[1].split("```")[0]
        for line in block.splitlines():
            if line.strip():
                self.assertIn(line.strip(), example)
        self.assertLess(len(example), 60)
        counts = ("three", "four", "five", "six", "seven")
        marked = sum("// dpwa" in line for line in block.splitlines())
        said = re.search(r"adds (\w+) lines to a\s+training loop", readme)
        self.assertEqual(said and said[1], counts[marked - 3])

    def test_the_code_of_the_page_on_the_adapter_is_part_of_a_test(self) -> None:
        page = (ROOT / "docs/ADAPTER.md").read_text(encoding="utf-8")
        source = (ROOT / "test/adapters/adapter_page_test.cpp").read_text(encoding="utf-8")
        blocks = re.findall(r"```cpp\n(.*?)```", page, flags=re.DOTALL)
        self.assertEqual(len(blocks), 4)
        for block in blocks:
            self.assertIn(block, source)


if __name__ == "__main__":
    unittest.main()
