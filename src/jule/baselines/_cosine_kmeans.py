"""K-means from rows at wide angles, the last step of self-tuning spectral clustering."""

from __future__ import annotations

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray
from scipy import sparse


def cosine_kmeans(
    rows: NDArray[np.floating],
    k: int,
    random_state: RandomState,
    *,
    n_init: int = 50,
    max_iter: int = 10,
) -> NDArray[np.intp]:
    """Run K-means from several starts and return the clusters with the smallest scatter ratio.

    Parameters
    ----------
    rows
        (n, d) rows of unit length; rows of zeros are never chosen as first centres.
    k
        Number of clusters.
    random_state
        Chooses the first centre of every start.
    n_init
        Number of starts.
    max_iter
        Number of iterations per start.

    Examples
    --------
    >>> rows = np.array([[1.0, 0.0], [0.8, 0.6], [0.0, 1.0], [-0.6, 0.8]])
    >>> labels = cosine_kmeans(rows, 2, RandomState(0))
    >>> bool(labels[0] == labels[1] != labels[2] == labels[3])
    True
    """
    best_ratio, best_labels = np.inf, np.zeros(len(rows), np.intp)
    candidates = rows[rows.any(axis=1)]
    squares, total = float(np.square(rows).sum()), rows.sum(axis=0)
    for _ in range(n_init):
        centers = wide_angle_rows(candidates, k, random_state.randint(len(candidates)))
        last = None
        for _ in range(max_iter):
            halves = 0.5 * np.square(centers).sum(axis=1)
            labels: NDArray[np.intp] = (halves - rows @ centers.T).argmin(axis=1)
            if last is not None and np.array_equal(labels, last):
                break
            last = labels
            counts = np.bincount(labels, minlength=k)
            centers = _means(rows, labels, counts, centers)
            ratio = scatter_ratio(squares, total, counts, centers)
            if ratio < best_ratio:
                best_ratio, best_labels = ratio, labels
    return best_labels


def wide_angle_rows(rows: NDArray[np.floating], k: int, first: int) -> NDArray[np.floating]:
    """Return k rows, each at wide angles to those before it.

    Each next row is the one whose largest absolute cosine to the rows so far is smallest.

    Parameters
    ----------
    rows
        (n, d) rows of unit length.
    k
        Number of rows.
    first
        Index of the first row.

    Examples
    --------
    >>> wide_angle_rows(np.array([[1.0, 0.0], [-1.0, 0.0], [0.6, 0.8]]), 2, 0).tolist()
    [[1.0, 0.0], [0.6, 0.8]]
    """
    chosen = [first]
    largest = np.zeros(len(rows))
    while len(chosen) < k:
        np.maximum(largest, np.abs(rows @ rows[chosen[-1]]), out=largest)
        chosen.append(int(largest.argmin()))
    return rows[chosen]


def _means(
    rows: NDArray[np.floating],
    labels: NDArray[np.intp],
    counts: NDArray[np.intp],
    centers: NDArray[np.floating],
) -> NDArray[np.floating]:
    """Return the mean of every cluster, and the former centre of an empty one."""
    n, k = len(rows), len(centers)
    members = sparse.csc_array((np.ones(n), labels, np.arange(n + 1)), shape=(k, n))
    sizes = counts[:, None]
    means: NDArray[np.floating] = np.divide(
        members @ rows, sizes, out=centers.copy(), where=sizes > 0
    )
    return means


def scatter_ratio(
    squares: float,
    total: NDArray[np.floating],
    counts: NDArray[np.intp],
    means: NDArray[np.floating],
) -> float:
    """Return the scatter within the clusters divided by the scatter outside them.

    Within: the squared distances of the members of every cluster to its mean. Outside: those of all
    other rows to the same mean. Both follow from sums over the rows, without going through them.

    Parameters
    ----------
    squares
        Sum of the squared lengths of all rows.
    total
        (d,) sum of all rows.
    counts
        (k,) number of rows of every cluster.
    means
        (k, d) mean of every cluster, or the former centre of an empty one.

    Examples
    --------
    >>> rows, means = np.array([[0.0], [2.0], [5.0]]), np.array([[1.0], [5.0]])
    >>> scatter_ratio(float((rows**2).sum()), rows.sum(axis=0), np.array([2, 1]), means)
    0.04
    """
    lengths = np.square(means).sum(axis=1)
    within = max(squares - float(counts @ lengths), 0.0)
    all_pairs = len(means) * squares - 2.0 * total @ means.sum(axis=0)
    outside = float(all_pairs + counts.sum() * lengths.sum()) - within
    return within / outside if outside > 0 else np.inf
