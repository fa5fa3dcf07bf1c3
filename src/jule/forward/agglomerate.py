"""The whole forward pass: from vectors to a whole tree of merges."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Literal

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray

from jule.forward.affinity import affinity_graph
from jule.forward.first import (
    cluster_means,
    find_root,
    kmeans_clusters,
    nearest_neighbor_components,
)
from jule.forward.linkage import Update, merge_clusters
from jule.forward.neighbors import Method, Neighbors, nearest_neighbors
from jule.forward.prepare import as_vectors, refuse_all_identical
from jule.forward.tree import MergeTree

First = Literal["nearest", "kmeans"]
Progress = Callable[[str, float], None]

SAMPLES_A_FIRST_CLUSTER = 4  # the paper's average, for first clusters by K-means


def agglomerate(
    samples: ArrayLike,
    *,
    n_neighbors: int = 20,
    a: float = 1.0,
    first: First = "nearest",
    n_near: int = 5,
    lam: float = 1.0,
    update: Update = "exact",
    alpha: float = 0.0,
    n_clusters: int = 1,
    max_merges: int | None = None,
    method: Method = "exact",
    seed: int = 0,
    progress: Progress | None = None,
) -> MergeTree:
    """Cluster samples by graph degree linkage and give the tree of all merges.

    Parameters
    ----------
    samples
        Vectors (n, d) or images, prepared as wished (see `prepare`).
    n_neighbors
        K_s; shrinks to n - 1, with a warning, where there are fewer samples.
    a
        Scales sigma^2 of Eq. 4.
    first
        ``"nearest"``: nearest-neighbour components. ``"kmeans"``: K-means with n / 4 clusters.
    n_near, lam, update, alpha
        The merging criterion (Eq. 7; ``n_near=1`` is the plain one) and the way affinities are
        updated: see `merge_clusters`.
    n_clusters, max_merges
        Merging stops when so many clusters are left, or after so many merges of first clusters. By
        default it goes on to one cluster; where no two clusters have affinity any more, those
        whose means are nearest are joined.
    method
        Of the neighbour search: ``"exact"`` or ``"approximate"``.
    seed
        Of K-means and of the approximate search; nothing else has chance in it.
    progress
        Called now and then with the name of the stage and the share of it that is done.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> samples = np.concatenate([rng.normal(c, 0.1, (30, 2)) for c in (0, 3)])
    >>> agglomerate(samples).cut(2).tolist() == [0] * 30 + [1] * 30
    True
    """
    vectors = as_vectors(samples)
    refuse_all_identical(vectors)
    if n_clusters > len(vectors):
        raise ValueError(
            f"n_clusters={n_clusters} clusters cannot be made of n_samples={len(vectors)} samples"
        )
    neighbors = nearest_neighbors(
        vectors,
        _shrunk(n_neighbors, len(vectors)),
        method=method,
        seed=seed,
        progress=progress and partial(progress, "neighbours"),
    )
    if first == "nearest":
        labels = nearest_neighbor_components(neighbors)
    elif first == "kmeans":
        count = -(-len(vectors) // SAMPLES_A_FIRST_CLUSTER)
        labels = kmeans_clusters(vectors, count, seed)
    else:
        raise ValueError(f"unknown first clusters {first!r}: choose 'nearest' or 'kmeans'")
    merges, affinities = merge_clusters(
        affinity_graph(neighbors, a),
        labels,
        n_clusters=n_clusters,
        max_merges=max_merges,
        n_near=n_near,
        lam=lam,
        update=update,
        alpha=alpha,
        progress=progress and partial(progress, "merging"),
    )
    if progress is not None:
        progress("merging", 1.0)  # it may have ended early, or never begun
    wanted = 0 if max_merges is not None else int(labels.max()) + 1 - n_clusters - len(merges)
    return grow_tree(vectors, neighbors, labels, merges, affinities, max(wanted, 0))


def _shrunk(n_neighbors: int, n_samples: int) -> int:
    if n_neighbors < n_samples:
        return n_neighbors
    warnings.warn(
        f"n_neighbors={n_neighbors} (K_s) is more than {n_samples} samples allow: "
        f"using {n_samples - 1}",
        UserWarning,
        stacklevel=3,
    )
    return n_samples - 1


def grow_tree(
    vectors: NDArray[np.floating],
    neighbors: Neighbors,
    first: NDArray[np.integer],
    merges: NDArray[np.int64],
    affinities: NDArray[np.float64],
    n_joins: int,
) -> MergeTree:
    """Put the first clusters, their merges, and joins by distance together into one tree.

    Inside a first cluster samples join their nearest neighbours, nearest pairs first. `n_joins`
    clusters that merging left apart are then joined by the distance of their means.

    Examples
    --------
    >>> from jule.forward import nearest_neighbors
    >>> line = np.array([[0.0], [1.0], [8.0], [9.5]])
    >>> found = nearest_neighbors(line, k=1)
    >>> no_merges = np.empty((0, 2), np.int64)
    >>> labels = np.array([0, 0, 1, 1])
    >>> grow_tree(line, found, labels, no_merges, np.empty(0), 1).merges.tolist()
    [[0, 1], [2, 3], [4, 5]]
    """
    n, n_first = len(vectors), int(first.max()) + 1
    inside, top = _join_first_clusters(
        np.ascontiguousarray(neighbors.indices[:, 0]),
        np.argsort(neighbors.distances[:, 0], kind="stable"),
        first,
        n_first,
    )
    # Clusters are numbered 0 .. n_first - 1 and on by merge: give them the tree's numbers.
    node_of = np.concatenate([top, n + len(inside) + np.arange(len(merges) + n_joins)])
    joins = _join_by_distance(vectors, first, n_first, merges, n_joins)
    return MergeTree(
        n,
        np.concatenate([inside, node_of[merges], node_of[joins]]),
        np.concatenate([np.full(len(inside), np.nan), affinities, np.zeros(len(joins))]),
    )


@njit(cache=True)
def _join_first_clusters(nearest, by_distance, first, n_first):
    """Join the samples of every first cluster; gives the merges and each cluster's last node."""
    n = nearest.shape[0]
    parents = np.arange(n)
    node = np.arange(n)
    start = np.full(n_first, -1, np.int64)
    merges = np.empty((n - n_first, 2), np.int64)
    made = 0
    for sample in range(n - 1, -1, -1):
        start[first[sample]] = sample
    for step in range(2 * n):
        # Nearest neighbours first; then whatever of a cluster is still apart from its start.
        sample = by_distance[step] if step < n else step - n
        other = nearest[sample] if step < n else start[first[sample]]
        if first[sample] != first[other]:
            continue
        a, b = find_root(parents, sample), find_root(parents, other)
        if a != b:
            merges[made, 0], merges[made, 1] = node[a], node[b]
            parents[b] = a
            node[a] = n + made
            made += 1
    top = np.empty(n_first, np.int64)
    for cluster in range(n_first):
        top[cluster] = node[find_root(parents, start[cluster])]
    return merges, top


def _join_by_distance(
    vectors: NDArray[np.floating],
    first: NDArray[np.integer],
    n_first: int,
    merges: NDArray[np.int64],
    n_joins: int,
) -> NDArray[np.int64]:
    """Join clusters without affinity: the edges of the shortest tree over their means, in order."""
    if n_joins == 0:
        return np.empty((0, 2), np.int64)
    remaining, labels = np.unique(_after_merges(n_first, merges), return_inverse=True)
    ends, lengths = _shortest_tree(cluster_means(vectors, labels[first]).astype(np.float64))
    order = np.argsort(lengths, kind="stable")[:n_joins]
    node = remaining.copy()
    parents = np.arange(len(remaining))
    joins = np.empty((n_joins, 2), np.int64)
    for t, edge in enumerate(order):
        a, b = find_root(parents, ends[edge, 0]), find_root(parents, ends[edge, 1])
        joins[t] = node[a], node[b]
        parents[b] = a
        node[a] = n_first + len(merges) + t
    return joins


@njit(cache=True)
def _after_merges(n_first, merges):
    """Say which cluster every first cluster has become."""
    cluster_of = np.arange(n_first + merges.shape[0])
    for t in range(merges.shape[0] - 1, -1, -1):
        cluster_of[merges[t, 0]] = cluster_of[merges[t, 1]] = cluster_of[n_first + t]
    return cluster_of[:n_first]


@njit(cache=True)
def _shortest_tree(points):
    """Prim's algorithm over all pairs, one row of distances at a time."""
    n, d = points.shape
    ends = np.empty((n - 1, 2), np.int64)
    lengths = np.empty(n - 1, np.float64)
    distance = np.full(n, np.inf)
    nearest = np.zeros(n, np.int64)
    outside = np.ones(n, np.bool_)
    outside[0] = False
    newest = 0
    for step in range(n - 1):
        best = -1
        for point in range(n):
            if outside[point]:
                length = 0.0
                for place in range(d):
                    length += (points[point, place] - points[newest, place]) ** 2
                if length < distance[point]:
                    distance[point] = length
                    nearest[point] = newest
                if best < 0 or distance[point] < distance[best]:
                    best = point
        ends[step, 0], ends[step, 1] = nearest[best], best
        lengths[step] = distance[best]
        outside[best] = False
        newest = best
    return ends, lengths
