"""What ten million, a hundred million and a billion images would need, from measured records."""

from __future__ import annotations

import math
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.common import read_measured
from jule.joint.clustering import MOST_EXACT
from jule.paper.tables import markdown

SIZES = (10_000_000, 100_000_000, 1_000_000_000)
DIMENSIONS = 160
N_NEIGHBORS = 20
PIXELS = 16 * 16  # of the images of the whole runs
MACHINE = 64 * 2**30  # bytes
UNITS = (("years", 365 * 86400), ("days", 86400), ("hours", 3600), ("minutes", 60), ("seconds", 1))


class Law(NamedTuple):
    """Seconds = coefficient * n ** exponent, measured up to some n."""

    coefficient: float
    exponent: float
    largest: int

    def seconds(self, n: int) -> float:
        return float(self.coefficient * n**self.exponent)


def fit(points: list[tuple[int, float]]) -> Law:
    """Fit a power law by least squares of the logarithms.

    Examples
    --------
    >>> round(fit([(10, 3.0), (100, 300.0)]).exponent, 6)
    2.0
    """
    n, seconds = np.log(np.array(points, float)).T
    exponent, log_coefficient = np.polyfit(n, seconds, 1)
    return Law(math.exp(log_coefficient), float(exponent), max(point[0] for point in points))


def laws(results: Path) -> dict[str, Law]:
    """Return a law for every stage of whole runs that search approximately.

    Smaller runs search exactly, which follows another law.
    """
    rows = [row for row in read_measured(results, "million")["rows"] if row["n"] > MOST_EXACT]
    stages = {name: None for row in rows for name in row["stages"]}
    return {name: fit([(row["n"], row["stages"][name]) for row in rows]) for name in stages}


def bytes_per_image(results: Path) -> float:
    """Return the memory per image while clusters are merged: vectors, neighbours, merging."""
    curves = read_measured(results, "growth")["curves"].values()
    merging = max(curve[-1]["MiB above input"] * 2**20 / curve[-1]["n"] for curve in curves)
    return float(4 * DIMENSIONS + 24 * N_NEIGHBORS + merging)


def needs(results: Path) -> str:
    """Render time, memory and machines for numbers of images that were not measured."""
    rows = [
        [
            name,
            f"{law.exponent:.2f}",
            f"{law.largest:,}",
            *(duration(law.seconds(n)) for n in SIZES),
        ]
        for name, law in laws(results).items()
    ]
    merging = bytes_per_image(results)
    sizes = {
        "memory of rank 0 while it merges": merging,
        "float32 pixels and their centred copy, while inputs are searched": 8 * PIXELS,
        "pixels in the cache": PIXELS,
    }
    rows += [
        [name, "1", "", *(f"{size * n / 1e9:,.0f} GB" for n in SIZES)]
        for name, size in sizes.items()
    ]
    machines = [f"{math.ceil(merging * n / MACHINE):,}" for n in SIZES]
    rows.append(["machines of 64 GiB that would hold what rank 0 needs", "1", "", *machines])
    header = ["", "grows with n to the power of", "measured up to n ="]
    return markdown([*header, *(f"{n:,}" for n in SIZES)], rows)


def duration(seconds: float) -> str:
    """Render a time in the largest unit of which there are two or more.

    Examples
    --------
    >>> duration(5400), duration(7200)
    ('90 minutes', '2.0 hours')
    """
    unit, length = next((found for found in UNITS if seconds >= 2 * found[1]), UNITS[-1])
    count = seconds / length
    return f"{count:.1f} {unit}" if count < 10 else f"{count:,.0f} {unit}"
