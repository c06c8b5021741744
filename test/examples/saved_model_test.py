#!/usr/bin/env python3
"""The models that dpwa-train --save writes, read in Python as docs/TRAINING.md says.

DPWA_TRAIN names the program. Without the package safetensors a reader of this file takes the place of load_file.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import types
import unittest
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

try:
    import torch
except ModuleNotFoundError:
    torch = None

HEADER = 8  # bytes of the length before it


def header_of(file: Path) -> tuple[dict[str, Any], int]:
    """The header, and where the data begin."""
    with file.open("rb") as stream:
        size = int.from_bytes(stream.read(HEADER), "little")
        return json.loads(stream.read(size)), HEADER + size


def load_file(name: str) -> dict[str, Any]:
    header, begin = header_of(Path(name))
    data = bytearray(Path(name).read_bytes()[begin:])
    dtypes = {"F32": torch.float32, "I64": torch.int64}
    tensors = {}
    end = 0
    for key, entry in header.items():
        if key == "__metadata__":
            continue
        first, last = entry["data_offsets"]
        if first != end:
            raise ValueError(f"a gap before {key}")
        end = last
        tensors[key] = torch.frombuffer(data[first:last], dtype=dtypes[entry["dtype"]]).reshape(entry["shape"])
    if end != len(data):
        raise ValueError("bytes behind the last tensor")
    return tensors


def add_package_if_missing() -> None:
    try:
        import safetensors.torch  # noqa: F401
    except ModuleNotFoundError:
        package, module = types.ModuleType("safetensors"), types.ModuleType("safetensors.torch")
        module.load_file = load_file
        sys.modules.update({"safetensors": package, "safetensors.torch": module})


@unittest.skipIf(torch is None, "LibTorch's Python package is not there")
class SavedModel(unittest.TestCase):
    def setUp(self) -> None:
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = Path(scratch.name)

    def train(self, model: str) -> list[str]:
        """Two nodes to their end; their outputs."""
        from lib.ports import free_ports

        nodes = ", ".join(f"{{name: w{i}, port: {port}}}" for i, port in enumerate(free_ports(2), start=1))
        cluster = self.folder / "cluster.yaml"
        cluster.write_text(f"cluster: pair\nnodes: [{nodes}]\ngossip: {{firewall: {{distance: warn}}}}\n")
        words = [os.environ["DPWA_TRAIN"], "--config", str(cluster), "--data", "synthetic", "--steps", "40"]
        words += ["--threads", "1", "--run-dir", str(self.folder), "--split", "dirichlet:0.3", "--model", model]
        words += ["--save", str(self.folder / "{node}.safetensors")]
        started = [
            subprocess.Popen([*words, "--name", name], stderr=subprocess.PIPE, text=True) for name in ("w1", "w2")
        ]
        outputs = [process.communicate()[1] for process in started]
        self.assertEqual([process.returncode for process in started], [0, 0], outputs)
        return outputs

    def test_own_and_averaged_models_are_written_and_the_last_line_names_them(self) -> None:
        outputs = self.train("cnn")
        own = [load_file(str(self.folder / f"{name}.own.safetensors")) for name in ("w1", "w2")]
        averaged = [load_file(str(self.folder / f"{name}.safetensors")) for name in ("w1", "w2")]
        self.assertEqual(
            sorted(own[0]),
            sorted(
                ["conv1.weight", "conv2.weight", "fc1.bias", "fc1.weight", "fc2.bias", "fc2.weight"]
                + [f"bn{i}.{of}" for i in (1, 2)
                   for of in ("weight", "bias", "running_mean", "running_var", "num_batches_tracked")]
            ),
        )  # fmt: skip
        for name, tensor in averaged[0].items():
            with self.subTest(name):
                self.assertTrue(torch.equal(tensor, averaged[1][name]))
                if tensor.is_floating_point():
                    mean = (own[0][name].double() + own[1][name].double()) / 2
                    self.assertTrue(torch.allclose(tensor.double(), mean, rtol=1e-4, atol=1e-5))
        self.assertFalse(torch.equal(own[0]["fc2.weight"], own[1]["fc2.weight"]))
        for output, name in zip(outputs, ("w1", "w2")):
            last = output.splitlines()[-1]
            self.assertIn(f"own model in {self.folder}/{name}.own.safetensors", last)
            self.assertIn(f"averaged model in {self.folder}/{name}.safetensors", last)
        for kind, file in {"own": "w2.own.safetensors", "averaged": "w2.safetensors"}.items():
            metadata = header_of(self.folder / file)[0]["__metadata__"]
            self.assertEqual(metadata["weights"], kind)
            self.assertEqual([metadata[key] for key in ("node", "cluster", "step")], ["w2", "pair", "40"])
            self.assertEqual([metadata[key] for key in ("dataset", "model")], ["synthetic", "cnn"])

    def test_the_lines_of_the_documentation_load_it(self) -> None:
        self.train("mlp")
        document = (ROOT / "docs/TRAINING.md").read_text(encoding="utf-8")
        section = document.split("## Saved models\n")[1].split("\n## ")[0]
        code = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
        self.assertEqual(len(code), 1)
        add_package_if_missing()
        names: dict[str, Any] = {}
        before = Path.cwd()
        os.chdir(self.folder)
        try:
            exec(code[0], names)
        finally:
            os.chdir(before)
        loaded = load_file(str(self.folder / "w1.safetensors"))
        self.assertTrue(torch.equal(names["model"].fc1.weight, loaded["fc1.weight"]))
        self.assertEqual(list(names["model"](torch.zeros(2, 784)).shape), [2, 10])


if __name__ == "__main__":
    unittest.main()
