#!/usr/bin/env python3
"""Draws the disagreement of the nodes with each encoding on the wire, from the output of dpwa_measure_encodings."""

from __future__ import annotations

from lib import interrupts

if __name__ == "__main__":
    interrupts.end_at_once()  # also during the imports below

import argparse
import csv
import sys
from collections import defaultdict
from typing import TextIO

from lib.output import checked

TITLES = {"alone": "no gradients", "training": "gradients with noise"}
FLOOR = 1e-8  # what is below is agreement to the last bit of fp32


def draw(text: TextIO, image: str) -> None:
    import matplotlib  # here, so that --help needs only Python

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    courses: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in csv.DictReader(text):
        courses[row["plan"]][row["encoding"]].append(max(float(row["disagreement"]), FLOOR))
    figure, panels = plt.subplots(1, len(courses), figsize=(9, 3.2), sharey=True, squeeze=False)
    for axes, (plan, encodings) in zip(panels[0], courses.items()):
        for encoding, values in encodings.items():
            axes.plot(range(1, len(values) + 1), values, label=encoding)
        axes.set(title=TITLES.get(plan, plan), xlabel="step", yscale="log", ylim=(FLOOR, 1))
        axes.grid(alpha=0.3)
    panels[0][0].set_ylabel("disagreement / size of the weights")
    panels[0][0].legend(loc="upper right")
    figure.tight_layout()
    figure.savefig(image, dpi=80)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, epilog="usually: dpwa_measure_encodings --csv | %(prog)s docs/images/encodings.png"
    )
    parser.add_argument("image", metavar="IMAGE", help="the picture to write, such as encodings.png")
    image = parser.parse_args().image
    if sys.stdin.isatty():
        parser.error("standard input is a terminal; accepted: the output of dpwa_measure_encodings --csv")
    draw(sys.stdin, image)
    return 0


if __name__ == "__main__":
    sys.exit(checked(main))
