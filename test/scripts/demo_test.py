"""demo.sh refuses every wrong argument before it sets up or builds anything, and finds the data at hand."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

from scripts_path import SCRIPTS

MNIST = [f"{part}-{kind}-ubyte" for part in ("train", "t10k") for kind in ("images-idx3", "labels-idx1")]
CIFAR10 = [*(f"data_batch_{number}.bin" for number in range(1, 6)), "test_batch.bin"]
# In the place of the scripts that the demo calls: leave a mark.
FAKE = """#!/bin/sh
echo "${0##*/} $*" >>"$(dirname "$0")/called"
exit %d
"""


class Demo(unittest.TestCase):
    def setUp(self) -> None:
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.checkout = Path(scratch.name, "checkout")
        scripts = self.checkout / "scripts"
        shutil.copytree(SCRIPTS, scripts, ignore=shutil.ignore_patterns("__pycache__"))
        for name, code in (("setup.sh", 0), ("build.sh", 0), ("prepare_data.sh", 1)):
            scripts.joinpath(name).write_text(FAKE % code, encoding="ascii")
        python = self.checkout / ".venv/bin/python"
        python.parent.mkdir(parents=True)
        python.write_text("#!/bin/sh\nexit 1\n", encoding="ascii")
        python.chmod(0o755)

    def demo(self, *arguments: str, data_dir: str = "") -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "DPWA_DATA_DIR": data_dir, "DPWA_CLI": "/bin/false"}
        command = [str(self.checkout / "scripts/demo.sh"), *arguments]
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=240, check=False)

    def called(self) -> list[str]:
        file = self.checkout / "scripts/called"
        return [line.split()[0] for line in file.read_text(encoding="ascii").splitlines()] if file.exists() else []

    def files(self, folder: str, names: list[str]) -> Path:
        made = self.checkout / folder
        made.mkdir(parents=True)
        for name in names:
            made.joinpath(name).touch()
        return made

    def test_every_wrong_argument_is_refused_first(self) -> None:
        wrong = {"--nodes": ("1", "65", "four", "4.0"), "--epochs": ("0", "-1", "x", "0.0", "1e", "nan", "1e-999"),
                 "--seed": ("-1", "1.5", "x", "99999999999999999999"), "--model": ("resnet", "MLP"),
                 "--split": ("dirichlet", "dirichlet:", "dirichlet:0", "dirichlet:-1", "dirichlet:x", "even"),
                 "--data": ("cifar", "mnist5k")}  # fmt: skip
        for option, values in wrong.items():
            for value in values:
                with self.subTest(option, value=value):
                    done = self.demo(option, value)
                    self.assertEqual((done.returncode, len(done.stderr.splitlines())), (2, 1), done.stderr)
                    self.assertIn(f"{option} takes ", done.stderr)
        self.assertEqual(self.demo("--epoch", "3").returncode, 2)
        self.assertEqual(self.called(), [])

    def test_right_arguments_get_through(self) -> None:
        for arguments in (("--epochs", "0.5"), ("--epochs", "1e1"), ("--split", "dirichlet:.3"), ("--split", "shared"),
                          ("--seed", "0"), ("--model", "resnet18"), ("--nodes", "64")):  # fmt: skip
            with self.subTest(arguments):
                self.assertIn("data: synthetic patterns", self.demo("--data", "synthetic", *arguments).stderr)
        self.assertEqual(self.called()[:2], ["setup.sh", "build.sh"])

    def test_a_data_folder_without_the_files_is_refused_first(self) -> None:
        folder = self.files("mine", [*MNIST, *CIFAR10[1:]])
        done = self.demo("--data", "cifar10", data_dir=str(folder))
        self.assertEqual(done.returncode, 2)
        self.assertIn("the six CIFAR-10 files", done.stderr)
        folder.joinpath(MNIST[2]).unlink()
        self.assertEqual(self.demo(data_dir=str(folder)).returncode, 2)
        self.assertEqual(self.called(), [])

    def test_data_at_hand_is_taken(self) -> None:
        packed = self.files("mine", [f"{name}.gz" for name in [*MNIST, *CIFAR10]])
        self.assertIn("data: CIFAR-10", self.demo("--data", "cifar10", data_dir=str(packed)).stderr)
        self.assertIn("data: MNIST", self.demo(data_dir=str(packed)).stderr)

    def test_the_last_line_names_the_model_of_all_nodes(self) -> None:
        script = f'source {SCRIPTS}/lib/common.sh; source {SCRIPTS}/lib/demo.sh; backend=$2; name_models "$1"'
        for files, backend, last in ((["w1.own", "w1", "w2.own", "w2"], "gossip", "averaged model: runs/latest/w1.safe"),
                                     (["w1.own", "w2.own", "w2"], "gossip", "averaged model: runs/latest/w2.safe"),
                                     (["w1.own", "w1"], "kvstore", "model of the servers: runs/latest/w1.safe"),
                                     (["w1.own"], "gossip", "no file has the model of all nodes"), ([], "gossip", "no file")):
            with self.subTest(files), tempfile.TemporaryDirectory() as folder:
                for file in files:
                    Path(folder, f"{file}.safetensors").touch()
                command = ["bash", "-euo", "pipefail", "-c", script, "-", folder, backend]
                said = subprocess.run(command, capture_output=True, text=True, check=True).stderr
                self.assertIn(last, said.splitlines()[-1])

    def test_data_that_was_prepared_is_taken(self) -> None:
        self.files("data/cifar10", CIFAR10)
        self.files("data/mnist", MNIST)
        self.assertIn("data: CIFAR-10", self.demo("--data", "cifar10").stderr)
        self.assertIn("data: MNIST", self.demo().stderr)
        self.assertNotIn("prepare_data.sh", self.called())

    def test_cifar10_that_cannot_be_had_is_said(self) -> None:
        done = self.demo("--data", "cifar10")
        self.assertEqual(done.returncode, 1)
        self.assertIn("no CIFAR-10: ", done.stderr)
        self.assertIn("prepare_data.sh", self.called())

    def test_without_any_digits_the_synthetic_set_takes_their_place(self) -> None:
        self.assertIn("data: synthetic patterns", self.demo().stderr)
        self.assertIn("no MNIST: ", self.demo("--data", "mnist").stderr)


if __name__ == "__main__":
    unittest.main()
