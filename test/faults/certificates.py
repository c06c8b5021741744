"""An authority and what it signs, by the openssl program: for clusters whose security mode is mtls."""

from __future__ import annotations

import ssl
import subprocess
from pathlib import Path

AUTHORITY = "ca"


def _openssl(*arguments: str) -> None:
    subprocess.run(["openssl", *arguments], check=True, capture_output=True, timeout=60)


def make(folder: Path, names: list[str]) -> None:
    """NAME.pem and NAME.key of each, and ca.pem."""
    new = ("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2")
    authority = folder / f"{AUTHORITY}.pem"
    _openssl(*new, "-keyout", f"{folder / AUTHORITY}.key", "-out", str(authority), "-subj", "/CN=faults")
    for name in names:
        _openssl(*new, "-keyout", f"{folder / name}.key", "-out", f"{folder / name}.pem", "-subj", f"/CN={name}",
                 "-addext", f"subjectAltName=DNS:{name}", "-addext", "basicConstraints=critical,CA:FALSE",
                 "-CA", str(authority), "-CAkey", f"{folder / AUTHORITY}.key")
    for key in folder.glob("*.key"):
        key.chmod(0o600)


def security_line(folder: Path, name: str) -> str:
    """Of the cluster file of node `name`."""
    return (f"security: {{mode: mtls, ca: {folder / AUTHORITY}.pem, cert: {folder / name}.pem, "
            f"key: {folder / name}.key}}")


def context(folder: Path, name: str, calls: bool) -> ssl.SSLContext:
    """What `name` shows, and whom it accepts."""
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT if calls else ssl.PROTOCOL_TLS_SERVER)
    made.minimum_version = ssl.TLSVersion.TLSv1_3
    made.check_hostname = False
    made.verify_mode = ssl.CERT_REQUIRED
    made.load_verify_locations(folder / f"{AUTHORITY}.pem")
    made.load_cert_chain(folder / f"{name}.pem", folder / f"{name}.key")
    return made
