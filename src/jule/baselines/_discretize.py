"""Round eigenvectors to clusters by the discretisation of Yu and Shi."""

from __future__ import annotations

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray

from jule.baselines._spectral import unit_rows

MAX_ROUNDS = 20


def discretize(
    vectors: NDArray[np.floating], random_state: RandomState, max_rounds: int = MAX_ROUNDS
) -> NDArray[np.intp]:
    """Return the clusters whose indicator vectors are nearest to rotated eigenvectors.

    Rotation and indicators are improved in turn. Rows of zeros, which have no direction, do not
    influence the rotation.

    Parameters
    ----------
    vectors
        (n, K) eigenvectors as columns; the rows are scaled to unit length here.
    random_state
        Chooses the row at which the first rotation starts.
    max_rounds
        Maximum number of improvements.

    References
    ----------
    S. Yu, J. Shi: Multiclass spectral clustering. ICCV 2003.

    Examples
    --------
    >>> angle = np.pi / 6
    >>> rotation = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    >>> labels = discretize(np.array([[1, 0], [1, 0], [0, 1]]) @ rotation, RandomState(0))
    >>> bool(labels[0] == labels[1] != labels[2])
    True
    """
    rows = unit_rows(vectors)
    rotation = first_rotation(rows, random_state)
    last = np.inf
    for _ in range(max_rounds):
        labels: NDArray[np.intp] = (rows @ rotation).argmax(axis=1)
        correlation = np.zeros((rows.shape[1], rows.shape[1]))
        np.add.at(correlation, labels, rows)
        left, strengths, right = np.linalg.svd(correlation)
        cut = 2.0 * (len(rows) - strengths.sum())
        if abs(cut - last) < np.finfo(np.float64).eps:
            break
        last = cut
        rotation = right.T @ left.T
    return labels


def first_rotation(rows: NDArray[np.floating], random_state: RandomState) -> NDArray[np.floating]:
    """Return K rows, as columns, that are nearly orthogonal to one another.

    The first is a random one. Each further one has the smallest sum of absolute inner products
    with those before it.

    Examples
    --------
    >>> np.abs(first_rotation(np.eye(2), RandomState(0))).sum(axis=0).tolist()
    [1.0, 1.0]
    """
    # A row of zeros is orthogonal to all, but it is no direction.
    candidates = rows[rows.any(axis=1)]
    chosen = candidates[random_state.randint(len(candidates))]
    columns = [chosen]
    overlaps = np.zeros(len(candidates))
    for _ in range(rows.shape[1] - 1):
        overlaps += np.abs(candidates @ chosen)
        chosen = candidates[overlaps.argmin()]
        columns.append(chosen)
    return np.stack(columns, axis=1)
