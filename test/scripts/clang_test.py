"""scripts/lib/clang.sh finds a clang that is recent enough, and passes a check where there is one."""

import subprocess
import tempfile
import unittest
from pathlib import Path

LIBRARY = Path(__file__).resolve().parents[2] / "scripts/lib/clang.sh"


class FindClang(unittest.TestCase):
    def find(self, compilers: dict[str, str], check: str = "true") -> str:
        """What is found among programs that print these versions; empty: none. `check` sees the name as $1."""
        with tempfile.TemporaryDirectory() as folder:
            for name, version in compilers.items():
                program = Path(folder, name)
                program.write_text(f"#!/bin/sh\necho {version}\n", encoding="utf-8")
                program.chmod(0o755)
            script = f'set -euo pipefail; source "$1"; PATH=$2; check() {{ {check}; }}; find_clang check'
            command = ["bash", "-c", script, "bash", LIBRARY, folder]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stderr), (0 if done.stdout else 1, ""))
        return done.stdout.strip()

    def test_one_that_is_too_old_is_passed_over(self) -> None:
        self.assertEqual(self.find({"clang++": "14.0.6", "clang++-15": "15.0.7"}), "")
        self.assertEqual(self.find({"clang++": "14.0.6", "clang++-16": "16.0.6"}), "clang++-16")

    def test_the_plain_name_comes_first_and_then_the_newest(self) -> None:
        versions = {"clang++-16": "16.0.6", "clang++-19": "19.1.7"}
        self.assertEqual(self.find(versions), "clang++-19")
        self.assertEqual(self.find({"clang++": "22.1.0", **versions}), "clang++")

    def test_one_that_fails_the_check_is_passed_over(self) -> None:
        versions = {"clang++": "19.1.7", "clang++-16": "16.0.6"}
        self.assertEqual(self.find(versions, check="[[ $1 == clang++-16 ]]"), "clang++-16")
        self.assertEqual(self.find(versions, check="false"), "")


if __name__ == "__main__":
    unittest.main()
