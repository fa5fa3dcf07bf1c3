"""Where the samples lie: principal components, and a better map where umap-learn is installed."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from jule.snapshots import principal_components

AXES = 16  # enough to tell a few hundred clusters apart in the browser
LARGEST = 32_000  # positions travel as int16


def coordinates(embedding: NDArray[np.floating]) -> NDArray[np.float64]:
    """Give the first 16 principal components; the first two are a map, three can be turned.

    Examples
    --------
    >>> coordinates(np.eye(3)).shape
    (3, 16)
    """
    return principal_components(embedding, AXES)


def umap_map(embedding: NDArray[np.floating], seed: int = 0) -> NDArray[np.float64] | None:
    """Lay the samples out by UMAP; None where umap-learn is not installed, or for a handful.

    Examples
    --------
    >>> umap_map(np.eye(3)) is None
    True
    """
    if len(embedding) < 20:
        return None
    try:
        from umap import UMAP
    except ImportError:
        return None
    found: NDArray[np.float64] = UMAP(random_state=seed, n_jobs=1).fit_transform(embedding)
    return found


def as_int16(positions: NDArray[np.floating]) -> NDArray[np.int16]:
    """Scale positions, all axes alike, to the whole numbers that a page carries.

    Examples
    --------
    >>> as_int16(np.array([[0.0, -2.0], [1.0, 0.0]])).tolist()
    [[0, -32000], [16000, 0]]
    """
    largest = float(np.abs(positions).max(initial=0.0))
    scaled = positions * (LARGEST / largest if largest > 0 else 0.0)
    return np.round(scaled).astype(np.int16)
