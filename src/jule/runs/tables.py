"""The tables of a run folder, as CSV: labels, skipped files, exact duplicates."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from jule.files import write_atomic
from jule.images import Skipped

Columns = dict[str, list]


@dataclass(frozen=True, eq=False)
class LabelTable:
    """The content of labels.csv.

    Attributes
    ----------
    names
        One path or name per sample.
    labels
        (n,) clusters.
    confidence
        (n,) fraction of each sample's affinity that belongs to its cluster, from 0 to 1.
    cluster_names
        The names of the clusters that have one.
    by_hand
        (n,) whether each sample was moved by hand.
    """

    names: list[str]
    labels: NDArray[np.int32]
    confidence: NDArray[np.float64]
    cluster_names: dict[int, str]
    by_hand: NDArray[np.bool_]


def ranks_in_clusters(
    labels: NDArray[np.integer], distances: NDArray[np.floating]
) -> NDArray[np.int64]:
    """Rank the samples of each cluster by distance from its centre; the nearest has rank 1.

    Examples
    --------
    >>> ranks_in_clusters(np.array([0, 1, 0]), np.array([0.8, 0.5, 0.1])).tolist()
    [2, 1, 1]
    """
    order = np.lexsort((distances, labels))
    starts = np.searchsorted(labels[order], labels[order])
    ranks = np.empty(len(labels), np.int64)
    ranks[order] = np.arange(len(labels)) - starts + 1
    return ranks


def label_columns(
    names: Sequence[str],
    labels: NDArray[np.integer],
    confidence: NDArray[np.floating],
    distances: NDArray[np.floating],
    cluster_names: Mapping[int, str] | None = None,
) -> Columns:
    """Return the columns of a table of labels.

    Parameters
    ----------
    names, labels, confidence
        One entry per sample.
    distances
        (n,) distance of each sample from the centre of its cluster, for the ranks.
    cluster_names
        The names of the clusters that have one.

    Examples
    --------
    >>> label_columns(["a"], np.array([0]), np.ones(1), np.zeros(1), {0: "cats"})
    {'path': ['a'], 'cluster': [0], 'confidence': [1.0], 'rank': [1], 'name': ['cats']}
    """
    known = cluster_names or {}
    return {
        "path": list(names),
        "cluster": labels.tolist(),
        "confidence": np.round(confidence, 4).tolist(),
        "rank": ranks_in_clusters(labels, distances).tolist(),
        "name": [known.get(label, "") for label in labels.tolist()],
    }


def csv_text(columns: Columns) -> str:
    r"""Return columns as CSV.

    Examples
    --------
    >>> csv_text({"path": ["a.jpg"], "confidence": [1.0]})
    'path,confidence\r\na.jpg,1.0000\r\n'
    """
    shown = [
        [f"{value:.4f}" for value in column] if name == "confidence" else column
        for name, column in columns.items()
    ]
    return _csv(list(columns), zip(*shown, strict=True))


def write_labels(path: Path, columns: Columns, by_hand: NDArray[np.bool_] | None = None) -> None:
    """Write a table of labels, atomically; `by_hand` adds the column of that name."""
    if by_hand is not None:
        columns = {**columns, "by_hand": by_hand.astype(int).tolist()}
    write_atomic(path, csv_text(columns).encode("utf-8", "surrogateescape"))


def read_labels(path: Path) -> LabelTable:
    """Read a table that `write_labels` wrote."""
    rows = _rows(path)
    try:
        labels = np.array([int(row["cluster"]) for row in rows], np.int32)
        return LabelTable(
            [row["path"] for row in rows],
            labels,
            np.array([float(row["confidence"]) for row in rows]),
            {int(row["cluster"]): row["name"] for row in rows if row.get("name")},
            np.array([row.get("by_hand") == "1" for row in rows], bool),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path} is damaged: {error}") from error


def write_skipped(path: Path, skipped: Iterable[Skipped]) -> None:
    """Write a table of the files that could not be read, and why."""
    text = _csv(("path", "reason"), ((one.name, one.reason) for one in skipped))
    write_atomic(path, text.encode())


def read_skipped(path: Path) -> list[tuple[str, str]]:
    """Read (path, reason) of the files that could not be read.

    Examples
    --------
    >>> read_skipped(Path("nowhere.csv"))
    []
    """
    return [(row["path"], row["reason"]) for row in _rows(path)]


def write_duplicates(path: Path, names: Sequence[str], first_copies: NDArray[np.int64]) -> None:
    """Write a table of exact copies and their originals."""
    copies = np.flatnonzero(first_copies != np.arange(len(first_copies)))
    rows = ((names[copy], names[int(first_copies[copy])]) for copy in copies.tolist())
    write_atomic(path, _csv(("path", "same_as"), rows).encode("utf-8", "surrogateescape"))


def read_first_copies(path: Path, names: Sequence[str]) -> NDArray[np.int64]:
    """Return the index of the original of each sample; its own index if it is not a copy.

    Examples
    --------
    >>> read_first_copies(Path("nowhere.csv"), ["a", "b"]).tolist()
    [0, 1]
    """
    found = np.arange(len(names))
    rows = _rows(path)
    if rows:
        counts = Counter(names)  # a name that stands for several samples identifies none
        index = {name: number for number, name in enumerate(names) if counts[name] == 1}
        for row in rows:
            if row["path"] in index and row["same_as"] in index:
                found[index[row["path"]]] = index[row["same_as"]]
    return found


def _csv(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(head)
    writer.writerows(rows)
    return text.getvalue()


def _rows(path: Path) -> list[dict[str, str]]:
    if not path.exists():
        return []
    with open(path, encoding="utf-8", errors="surrogateescape", newline="") as file:
        return list(csv.DictReader(file))
