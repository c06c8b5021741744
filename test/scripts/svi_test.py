"""prepare_svi_data.py writes checked tables, summarize_svi.py compares runs, svi_demo.sh refuses wrong arguments and
ends what it has started."""

from __future__ import annotations

import contextlib
import gzip
import importlib.util
import io
import json
import os
import subprocess
import tempfile
import unittest
import zipfile
from pathlib import Path
from unittest import mock

from scripts_path import SCRIPTS
import prepare_svi_data

HAS_MATPLOTLIB = importlib.util.find_spec("matplotlib") is not None


def make_wheels(folder: Path, engel_rows: int = 235, value: str = "2.5") -> None:
    with zipfile.ZipFile(folder / "statsmodels-0-x.whl", "w") as wheel:
        rows = f"1.5,{value}\n" * engel_rows
        wheel.writestr("statsmodels/datasets/engel/engel.csv", '"income","foodexp"\n' + rows)
    with zipfile.ZipFile(folder / "scikit_learn-0-x.whl", "w") as wheel:
        for name, line in (("data_raw", " ".join("1" * 10)), ("target", "1.5e2")):
            wheel.writestr(f"sklearn/datasets/data/diabetes_{name}.csv.gz", gzip.compress(f"{line}\n".encode() * 442))


class Scratch(unittest.TestCase):
    def setUp(self) -> None:
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = Path(scratch.name)


class Prepare(Scratch):
    def prepare(self, **wheels: object) -> bool:
        fetch = lambda folder, *_: make_wheels(folder, **wheels)  # noqa: E731
        with mock.patch.object(prepare_svi_data, "fetch_wheels", fetch):
            return prepare_svi_data.prepare(self.folder / "svi")

    def test_tables_have_a_line_of_names_and_the_output_in_the_last_column(self) -> None:
        self.assertTrue(self.prepare())
        engel = (self.folder / "svi/engel.csv").read_text().splitlines()
        self.assertEqual((engel[0], engel[1], len(engel)), ("income,foodexp", "1.5,2.5", 236))
        diabetes = (self.folder / "svi/diabetes.csv").read_text().splitlines()
        self.assertTrue(diabetes[0].endswith(",s6,progression"))
        self.assertEqual((diabetes[1].split(",")[-1], len(diabetes)), ("150.0", 443))
        self.assertEqual(len(list((self.folder / "svi").iterdir())), 2)
        with mock.patch.object(prepare_svi_data, "fetch_wheels", side_effect=AssertionError("fetched")):
            self.assertFalse(prepare_svi_data.prepare(self.folder / "svi"))

    def test_a_table_that_is_not_what_it_should_be_is_refused(self) -> None:
        for wheels in ({"engel_rows": 234}, {"value": "nan"}, {"value": "x"}):
            with self.subTest(wheels), self.assertRaises(prepare_svi_data.DataError):
                self.prepare(**wheels)
            self.assertFalse((self.folder / "svi/engel.csv").exists())


class Demo(unittest.TestCase):
    def test_every_wrong_argument_is_refused_first(self) -> None:
        wrong = (["--nodes", "0"], ["--steps", "x"], ["--seed", "-1"], ["--posterior", "half"], ["--data", "mnist"],
                 ["--lr", "0"], ["--lr", "0.0e1"], ["--lr", "-1"], ["--epochs", "3"], ["--nodes"], ["--nodes", "2", "--nodes", "3"])  # fmt: skip
        for arguments in wrong:
            with self.subTest(arguments):
                done = subprocess.run([str(SCRIPTS / "svi_demo.sh"), *arguments], capture_output=True, text=True,
                                      timeout=60, check=False)  # fmt: skip
                self.assertEqual((done.returncode, len(done.stderr.splitlines())), (2, 1), done.stderr)


class Jobs(Scratch):
    def test_a_script_that_is_told_to_stop_shows_progress_until_then_and_ends_its_job(self) -> None:
        (self.folder / "w1.log").write_text("step 1 of 9\nstep 7 of 9\n")
        script = """
            source "$0/lib/common.sh"
            log_folder=$1 progress_file=$1/w1.log
            end_jobs_at_exit "what there is: $1"
            run_logged work work bash -c 'echo $$ >"$0/pid"; exec sleep 300' "$1"
        """
        with subprocess.Popen(["bash", "-c", script, str(SCRIPTS), str(self.folder)], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True) as demo:  # fmt: skip
            assert demo.stdout is not None
            for line in demo.stdout:
                if "step 7 of 9" in line:
                    break
            demo.terminate()
            rest = demo.stdout.read()  # to its end: the job held the pipe as well
            self.assertEqual(demo.wait(timeout=60), 143)
        self.assertIn(f"ended; what there is: {self.folder}", rest)
        with self.assertRaises(ProcessLookupError):
            os.kill(int((self.folder / "pid").read_text()), 0)


@unittest.skipUnless(HAS_MATPLOTLIB, "no matplotlib here")
class Summary(Scratch):
    def write(self, run: str, curve: dict[str, list[object]] | None) -> None:
        quality = {"log_likelihood": -1.25, "rmse": 3, "within_50": 0.5, "within_80": 0.8, "within_95": 0.96}
        result = {"node": "w1", "train_rows": 8, "test_rows": 2, "train_seconds": 1.5, "final": quality, "curve": curve}
        folder = self.folder / "engel" / run
        folder.mkdir(parents=True)
        (folder / "w1.result.json").write_text(json.dumps(result))

    def test_a_table_lists_the_runs_in_order_and_a_picture_is_drawn(self) -> None:
        import summarize_svi

        curve: dict[str, list[object]] = {"columns": ["income", "foodexp"]}
        for key in ("x", "mean", "sd", "model_sd", "train_x", "train_y", "test_x", "test_y"):
            curve[key] = [1, 2]
        for run in ("gossip_natural", "collective", "one_process"):
            self.write(run, curve)
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            text = summarize_svi.summarize(self.folder)
        lines = text.splitlines()
        self.assertEqual(lines[4], "| one process, all rows | 1 | -1.2500 | 3.00 | 50 | 80 | 96 | 1.5 |")
        self.assertIn("| collective ", lines[5])
        self.assertIn("| gossip, natural parameters ", lines[6])
        self.assertIn("one process, all rows", printed.getvalue())
        table = printed.getvalue().split("\n\n")[0].splitlines()
        self.assertLessEqual(max(len(line) for line in table), 80)
        self.assertEqual([line.split()[-1] for line in table[1:4]], ["in", "seconds", "1.5"])
        self.assertIn("Rows of gossip differ from run to run", printed.getvalue())
        self.assertIn("Rows of gossip differ from run to run", text)
        self.assertIn("seconds: of training", text)
        self.assertTrue((self.folder / "engel.png").stat().st_size > 1000)


if __name__ == "__main__":
    unittest.main()
