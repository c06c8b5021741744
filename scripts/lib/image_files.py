"""The files of MNIST and CIFAR-10 as dpwa-train reads them: their folders and their contents."""

from __future__ import annotations

import gzip
import struct
import zlib
from pathlib import Path

MNIST_STEMS = tuple(f"{part}-{kind}-ubyte" for part in ("train", "t10k") for kind in ("images-idx3", "labels-idx1"))
CIFAR10_STEMS = (*(f"data_batch_{number}.bin" for number in range(1, 6)), "test_batch.bin")
CLASSES = 10
MNIST_SIDE = 28
MNIST_MOST_BYTES = 1 << 30
CIFAR10_RECORD_BYTES = 1 + 3 * 32 * 32  # label, then the planes red, green, blue
CIFAR10_MOST_RECORDS = 10_000  # of a file


class DataError(Exception):
    """The files are wrong; the text gives the reason in one line."""


def find(folder: Path, sub_folder: str, stem: str) -> Path | None:
    """The file that dpwa-train --data-dir would take, plain before .gz, the folder before its sub-folder."""
    for place in (folder, folder / sub_folder):
        for name in (stem, stem + ".gz"):
            if (place / name).is_file():
                return place / name
    return None


def content(file: Path, most: int) -> bytes:
    """The bytes of a file, unpacked when it is gzip."""
    try:
        with file.open("rb") as stream:
            packed = stream.read(2) == b"\x1f\x8b"
        with gzip.open(file) if packed else file.open("rb") as stream:
            data = stream.read(most + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{file}: {error}") from None
    if len(data) > most:
        raise DataError(f"{file}: more than {most} bytes")
    return data


def check_labels(file: Path, labels: bytes) -> None:
    if labels and max(labels) >= CLASSES:
        raise DataError(f"{file}: label {max(labels)}; accepted: 0 to {CLASSES - 1}")


def mnist_part(images_file: Path, labels_file: Path) -> int:
    """How many images the two files hold."""
    images, labels = content(images_file, MNIST_MOST_BYTES), content(labels_file, MNIST_MOST_BYTES)
    if len(images) < 16 or struct.unpack(">I", images[:4]) != (0x803,):
        raise DataError(f"{images_file}: is no IDX file of images")
    if len(labels) < 8 or struct.unpack(">I", labels[:4]) != (0x801,):
        raise DataError(f"{labels_file}: is no IDX file of labels")
    count, rows, columns = struct.unpack(">III", images[4:16])
    if (rows, columns) != (MNIST_SIDE, MNIST_SIDE):
        raise DataError(f"{images_file}: images of {rows} x {columns} pixels; accepted: 28 x 28")
    if count == 0 or len(images) != 16 + count * rows * columns:
        raise DataError(f"{images_file}: {len(images)} bytes for {count} images")
    if struct.unpack(">I", labels[4:8]) != (count,) or len(labels) != 8 + count:
        raise DataError(f"{labels_file}: {len(labels) - 8} labels for {count} images")
    check_labels(labels_file, labels[8:])
    return count


def check_mnist(files: dict[str, Path]) -> tuple[int, int]:
    """How many images there are to train and to test; `files` by stem."""
    train_images, train_labels, test_images, test_labels = (files[stem] for stem in MNIST_STEMS)
    return mnist_part(train_images, train_labels), mnist_part(test_images, test_labels)


def cifar10_records(file: Path) -> int:
    data = content(file, CIFAR10_MOST_RECORDS * CIFAR10_RECORD_BYTES)
    if not data or len(data) % CIFAR10_RECORD_BYTES != 0:
        raise DataError(f"{file}: {len(data)} bytes; accepted: 1 to {CIFAR10_MOST_RECORDS} records of "
                        f"{CIFAR10_RECORD_BYTES} bytes")  # fmt: skip
    check_labels(file, data[::CIFAR10_RECORD_BYTES])
    return len(data) // CIFAR10_RECORD_BYTES


def check_cifar10(files: dict[str, Path]) -> tuple[int, int]:
    """How many images there are to train and to test; `files` by stem."""
    return sum(cifar10_records(files[stem]) for stem in CIFAR10_STEMS[:-1]), cifar10_records(files[CIFAR10_STEMS[-1]])
