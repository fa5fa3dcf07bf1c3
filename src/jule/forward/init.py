"""Initial clusters: a fast over-clustering from which merging starts."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from jule.forward.neighbors import Neighbors
from jule.forward.prepare import fit_range
from jule.jit import njit

MAX_ITER = 10  # of K-means; enough for an over-clustering


def nearest_neighbor_components(neighbors: Neighbors) -> NDArray[np.int32]:
    """Return the connected components of the nearest-neighbour graph as labels.

    This is the initialisation of the paper. A component has at least two samples; components are
    numbered by their first sample.

    Examples
    --------
    >>> from jule.forward import nearest_neighbors
    >>> nearest_neighbor_components(nearest_neighbors([[0.0], [1.0], [8.0], [9.0]], k=1)).tolist()
    [0, 0, 1, 1]
    """
    labels: NDArray[np.int32] = components(np.ascontiguousarray(neighbors.indices[:, 0]))
    return labels


@njit(cache=True)
def find_root(parents, node):
    """Return the root of a node in a disjoint-set forest, halving the path to it."""
    while parents[node] != node:
        parents[node] = parents[parents[node]]
        node = parents[node]
    return node


@njit(cache=True)
def components(nearest):
    """Label the components of the graph i -> nearest[i], numbered by their first member."""
    n = nearest.shape[0]
    parents = np.arange(n).astype(np.int32)
    for sample in range(n):
        a = find_root(parents, sample)
        b = find_root(parents, nearest[sample])
        # The smaller index becomes the root, so that a root is the first sample of its component.
        parents[max(a, b)] = min(a, b)
    labels = np.empty(n, np.int32)
    count = 0
    for sample in range(n):
        root = find_root(parents, sample)
        if root == sample:
            labels[sample] = count
            count += 1
        else:
            labels[sample] = labels[root]
    return labels


def kmeans_clusters(
    vectors: NDArray[np.floating], n_clusters: int, seed: int = 0
) -> NDArray[np.int32]:
    """Return initial clusters found by K-means, the paper's alternative initialisation.

    Lloyd's algorithm starts from `n_clusters` samples drawn at random. Clusters that become empty
    are dropped, and the others are numbered by their first sample.

    Examples
    --------
    >>> kmeans_clusters(np.array([[0.0], [1.0], [8.0], [9.0]]), 2, seed=1).tolist()
    [0, 0, 1, 1]
    """
    n = len(vectors)
    if not 1 <= n_clusters <= n:
        raise ValueError(f"n_clusters must be between 1 and n_samples = {n}, got {n_clusters}")
    vectors, _ = fit_range(vectors)
    centres = vectors[np.random.default_rng(seed).choice(n, n_clusters, replace=False)]
    labels = _nearest_centre(vectors, centres)
    for _ in range(MAX_ITER):
        centres = cluster_means(vectors, np.unique(labels, return_inverse=True)[1])
        moved = _nearest_centre(vectors, centres)
        if np.array_equal(moved, labels):
            break
        labels = moved
    return number_by_first_sample(labels)


def _nearest_centre(
    vectors: NDArray[np.floating], centres: NDArray[np.floating]
) -> NDArray[np.int64]:
    half_norms = 0.5 * np.einsum("ij,ij->i", centres, centres)
    rows = max(1, 2**24 // len(centres))  # blocks of at most 16 million products
    blocks = [
        (half_norms - vectors[start : start + rows] @ centres.T).argmin(axis=1)
        for start in range(0, len(vectors), rows)
    ]
    return np.concatenate(blocks)


def cluster_means(
    vectors: NDArray[np.floating], labels: NDArray[np.integer]
) -> NDArray[np.floating]:
    """Return the mean vector of every cluster 0, 1, ..., max(labels).

    Examples
    --------
    >>> cluster_means(np.array([[0.0], [2.0], [5.0]]), np.array([0, 0, 1])).ravel().tolist()
    [1.0, 5.0]
    """
    by_cluster = np.argsort(labels, kind="stable")
    sizes = np.bincount(labels)
    ends = np.cumsum(sizes)
    means = np.empty((len(sizes), vectors.shape[1]), vectors.dtype)
    for cluster, (size, end) in enumerate(zip(sizes.tolist(), ends.tolist(), strict=True)):
        members = vectors[by_cluster[end - size : end]]
        means[cluster] = members.sum(axis=0, dtype=np.float64) / size
    return means


def number_by_first_sample(labels: NDArray[np.integer]) -> NDArray[np.int32]:
    """Renumber clusters 0, 1, ... in the order of their first samples.

    Examples
    --------
    >>> number_by_first_sample(np.array([7, 3, 7, 5])).tolist()
    [0, 1, 0, 2]
    """
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    rank = np.empty(len(first), np.int32)
    rank[np.argsort(first)] = np.arange(len(first), dtype=np.int32)
    return rank[inverse]
