"""The directed graph W of the samples (Eq. 4)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jule.forward.jit import njit, prange
from jule.forward.neighbors import Neighbors


@dataclass(frozen=True, eq=False)
class Digraph:
    """A weighted directed graph from every sample to its K_s neighbours.

    Attributes
    ----------
    indices
        (n, K_s) int32: neighbours of each sample.
    weights
        (n, K_s) float64: W(i, j), between 0 and 1; an edge of weight 0 is no edge.
    sigma2
        sigma^2 of Eq. 4.
    """

    indices: NDArray[np.int32]
    weights: NDArray[np.float64]
    sigma2: float

    def __len__(self) -> int:
        return int(self.indices.shape[0])


def affinity_graph(neighbors: Neighbors, a: float = 1.0) -> Digraph:
    """Compute the affinities between samples and their neighbours (Eq. 4).

    W(i, j) = exp(-|x_i - x_j|^2 / sigma^2) if j is one of the K_s neighbours of i, and 0 otherwise;
    sigma^2 is `a` times the mean of all these squared distances. If every distance is 0 (each
    sample has at least K_s copies), every edge has weight 1. Weights of distances beyond about
    745 sigma^2 are exactly 0, and an edge of weight 0 is no edge: see `merge_clusters`.

    Examples
    --------
    >>> from jule.forward import nearest_neighbors
    >>> graph = affinity_graph(nearest_neighbors([[0.0], [1.0], [3.0]], k=1))
    >>> graph.sigma2, graph.weights[0, 0].round(3).item()
    (2.0, 0.607)
    """
    if not 0 < a < math.inf:
        raise ValueError(f"a must be positive, got {a}: it scales sigma^2 of Eq. 4")
    with np.errstate(over="ignore"):
        mean = float(neighbors.distances.mean())
    sigma2 = a * mean
    if not sigma2 < math.inf or (sigma2 == 0 and mean > 0):
        raise ValueError(
            f"sigma^2 of Eq. 4 would be {sigma2:g}, with a={a} and a mean squared distance of "
            f"{mean:g}: scale the samples, or choose another a"
        )
    return weigh_neighbors(neighbors, sigma2)


def weigh_neighbors(neighbors: Neighbors, sigma2: float) -> Digraph:
    """Compute the affinities of Eq. 4 for a given sigma^2.

    Examples
    --------
    >>> from jule.forward import nearest_neighbors
    >>> weigh_neighbors(nearest_neighbors([[0.0], [1.0], [3.0]], k=1), 2.0).weights.shape
    (3, 1)
    """
    if sigma2 == 0:
        weights = np.ones_like(neighbors.distances)
    else:
        weights = np.empty_like(neighbors.distances)
        _gaussian(neighbors.distances, sigma2, weights)
    return Digraph(neighbors.indices, weights, sigma2)


@njit(cache=True, parallel=True)
def _gaussian(distances, sigma2, weights):
    n, k = distances.shape
    for i in prange(n):
        for j in range(k):
            weights[i, j] = np.exp(-distances[i, j] / sigma2)
