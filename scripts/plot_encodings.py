#!/usr/bin/env python3
"""Draws the disagreement of the nodes with each encoding on the wire, from the output of dpwa_measure_encodings.

usage: dpwa_measure_encodings --csv | plot_encodings.py IMAGE
"""

from __future__ import annotations

import csv
import sys
from collections import defaultdict

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

TITLES = {"alone": "no gradients", "training": "gradients with noise"}
FLOOR = 1e-8  # what is below is agreement to the last bit of fp32


def main() -> int:
    if len(sys.argv) != 2:
        print(__doc__.strip(), file=sys.stderr)
        return 2
    courses: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in csv.DictReader(sys.stdin):
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
    figure.savefig(sys.argv[1], dpi=80)
    return 0


if __name__ == "__main__":
    sys.exit(main())
