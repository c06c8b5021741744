"""What one run.sh is to start: its arguments, the cluster file, the folder of the run."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from lib.messages import Failure, UsageError, say, tell
from lib.processes import Records, names_of


class Words:
    """The arguments of a command: the cluster file, options, and those of the trainers, which come after --."""

    def __init__(self, words: list[str], values: tuple[str, ...], flags: tuple[str, ...] = ()) -> None:
        self.cluster, self.options, self.only, self.rest = "", {}, [], []
        while words:
            word, *words = words
            if word.startswith("--only=") and "--only" in values:
                word, words = "--only", [word[len("--only=") :], *words]
            if word == "--" and flags:
                self.rest, words = words, []
            elif word in values and not words:
                raise UsageError(f"{word} needs a value")
            elif word in values and word in self.options:
                raise UsageError(f"{word} is given twice; accepted: once")
            elif word in values:
                value, *words = words
                if word == "--only":
                    self.only += [value] if value not in self.only else []
                else:
                    self.options[word] = value
            elif word in flags:
                self.options[word] = ""
            elif word.startswith("-"):
                raise UsageError(f"unknown option '{word}'" + (" (the trainer's come after --)" if flags else ""))
            elif self.cluster:
                raise UsageError(f"one cluster file, not '{word}' as well")
            else:
                self.cluster = word
        if not self.cluster:
            raise UsageError("the cluster file is missing")

    def seconds(self, option: str) -> int | None:
        value = self.options.get(option)
        if value is not None and not re.fullmatch("[0-9]{1,6}", value):
            raise UsageError(f"{option} takes whole seconds, not '{value}'")
        return None if value is None else int(value)


@dataclass
class Run:
    """What one run.sh starts."""

    cluster: str
    cli: str
    trainer: str
    arguments: list[str]  # of the trainers
    nodes: list[str]
    servers: list[str]
    cores: dict[str, str]  # of each name, comma-separated; empty: not pinned
    local_nodes: int  # of the file, wanted or not
    records: Records
    how_to_end: str
    effective: str = ""  # the configuration with all defaults, as `dpwa config check` prints it
    run_dir: str = ""

    def log(self, name: str) -> str:
        return f"{self.run_dir}/{name}.log"

    def threads(self, name: str) -> int:
        """As many as cores; a node without cores gets its share of the machine."""
        if self.cores[name]:
            return len(self.cores[name].split(","))
        return max(1, int(subprocess.check_output(["nproc"])) // self.local_nodes)

    def refuse_second_start(self) -> None:
        if running := self.records.running([*self.servers, *self.nodes]):
            raise Failure(f"already running: {names_of(running)} ({self.how_to_end})")

    def keep_copy(self, text: bytes | None = None) -> None:
        """The cluster file, or the text that has come through a pipe, in the folder of the run."""
        copy = Path(self.run_dir, "cluster.yaml")
        try:
            if text is not None or not (copy.exists() and copy.samefile(self.cluster)):
                copy.write_bytes(Path(self.cluster).read_bytes() if text is None else text)
        except OSError as error:
            raise Failure(f"nothing was started: {copy}: {error.strerror}") from None


def is_inherited(file: str) -> bool:
    """An open file of this process, such as <(...) of a shell. It counts as a pipe: the nodes have others there."""
    return file == "/dev/stdin" or file.startswith(("/dev/fd/", "/proc/self/fd/"))


def pipe_complaint(opened: bool, total: float, idle: float) -> str:
    """The reason to stop reading a pipe, or nothing: seconds since the beginning, and since the last bytes. The limits
    are those of the programs (dpwa/config/document.h)."""
    if not opened:
        return "is a pipe that no process has opened for writing for 2 s" if total >= 2 else ""
    if total >= 60:
        return "was not completely written within 60 s"
    return "was not completely written: nothing has arrived for 10 s" if idle >= 10 else ""


def read_pipe(file: str) -> bytes:
    """Slightly more than a cluster file may have; dpwa refuses a longer one."""
    text, why, opened, most = b"", "", is_inherited(file), (4 << 20) + 1024
    begun = last = time.monotonic()
    try:
        with open(file, "rb", 0, opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as pipe:
            while len(text) < most and not why:
                piece = pipe.read(most - len(text))  # None: it has a writer; empty: it has none
                now = time.monotonic()
                if piece or (piece is None and not opened):
                    text, opened, last = text + (piece or b""), True, now
                elif piece is not None and opened:
                    break
                elif not (why := pipe_complaint(opened, now - begun, now - last)):
                    time.sleep(0.05)
    except OSError:
        raise UsageError(f"{file} cannot be read") from None
    if why or not text:
        raise UsageError(f"{file} {why or 'is empty'}; accepted: a cluster file, or a pipe that is being written")
    return text


def run_folder(wanted: str, runs: str) -> str:
    """The folder of the run, as an absolute path. Without a wish a new one, named for the time and linked as latest."""
    try:
        os.makedirs(wanted or runs, exist_ok=True)
        if not wanted:
            base = time.strftime("%Y%m%d-%H%M%S")
            for name in (base, *(f"{base}-{count}" for count in range(2, 100))):
                with contextlib.suppress(FileExistsError):
                    os.mkdir(wanted := os.path.join(runs, name))
                    break
            with contextlib.suppress(FileNotFoundError):
                os.unlink(os.path.join(runs, "latest"))
            os.symlink(name, os.path.join(runs, "latest"))
    except OSError as error:
        raise Failure(f"there can be no folder of the run: {wanted or runs}: {error.strerror}") from None
    return os.path.realpath(wanted)


def cli_of(binaries: str) -> str:
    return os.environ.get("DPWA_CLI") or f"{binaries}/dpwa"


def local_names(cli: str, cluster: str, text: bytes | None, *options: str) -> dict[str, str]:
    """The names of this host with their cores, comma-separated or empty. The program says what is wrong in the file."""
    with open(os.memfd_create("cluster"), "w+b") as file:
        file.write(text or b"")
        file.seek(0)
        command = [cli, "config", "nodes", cluster if text is None else "/dev/stdin", "--local", *options]
        told = subprocess.DEVNULL if options else None  # once, of the same file
        done = subprocess.run(command, stdin=file, stdout=subprocess.PIPE, stderr=told, text=True, check=False)
    if done.returncode != 0:
        sys.exit(2)
    rows = [line.split("\t") for line in done.stdout.split("\n")]
    return {row[0]: "" if row[3] == "-" else row[3] for row in rows if row[-1] == "local"}


def checked(cli: str, cluster: str) -> str:
    """The effective configuration. The program says what would end each node at its start: a key file that does not
    exist, a back end that this build lacks."""
    command = [cli, "config", "check", cluster]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
                          check=False)  # fmt: skip
    if done.returncode != 0:
        tell(done.stderr, end="")
        sys.exit(2)
    return done.stdout


def latest_run(runs: str, cluster: str) -> str:
    """The folder of the latest run; empty when that was of another cluster file."""
    latest = Path(runs, "latest")
    with contextlib.suppress(OSError):
        if latest.joinpath("cluster.yaml").read_bytes() == Path(cluster).read_bytes():
            return str(latest)
    return ""


def what_to_start(script: str, binaries: str, runs: str, states: str, words: Words) -> Run:
    """Refuses what is wrong, before anything is written but the folder of a run whose file comes through a pipe."""
    cluster, text = words.cluster, None
    if is_inherited(cluster) or Path(cluster).is_fifo():
        if words.only:
            accepted = "the cluster file of the run to continue, such as runs/latest/cluster.yaml, not a pipe"
            raise UsageError(f"--only takes {accepted}")
        text = read_pipe(cluster)
    elif not os.path.isfile(cluster):
        raise UsageError(f"there is no file {cluster}")
    if "--wait" in words.options and "--detach" not in words.options:
        raise UsageError("--wait goes with --detach")
    for word in words.rest:
        option = word.partition("=")[0]
        if option in ("--config", "--name"):
            raise UsageError(f"{word} is run.sh's to give")
        if option == "--run-dir":
            raise UsageError("--run-dir goes before --")
    trainer = os.environ.get("DPWA_TRAIN") or f"{binaries}/dpwa-train"
    cli = cli_of(binaries)
    for binary in (trainer, cli):
        if not os.access(binary, os.X_OK):
            how = "build it (scripts/build.sh), or name one by DPWA_TRAIN and DPWA_CLI"
            raise Failure(f"there is no {binary}: {how}")
    nodes, servers = local_names(cli, cluster, text), local_names(cli, cluster, text, "--servers")
    cores = {**nodes, **servers}
    if not cores:
        raise UsageError(f"no node of {cluster} lives on this host")
    if unknown := [name for name in words.only if name not in cores]:
        raise UsageError(f"--only {unknown[0]}: the nodes here are {' '.join(cores)}")
    wanted, folder = words.only or cores, words.options.get("--run-dir", "")
    if text is not None:
        folder = run_folder(folder, runs)
        cluster = f"{folder}/cluster.yaml"
    records = Records(states, cluster)
    if words.only and "--resume" in words.rest and not folder and not records.run_dir():
        folder = latest_run(runs, cluster)
    run = Run(
        cluster=cluster,
        cli=cli,
        trainer=trainer,
        arguments=words.rest,
        nodes=[name for name in wanted if name in nodes],
        servers=[name for name in wanted if name in servers],
        cores=cores,
        local_nodes=len(nodes),
        records=records,
        how_to_end=f"{os.path.dirname(script) or '.'}/stop.sh {cluster} ends them",
        run_dir=folder,
    )
    run.refuse_second_start()
    if text is not None:
        run.keep_copy(text)
        say(f"the cluster file came through a pipe: {cluster}")
    run.effective = checked(cli, cluster)  # relative paths in it start at the copy
    return run
