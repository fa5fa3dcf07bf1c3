"""The CSV files of a comparison: labels and scores."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from jule.comparison.scores import Row
from jule.runs.tables import csv_text

SCORES = ("nmi", "ac", "silhouette", "modularity")


def labels_table(names: Sequence[str], indices: NDArray[np.integer], rows: Sequence[Row]) -> bytes:
    r"""Return a table of each sample's path, index and cluster by every method that finished.

    Examples
    --------
    >>> row = Row("K-means", np.array([3]), (1, 1), 0.0, {}, 1, 0.5, None, "")
    >>> labels_table(["a.jpg"], np.array([7]), [row])
    b'path,index,K-means\r\na.jpg,7,3\r\n'
    """
    found = {row.method: row.labels.tolist() for row in rows if row.labels is not None}
    return _encode({"path": names, "index": indices.tolist(), **found})


def scores_table(rows: Sequence[Row]) -> bytes:
    r"""Return a table of the scores of every method; cells that are not known are empty.

    Examples
    --------
    >>> row = Row("K-means", np.array([3]), (1, 1), 0.0, {"nmi": (0.5, 0.1)}, 2, 0.5, 9, "")
    >>> scores_table([row]).decode().split("\r\n")[1]
    'K-means,1,0.0000,0.500000,0.100000,,,,,,,2,0.500,9,'
    """
    columns: dict[str, list[object]] = {
        "method": [row.method for row in rows],
        "clusters": [_clusters(row) for row in rows],
        "noise": ["" if row.labels is None else f"{row.noise:.4f}" for row in rows],
    }
    for name in SCORES:
        found = [row.scores.get(name, (math.nan, math.nan)) for row in rows]
        columns[name] = [_number(mean) for mean, _ in found]
        columns[f"{name}_std"] = [_number(spread) for _, spread in found]
    columns["seeds"] = [row.seeds for row in rows]
    columns["seconds"] = [_number(row.seconds, 3) for row in rows]
    columns["memory_bytes"] = ["" if row.memory is None else row.memory for row in rows]
    columns["reason"] = [row.reason for row in rows]
    return _encode(columns)


def _clusters(row: Row) -> object:
    least, most = row.n_clusters
    return "" if row.labels is None else most if least == most else f"{least}-{most}"


def _number(value: float, digits: int = 6) -> str:
    return "" if math.isnan(value) else f"{value:.{digits}f}"


def _encode(columns: dict[str, Sequence[object]] | dict[str, list[object]]) -> bytes:
    # Names of files may hold bytes that are not UTF-8, as lone surrogates.
    return csv_text(columns).encode("utf-8", "surrogatepass")
