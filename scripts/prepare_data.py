#!/usr/bin/env python3
"""Puts the files of a data set into a folder; scripts/prepare_data.sh --help says more."""

from __future__ import annotations

from lib import interrupts

if __name__ == "__main__":
    interrupts.end_at_once()  # also during the imports below

import argparse
import fcntl
import os
import shutil
import sys
import tarfile
import tempfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from lib.download import Archive, DownloadError, Say, download, is_whole
from lib.image_files import CIFAR10_STEMS, MNIST_STEMS, DataError, check_cifar10, check_mnist, find
from lib.output import checked

SCRATCH = ".preparing-"  # folders of this name in the target are of a call that was killed


@dataclass(frozen=True)
class DataSet:
    sub_folder: str  # where dpwa-train also looks
    stems: tuple[str, ...]  # of its files, which may end with .gz
    check: Callable[[dict[str, Path]], tuple[int, int]]
    url: str
    archives: tuple[Archive, ...]  # what is downloaded: its files, or one tar file with all of them


DATA_SETS = {
    "mnist": DataSet("mnist", MNIST_STEMS, check_mnist, "https://ossci-datasets.s3.amazonaws.com/mnist/", (
        Archive("train-images-idx3-ubyte.gz", 9_912_422,
                "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609"),
        Archive("train-labels-idx1-ubyte.gz", 28_881,
                "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c"),
        Archive("t10k-images-idx3-ubyte.gz", 1_648_877,
                "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6"),
        Archive("t10k-labels-idx1-ubyte.gz", 4_542,
                "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6"))),
    "cifar10": DataSet("cifar-10-batches-bin", CIFAR10_STEMS, check_cifar10, "https://www.cs.toronto.edu/~kriz/", (
        Archive("cifar-10-binary.tar.gz", 170_052_171,
                "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd"),)),
}  # fmt: skip


class MissingError(DataError):
    """A file of the data set is not there."""


def say(text: str) -> None:
    print(f"   {text}", file=sys.stderr, flush=True)


def is_tar(archive: Archive) -> bool:
    return archive.name.endswith(".tar.gz")


def counts_in(data: DataSet, folder: Path) -> tuple[int, int]:
    """Images to train and to test in a folder, as dpwa-train would read it; DataError when something is wrong."""
    files: dict[str, Path] = {}
    for stem in data.stems:
        file = find(folder, data.sub_folder, stem)
        if file is None:
            raise MissingError(f"neither {stem} nor {stem}.gz is in {folder} or in its folder {data.sub_folder}")
        files[stem] = file
    return data.check(files)


def unpack(archive: Path, data: DataSet, scratch: Path) -> None:
    """The files of the data set out of a tar file, whatever folders it has and whatever else is in it."""
    try:
        with tarfile.open(archive) as tar:
            for member in tar:
                name = Path(member.name).name
                source = tar.extractfile(member) if member.isfile() and name in data.stems else None
                if source is not None:
                    with source, (scratch / name).open("wb") as out:
                        shutil.copyfileobj(source, out)
    except (tarfile.TarError, EOFError, zlib.error) as error:
        raise DataError(f"{archive}: {error}") from None


def place(scratch: Path, data: DataSet, target: Path, tell: Say) -> None:
    """Moves the files in `scratch` to `target`, each at once, after a look into all of them."""
    counts_in(data, scratch)
    for file in sorted(scratch.iterdir()):
        with file.open("rb") as stream:
            os.fsync(stream.fileno())
        os.replace(file, target / file.name)
        set_aside(target, file.name, tell)


def set_aside(target: Path, name: str, tell: Say) -> None:
    """A plain file, which is read before the .gz that has just been put there, gets another name."""
    plain = target / name.removesuffix(".gz")
    if name.endswith(".gz") and plain.is_file():
        os.replace(plain, target / (plain.name + ".replaced"))
        tell(f"{plain} is now {plain.name}.replaced")


def from_folder(data: DataSet, source: Path, target: Path, scratch: Path, tell: Say) -> None:
    files = [find(source, data.sub_folder, stem) for stem in data.stems]
    tars = [source / archive.name for archive in data.archives if is_tar(archive)]
    if None in files and tars and tars[0].is_file():
        unpack(tars[0], data, scratch)
    else:
        counts_in(data, source)
        for file in files:
            if file is not None:
                shutil.copyfile(file, scratch / file.name)
    place(scratch, data, target, tell)


def from_url(data: DataSet, url: str, target: Path, scratch: Path, tell: Say) -> None:
    for archive in data.archives:
        file = target / archive.name
        if not is_whole(file, archive):
            download(url if url.endswith(archive.name) else f"{url.rstrip('/')}/{archive.name}", file, archive, tell)
        if is_tar(archive):
            unpack(file, data, scratch)
            place(scratch, data, target, tell)
            file.unlink()
        else:
            set_aside(target, archive.name, tell)


def prepare(data: DataSet, source: str | None, target: Path, tell: Say = say) -> tuple[int, int]:
    """Makes sure that the files are in `target`; returns the numbers of images to train and to test."""
    target.mkdir(parents=True, exist_ok=True)
    lock = os.open(target, os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)  # one call at a time
        for left in target.glob(SCRATCH + "*"):
            shutil.rmtree(left, ignore_errors=True)
        try:
            return counts_in(data, target)
        except MissingError:
            pass  # the usual reason to be here
        except DataError as damage:
            tell(f"replaces what is there: {damage}")
        with tempfile.TemporaryDirectory(prefix=SCRATCH, dir=target) as scratch:
            if source is not None and not is_url(source):
                from_folder(data, Path(source), target, Path(scratch), tell)
            else:
                from_url(data, source or data.url, target, Path(scratch), tell)
        return counts_in(data, target)
    finally:
        os.close(lock)


def is_url(source: str) -> bool:
    return source.startswith(("http://", "https://"))


def main() -> int:
    parser = argparse.ArgumentParser(prog="prepare_data.sh", allow_abbrev=False)
    parser.add_argument("data", choices=sorted(DATA_SETS))
    parser.add_argument("--from", dest="source", metavar="DIR|URL")
    parser.add_argument("--to", type=Path, metavar="DIR")
    parser.add_argument("--data-folder", type=Path, required=True, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.source is not None and not is_url(options.source) and not Path(options.source).is_dir():
        print(f"failed: --from: '{options.source}' is neither a folder nor an http:// or https:// address",
              file=sys.stderr)  # fmt: skip
        return 2
    target = options.to or options.data_folder / options.data
    try:
        interrupts.raise_again()
        train, test = prepare(DATA_SETS[options.data], options.source, target)
    except (DataError, DownloadError, OSError) as error:
        print(f"failed: {options.data}: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("failed: interrupted; the next call continues from what has come", file=sys.stderr)
        return 130
    print(f"ok {options.data}: {train} images to train and {test} to test are in {target}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(checked(main))
