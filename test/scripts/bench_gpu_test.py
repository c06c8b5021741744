"""bench_gpu.sh: what it says without a GPU. What it measures with is tested by bench_suite_test.py, bench_steps_test.py
and test/bench/bench_test.py."""

from __future__ import annotations

import os
import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts/bench_gpu.sh"


def call(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **environment}
    return subprocess.run(
        [str(SCRIPT), *arguments], capture_output=True, text=True, timeout=60, env=environment, check=False
    )


class WithoutGpu(unittest.TestCase):
    @unittest.skipIf(Path("/dev/nvidiactl").exists(), "this machine has a GPU")
    def test_without_a_gpu_it_ends_with_one_line(self) -> None:
        done = call()
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertEqual(len(done.stderr.splitlines()), 1)
        self.assertIn("no GPU: ", done.stderr)

    def test_a_build_for_gpus_needs_a_libtorch_for_them(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "TorchConfig.cmake").touch()
            (Path(folder) / "TorchConfigVersion.cmake").write_text('set(PACKAGE_VERSION "99.0.0")\n')
            done = call("--build-only", Torch_DIR=folder, DPWA_TORCH_FOLDERS=f"{folder}/none")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("no CUDA build of LibTorch: ", done.stderr.splitlines()[-1])

    def test_wrong_usage(self) -> None:
        for arguments in (("--device", "tpu"), ("--device",), ("--fast",), ("--device", "cpu", "--device", "cpu")):
            done = call(*arguments)
            self.assertEqual((done.returncode, done.stdout), (2, ""), arguments)
        self.assertIn("usage: scripts/bench_gpu.sh", call("--help").stdout)


if __name__ == "__main__":
    unittest.main()
