"""Positions of the samples: principal components, and UMAP where umap-learn is installed."""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray

from jule.forward import Neighbors
from jule.runs.snapshots import principal_components

AXES = 16  # enough to measure distances between a few hundred clusters in the browser
FEWEST_FOR_UMAP = 20
UMAP_NEIGHBORS = 15
UMAP_EPOCHS = 200
LARGEST = 32_000  # below the limit of int16


def coordinates(embedding: NDArray[np.floating]) -> NDArray[np.float64]:
    """Return the first 16 principal components.

    Examples
    --------
    >>> coordinates(np.eye(3)).shape
    (3, 16)
    """
    return principal_components(embedding, AXES)


def umap_map(
    embedding: NDArray[np.floating], neighbors: Neighbors, seed: int = 0
) -> NDArray[np.float64] | None:
    """Return a UMAP layout; None for fewer than 20 samples or without umap-learn.

    Examples
    --------
    >>> from jule.forward import nearest_neighbors
    >>> umap_map(np.eye(3), nearest_neighbors(np.eye(3), 2)) is None
    True
    """
    if len(embedding) < FEWEST_FOR_UMAP:
        return None
    try:
        from umap import UMAP
    except ImportError:
        return None
    # UMAP counts a sample as its own first neighbour.
    shown = min(UMAP_NEIGHBORS - 1, neighbors.k)
    indices = np.column_stack((np.arange(len(embedding)), neighbors.indices[:, :shown]))
    distances = np.column_stack((np.zeros(len(embedding)), neighbors.distances[:, :shown] ** 0.5))
    start = principal_components(embedding, 2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about threads, and about transforming new samples
        found: NDArray[np.float64] = UMAP(
            n_neighbors=shown + 1,
            n_epochs=UMAP_EPOCHS,
            precomputed_knn=(indices, distances.astype(np.float32), None),
            init=(10 * start / max(np.abs(start).max(), 1e-12)).astype(np.float32),
            random_state=seed,
            n_jobs=1,
        ).fit_transform(embedding)
    return found


def centred(positions: NDArray[np.floating]) -> NDArray[np.floating]:
    """Return positions with the middle of their range at 0.

    Examples
    --------
    >>> centred(np.array([[0.0, 1.0], [4.0, 1.0]])).tolist()
    [[-2.0, 0.0], [2.0, 0.0]]
    """
    middle = (positions.min(axis=0) + positions.max(axis=0)) / 2
    moved: NDArray[np.floating] = positions - middle
    return moved


def as_int16(positions: NDArray[np.floating]) -> NDArray[np.int16]:
    """Scale positions to 16-bit integers, by the same factor on all axes.

    Examples
    --------
    >>> as_int16(np.array([[0.0, -2.0], [1.0, 0.0]])).tolist()
    [[0, -32000], [16000, 0]]
    """
    largest = float(np.abs(positions).max(initial=0.0))
    scaled = positions * (LARGEST / largest if largest > 0 else 0.0)
    return np.round(scaled).astype(np.int16)
