"""Round vectors to clusters by K-means, the last step of most spectral and factor methods."""

from __future__ import annotations

import warnings

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state


def round_by_kmeans(
    rows: NDArray[np.floating],
    k: int,
    *,
    n_init: int = 10,
    max_iter: int = 100,
    random_state: int | RandomState | None = 0,
) -> NDArray[np.int32]:
    """Cluster rows by K-means: the best of several runs started by k-means++.

    Parameters
    ----------
    rows
        (n, d) one vector per sample.
    k
        Number of clusters.
    n_init
        Number of runs; the one with the smallest sum of squared distances is kept.
    max_iter
        Maximum number of iterations of a run.
    random_state
        Random seed.

    Examples
    --------
    >>> rows = np.array([[0.0], [0.1], [5.0], [5.1]])
    >>> sorted(round_by_kmeans(rows, 2).tolist())
    [0, 0, 1, 1]
    """
    means = KMeans(k, n_init=n_init, max_iter=max_iter, random_state=random_state)
    with warnings.catch_warnings():
        # Identical rows give fewer clusters, which `fit` reports with a warning of its own.
        warnings.simplefilter("ignore", ConvergenceWarning)
        return np.asarray(means.fit_predict(np.ascontiguousarray(rows)), np.int32)


def round_from_random_rows(
    rows: NDArray[np.floating],
    k: int,
    *,
    n_init: int = 10,
    max_iter: int = 100,
    random_state: int | RandomState | None = 0,
) -> NDArray[np.int32]:
    """Cluster rows by K-means: the best of several runs started from random rows.

    This is how `litekmeans`, the K-means of several authors' MATLAB code, chooses among its runs:
    by the sum of distances, not of squared distances.

    Parameters
    ----------
    rows
        (n, d) one vector per sample.
    k
        Number of clusters.
    n_init
        Number of runs; the one with the smallest sum of distances is kept.
    max_iter
        Maximum number of iterations of a run.
    random_state
        Random seed.

    Examples
    --------
    >>> rows = np.array([[0.0], [0.1], [5.0], [5.1]])
    >>> sorted(round_from_random_rows(rows, 2).tolist())
    [0, 0, 1, 1]
    """
    random = check_random_state(random_state)
    rows = np.ascontiguousarray(rows)
    smallest, labels = np.inf, np.zeros(len(rows), np.int32)
    for _ in range(n_init):
        means = KMeans(k, init="random", n_init=1, max_iter=max_iter, tol=0.0, random_state=random)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # as above, or out of iterations
            found = means.fit_predict(rows)
        total = float(np.linalg.norm(rows - means.cluster_centers_[found], axis=1).sum())
        if total < smallest:
            smallest, labels = total, np.asarray(found, np.int32)
    return labels
