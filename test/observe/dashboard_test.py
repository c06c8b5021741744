"""`dpwa dashboard` and the metrics of a node over HTTP, as processes; and the page in a browser, where there is one.

The browser: Debian's package chromium, driven by the Python package playwright. DPWA_PICTURES=FOLDER keeps pictures of
the page there, for people to look at.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

from lib.ports import free_ports

try:
    from playwright.sync_api import Page, sync_playwright
except ImportError:
    sync_playwright = None  # type: ignore[assignment]

CLI = os.environ.get("DPWA_CLI", str(ROOT / "build/release/bin/dpwa"))
PATIENCE = 120.0  # longer than anything takes on a loaded machine
CHROMIUM = shutil.which("chromium")
PROMTOOL = shutil.which("promtool")
PICTURES = os.environ.get("DPWA_PICTURES")
TOKEN = "0123456789abcdef"
EVIL = "<script>alert(1)</script><img src=x onerror=alert(2)>"


def get(url: str, token: str = TOKEN, **headers: str) -> tuple[int, str]:
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}", **headers})
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE) as response:
            return response.status, response.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


class WithCluster(unittest.TestCase):
    """Of two nodes: w1 is a node process that waits for a trainer; nobody is at the address of w2."""

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        first, second, self.observed = free_ports(3)
        token = self.folder / "token"
        token.touch(mode=0o600)
        token.write_text(TOKEN + "\n", encoding="utf-8")
        self.file = self.folder / "cluster.yaml"
        self.file.write_text(
            f"cluster: seen\nnodes: [{{name: w1, port: {first}}}, {{name: w2, port: {second}}}]\n"
            f"gossip: {{daemon: true}}\nobserve: {{port: {self.observed}, token_file: token}}\n", encoding="utf-8")  # fmt: skip

    def start(self, *arguments: str, until: str) -> str:
        """A process of dpwa that runs until the end of the test; its line with this expression, once it is there."""
        process = subprocess.Popen([CLI, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        assert process.stdout
        self.addCleanup(process.stdout.close)
        lines = []
        for line in process.stdout:
            lines.append(line)
            if re.search(until, line):
                return line.strip()
        self.fail(f"dpwa {' '.join(arguments)} ended: {''.join(lines)}")

    def start_node(self) -> None:
        self.start("node", "--config", str(self.file), "--name", "w1", until="metrics on")

    def start_dashboard(self, *arguments: str) -> str:
        line = self.start("dashboard", *arguments, "--listen", "127.0.0.1:0", until="^http://")
        return line.split("#")[0].rstrip("/")


class Processes(WithCluster):
    def test_a_node_tells_its_metrics_to_readers_with_the_token(self) -> None:
        self.start_node()
        address = f"http://127.0.0.1:{self.observed}"
        self.assertEqual(get(f"{address}/healthz", token="", Host="w1.service"), (200, "waiting\n"))
        self.assertEqual(get(f"{address}/readyz", token=""), (503, "waiting\n"))  # it has no model yet
        self.assertEqual(get(f"{address}/metrics", token="")[0], 401)
        self.assertEqual(get(f"{address}/metrics", Host="evil.example")[0], 403)
        self.assertEqual(get(f"{address}/else")[0], 404)
        status, text = get(f"{address}/metrics")
        self.assertEqual(status, 200)
        self.assertIn('dpwa_up{node="w1"} 1.0\n', text)
        self.check_metrics(text)

    def test_the_dashboard_asks_all_nodes(self) -> None:
        self.start_node()
        address = self.start_dashboard(str(self.file), "--token-file", str(self.folder / "token"))
        status: dict[str, Any] = {"nodes": []}
        while not status["nodes"]:  # until the first look at the nodes
            status = json.loads(get(f"{address}/api/status")[1])
        self.assertEqual([node["name"] for node in status["nodes"]], ["w1", "w2"])
        self.assertEqual(status["nodes"][0]["state"], "waiting")
        self.assertIn("no answer", status["nodes"][1]["error"])
        self.assertEqual(json.loads(get(f"{address}/api/process?name=w1")[1])["node"], "w1")
        text = get(f"{address}/metrics")[1]
        self.assertIn('dpwa_up{node="w2"} 0.0\n', text)
        self.check_metrics(text)
        self.assertEqual(get(f"{address}/api/status", token="")[0], 401)
        self.assertEqual(get(f"{address}/", token="")[0], 200)

    def test_a_command_hears_signals_that_its_starter_has_blocked(self) -> None:
        def block() -> None:
            signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])

        for words in (["why", "--seconds", "60"], ["trace", "--seconds", "60"]):
            with self.subTest(words[0]):
                process = subprocess.Popen([CLI, words[0], str(self.file), *words[1:]], preexec_fn=block, cwd=self.folder,
                                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # fmt: skip
                self.addCleanup(process.kill)
                process.terminate()
                self.assertEqual(process.wait(PATIENCE), 128 + signal.SIGTERM)

    def check_metrics(self, text: str) -> None:
        if PROMTOOL:
            done = subprocess.run([PROMTOOL, "check", "metrics"], input=text, capture_output=True, text=True, check=False)
            self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)

    def test_an_address_beyond_loopback_is_refused_in_one_line(self) -> None:
        command = [CLI, "dashboard", str(self.file), "--listen", "0.0.0.0:8080"]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertEqual(len(done.stderr.splitlines()), 1)
        self.assertIn("no TLS", done.stderr)

    @unittest.skipUnless(PROMTOOL, "no promtool: Debian's package prometheus")
    def test_the_alert_rules_are_valid(self) -> None:
        subprocess.run([PROMTOOL, "check", "rules", ROOT / "samples/monitoring/alerts.yaml"], check=True, capture_output=True)


@unittest.skipUnless(sync_playwright and CHROMIUM, "no browser: Debian's chromium and the Python package playwright")
class InBrowser(WithCluster):
    def setUp(self) -> None:
        super().setUp()
        line = self.start("dashboard", str(self.file), "--listen", "127.0.0.1:0", until="^http://")
        self.address = line
        self.said: list[str] = []  # by the console, or a dialog
        play = sync_playwright().start()
        self.addCleanup(play.stop)
        self.browser = play.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        self.addCleanup(self.browser.close)

    def open(self, nodes: list[dict[str, Any]], width: int = 1280, dark: bool = False) -> Page:
        """The page, with these nodes in the place of those of the cluster."""
        page = self.browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme="dark" if dark else "light").new_page()  # fmt: skip
        page.on("console", lambda message: self.said.append(message.text))
        page.on("pageerror", lambda error: self.said.append(str(error)))
        page.on("dialog", lambda dialog: (self.said.append(dialog.message), dialog.dismiss()))
        pulls = [[a["name"], b["name"], 1, 0, 0.5, None] for a, b in zip(nodes, nodes[1:])]
        clock = itertools.count(2e9)  # later than what the dashboard has seen itself

        def status(route: Any) -> None:
            shown = {"mode": "live", "cluster": "seen", "backend": "gossip", "time": next(clock), "nodes": nodes,
                     "servers": [], "pulls": pulls,
                     "events": [{"number": 1, "time": 1, "process": EVIL, "words": EVIL, "bad": True}]}  # fmt: skip
            route.fulfill(json=shown)

        page.route("**/api/status", status)
        page.goto(self.address)
        page.wait_for_selector("#graph svg")
        page.wait_for_selector(".uplot canvas")
        return page

    @staticmethod
    def nodes(count: int) -> list[dict[str, Any]]:
        return [{"name": EVIL if i == 1 else f"w{i}", "address": "h:1", "member": "alive", "state": "training",
                 "clock": 10.0 * i, "loss": 0.5, "steps_per_s": 3.0, "received_per_s": 1e6, "pulls_ok": 5,
                 "pulls_failed": 1, "shown/accuracy": 0.9, f"shown/{EVIL[:40]}": 1} for i in range(count)]  # fmt: skip

    def picture(self, page: Page, name: str) -> None:
        if PICTURES:
            page.screenshot(path=Path(PICTURES, f"{name}.png"), full_page=True)

    def test_names_are_text_and_nothing_is_said_at_any_size(self) -> None:
        for count in (2, 4, 200):
            for width, dark in ((1280, False), (1280, True), (390, False)):
                with self.subTest(nodes=count, width=width, dark=dark):
                    page = self.open(self.nodes(count), width, dark)
                    self.assertEqual(page.locator("#nodes tbody tr").count(), count)
                    self.assertEqual(page.locator("#graph .node").count(), count)
                    self.assertTrue(page.get_by_role("region", name="accuracy").locator("canvas").is_visible())
                    self.assertEqual(page.get_by_text(EVIL, exact=True).first.text_content(), EVIL)
                    self.assertLessEqual(page.evaluate("document.documentElement.scrollWidth"), width)
                    self.picture(page, f"{count}-{width}-{'dark' if dark else 'light'}")
                    page.context.close()
        self.assertEqual(self.said, [])

    def test_numbers_of_the_program_that_come_late_have_a_curve(self) -> None:
        nodes = self.nodes(2)
        page = self.open(nodes)
        nodes[1]["shown/late"] = 3.0
        page.get_by_role("region", name="late").locator("canvas").wait_for()
        self.picture(page, "late")
        self.assertEqual(self.said, [])

    def test_the_keyboard_reaches_the_peers_of_a_node(self) -> None:
        page = self.open(self.nodes(3))
        page.keyboard.press("/")
        page.keyboard.type("w2")
        page.wait_for_function("document.querySelectorAll('#nodes tbody tr').length === 1")
        page.locator("#nodes tbody tr").focus()
        page.keyboard.press("Enter")
        page.wait_for_selector("#detail:not([hidden])")
        page.keyboard.press("Escape")
        page.wait_for_selector("#detail", state="hidden")
        self.assertEqual(self.said, [])

    def test_the_token_leaves_the_address_and_is_asked_for_where_it_is_wrong(self) -> None:
        page = self.browser.new_page()
        page.goto(self.address)
        page.wait_for_selector("#nodes tbody tr")
        self.assertNotIn("token", page.url)
        stranger = self.browser.new_context().new_page()
        stranger.goto(self.address.split("#")[0])
        stranger.wait_for_selector("#ask-token:not([hidden])")
        self.assertFalse(stranger.locator("#live").is_visible())


if __name__ == "__main__":
    unittest.main()
