"""Which clusters lie around a sample: for new samples, and for how sure a label is."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from jule.forward.affinity import Digraph

AT_ONCE = 2**23  # products held at one time: 64 MiB


def cluster_affinities(
    new: NDArray[np.floating],
    samples: NDArray[np.floating],
    labels: NDArray[np.integer],
    *,
    sigma2: float,
    n_neighbors: int = 20,
) -> NDArray[np.float64]:
    """Give the share of affinity that every cluster has among a new sample's nearest neighbours.

    The weights are those of Eq. 4, exp(-|x - y|^2 / sigma^2), over the K_s nearest of the samples
    that were clustered; a row sums to 1. Far from everything the nearest neighbours still decide:
    weights are taken relative to the nearest one.

    Examples
    --------
    >>> old, labels = np.array([[0.0], [1.0], [9.0]]), np.array([0, 0, 1])
    >>> cluster_affinities(np.array([[8.5]]), old, labels, sigma2=1.0).round(3).tolist()
    [[0.0, 1.0]]
    """
    k = min(n_neighbors, len(samples))
    # In float64 the last digit of a share does not depend on the other samples of its block.
    new, samples = new.astype(np.float64), samples.astype(np.float64)
    half_norms = 0.5 * np.einsum("ij,ij->i", samples, samples)
    shares = np.zeros((len(new), int(labels.max()) + 1))
    rows = max(1, AT_ONCE // len(samples))
    for start in range(0, len(new), rows):
        block = new[start : start + rows]
        scores = half_norms - block @ samples.T  # half the squared distance, but for |x|^2 / 2
        nearest = np.argpartition(scores, k - 1, axis=1)[:, :k]
        distances = 2.0 * np.take_along_axis(scores, nearest, axis=1)
        distances -= distances.min(axis=1, keepdims=True)
        weights = np.exp(-distances / sigma2) if sigma2 > 0 else (distances == 0.0) * 1.0
        which = np.repeat(np.arange(start, start + len(block)), k)
        np.add.at(shares, (which, labels[nearest].ravel()), weights.ravel())
    total: NDArray[np.float64] = shares / shares.sum(axis=1, keepdims=True)
    return total


def label_confidence(graph: Digraph, labels: NDArray[np.integer]) -> NDArray[np.float64]:
    """Give the share of a sample's affinity that stays inside its own cluster, 0 .. 1.

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
    # Where all weights underflow to zero, neighbours count alike.
    share = inside / np.where(total > 0, total, 1.0)
    confidence: NDArray[np.float64] = np.where(total > 0, share, own.mean(axis=1))
    return confidence


def modularity(graph: Digraph, labels: NDArray[np.integer]) -> float:
    """Say how much more affinity stays inside the clusters than chance would leave there.

    The directed modularity of Leicht and Newman (2008), over the weights of W.

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
