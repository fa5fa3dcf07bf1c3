"""Affinities between samples and clusters: assignment, confidence and modularity."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from jule.forward.affinity import Digraph
from jule.forward.init import cluster_means

BLOCK_CELLS = 2**23  # products per block: 64 MiB


def cluster_affinities(
    new: NDArray[np.floating],
    samples: NDArray[np.floating],
    labels: NDArray[np.integer],
    *,
    sigma2: float,
    n_neighbors: int = 20,
) -> NDArray[np.float64]:
    """Return the fraction of each new sample's affinity that belongs to each cluster.

    The affinities are those of Eq. 4, exp(-|x - y|^2 / sigma^2), with the K_s nearest of the
    clustered samples. Every row sums to 1. Weights are relative to that of the nearest neighbour,
    so that they do not vanish far from all samples.

    Parameters
    ----------
    new
        (m, d) samples to assign.
    samples, labels
        (n, d) clustered samples and their clusters.
    sigma2
        sigma^2 of Eq. 4.
    n_neighbors
        K_s.

    Returns
    -------
    NDArray
        (m, k) fractions.

    Examples
    --------
    >>> old, labels = np.array([[0.0], [1.0], [9.0]]), np.array([0, 0, 1])
    >>> cluster_affinities(np.array([[8.5]]), old, labels, sigma2=1.0).round(3).tolist()
    [[0.0, 1.0]]
    """
    k = min(n_neighbors, len(samples))
    # In float64 the result does not depend on the other samples of the block.
    new, samples = new.astype(np.float64), samples.astype(np.float64)
    half_norms = 0.5 * np.einsum("ij,ij->i", samples, samples)
    shares = np.zeros((len(new), int(labels.max()) + 1))
    rows = max(1, BLOCK_CELLS // len(samples))
    for start in range(0, len(new), rows):
        block = new[start : start + rows]
        scores = half_norms - block @ samples.T  # half the squared distance, without |x|^2 / 2
        nearest = np.argpartition(scores, k - 1, axis=1)[:, :k]
        distances = 2.0 * np.take_along_axis(scores, nearest, axis=1)
        distances -= distances.min(axis=1, keepdims=True)
        weights = np.exp(-distances / sigma2) if sigma2 > 0 else (distances == 0.0) * 1.0
        which = np.repeat(np.arange(start, start + len(block)), k)
        np.add.at(shares, (which, labels[nearest].ravel()), weights.ravel())
    total: NDArray[np.float64] = shares / shares.sum(axis=1, keepdims=True)
    return total


def label_confidence(graph: Digraph, labels: NDArray[np.integer]) -> NDArray[np.float64]:
    """Return the fraction of each sample's affinity that belongs to its own cluster.

    Examples
    --------
    >>> from jule.forward import affinity_graph, nearest_neighbors
    >>> graph = affinity_graph(nearest_neighbors([[0.0], [1.0], [8.0], [9.0]], k=1))
    >>> label_confidence(graph, np.array([0, 0, 0, 1])).tolist()
    [1.0, 1.0, 0.0, 0.0]
    """
    own = labels[graph.indices] == labels[:, None]
    total = graph.weights.sum(axis=1)
    inside = (graph.weights * own).sum(axis=1)
    # If all weights underflow to zero, all neighbours have the same weight.
    fraction = inside / np.where(total > 0, total, 1.0)
    confidence: NDArray[np.float64] = np.where(total > 0, fraction, own.mean(axis=1))
    return confidence


def modularity(graph: Digraph, labels: NDArray[np.integer]) -> float:
    """Compute the directed modularity of a clustering in the graph W (Leicht and Newman, 2008).

    It compares the affinity inside the clusters with its expectation for random edges.

    Examples
    --------
    >>> from jule.forward import affinity_graph, nearest_neighbors
    >>> graph = affinity_graph(nearest_neighbors([[0.0], [1.0], [8.0], [9.0]], k=1))
    >>> modularity(graph, np.array([0, 0, 1, 1])), modularity(graph, np.array([0, 0, 0, 0]))
    (0.5, 0.0)
    """
    k = int(labels.max()) + 1
    total = float(graph.weights.sum())
    if total == 0:
        return 0.0
    inside = float((graph.weights * (labels[graph.indices] == labels[:, None])).sum())
    out_mass = np.bincount(labels, graph.weights.sum(axis=1), k)
    in_mass = np.bincount(labels[graph.indices].ravel(), graph.weights.ravel(), k)
    return inside / total - float(out_mass @ in_mass) / total**2


def centre_distances(
    vectors: NDArray[np.floating], labels: NDArray[np.integer]
) -> NDArray[np.float64]:
    """Return the squared distance of every sample from the mean of its cluster.

    The smaller the distance, the more typical the sample is of its cluster.

    Examples
    --------
    >>> centre_distances(np.array([[0.0], [2.0], [7.0]]), np.array([0, 0, 1])).tolist()
    [1.0, 1.0, 0.0]
    """
    centres = cluster_means(vectors, labels).astype(np.float64)
    distances = np.empty(len(vectors))
    rows = max(1, BLOCK_CELLS // max(1, vectors.shape[1]))
    for start in range(0, len(vectors), rows):
        gap = vectors[start : start + rows] - centres[labels[start : start + rows]]
        distances[start : start + rows] = np.einsum("ij,ij->i", gap, gap)
    return distances
