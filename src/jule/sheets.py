"""The tables of a run folder, as CSV: labels, what was skipped, and exact duplicates."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from jule.images import Skipped
from jule.joint.state import write_whole

LABELS = ("path", "cluster", "confidence", "rank")


def ranks_in_clusters(
    labels: NDArray[np.integer], confidence: NDArray[np.floating]
) -> NDArray[np.int64]:
    """Number the samples of each cluster from the most typical, 1, to the most doubtful.

    Examples
    --------
    >>> ranks_in_clusters(np.array([0, 1, 0]), np.array([0.2, 0.5, 0.9])).tolist()
    [2, 1, 1]
    """
    order = np.lexsort((-confidence, labels))
    starts = np.searchsorted(labels[order], labels[order])
    ranks = np.empty(len(labels), np.int64)
    ranks[order] = np.arange(len(labels)) - starts + 1
    return ranks


def label_rows(
    names: Sequence[str], labels: NDArray[np.integer], confidence: NDArray[np.floating]
) -> dict[str, list]:
    """Give the columns of a table of labels.

    Examples
    --------
    >>> label_rows(["a"], np.array([0]), np.ones(1))
    {'path': ['a'], 'cluster': [0], 'confidence': [1.0], 'rank': [1]}
    """
    columns = (names, labels, np.round(confidence, 4), ranks_in_clusters(labels, confidence))
    return {name: np.asarray(column).tolist() for name, column in zip(LABELS, columns, strict=True)}


def write_labels(
    path: Path,
    names: Sequence[str],
    labels: NDArray[np.integer],
    confidence: NDArray[np.floating],
) -> None:
    """Write one row a sample: path, cluster, confidence, rank.

    Examples
    --------
    >>> write_labels(Path("labels.csv"), ["a"], np.array([0]), np.ones(1))  # doctest: +SKIP
    """
    text = csv_of_labels(names, labels, confidence)
    write_whole(path, text.encode("utf-8", "surrogateescape"))


def csv_of_labels(
    names: Sequence[str], labels: NDArray[np.integer], confidence: NDArray[np.floating]
) -> str:
    r"""Give the text of a table of labels.

    Examples
    --------
    >>> csv_of_labels(["a.jpg"], np.array([0]), np.ones(1))
    'path,cluster,confidence,rank\r\na.jpg,0,1.0000,1\r\n'
    """
    columns = label_rows(names, labels, confidence)
    sure = [f"{value:.4f}" for value in columns["confidence"]]
    rows = zip(columns["path"], columns["cluster"], sure, columns["rank"], strict=True)
    return _csv(LABELS, rows)


def read_labels(path: Path) -> tuple[list[str], NDArray[np.int32], NDArray[np.float64]]:
    """Read what `write_labels` wrote: names, clusters, confidence.

    Examples
    --------
    >>> read_labels(Path("labels.csv"))  # doctest: +SKIP
    """
    rows = _rows(path)
    return (
        [row["path"] for row in rows],
        np.array([int(row["cluster"]) for row in rows], np.int32),
        np.array([float(row["confidence"]) for row in rows]),
    )


def write_skipped(path: Path, skipped: Iterable[Skipped]) -> None:
    """Write what could not be read, and why.

    Examples
    --------
    >>> write_skipped(Path("skipped.csv"), [Skipped("a.jpg", "it is empty")])  # doctest: +SKIP
    """
    text = _csv(("path", "reason"), ((one.name, one.reason) for one in skipped))
    write_whole(path, text.encode())


def write_duplicates(path: Path, names: Sequence[str], first_copies: NDArray[np.int64]) -> None:
    """Write every picture that is exactly an earlier one, and that one.

    Examples
    --------
    >>> write_duplicates(Path("duplicates.csv"), ["a", "b"], np.array([0, 0]))  # doctest: +SKIP
    """
    copies = np.flatnonzero(first_copies != np.arange(len(first_copies)))
    rows = ((names[copy], names[int(first_copies[copy])]) for copy in copies.tolist())
    write_whole(path, _csv(("path", "same_as"), rows).encode())


def read_first_copies(path: Path, names: Sequence[str]) -> NDArray[np.int64]:
    """Read what `write_duplicates` wrote: for each name the number of the first of its copies.

    Examples
    --------
    >>> read_first_copies(Path("duplicates.csv"), ["a", "b"])  # doctest: +SKIP
    """
    found = np.arange(len(names))
    if path.exists():
        place = {name: number for number, name in reversed(list(enumerate(names)))}
        for row in _rows(path):
            if row["path"] in place and row["same_as"] in place:
                found[place[row["path"]]] = place[row["same_as"]]
    return found


def _csv(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(head)
    writer.writerows(rows)
    return text.getvalue()


def _rows(path: Path) -> list[dict[str, str]]:
    with open(path, encoding="utf-8", errors="surrogateescape", newline="") as file:
        return list(csv.DictReader(file))
