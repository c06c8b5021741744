"""is_cpu_torch.py tells a CPU build of torch from one that would bring gigabytes of GPU packages."""

from __future__ import annotations

import unittest

import scripts_path  # noqa: F401  (before the modules of scripts/)
from lib.is_cpu_torch import gpu_reason

COMMON = ["filelock", "sympy>=1.13.3", 'optree>=0.13.0; extra == "optree"']


class IsCpuTorch(unittest.TestCase):
    def reason(self, version: str, *requirements: str) -> str | None:
        return gpu_reason({"version": version, "requires_dist": [*COMMON, *requirements]})

    def test_the_cpu_version_is_accepted(self) -> None:
        self.assertIsNone(self.reason("2.13.0+cpu"))

    def test_a_plain_version_without_gpu_packages_is_accepted(self) -> None:
        self.assertIsNone(self.reason("2.13.0"))

    def test_each_family_of_gpu_packages_is_refused(self) -> None:
        for name in ("nvidia-cublas-cu12==12.8.4.1", "nvidia-nccl-cu13==2.27", "cuda-toolkit==13.0", "triton==3.5"):
            with self.subTest(name):
                self.assertIn(name.split("==")[0], self.reason("2.13.0", name) or "")

    def test_a_gpu_package_for_this_platform_is_refused(self) -> None:
        self.assertIsNotNone(self.reason("2.13.0", 'triton==3.5; sys_platform != "nowhere"'))

    def test_a_gpu_package_for_another_platform_or_an_extra_does_not_count(self) -> None:
        self.assertIsNone(self.reason("2.13.0", 'triton==3.5; sys_platform == "nowhere"', 'triton; extra == "gpu"'))

    def test_gpu_versions_are_refused(self) -> None:
        for version in ("2.13.0+cu130", "2.13.0+rocm7.0", "2.13.0+xpu"):
            with self.subTest(version):
                self.assertIsNotNone(self.reason(version))


if __name__ == "__main__":
    unittest.main()
