"""lib/torch.sh names what a CUDA build of torch lacks; lib/torch_environment.sh chooses versions and lays out a toolkit."""

from __future__ import annotations

import os
import subprocess
import tempfile
import unittest
from pathlib import Path

from scripts_path import SCRIPTS

VERSION = "__version__ = '2.13.0+cu130'\ncuda: Optional[str] = '13.0'\nhip: Optional[str] = None\n"
TOOLKIT = ("include/cuda_runtime.h", "include/crt/host_config.h", "include/device_functions.h", "include/cusparse.h")
LIBRARIES = ("lib64/libcudart.so", "lib64/libnvrtc.so")


class Torch(unittest.TestCase):
    def setUp(self) -> None:
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.site = Path(scratch.name) / "site"
        self.toolkit = Path(scratch.name) / "toolkit"
        self.torch = self.site / "torch/share/cmake/Torch"
        self.torch.mkdir(parents=True)

    def put(self, folder: Path, *names: str, text: str = "") -> None:
        for name in names:
            folder.joinpath(name).parent.mkdir(parents=True, exist_ok=True)
            folder.joinpath(name).write_text(text, encoding="utf-8")

    def put_cuda_build(self) -> None:
        self.put(self.site, "torch/lib/libtorch_cuda.so")
        self.put(self.site, "torch/version.py", text=VERSION)

    def put_toolkit(self, *left_out: str) -> None:
        self.put(self.toolkit, *(name for name in (*TOOLKIT, *LIBRARIES) if name not in left_out))
        self.put(self.toolkit, "bin/nvcc", text="#!/bin/sh\n")
        self.toolkit.joinpath("bin/nvcc").chmod(0o755)

    def say(self, command: str, text: str = "") -> str:
        script = f"set -euo pipefail; source {SCRIPTS}/lib/common.sh; source {SCRIPTS}/lib/torch.sh; "
        script += f"source {SCRIPTS}/lib/torch_environment.sh; {command}"
        environment = os.environ | {"CUDA_HOME": str(self.toolkit)}
        done = subprocess.run(
            ["bash", "-c", script], input=text, env=environment, capture_output=True, text=True, timeout=60, check=False
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def missing(self) -> list[str]:
        return self.say(f"missing_of_cuda {self.torch}").splitlines()

    def test_a_cpu_build_needs_nothing(self) -> None:
        self.assertEqual(self.missing(), [])

    def test_a_cuda_build_with_a_toolkit_is_complete(self) -> None:
        self.put_cuda_build()
        self.put_toolkit()
        self.assertEqual(self.missing(), [])

    def test_each_missing_part_is_named_with_its_package_of_the_version(self) -> None:
        self.put_cuda_build()
        self.put_toolkit("lib64/libnvrtc.so", "include/cusparse.h", "lib64/libcudart.so")
        expected = [
            f"{self.toolkit}/lib64/libcudart.so: cuda-cudart-dev-13-0",
            f"{self.toolkit}/lib64/libnvrtc.so: cuda-nvrtc-dev-13-0",
            f"{self.toolkit}/include/cusparse.h: libcusparse-dev-13-0",
        ]
        self.assertEqual(self.missing(), expected)
        shown = self.say(f"can_use_cuda {self.torch} 2>&1 || true")
        expected.append("apt-get install cuda-cudart-dev-13-0 cuda-nvrtc-dev-13-0 libcusparse-dev-13-0")
        for line in expected:
            self.assertIn(line, shown)

    def test_parts_that_came_with_torch_are_not_missed(self) -> None:
        self.put_cuda_build()
        self.put_toolkit("lib64/libnvrtc.so", "include/cusparse.h")
        self.put(self.site, "nvidia/cu13/lib/libnvrtc.so.13", "nvidia/cu13/include/cusparse.h")
        self.assertEqual(self.missing(), [])

    def test_a_toolkit_of_another_major_version_is_none(self) -> None:
        self.put_cuda_build()
        self.put_toolkit()
        self.put(self.toolkit, "include/cuda_runtime_api.h", text="#define CUDART_VERSION  12040\n")
        wanted = f"a toolkit of CUDA 13.0, as {self.toolkit} is one of CUDA 12.4: "
        self.assertEqual(self.missing(), [wanted + "cuda-nvcc-13-0 cuda-crt-13-0 cuda-cudart-dev-13-0"])
        self.put(self.toolkit, "include/cuda_runtime_api.h", text="#define CUDART_VERSION  13020\n")
        self.assertEqual(self.missing(), [])

    def test_the_newest_patch_of_each_minor_version_is_taken_from_the_minimum_on(self) -> None:
        versions = "2.9.1\n2.10.0\n2.11.0\n2.12.0\n2.12.1\n2.14.0rc1\n2.13.0\n"
        self.assertEqual(self.say("newest_patches 2.11", versions).split(), ["2.13.0", "2.12.1", "2.11.0"])

    def test_a_toolkit_has_the_names_that_linkers_look_for(self) -> None:
        self.put(self.site, "nvidia/cu13/lib/libcudart.so.13", "nvidia/cu13/lib/libcudadevrt.a", "nvidia/cu13/bin/nvcc")
        self.say(f"make_toolkit {self.site}/nvidia/cu13 {self.toolkit}")
        for name in ("libcudart.so", "libcudart.so.13", "libcudadevrt.a"):
            self.assertTrue(self.toolkit.joinpath("lib64", name).exists(), name)
        self.assertTrue(self.toolkit.joinpath("bin/nvcc").exists())


if __name__ == "__main__":
    unittest.main()
