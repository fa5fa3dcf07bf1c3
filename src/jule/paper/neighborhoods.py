"""How well an embedding keeps neighbourhoods: trustworthiness, and the 1-NN error."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from jule.forward import nearest_neighbors
from jule.forward.assign import neighbor_votes

BLOCK_CELLS = 2**22  # distances that are computed at once: 32 MiB


def trustworthiness(samples: NDArray, positions: NDArray[np.floating], k: int = 12) -> float:
    """Return T(k) of an embedding (Venna and Kaski, 2006), from 0 to 1.

    It falls if the k nearest neighbours of a sample in the embedding are not near it among the
    samples themselves. All distances are computed, a block at a time, in float64. A neighbour has
    the rank 1 + the number of samples that are nearer, so ties share the better rank.

    Parameters
    ----------
    samples
        Vectors (n, d), or images, which are flattened.
    positions
        (n, m) their embedding.
    k
        Number of neighbours, less than n / 2.

    Examples
    --------
    >>> line = np.array([0.0, 1.0, 3.0, 7.0, 12.0, 20.0])[:, None]
    >>> mixed = line[[0, 5, 1, 4, 2, 3]]
    >>> trustworthiness(line, line, k=2), round(trustworthiness(line, mixed, k=2), 2)
    (1.0, 0.47)
    """
    n = len(samples)
    if not 1 <= k < n / 2:
        raise ValueError(f"k must be at least 1 and less than n_samples / 2 = {n / 2}, got {k}")
    vectors = samples.reshape(n, -1).astype(np.float64)
    norms = np.einsum("ij,ij->i", vectors, vectors)
    near = nearest_neighbors(positions, k).indices
    rows = max(1, BLOCK_CELLS // n)
    penalty = 0
    for start in range(0, n, rows):
        block = norms - 2.0 * vectors[start : start + rows] @ vectors.T  # without |x|^2
        own = np.arange(len(block))
        block[own, start + own] = np.inf
        for rank in range(k):
            distances = block[own, near[start : start + rows, rank]]
            nearer = np.count_nonzero(block < distances[:, None], axis=1)
            penalty += int(np.maximum(nearer + 1 - k, 0).sum())
    return 1.0 - 2.0 * penalty / (n * k * (2 * n - 3 * k - 1))


def nearest_neighbor_error(
    train: NDArray[np.floating],
    train_labels: NDArray[np.integer],
    test: NDArray[np.floating],
    test_labels: NDArray[np.integer],
) -> float:
    """Return the fraction of test samples whose nearest training sample has another class.

    Examples
    --------
    >>> train, test = np.array([[0.0], [1.0]]), np.array([[0.1], [0.2], [0.9], [0.4]])
    >>> nearest_neighbor_error(train, np.array([0, 1]), test, np.array([0, 0, 1, 1]))
    0.25
    """
    nearest, _ = neighbor_votes(test, train, sigma2=1.0, n_neighbors=1)
    return float((train_labels[nearest[:, 0]] != test_labels).mean())
