"""prepare_data.sh leaves a whole data set or says why not; a download that breaks off is continued."""

from __future__ import annotations

import dataclasses
import gzip
import hashlib
import io
import os
import random
import struct
import subprocess
import tarfile
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from file_server import serving
from scripts_path import SCRIPTS

import prepare_data
from lib import download
from lib.download import Archive, DownloadError
from lib.image_files import CIFAR10_STEMS, MNIST_STEMS, DataError

ARCHIVE = "cifar-10-binary.tar.gz"


def mnist_files() -> dict[str, bytes]:
    """30 images to train and 10 to test, in pixels that do not compress."""
    noise = random.Random(1)
    files = {}
    for part, count in (("train", 30), ("t10k", 10)):
        files[f"{part}-images-idx3-ubyte"] = struct.pack(">IIII", 0x803, count, 28, 28) + noise.randbytes(count * 784)
        files[f"{part}-labels-idx1-ubyte"] = struct.pack(">II", 0x801, count) + bytes(i % 10 for i in range(count))
    return files


def cifar10_files() -> dict[str, bytes]:
    """Two images a file."""
    noise = random.Random(2)
    return {stem: b"".join(bytes([label]) + noise.randbytes(3072) for label in (3, 9)) for stem in CIFAR10_STEMS}


def cifar10_archive(files: dict[str, bytes]) -> bytes:
    """As it is published: a folder, a text beside the files; and names that lead out of the folder."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        members = {f"cifar-10-batches-bin/{name}": content for name, content in files.items()}
        extra = {"cifar-10-batches-bin/readme.html": b"words", "../../outside.bin": b"no", "/tmp/outside.bin": b"no"}
        for name, content in {**members, **extra}.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
        link = tarfile.TarInfo("cifar-10-batches-bin/test_batch.bin.link")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(link)
    return buffer.getvalue()


def published(data: prepare_data.DataSet, files: dict[str, bytes]) -> prepare_data.DataSet:
    """The data set, as if `files` were what its authors published."""
    archives = (Archive(name, len(content), hashlib.sha256(content).hexdigest()) for name, content in files.items())
    return dataclasses.replace(data, archives=tuple(archives))


class PrepareData(unittest.TestCase):
    def setUp(self) -> None:
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = Path(scratch.name)
        self.target = self.folder / "target"
        self.server = self.enterContext(serving())
        self.enterContext(mock.patch.dict(os.environ, {"no_proxy": "*"}))
        self.pauses = self.enterContext(mock.patch.object(download.time, "sleep"))
        self.said: list[str] = []
        self.packed = {f"{stem}.gz": gzip.compress(data, mtime=0) for stem, data in mnist_files().items()}
        self.mnist = published(prepare_data.DATA_SETS["mnist"], self.packed)
        self.cifar10 = prepare_data.DATA_SETS["cifar10"]
        self.serve(self.packed)

    def serve(self, files: dict[str, bytes]) -> None:
        self.server.files = {f"/{name}": content for name, content in files.items()}

    def prepare(self, data: prepare_data.DataSet, source: str | Path | None = None) -> tuple[int, int]:
        return prepare_data.prepare(data, str(source or self.server.url), self.target, self.said.append)

    def there(self) -> dict[str, bytes]:
        return {file.name: file.read_bytes() for file in self.target.iterdir()}

    def write(self, folder: Path, files: dict[str, bytes]) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            folder.joinpath(name).write_bytes(content)
        return folder

    # Downloads

    def test_files_are_downloaded_whole_and_only_once(self) -> None:
        self.assertEqual(self.prepare(self.mnist), (30, 10))
        self.assertEqual(self.there(), self.packed)
        self.server.asked.clear()
        self.assertEqual(self.prepare(self.mnist), (30, 10))
        self.assertEqual(self.server.asked, [])
        self.target.joinpath("t10k-images-idx3-ubyte.gz").unlink()
        self.prepare(self.mnist)
        self.assertEqual(self.server.asked, [("/t10k-images-idx3-ubyte.gz", "")])

    def test_files_that_are_not_there_yet_are_no_message_and_damaged_ones_are(self) -> None:
        source = self.write(self.folder / "source", mnist_files())
        self.prepare(self.mnist, source)
        self.assertEqual(self.said, [])
        self.write(self.target, {"t10k-labels-idx1-ubyte": b"?"})
        self.assertEqual(self.prepare(self.mnist, source), (30, 10))
        self.assertEqual(len(self.said), 1)
        self.assertRegex(self.said[0], "^replaces what is there: .*t10k-labels-idx1-ubyte")

    def test_a_download_that_breaks_off_goes_on_where_it_was(self) -> None:
        images = "/train-images-idx3-ubyte.gz"
        self.server.faults[images] = [5000, 7000]
        self.assertEqual(self.prepare(self.mnist), (30, 10))
        self.assertEqual([wanted for path, wanted in self.server.asked if path == images],
                         ["", "bytes=5000-", "bytes=12000-"])  # fmt: skip
        self.assertEqual(self.there(), self.packed)

    def test_the_next_call_goes_on_from_what_the_last_one_left(self) -> None:
        images = "/train-images-idx3-ubyte.gz"
        self.server.faults[images] = [5000, 0, 0, 0, 0]
        with self.assertRaisesRegex(DownloadError, "broke off after 5000 of"):
            self.prepare(self.mnist)
        self.assertEqual([name for name in self.there() if "train-images" in name], ["train-images-idx3-ubyte.gz.part"])
        self.server.asked.clear()
        self.assertEqual(self.prepare(self.mnist), (30, 10))
        self.assertIn((images, "bytes=5000-"), self.server.asked)
        self.assertEqual(self.there(), self.packed)

    def test_a_server_that_gives_no_parts_gives_all_again(self) -> None:
        images = "/train-images-idx3-ubyte.gz"
        self.server.faults[images] = [5000, "whole"]
        self.assertEqual(self.prepare(self.mnist), (30, 10))
        self.assertEqual(self.there(), self.packed)

    def test_a_part_that_was_not_asked_for_is_not_taken(self) -> None:
        self.server.faults["/train-images-idx3-ubyte.gz"] = [5000, "shifted"]
        self.assertEqual(self.prepare(self.mnist), (30, 10))
        self.assertEqual(self.there(), self.packed)

    def test_a_foreign_beginning_is_dropped(self) -> None:
        too_long = {"train-labels-idx1-ubyte.gz.part": bytes(5000)}
        self.write(self.target, {"train-images-idx3-ubyte.gz.part": bytes(5000), **too_long})
        self.assertEqual(self.prepare(self.mnist), (30, 10))
        self.assertEqual(self.there(), self.packed)

    def test_a_wrong_checksum_leaves_nothing_of_the_file(self) -> None:
        wrong = bytearray(self.packed["train-images-idx3-ubyte.gz"])
        wrong[4000] ^= 1
        self.server.files["/train-images-idx3-ubyte.gz"] = bytes(wrong)
        with self.assertRaisesRegex(DownloadError, "its SHA-256 is [0-9a-f]{64}, and not"):
            self.prepare(self.mnist)
        self.assertEqual([name for name in self.there() if "train-images" in name], [])

    def test_a_longer_file_is_given_up_at_its_published_size(self) -> None:
        self.server.faults["/train-images-idx3-ubyte.gz"] = ["endless"]
        with self.assertRaisesRegex(DownloadError, "longer than the"):
            self.prepare(self.mnist)
        self.assertEqual(self.there(), {})

    def test_a_file_that_is_not_there_fails_at_once(self) -> None:
        del self.server.files["/train-images-idx3-ubyte.gz"]
        with self.assertRaisesRegex(DownloadError, "train-images-idx3-ubyte.gz: HTTP 404 Not Found"):
            self.prepare(self.mnist)
        self.assertEqual(len(self.server.asked), 1)
        self.pauses.assert_not_called()
        self.assertEqual(self.there(), {})

    def test_a_busy_server_is_asked_again_with_growing_pauses_and_a_bound(self) -> None:
        self.server.faults["/train-images-idx3-ubyte.gz"] = ["503", "503"]
        self.assertEqual(self.prepare(self.mnist), (30, 10))
        self.assertEqual([call.args[0] for call in self.pauses.call_args_list], [1, 2])
        self.target.joinpath("t10k-images-idx3-ubyte.gz").unlink()
        self.server.faults["/t10k-images-idx3-ubyte.gz"] = ["503"] * 9
        with self.assertRaisesRegex(DownloadError, "HTTP 503"):
            self.prepare(self.mnist)
        self.assertEqual(len(self.server.faults["/t10k-images-idx3-ubyte.gz"]), 5)

    def test_the_archive_of_cifar10_is_unpacked_and_nothing_else_of_it(self) -> None:
        files = cifar10_files()
        archive = {ARCHIVE: cifar10_archive(files)}
        self.serve(archive)
        self.server.faults[f"/{ARCHIVE}"] = [9000]
        data = published(self.cifar10, archive)
        self.assertEqual(self.prepare(data, f"{self.server.url}/{ARCHIVE}"), (10, 2))
        self.assertEqual(self.there(), files)
        self.assertEqual(self.server.asked, [(f"/{ARCHIVE}", ""), (f"/{ARCHIVE}", "bytes=9000-")])
        self.assertEqual([file.name for file in self.folder.iterdir()], ["target"])

    def test_an_archive_without_all_files_leaves_none(self) -> None:
        files = cifar10_files()
        del files["data_batch_4.bin"]
        archive = {ARCHIVE: cifar10_archive(files)}
        self.serve(archive)
        with self.assertRaisesRegex(DataError, "data_batch_4.bin"):
            self.prepare(published(self.cifar10, archive))
        self.assertEqual([name for name in self.there() if name.endswith(".bin")], [])

    # Files at hand

    def test_files_at_hand_are_taken_plain_or_packed_from_either_folder(self) -> None:
        files = mnist_files()
        source = self.write(self.folder / "source", {"train-images-idx3-ubyte": files["train-images-idx3-ubyte"]})
        rest = {name: content for name, content in self.packed.items() if not name.startswith("train-images")}
        self.write(source / "mnist", rest)
        self.assertEqual(self.prepare(self.mnist, source), (30, 10))
        self.assertEqual(set(self.there()), {"train-images-idx3-ubyte", *rest})
        self.assertEqual(self.server.asked, [])

    def test_the_archive_of_cifar10_at_hand_is_unpacked(self) -> None:
        source = self.write(self.folder / "source", {ARCHIVE: cifar10_archive(cifar10_files())})
        self.assertEqual(self.prepare(self.cifar10, source), (10, 2))
        self.assertEqual(self.there(), cifar10_files())

    def test_a_damaged_file_at_hand_is_named_and_nothing_is_copied(self) -> None:
        good = self.packed
        cut = good["train-images-idx3-ubyte.gz"][:-20]
        few = gzip.compress(mnist_files()["t10k-labels-idx1-ubyte"])
        for damage in ({"train-images-idx3-ubyte.gz": cut}, {"train-labels-idx1-ubyte.gz": few},
                       {"t10k-labels-idx1-ubyte.gz": gzip.compress(b"\0\0\x08\1\0\0\0\n" + b"\n" * 10)}):  # fmt: skip
            with self.subTest(next(iter(damage))):
                source = self.write(self.folder / "source", {**good, **damage})
                with self.assertRaisesRegex(DataError, f"source/{next(iter(damage))}: "):
                    self.prepare(self.mnist, source)
                self.assertEqual(self.there(), {})

    def test_a_file_of_half_records_is_refused(self) -> None:
        source = self.write(self.folder / "source", {**cifar10_files(), "data_batch_2.bin": bytes(5000)})
        with self.assertRaisesRegex(DataError, "data_batch_2.bin: 5000 bytes; accepted"):
            self.prepare(self.cifar10, source)
        self.assertEqual(self.there(), {})

    def test_a_damaged_plain_file_does_not_hide_the_packed_one(self) -> None:
        self.write(self.target, {"t10k-labels-idx1-ubyte": b"nothing"})
        self.assertEqual(self.prepare(self.mnist), (30, 10))
        self.assertEqual(self.there(), {**self.packed, "t10k-labels-idx1-ubyte.replaced": b"nothing"})

    def test_what_a_killed_call_left_is_removed(self) -> None:
        self.write(self.target / ".preparing-x", {"half": b"a file"})
        self.prepare(self.mnist)
        self.assertEqual(self.there(), self.packed)


class Command(unittest.TestCase):
    def setUp(self) -> None:
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = Path(scratch.name)

    def call(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [str(SCRIPTS / "prepare_data.sh"), *arguments]
        environment = {**os.environ, "no_proxy": "*"}
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=240, check=False)

    def test_files_at_hand(self) -> None:
        for name, content in mnist_files().items():
            self.folder.joinpath(name).write_bytes(content)
        target = self.folder / "a folder"
        for _ in range(2):
            done = self.call("mnist", "--from", str(self.folder), "--to", str(target))
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn(f"ok mnist: 30 images to train and 10 to test are in {target}", done.stderr)

    def test_what_is_not_the_published_file_is_refused(self) -> None:
        with serving() as server:
            archive = prepare_data.DATA_SETS["mnist"].archives[1]
            server.files[f"/{prepare_data.DATA_SETS['mnist'].archives[0].name}"] = bytes(9_912_422)
            done = self.call("mnist", f"--from={server.url}", f"--to={self.folder}")
        self.assertEqual(done.returncode, 1)
        self.assertIn("its SHA-256 is", done.stderr)
        self.assertNotIn(archive.name, os.listdir(self.folder))
        self.assertEqual(os.listdir(self.folder), [])

    def test_wrong_usage_is_2_and_one_line(self) -> None:
        for arguments in ((), ("imagenet",), ("mnist", "--from"), ("mnist", "--from", str(self.folder / "nowhere")),
                          ("mnist", "--from", "ftp://x"), ("cifar10", "--too", "x")):  # fmt: skip
            with self.subTest(arguments):
                done = self.call(*arguments)
                self.assertEqual((done.returncode, len(done.stderr.splitlines())), (2, 1), done.stderr)

    def test_the_published_checksums_are_well_formed(self) -> None:
        self.assertEqual({archive.name for archive in prepare_data.DATA_SETS["mnist"].archives},
                         {f"{stem}.gz" for stem in MNIST_STEMS})  # fmt: skip
        for data in prepare_data.DATA_SETS.values():
            self.assertTrue(data.url.startswith("https://"))
            for archive in data.archives:
                self.assertRegex(archive.sha256, r"^[0-9a-f]{64}$")


if __name__ == "__main__":
    unittest.main()
