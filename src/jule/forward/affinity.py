"""The directed graph W of the samples (Eq. 4), and two other ways to weigh its edges."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from jule.forward.neighbors import Neighbors

Kernel = Literal["global", "local", "transition"]

LEAST_SCALE = 2.0**-20  # of a sample with many copies, relative to the median scale
LEAST_NEAREST_WEIGHT = 1e-5  # of the edge from a sample to its nearest neighbour


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
        sigma^2 of Eq. 4; NaN if every sample has its own.
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
    return weigh_neighbors(neighbors, _global_sigma2(neighbors, a))


def _global_sigma2(neighbors: Neighbors, a: float) -> float:
    """Return sigma^2 of Eq. 4: `a` times the mean of all squared distances."""
    _check_factor(a)
    with np.errstate(over="ignore"):
        mean = float(neighbors.distances.mean())
    sigma2 = a * mean
    if not sigma2 < math.inf or (sigma2 == 0 and mean > 0):
        raise ValueError(
            f"sigma^2 of Eq. 4 would be {sigma2:g}, with a={a} and a mean squared distance of "
            f"{mean:g}: scale the samples, or choose another a"
        )
    return sigma2


def _check_factor(a: float) -> None:
    if not 0 < a < math.inf:
        raise ValueError(f"a must be positive, got {a}: it scales sigma^2 of Eq. 4")


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
        with np.errstate(over="ignore", under="ignore"):
            weights = np.divide(neighbors.distances, -sigma2)
            np.exp(weights, out=weights)
    return Digraph(neighbors.indices, weights, sigma2)


def local_affinity_graph(neighbors: Neighbors, a: float = 1.0) -> Digraph:
    """Compute affinities with a bandwidth per sample.

    W(i, j) = s / s_i * exp(-|x_i - x_j|^2 / (2 a s_i^2)) if j is one of the K_s neighbours of i,
    where s_i is the distance from x_i to its neighbour number floor(K_s / 2), and s the smallest
    s_i, so that no weight is above 1; this factor has no effect on clusters. Where most neighbours
    are copies, s_i is 2^-20 times the median of the other s_i. If no neighbour number
    floor(K_s / 2) is at a distance above 0, every edge has weight 1.

    Examples
    --------
    >>> from jule.forward import nearest_neighbors
    >>> graph = local_affinity_graph(nearest_neighbors([[0.0], [1.0], [3.0]], k=1))
    >>> graph.weights.ravel().round(3).tolist()
    [0.607, 0.607, 0.303]
    """
    _check_factor(a)
    scales = np.sqrt(neighbors.distances[:, max(neighbors.k // 2, 1) - 1])
    if not (scales > 0).any():
        return Digraph(neighbors.indices, np.ones_like(neighbors.distances), math.nan)
    scales = np.maximum(scales, LEAST_SCALE * np.median(scales[scales > 0]))[:, None]
    # Not the squares of both, which may be out of range.
    with np.errstate(over="ignore"):
        weights = np.exp(-((np.sqrt(neighbors.distances) / scales) ** 2) / (2.0 * a))
    return Digraph(neighbors.indices, weights * (scales.min() / scales), math.nan)


def transition_graph(neighbors: Neighbors, a: float = 1.0) -> Digraph:
    """Compute the transition probabilities of a random walk that may stay where it is.

    P(i, j) = W(i, j) / (1 + sum over all k of W(i, k)) with W of Eq. 4. The 1 is the weight of the
    loop from i to itself, which is no edge of the graph. sigma^2 is doubled until every sample has
    at least weight 1e-5 on the edge to its nearest neighbour.

    Examples
    --------
    >>> from jule.forward import nearest_neighbors
    >>> graph = transition_graph(nearest_neighbors([[0.0], [1.0], [3.0]], k=1))
    >>> graph.weights.ravel().round(3).tolist()
    [0.378, 0.378, 0.119]
    """
    sigma2 = _global_sigma2(neighbors, a)
    farthest = float(neighbors.distances[:, 0].max())
    while sigma2 > 0 and math.exp(-farthest / sigma2) < LEAST_NEAREST_WEIGHT:
        sigma2 *= 2.0
    weights = weigh_neighbors(neighbors, sigma2).weights
    weights /= 1.0 + weights.sum(axis=1, keepdims=True)
    return Digraph(neighbors.indices, weights, sigma2)


KERNELS: dict[Kernel, Callable[[Neighbors, float], Digraph]] = {
    "global": affinity_graph,
    "local": local_affinity_graph,
    "transition": transition_graph,
}
