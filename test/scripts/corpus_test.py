"""The archives of the fuzzers' corpora: unpacked and packed again they keep their bytes."""

import hashlib
import os
import subprocess
import tempfile
import unittest
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
CORPORA = REPOSITORY / "test" / "fuzz" / "corpus"


def run(function: str, *arguments: Path) -> None:
    script = f'set -euo pipefail; source "$1"; shift; {function} "$@"'
    subprocess.run(["bash", "-c", script, "bash", REPOSITORY / "scripts/lib/corpus.sh", *arguments], check=True)


class Corpora(unittest.TestCase):
    def setUp(self) -> None:
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.scratch = Path(scratch.name)

    def test_every_target_has_an_archive_and_regressions_belong_to_a_target(self) -> None:
        fuzzers = {file.name.removesuffix("_fuzzer.cpp") for file in CORPORA.parent.glob("*_fuzzer.cpp")}
        self.assertEqual({file.stem for file in CORPORA.glob("*.tar")}, fuzzers)
        for folder in (path for path in CORPORA.iterdir() if path.is_dir()):
            self.assertIn(folder.name, fuzzers)
            self.assertTrue(list(folder.iterdir()), folder)

    def test_an_input_that_broke_a_target_stays_a_file_under_its_name(self) -> None:
        self.assertTrue((CORPORA / "checkpoint" / "fraction-as-count").is_file())

    def test_an_archive_holds_inputs_under_the_sha1_of_their_bytes(self) -> None:
        for archive in sorted(CORPORA.glob("*.tar")):
            folder = self.scratch / archive.stem
            run("unpack_corpus", archive, folder)
            inputs = list(folder.iterdir())
            self.assertTrue(inputs, archive)
            for one in inputs:
                self.assertEqual(one.name, hashlib.sha1(one.read_bytes()).hexdigest(), archive)

    def test_an_archive_that_is_packed_again_keeps_its_bytes(self) -> None:
        for archive in sorted(CORPORA.glob("*.tar")):
            folder, again = self.scratch / archive.stem, self.scratch / archive.name
            run("unpack_corpus", archive, folder)
            run("pack_corpus", folder, again)
            self.assertEqual(again.read_bytes(), archive.read_bytes(), archive)

    def test_neither_times_nor_modes_nor_the_order_of_writing_show_in_an_archive(self) -> None:
        first, second = self.scratch / "first", self.scratch / "second"
        for folder, names in ((first, ("b", "a", "B")), (second, ("B", "a", "b"))):
            folder.mkdir()
            for name in names:
                (folder / name).write_bytes(name.encode())
        os.utime(second / "a", (1, 1))
        (second / "b").chmod(0o600)
        run("pack_corpus", first, self.scratch / "first.tar")
        run("pack_corpus", second, self.scratch / "second.tar")
        self.assertEqual((self.scratch / "first.tar").read_bytes(), (self.scratch / "second.tar").read_bytes())

    def test_an_archive_is_unpacked_into_an_empty_folder(self) -> None:
        folder = self.scratch / "folder"
        folder.mkdir()
        (folder / "a").write_bytes(b"a")
        run("pack_corpus", folder, self.scratch / "one.tar")
        (folder / "b").write_bytes(b"b")
        run("unpack_corpus", self.scratch / "one.tar", folder)
        self.assertEqual([file.name for file in folder.iterdir()], ["a"])


if __name__ == "__main__":
    unittest.main()
