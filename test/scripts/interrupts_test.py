"""Ctrl-C during the imports of a script ends it without a traceback."""

from __future__ import annotations

import signal
import subprocess
import sys
import unittest

from scripts_path import SCRIPTS

# Runs a script, and sends SIGINT at the first import after that of lib/interrupts.py.
RUNNER = """
import os, runpy, signal, sys

class Interrupting:
    sent = False

    def find_spec(self, name, path=None, target=None):
        if not self.sent and "lib.interrupts" in sys.modules and name != "lib.interrupts":
            self.sent = True
            os.kill(os.getpid(), signal.SIGINT)

sys.path.insert(0, sys.argv.pop(1))
del sys.argv[0]
sys.meta_path.insert(0, Interrupting())
runpy.run_path(sys.argv[0], run_name="__main__")
"""


class Interrupted(unittest.TestCase):
    def interrupt(self, script: str, *, ignored: bool = False) -> subprocess.CompletedProcess[str]:
        def begin() -> None:
            signal.signal(signal.SIGINT, signal.SIG_IGN if ignored else signal.SIG_DFL)

        command = [sys.executable, "-c", RUNNER, str(SCRIPTS), str(SCRIPTS / script), "--help"]
        return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120,
                              preexec_fn=begin, check=False)  # fmt: skip

    def test_every_script_ends_in_its_imports_without_a_word(self) -> None:
        scripts = sorted(file.name for file in SCRIPTS.glob("*.py"))
        self.assertGreater(len(scripts), 15)
        for script in scripts:
            with self.subTest(script):
                done = self.interrupt(script)
                self.assertEqual((done.returncode, done.stdout, done.stderr), (-signal.SIGINT, "", ""))

    def test_where_the_caller_ignores_it_a_script_goes_on(self) -> None:
        done = self.interrupt("check_includes.py", ignored=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("usage:", done.stdout)


if __name__ == "__main__":
    unittest.main()
