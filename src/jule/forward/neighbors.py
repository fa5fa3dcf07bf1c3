"""The K_s nearest neighbours of every sample, as the search returns them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Neighbors:
    """The nearest neighbours of n samples, nearest first, never the sample itself.

    Attributes
    ----------
    indices
        (n, k) int32: indices of the neighbours.
    distances
        (n, k) float64: their squared Euclidean distances.
    recall
        Fraction of true neighbours found: 1.0 for exact search, otherwise an estimate.
    """

    indices: NDArray[np.int32]
    distances: NDArray[np.float64]
    recall: float = 1.0

    def __post_init__(self) -> None:
        check_indices(self.indices)
        if self.distances.shape != self.indices.shape or self.distances.dtype != np.float64:
            raise ValueError(
                f"distances must be float64 of shape {self.indices.shape}, got "
                f"{self.distances.dtype} {self.distances.shape}"
            )
        # Not the other way round, so that NaN is noticed.
        if self.distances.size and not (
            self.distances.min() >= 0 and self.distances.max() < np.inf
        ):
            raise ValueError("distances must be finite and 0 or more")

    @property
    def k(self) -> int:
        """Number of neighbours per sample."""
        return int(self.indices.shape[1])

    def __len__(self) -> int:
        return int(self.indices.shape[0])

    def nearest(self, k: int) -> Neighbors:
        """Return the k nearest of these neighbours.

        Examples
        --------
        >>> from jule.forward import nearest_neighbors
        >>> nearest_neighbors([[0.0], [1.0], [3.0]], k=2).nearest(1).indices.ravel().tolist()
        [1, 0, 1]
        """
        if k == self.k:
            return self
        indices, distances = self.indices[:, :k], self.distances[:, :k]
        return Neighbors(
            np.ascontiguousarray(indices), np.ascontiguousarray(distances), self.recall
        )


def check_indices(indices: NDArray[np.integer]) -> None:
    """Raise an error unless every row lists other samples; the kernels would not notice it.

    Examples
    --------
    >>> check_indices(np.array([[1], [0]], np.int32))
    """
    if indices.ndim != 2 or indices.dtype != np.int32:
        raise ValueError(
            f"neighbours must be int32 of shape (n, k), got {indices.dtype} {indices.shape}"
        )
    n = len(indices)
    if indices.size and (indices.min() < 0 or indices.max() >= n):
        raise ValueError(f"neighbours must be samples from 0 to {n - 1}")
    if (indices == np.arange(n, dtype=np.int32)[:, None]).any():
        raise ValueError("a sample must not be its own neighbour")
