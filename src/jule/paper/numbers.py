"""The numbers that the paper prints, read from numbers.csv.

The tables are named after their input: ``"raw"`` is Tables 3 and 10 (NMI and AC on image
intensities), ``"learned"`` is Tables 4 and 11 (on the learned representation). ``"transfer"`` is
Tables 5 and 6, with layers as methods and pairs such as ``"coil20-to-coil100"`` as data sets.
``"faces"`` is Table 7 and ``"cifar10"`` Table 8: accuracies, with numbers of images as data sets.
``"features"`` is the appendix's table of hand-crafted features, and ``"embedding"`` its tables of
low-dimensional embeddings, with numbers of dimensions as data sets. ``"stages"`` holds the numbers
of clusters printed under the figures of the stages. Where Table 3 prints two values, NMI is the
first one, from re-running the code; `Score.reported_nmi` is the second one, from earlier papers.
"""

from __future__ import annotations

import csv
from functools import cache
from importlib.resources import files
from typing import Literal, NamedTuple

Table = Literal["raw", "learned", "transfer", "faces", "cifar10", "features"]

# The data sets as the paper spells them, in the order of its tables.
DISPLAY = {
    "coil20": "COIL-20",
    "coil100": "COIL-100",
    "usps": "USPS",
    "mnist-test": "MNIST-test",
    "mnist": "MNIST-full",
    "umist": "UMist",
    "frgc": "FRGC",
    "cmu-pie": "CMU-PIE",
    "ytf": "YTF",
}


class Score(NamedTuple):
    """NMI and AC of a method on a data set; None where the paper has no number.

    Examples
    --------
    >>> print(Score(0.5, 1.0), Score())
    0.500 / 1.000 - / -
    """

    nmi: float | None = None
    ac: float | None = None
    reported_nmi: float | None = None

    def __str__(self) -> str:
        return " / ".join("-" if each is None else f"{each:.3f}" for each in (self.nmi, self.ac))


def paper_score(method: str, dataset: str, table: Table = "raw") -> Score:
    """Return the paper's score of a method; an empty score if the paper has none.

    Examples
    --------
    >>> paper_score("OURS-RC", "usps").nmi, paper_score("K-means", "usps", "learned").ac
    (0.913, 0.776)
    """
    if method not in paper_methods(table):
        known = ", ".join(paper_methods(table))
        raise ValueError(f"the paper's table {table!r} has no method {method!r}, only {known}")
    return _scores().get((table, method, dataset), Score())


def paper_methods(table: Table = "raw") -> tuple[str, ...]:
    """Return the methods of a table, in the paper's order.

    Examples
    --------
    >>> paper_methods()[:2]
    ('K-means', 'SC-NJW')
    """
    return tuple(dict.fromkeys(method for name, method, _ in _scores() if name == table))


def initial_clusters(dataset: str) -> int | None:
    """Return the number of initial clusters in the appendix's figures; None if not shown.

    Examples
    --------
    >>> initial_clusters("mnist-test")
    1762
    """
    counts = {row["dataset"]: int(row["clusters"]) for row in _rows() if row["table"] == "stages"}
    return counts.get(dataset)


def paper_embedding(method: str, dimensions: int) -> dict[str, float]:
    """Return the paper's 1-NN error and trustworthiness T(12) of an embedding of MNIST.

    The dictionary is empty if the paper does not have the method.

    Examples
    --------
    >>> paper_embedding("OURS", 10)
    {'error': 0.019, 'trustworthiness': 0.936}
    """
    for row in _rows():
        if (row["table"], row["method"], row["dataset"]) == ("embedding", method, str(dimensions)):
            return {name: float(row[name]) for name in ("error", "trustworthiness")}
    return {}


@cache
def _rows() -> tuple[dict[str, str], ...]:
    text = (files("jule.paper") / "numbers.csv").read_text(encoding="utf-8")
    return tuple(csv.DictReader(text.splitlines()))


@cache
def _scores() -> dict[tuple[str, str, str], Score]:
    return {
        (row["table"], row["method"], row["dataset"]): Score(
            *(float(row[name]) if row[name] else None for name in Score._fields)
        )
        for row in _rows()
        if row["table"] not in ("stages", "embedding")
    }
