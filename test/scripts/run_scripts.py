"""What the tests of run.sh and stop.sh share: a cluster of two nodes whose programs are fakes."""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
import unittest
from collections.abc import Callable
from pathlib import Path

from scripts_path import SCRIPTS

from lib.processes import Process, Records  # isort: skip

STATES = str(SCRIPTS.parent / "runs/.state")

# `dpwa config nodes FILE --local --json`: each line of the file of these tests is a node; the file `servers` of
# FOLDER has servers, and `document` the rest. `dpwa config check FILE --name NAME` fails where there is FOLDER/refusal
# or FOLDER/refusal-NAME. `dpwa status --config FILE --json`: what the test and the trainers below have put into FOLDER.
# `dpwa kvserver --config FILE --name NAME` lives until it is told to end, unless there is FOLDER/fail-NAME, with its
# exit code, or FOLDER/lose-NAME; with FOLDER/deaf-NAME it lives on then. It notes in FOLDER/events that it was told.
FAKE_CLI = r"""#!/bin/bash
folder=$(dirname "$0")
case "$1 $2" in
  "config nodes") exec python3 -ES "$folder/nodes.py" "$3" "$folder" ;;
  "config check")
    [[ $4 == --name ]] || { echo "check of no node" >&2; exit 2; }
    for refusal in "$folder"/refusal{,"-$5"}; do
      [[ ! -e $refusal ]] || { cat "$refusal" >&2; exit 2; }
    done ;;
  "kvserver --config")
    told=''
    trap 'echo "$5 was told to end" >>"$folder/events"; [[ -e $folder/deaf-$5 ]] || told=yes' TERM
    [[ ! -e $folder/fail-$5 ]] || { echo "bind: Address already in use"; exit "$(<"$folder/fail-$5")"; }
    echo "{\"event\": \"started\", \"wall\": $(date +%s.%N)}" >>"$7/$5.events.jsonl"
    echo "listens on port 3 as $5"
    mkdir -p "$folder/serving" && echo $$ >"$folder/serving/$5"
    [[ ! -e $folder/lose-$5 ]] || kill -9 $$
    until [[ -n $told ]]; do sleep 0.05; done
    sleep 0.3  # in which a second signal would be noted, too
    exit 143 ;;
  "status --config")
    echo asked >>"$folder/asked"
    comma='' nodes=''
    for file in "$folder"/states/*; do
      read -r state pid <"$file" && kill -0 "$pid" || continue  # STATE PID
      nodes+="$comma{\"name\": \"${file##*/}\", \"answered\": true, \"status\": {\"state\": \"$state\"}}"
      comma=,
    done 2>/dev/null
    comma='' servers=''
    for file in "$folder"/serving/*; do
      read -r pid <"$file" && kill -0 "$pid" || continue
      servers+="$comma{\"name\": \"${file##*/}\", \"answered\": true}"
      comma=,
    done 2>/dev/null
    echo "{\"nodes\": [$nodes], \"servers\": [$servers]}" ;;
esac
"""

FAKE_NODES = r"""
import json, sys
from pathlib import Path
def entries(text):
    rows = [line.split("\t") for line in text.splitlines()]
    return [{"name": row[0], "cores": [int(core) for core in row[1:]]} for row in rows]
file, folder = sys.argv[1], Path(sys.argv[2])
text = Path(file).read_text()
if "broken" in text or not text:
    sys.exit(f"{file}:1: {text.strip() or 'is empty'}")
document = json.loads(folder.joinpath("document").read_text())
servers = entries(folder.joinpath("servers").read_text())
some = {"nodes": entries(text), "servers": servers, "text": text, "processors": 6}
print(json.dumps({**some, **document}))
"""

# Lives until it is told to end, or there is FOLDER/finish-NODE; what it was given goes to its log. "deaf" ignores
# SIGTERM. It notes in FOLDER/events that it ends after it was told.
FAKE_TRAINER = """#!/bin/bash
trap 'sleep 0.3; echo "$node ends" >>"$folder/events"; exit 143' TERM
[[ "$*" != *--deaf* ]] || trap '' TERM
folder=$(dirname "$0")
node=$4
echo "arguments $*"
echo "ignores $(sed -n 's/^SigIgn:[[:space:]]*//p' /proc/$$/status)"
echo "threads $OMP_NUM_THREADS cores $(taskset -pc $$ | sed 's/.*: //')"
[[ "$*" != *--usage-$node* ]] || { echo "trainer: what is --usage-$node"; echo; exit 2; }
[[ "$*" != *--usage-all* ]] || { echo "trainer: what is --usage-all"; exit 2; }
[[ "$*" != *--fail-$node* ]] || { echo "trainer: no memory"; exit 1; }
state=training
[[ "$*" != *--slow-$node* ]] || state=joining
echo $state $$ >"$folder/states/$node"
[[ "$*" != *--metrics* ]] || echo '{}' >"$6/$node.metrics.jsonl"
echo ready
[[ "$*" != *--at-once* ]] || exit 0
until [[ -e $folder/finish-$node ]]; do sleep 0.05; done
"""


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 120
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError("what the test waits for does not happen")
        time.sleep(0.01)


def alive(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"


class Scripts(unittest.TestCase):
    """A cluster file of two nodes, w1 with one core, and fakes in the place of the binaries."""

    def setUp(self) -> None:
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = Path(scratch.name)
        self.run_dir = self.folder / "run"
        self.core = min(os.sched_getaffinity(0))
        self.cluster = self.write("cluster.yaml", f"w1\t{self.core}\nw2\n")
        self.environment = {
            **{name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"},  # nproc goes by it
            "DPWA_CLI": str(self.write("dpwa", FAKE_CLI, executable=True)),
            "DPWA_TRAIN": str(self.write("dpwa-train", FAKE_TRAINER, executable=True)),
            "TMPDIR": str(self.folder),
        }
        self.states = self.folder / "states"
        self.states.mkdir()
        self.write("nodes.py", FAKE_NODES)
        self.write("servers", "")
        self.write("document", '{"backend": "gossip", "start_wait_ms": 10000}')
        self.addCleanup(self.call, "stop.sh", str(self.cluster), "--grace", "0")

    def write(self, name: str, text: str, *, executable: bool = False) -> Path:
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        path.chmod(0o755 if executable else 0o644)
        return path

    def call(self, script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [str(SCRIPTS / script), *arguments]
        return subprocess.run(command, env=self.environment, capture_output=True, text=True, timeout=240, check=False)

    def start(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return self.call("run.sh", str(self.cluster), "--run-dir", str(self.run_dir), *arguments)

    def run_in_background(self, *arguments: str) -> subprocess.Popen[str]:
        """run.sh without --detach, once it has started everything; its messages are in `stderr`."""
        command = [str(SCRIPTS / "run.sh"), str(self.cluster), "--run-dir", str(self.run_dir), *arguments]
        run = subprocess.Popen(command, env=self.environment, stderr=subprocess.PIPE, text=True)
        names = [word for word in arguments if word[:1] in "ws"] or ["w1", "w2", *self.servers()]
        wait_until(lambda: len(self.running("*", *names)) == len(names))
        return run

    def servers(self) -> list[str]:
        return [line.split("\t")[0] for line in self.folder.joinpath("servers").read_text(encoding="utf-8").splitlines()]

    def in_shell(self, line: str) -> subprocess.CompletedProcess[str]:
        """A line of bash in which $1 is the folder of the scripts, $2 the cluster file, $3 the folder of the run."""
        command = ["bash", "-c", line, "-", str(SCRIPTS), str(self.cluster), str(self.run_dir)]
        return subprocess.run(command, env=self.environment, capture_output=True, text=True, timeout=240, check=False)

    def running(self, kind: str = "*", *names: str) -> list[Process]:
        found = Records(STATES, str(self.cluster)).running(kind)
        return [process for process in found if not names or process.name in names]

    def recorded(self) -> bool:
        """Whether there are records of processes, running or not."""
        return bool(Records(STATES, str(self.cluster)).files())

    def pid(self, name: str) -> int:
        return self.running("*", name)[0].pid

    def events(self) -> list[str]:
        """What nodes and servers have noted at their end, in that order."""
        file = self.folder / "events"
        return file.read_text(encoding="utf-8").splitlines() if file.exists() else []

    def log(self, node: str, word: str) -> str:
        """The log of a node, once it holds `word`."""
        file = self.run_dir / f"{node}.log"
        wait_until(lambda: word in file.read_text(encoding="utf-8"))
        return file.read_text(encoding="utf-8")
