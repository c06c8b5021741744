"""build.sh builds the checkout that it stands in, and fails when a step of it fails; setup.sh keeps to it too."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

from scripts_path import SCRIPTS

# A project whose only target writes `built` into its source folder: it shows which checkout was built.
PROJECT = """cmake_minimum_required(VERSION 3.22)
project(tiny LANGUAGES NONE)
add_custom_target(all_of_it ALL COMMAND ${CMAKE_COMMAND} -E touch ${CMAKE_SOURCE_DIR}/built)
"""
PRESETS = """{"version": 3, "configurePresets": [
  {"name": "core", "generator": "Ninja", "binaryDir": "${sourceDir}/build/${presetName}"}]}
"""

CHOICES_OF_TORCH = {"Torch_DIR", "CMAKE_PREFIX_PATH"}


class Presets(unittest.TestCase):
    def setUp(self) -> None:
        presets = json.loads((SCRIPTS.parent / "CMakePresets.json").read_text(encoding="utf-8"))
        self.configure = {preset["name"]: preset for preset in presets["configurePresets"]}
        self.build = [preset["name"] for preset in presets["buildPresets"]]

    def test_build_takes_every_preset_and_describes_it(self) -> None:
        names = [name for name, preset in self.configure.items() if not preset.get("hidden")]
        script = (SCRIPTS / "build.sh").read_text(encoding="utf-8")
        taken = re.search(r"^ *([a-z |]+)\) preset=\$1", script, flags=re.MULTILINE)
        assert taken is not None
        self.assertEqual(sorted(taken[1].split(" | ")), sorted(names))
        self.assertEqual(sorted(re.findall(r"^#   ([a-z]+)  +", script, flags=re.MULTILINE)), sorted(names))
        self.assertEqual(sorted(self.build), sorted(names))

    def test_what_is_installed_is_built_without_tests_and_benchmarks(self) -> None:
        variables = self.configure["install"]["cacheVariables"]
        self.assertEqual(variables, {"DPWA_TESTS": "OFF", "DPWA_BENCH": "OFF"})
        self.assertEqual(self.configure["install"]["inherits"], "release")
        options = (SCRIPTS.parent / "CMakeLists.txt").read_text(encoding="utf-8")
        for variable in variables:
            self.assertIn(f"option({variable} ", options)

    def test_warnings_are_errors_in_the_presets_of_checks_and_in_no_other(self) -> None:
        strict = [name for name, preset in self.configure.items() if "DPWA_WERROR" in preset.get("cacheVariables", {})]
        self.assertEqual(strict, ["sanitizer"])
        options = (SCRIPTS.parent / "CMakeLists.txt").read_text(encoding="utf-8")
        self.assertRegex(options, r"option\(DPWA_WERROR .* OFF\)")
        run = (SCRIPTS.parent / ".ci/run").read_text(encoding="utf-8")
        self.assertRegex(run, r"(?m)^export DPWA_WERROR=1")

    def test_units_with_torch_follow_processors_and_memory(self) -> None:
        module = SCRIPTS.parent / "cmake/DpwaTorchUnits.cmake"
        for processors, memory_mib, units in ((2, 4096, 2), (2, 24000, 2), (16, 131072, 16), (16, 16384, 8), (4, 1024, 1)):
            with tempfile.TemporaryDirectory() as folder:
                script = Path(folder) / "units.cmake"
                script.write_text(
                    f"include({module})\ndpwa_torch_units(units {processors} {memory_mib})\n"
                    f"if(NOT units EQUAL {units})\n  message(FATAL_ERROR \"${{units}}\")\nendif()\n",
                    encoding="utf-8",
                )
                done = subprocess.run(["cmake", "-P", str(script)], capture_output=True, text=True, check=False)
                self.assertEqual(done.returncode, 0, done.stderr)


class Build(unittest.TestCase):
    def setUp(self) -> None:
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = Path(scratch.name)
        self.checkout = self.folder / "checkout"
        shutil.copytree(SCRIPTS / "lib", self.checkout / "scripts/lib", ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(SCRIPTS / "build.sh", self.checkout / "scripts")
        self.write("CMakeLists.txt", PROJECT)
        self.write("CMakePresets.json", PRESETS)

    def write(self, name: str, text: str) -> None:
        self.checkout.joinpath(name).write_text(text, encoding="utf-8")

    def build(self, checkout: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        command = [str(checkout / "scripts/build.sh"), *(arguments or ["core"])]
        left_out = CHOICES_OF_TORCH | {"DPWA_WERROR"}
        environment = {name: value for name, value in os.environ.items() if name not in left_out} | variables
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=240, check=False)

    def assert_builds(self, checkout: Path) -> str:
        checkout.joinpath("built").unlink(missing_ok=True)
        done = self.build(checkout)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(checkout.joinpath("built").exists(), done.stderr)
        self.assertNotIn("CMake Error", done.stderr)
        return done.stderr

    def test_a_configured_folder_is_not_configured_again(self) -> None:
        self.assertIn("configuring", self.assert_builds(self.checkout))
        self.assertNotIn("configuring", self.assert_builds(self.checkout))

    def test_a_folder_is_configured_once_and_again_when_the_presets_change(self) -> None:
        self.write("CMakeLists.txt", PROJECT + "file(APPEND ${CMAKE_SOURCE_DIR}/configured x)\n")
        for times in (1, 1, 2, 2):
            if times == 2 and self.checkout.joinpath("configured").read_text(encoding="utf-8") == "x":
                self.write("CMakePresets.json", PRESETS + "\n")
            self.assert_builds(self.checkout)
            self.assertEqual(self.checkout.joinpath("configured").read_text(encoding="utf-8"), times * "x")

    def test_warnings_become_errors_when_the_environment_asks_for_it_and_stay_so(self) -> None:
        self.write("CMakeLists.txt", PROJECT + 'option(DPWA_WERROR "" OFF)\nmessage(STATUS "werror ${DPWA_WERROR}")\n')
        cache = self.checkout / "build/core/CMakeCache.txt"
        self.assert_builds(self.checkout)
        self.assertIn("DPWA_WERROR:BOOL=OFF", cache.read_text(encoding="utf-8"))
        self.assertIn("configuring", self.build(self.checkout, DPWA_WERROR="1").stderr)
        self.assertIn("DPWA_WERROR:BOOL=ON", cache.read_text(encoding="utf-8"))
        self.assertNotIn("configuring", self.build(self.checkout, DPWA_WERROR="1").stderr)
        self.assertNotIn("configuring", self.assert_builds(self.checkout))

    def test_a_copied_checkout_builds_itself_and_not_the_first_one(self) -> None:
        self.assert_builds(self.checkout)
        copy = self.folder / "copy"
        shutil.copytree(self.checkout, copy)
        self.checkout.joinpath("built").unlink()
        self.assertIn("copied or moved", self.assert_builds(copy))
        self.assertFalse(self.checkout.joinpath("built").exists())
        self.assertNotIn("configuring", self.assert_builds(copy))

    def test_a_moved_checkout_builds(self) -> None:
        self.assert_builds(self.checkout)
        moved = self.folder / "moved"
        self.checkout.rename(moved)
        self.assertIn("copied or moved", self.assert_builds(moved))

    def test_a_checkout_seen_through_a_link_is_the_same_one(self) -> None:
        self.assert_builds(self.checkout)
        link = self.folder / "link"
        link.symlink_to(self.checkout)
        self.assertNotIn("configuring", self.assert_builds(link))

    def test_a_step_that_fails_is_the_exit_code(self) -> None:
        self.write("CMakeLists.txt", PROJECT + 'message(FATAL_ERROR "no such thing")\n')
        not_configured = self.build(self.checkout)
        self.assertEqual(not_configured.returncode, 1)
        self.assertIn("no such thing", not_configured.stderr)
        self.assertNotIn("up to date", not_configured.stderr)
        self.write("CMakeLists.txt", PROJECT + "add_custom_target(broken ALL COMMAND false)\n")
        not_built = self.build(self.checkout)
        self.assertEqual(not_built.returncode, 1)
        self.assertNotIn("up to date", not_built.stderr)
        self.assertEqual(self.build(self.checkout, "core", "--target", "unknown").returncode, 1)

    def test_a_torch_that_has_gone_is_named(self) -> None:
        self.checkout.joinpath(".venv").mkdir()
        self.write(".venv/torch_dir", f"{self.folder}/gone\n")
        done = self.build(self.checkout, "release")
        self.assertEqual(done.returncode, 1)
        self.assertIn(f"LibTorch is no longer in {self.folder}/gone", done.stderr)

    def test_the_environment_of_another_clone_is_not_emptied_through_a_link(self) -> None:
        shutil.copy(SCRIPTS / "setup.sh", self.checkout / "scripts")
        other = self.folder / "other"
        other.joinpath("bin").mkdir(parents=True)
        other.joinpath("bin/pip").write_text("#!/nowhere/.venv/bin/python\n", encoding="utf-8")
        self.checkout.joinpath(".venv").symlink_to(other)
        command = [str(self.checkout / "scripts/setup.sh")]
        done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("remove the link", done.stderr)
        self.assertTrue(other.joinpath("bin/pip").exists())


if __name__ == "__main__":
    unittest.main()
