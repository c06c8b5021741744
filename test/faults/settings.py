"""What a run is made of: the choices of the command line, and what follows from seed and build."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import certificates
from schedule import BEHAVIOURS

CLUSTER = "faults"
KEY_FILE = "cluster.key"
SUPPRESSIONS = Path(__file__).resolve().parents[1] / "tsan.supp"
WITHOUT_KEY = ("half_open", "connections", "noise", "slow_hello", "huge_frame")


@dataclass(frozen=True)
class Settings:
    seed: int
    nodes: int
    seconds: float  # of faults
    build: Path
    sanitizer: str  # "", "address" or "thread"
    encoding: str
    security: str
    netns: bool
    same_host: bool  # every other node may use the memory path; the others talk through the proxy
    step_budget_ms: int
    firewall: str  # gossip.firewall.distance

    @property
    def names(self) -> list[str]:
        return [f"w{i + 1}" for i in range(self.nodes)]

    @property
    def attackers(self) -> list[str]:
        return [f"m{i + 1}" for i in range(1 if self.nodes <= 4 else 3)]

    @property
    def slowness(self) -> float:
        """How much longer things may take than in a release build of four nodes."""
        return {"": 1.0, "address": 2.0, "thread": 4.0}[self.sanitizer] * (1 if self.nodes <= 4 else 2)

    @property
    def step_ms(self) -> int:
        return int(25 * self.slowness)

    @property
    def spread_percent(self) -> int:
        """How far apart the nodes' optima are. With `refuse` and `clip` nodes that were apart for long come back
        only as fast as the bound grows, so there they agree on the optimum."""
        return 100 if self.firewall == "warn" else 0

    @property
    def left_out(self) -> tuple[str, ...]:
        """Attacks that the settings are known not to withstand: `warn` blends what is far away."""
        found = ("far_away",) if self.firewall == "warn" else ()
        # Without the key nobody gets as far as a message; with mtls attackers have certificates of their own.
        return found if self.security != "psk" else tuple(one for one in BEHAVIOURS if one not in WITHOUT_KEY)

    @property
    def elements(self) -> int:
        return 4096

    @property
    def attackers_first(self) -> bool:
        """Whether the attackers come first in the cluster file: all others then wait for them at the start."""
        return self.seed % 8 == 5

    @property
    def start_wait_ms(self) -> int:
        return int(4000 * self.slowness)

    @property
    def timeout_ms(self) -> int:
        return int(300 * max(1.0, self.slowness / 2))

    @property
    def trainer(self) -> Path:
        return self.build / "test" / "process" / "dpwa_vector_trainer"

    @property
    def cli(self) -> Path:
        return self.build / "bin" / "dpwa"

    @property
    def environment(self) -> dict[str, str]:
        return {
            "OMP_NUM_THREADS": "1",
            "ASAN_OPTIONS": "detect_leaks=1:strict_string_checks=1:detect_stack_use_after_return=1",
            "UBSAN_OPTIONS": "print_stacktrace=1",
            "TSAN_OPTIONS": f"halt_on_error=1:second_deadlock_stack=1:suppressions={SUPPRESSIONS}",
        }

    def describe(self) -> str:
        parts = [f"{self.nodes} nodes", f"{self.sanitizer or 'no'} sanitizer", self.encoding,
                 f"step budget {self.step_budget_ms} ms", f"firewall {self.firewall}"]
        parts += ["half of the nodes share memory"] if self.same_host else []
        parts += [self.security] if self.security != "insecure" else []
        parts += ["network namespaces"] if self.netns else []
        return ", ".join(parts)


def sanitizer_of(build: Path) -> str:
    cache = build / "CMakeCache.txt"
    for line in cache.read_text(encoding="utf-8").splitlines():
        if line.startswith("DPWA_SANITIZE:"):
            return line.partition("=")[2]
    return ""


def cluster_file(settings: Settings, own: str, addresses: dict[str, tuple[str, int]], folder: Path) -> str:
    """For node `own`; `addresses`: where it listens and where it reaches each of the others; the key is in `folder`."""
    memory = "auto" if settings.same_host and settings.names.index(own) % 2 == 0 else "off"
    lines = [f"cluster: {CLUSTER}", "nodes:"]
    order = sorted(addresses, key=lambda name: settings.attackers_first and name not in settings.attackers)
    lines += [f"  - {{name: {name}, host: {addresses[name][0]}, port: {addresses[name][1]}}}" for name in order]
    lines += [
        "gossip:",
        f"  timeout_ms: {settings.timeout_ms}",
        f"  step_budget_ms: {settings.step_budget_ms}",
        f"  start_wait_ms: {settings.start_wait_ms}",
        "  finish_wait_ms: 30s",
        f"  firewall: {{distance: {settings.firewall}}}",
        f"transport: {{same_host: {memory}, encoding: {settings.encoding}}}",
    ]
    if settings.security == "psk":
        lines.append(f"security: {{mode: psk, key_file: {folder / KEY_FILE}}}")
    elif settings.security == "mtls":
        lines.append(certificates.security_line(folder, own))
    elif settings.netns:
        lines.append("security: {mode: insecure}")
    return "\n".join(lines) + "\n"
