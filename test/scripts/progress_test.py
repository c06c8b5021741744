"""What scripts show while they work: the latest line of a log, the steps of nodes, a line when they are interrupted."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from scripts_path import SCRIPTS

from lib.supervisor import progress_of  # isort: skip

try:
    import watch
    from lib.metrics import MetricsTail
except ModuleNotFoundError:
    watch = None


class Scratch(unittest.TestCase):
    def setUp(self) -> None:
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = Path(scratch.name)

    def bash(self, line: str, *arguments: str) -> str:
        script = f"source {SCRIPTS}/lib/common.sh; {line}"
        command = ["bash", "-euo", "pipefail", "-c", script, "-", *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=240, check=True).stdout


class LatestLine(Scratch):
    def latest(self, name: str, text: str) -> str:
        file = self.folder / name
        file.write_text(text, encoding="utf-8")
        return self.bash('latest_of "$1"', str(file)).rstrip("\n")

    def test_it_is_the_last_complete_one_that_is_not_blank(self) -> None:
        self.assertEqual(self.latest("log", "first\nsecond\n \n\nthi"), "second")
        self.assertEqual(self.latest("log", "10 %\r20 %\r\n"), "20 %")
        self.assertEqual(self.latest("log", "not yet compl"), "")

    def test_it_is_cut_between_words(self) -> None:
        text = "0123456789 " * 9
        for width in (20, 76, 77, 78):
            cut = self.bash('fit "$1" "$2"', text, str(width)).rstrip("\n")
            self.assertLessEqual(len(cut), width)
            self.assertEqual(set(cut.split(" ")), {"0123456789", "…"})
        self.assertEqual(self.bash('fit "$1" 20', "all of it").rstrip("\n"), "all of it")


class Progress(Scratch):
    """What run.sh prints of its nodes."""

    def metrics(self, name: str, *records: str) -> None:
        self.folder.joinpath(f"{name}.metrics.jsonl").write_text("\n".join(records), encoding="utf-8")

    def test_it_is_the_range_of_the_last_steps_and_losses(self) -> None:
        self.metrics("w1", '{"step": 119, "loss": 0.7}', '{"step": 120, "loss": 0.534567}', '{"step": 12')
        self.metrics("w2", '{"step": 98, "loss": 0.25}', '{"step": 98, "loss": null, "test_accuracy": 0.9}', "")
        self.assertEqual(progress_of(str(self.folder), ["w1", "w2", "w3"]), "step 98 to 120, loss 0.25 to 0.53457")
        self.assertEqual(progress_of(str(self.folder), ["w2"]), "step 98, loss 0.25")

    def test_before_the_first_step_it_is_empty(self) -> None:
        self.metrics("w1", '{"step": 1, "lo')
        self.assertEqual(progress_of(str(self.folder), ["w1", "w2"]), "")


class Interrupted(Scratch):
    def test_set_up_and_build_say_so_and_end_their_work(self) -> None:
        """A Ctrl-C while a long step of them runs, in a checkout whose tools only sleep."""
        tools = self.folder / "tools"
        tools.mkdir()
        for tool in ("python3", "cmake"):
            tools.joinpath(tool).write_text(f"""#!/bin/bash
if [[ "$*" != *"venv --clear"* && "$*" != --preset* ]]; then
  export PATH=$CLEAN_PATH
  exec {tool} "$@"
fi
echo $$ >"$STARTED"
exec sleep 600
""", encoding="ascii")  # fmt: skip
            tools.joinpath(tool).chmod(0o755)
        for script, arguments in (("setup.sh", ()), ("build.sh", ("core",))):
            with self.subTest(script):
                checkout = self.folder / script.removesuffix(".sh")
                shutil.copytree(SCRIPTS, checkout / "scripts", ignore=shutil.ignore_patterns("__pycache__"))
                checkout.joinpath("scripts/lib/system_packages.sh").write_text("ensure_system_packages() { :; }\n")
                started = self.folder / f"started-{script}"
                os.mkfifo(started)
                environment = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}", "CLEAN_PATH": os.environ["PATH"],
                               "STARTED": str(started), "Torch_DIR": "", "CMAKE_PREFIX_PATH": ""}  # fmt: skip
                with subprocess.Popen([str(checkout / "scripts" / script), *arguments], env=environment,
                                      stderr=subprocess.PIPE, text=True, start_new_session=True) as run:  # fmt: skip
                    pid = int(started.read_text(encoding="ascii"))
                    os.killpg(run.pid, signal.SIGINT)  # as a terminal does
                    _, messages = run.communicate(timeout=240)
                self.assertEqual((run.returncode, messages.count("interrupted; ")), (130, 1), messages)
                self.assertIn("run it again to continue", messages)
                self.assertFalse(Path(f"/proc/{pid}").exists())


class Faults(Scratch):
    @unittest.skipIf(watch is None, "the Python tools of .venv are not there")
    def test_a_folder_without_results_is_one_plain_line_of_every_program(self) -> None:
        programs = [file for file in SCRIPTS.glob("*.py") if re.search(r"from lib\.output import .*\bfail\b", file.read_text("utf-8"))]
        self.assertGreaterEqual(len(programs), 5)
        for program in programs:
            with self.subTest(program.name):
                done = subprocess.run([sys.executable, str(program), str(self.folder)], capture_output=True, text=True,
                                      timeout=240, check=False)  # fmt: skip
                self.assertEqual(done.returncode, 1)
                self.assertRegex(done.stderr.splitlines()[-1], r"^failed: no (plot|report|summary): \S")
                self.assertNotRegex(done.stderr, r"Error|Traceback")

    def test_no_program_shows_people_an_exception_of_python(self) -> None:
        for program in (*SCRIPTS.glob("*.py"), *SCRIPTS.glob("lib/*.py")):
            self.assertNotRegex(program.read_text("utf-8"), r"failed.*\{\w+!r\}", program.name)


@unittest.skipIf(watch is None, "the Python tools of .venv are not there")
class Watch(Scratch):
    def test_before_the_first_step_there_are_no_numbers(self) -> None:
        view = watch.NodeView("w1", MetricsTail(self.folder / "none"))
        self.assertEqual(view.cells()[1:4], ("0", "-", "-"))

    def test_records_may_have_nulls(self) -> None:
        file = self.folder / "w1.metrics.jsonl"
        file.write_text('{"step": 1, "outcome": "skipped", "loss": 0.5, "waited_ms": null, "pulls_ok": null, '
                        '"test_accuracy": null}\n{"step": 1, "test_accuracy": 0.5, "loss": null}\n')  # fmt: skip
        view = watch.NodeView("w1", MetricsTail(file))
        view.update()
        self.assertEqual((view.step, view.loss, view.accuracy), (1, 0.5, 0.5))
        self.assertEqual(view.cells()[5], "0")  # pulls


if __name__ == "__main__":
    unittest.main()
