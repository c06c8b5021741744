"""Downloads one file of known size and SHA-256 over HTTP; an interrupted download is continued."""

from __future__ import annotations

import hashlib
import http.client
import os
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

TIMEOUT_SECONDS = 30.0
PAUSES_SECONDS = (1.0, 2.0, 4.0)  # before the tries that follow one which brought nothing
PROGRESS_SECONDS = 2.0
CHUNK_BYTES = 256 * 1024

Say = Callable[[str], None]


class DownloadError(Exception):
    """The file is not available; the text gives the reason in one line."""


class Broken(Exception):
    """This try failed; another one may bring more."""


@dataclass(frozen=True)
class Archive:
    """A file to download: its published size and checksum."""

    name: str
    size: int  # bytes
    sha256: str


def sha256_of(file: Path) -> str:
    digest = hashlib.sha256()
    with file.open("rb") as stream:
        while chunk := stream.read(CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()


def is_whole(file: Path, archive: Archive) -> bool:
    return file.is_file() and file.stat().st_size == archive.size and sha256_of(file) == archive.sha256


def fetch_rest(url: str, part: Path, size: int, say: Say) -> None:
    """Appends to `part` what is missing of `size` bytes, or writes it anew where the server gives no part."""
    have = part.stat().st_size if part.exists() else 0
    request = urllib.request.Request(url, headers={"Accept-Encoding": "identity", "User-Agent": "dpwa"})
    if have > 0:
        request.add_header("Range", f"bytes={have}-")
    with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as answer:
        continues = answer.status == 206 and answer.headers.get("Content-Range", "").startswith(f"bytes {have}-")
        if answer.status == 206 and not continues:
            part.unlink()
            raise Broken("the server sent another part than the one asked for")
        with part.open("ab" if continues else "wb") as out:
            shown = time.monotonic()
            while chunk := answer.read(CHUNK_BYTES):
                out.write(chunk)
                if out.tell() > size:
                    part.unlink()
                    raise DownloadError(f"{url}: longer than the {size} bytes that it should have")
                if time.monotonic() - shown >= PROGRESS_SECONDS:
                    shown = time.monotonic()
                    say(f"{out.tell() / 1e6:.1f} of {size / 1e6:.1f} MB")
            out.flush()
            os.fsync(out.fileno())
            if out.tell() < size:
                raise Broken(f"broke off after {out.tell()} of {size} bytes")


def fetch_once(url: str, part: Path, size: int, say: Say) -> None:
    """One try. Raises Broken when another one may help, DownloadError when not."""
    try:
        fetch_rest(url, part, size, say)
    except urllib.error.HTTPError as error:
        error.close()
        if error.code == 416:  # what is here is no beginning of what is there
            part.unlink(missing_ok=True)
        if error.code not in {408, 416, 429} and error.code < 500:
            raise DownloadError(f"{url}: HTTP {error.code} {error.reason}") from None
        raise Broken(f"HTTP {error.code} {error.reason}") from None
    except urllib.error.URLError as error:
        raise Broken(str(error.reason)) from None
    except (http.client.HTTPException, ConnectionError, TimeoutError) as error:
        raise Broken(str(error) or type(error).__name__) from None


def fetch_all(url: str, part: Path, size: int, say: Say) -> None:
    """Tries until `part` has `size` bytes; gives up after some tries in a row that brought nothing."""
    failures = 0
    while (have := part.stat().st_size if part.exists() else 0) != size:
        if have > size:
            part.unlink()
            have = 0
        try:
            fetch_once(url, part, size, say)
        except Broken as reason:
            brought = part.exists() and part.stat().st_size > have
            failures = 0 if brought else failures + 1
            if failures > len(PAUSES_SECONDS):
                raise DownloadError(f"{url}: {reason}") from None
            say(f"{reason}; trying again")
            time.sleep(PAUSES_SECONDS[max(failures - 1, 0)])


def download(url: str, target: Path, archive: Archive, say: Say) -> None:
    """Makes `target` the file at `url`, whole and of the right checksum, or leaves it as it is.

    What has come so far is kept in NAME.part beside it, and the next call continues from there.
    """
    part = target.with_name(archive.name + ".part")
    begun_before = part.exists()
    say(f"{'continuing with' if begun_before else 'downloading'} {url} ({archive.size / 1e6:.1f} MB)")
    fetch_all(url, part, archive.size, say)
    found = sha256_of(part)
    if found != archive.sha256 and begun_before:
        say("what an earlier call left does not fit: downloading it all")
        part.unlink()
        fetch_all(url, part, archive.size, say)
        found = sha256_of(part)
    if found != archive.sha256:
        part.unlink()
        raise DownloadError(f"{url}: its SHA-256 is {found}, and not {archive.sha256}; nothing of it is kept")
    os.replace(part, target)
