"""The complete forward pass: from vectors to the tree of all merges."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jule.forward.affinity import KERNELS, Kernel
from jule.forward.constraints import allowed_joins
from jule.forward.few import FEW, few_spanning_tree
from jule.forward.init import (
    cluster_means,
    find_root,
    kmeans_clusters,
    nearest_neighbor_components,
)
from jule.forward.linkage import Linkage, Update, merge_clusters
from jule.forward.neighbors import Neighbors
from jule.forward.prepare import as_vectors, check_not_identical, fit_range
from jule.forward.search import Method, nearest_neighbors
from jule.forward.tree import MergeTree
from jule.jit import njit

Init = Literal["nearest", "kmeans"]
INITS: tuple[Init, ...] = ("nearest", "kmeans")
Progress = Callable[[str, float], None]

SAMPLES_PER_INITIAL_CLUSTER = 4  # on average, for initial clusters by K-means; as in the paper


def agglomerate(
    samples: ArrayLike,
    *,
    n_neighbors: int = 20,
    a: float = 1.0,
    kernel: Kernel = "global",
    init: Init = "nearest",
    n_near: int = 5,
    lam: float = 1.0,
    update: Update = "exact",
    alpha: float = 0.0,
    linkage: Linkage = "degree",
    n_clusters: int = 1,
    max_merges: int | None = None,
    method: Method = "exact",
    seed: int = 0,
    progress: Progress | None = None,
) -> MergeTree:
    """Cluster samples by linkage on their neighbour graph and return the tree of all merges.

    Parameters
    ----------
    samples
        Vectors (n, d) or images, already scaled (see `prepare`).
    n_neighbors
        K_s, the number of neighbours. It is reduced to n - 1, with a warning, if there are fewer
        samples.
    a
        Factor of sigma^2 in Eq. 4.
    kernel
        Weights of the graph: ``"global"`` (one sigma^2, Eq. 4: see `affinity_graph`), ``"local"``
        (a bandwidth per sample: see `local_affinity_graph`) or ``"transition"`` (probabilities of
        a random walk: see `transition_graph`).
    init
        Initial clusters. ``"nearest"``: connected components of the nearest-neighbour graph.
        ``"kmeans"``: K-means with n / 4 clusters.
    n_near, lam, update, alpha, linkage
        Merging criterion (Eq. 7), affinities of clusters and their update: see `merge_clusters`.
    n_clusters, max_merges
        Merging stops at this number of clusters, or after this number of merges of initial
        clusters. By default it continues to one cluster. If no two clusters have affinity, those
        with the nearest means are joined.
    method
        Neighbour search: ``"exact"`` or ``"approximate"``.
    seed
        Random seed of K-means and of the approximate search.
    progress
        Called from time to time with the name of the stage and the fraction of it that is done.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> samples = np.concatenate([rng.normal(c, 0.1, (30, 2)) for c in (0, 3)])
    >>> agglomerate(samples).cut(2).tolist() == [0] * 30 + [1] * 30
    True
    """
    if kernel not in KERNELS:
        raise ValueError(f"unknown kernel {kernel!r}: choose one of {', '.join(KERNELS)}")
    vectors = as_vectors(samples)
    check_not_identical(vectors)
    vectors, _ = fit_range(vectors)  # the tree does not depend on it
    if n_clusters > len(vectors):
        raise ValueError(
            f"n_clusters={n_clusters} clusters cannot be made of n_samples={len(vectors)} samples"
        )
    neighbors = nearest_neighbors(
        vectors,
        _limit_n_neighbors(n_neighbors, len(vectors)),
        method=method,
        seed=seed,
        progress=progress and partial(progress, "neighbours"),
    )
    if init == "nearest":
        labels = nearest_neighbor_components(neighbors)
    elif init == "kmeans":
        count = -(-len(vectors) // SAMPLES_PER_INITIAL_CLUSTER)
        labels = kmeans_clusters(vectors, count, seed)
    else:
        raise ValueError(f"unknown init {init!r}: choose one of {', '.join(INITS)}")
    merges, affinities = merge_clusters(
        KERNELS[kernel](neighbors, a),
        labels,
        n_clusters=n_clusters,
        max_merges=max_merges,
        n_near=n_near,
        lam=lam,
        update=update,
        alpha=alpha,
        linkage=linkage,
        progress=progress and partial(progress, "merging"),
    )
    if progress is not None:
        progress("merging", 1.0)  # merging may have stopped early
    missing = 0 if max_merges is not None else int(labels.max()) + 1 - n_clusters - len(merges)
    return grow_tree(vectors, neighbors, labels, merges, affinities, max(missing, 0))


def _limit_n_neighbors(n_neighbors: int, n_samples: int) -> int:
    if n_neighbors < n_samples:
        return n_neighbors
    warnings.warn(
        f"n_neighbors={n_neighbors} (K_s) must be less than n_samples={n_samples}: "
        f"using {n_samples - 1}",
        UserWarning,
        stacklevel=3,
    )
    return n_samples - 1


def grow_tree(
    vectors: NDArray[np.floating],
    neighbors: Neighbors,
    initial: NDArray[np.integer],
    merges: NDArray[np.int64],
    affinities: NDArray[np.float64],
    n_joins: int,
    apart: NDArray[np.integer] | None = None,
) -> MergeTree:
    """Build one tree from the initial clusters, their merges, and joins by distance.

    Within an initial cluster, samples join their nearest neighbours in order of distance. After
    the merges, `n_joins` more joins follow, of the clusters with the nearest means.

    Parameters
    ----------
    vectors
        (n, d) samples.
    neighbors
        Their nearest neighbours.
    initial
        (n,) initial cluster of every sample, 0 .. c-1.
    merges, affinities
        Merges of the initial clusters, as `merge_clusters` returns them.
    n_joins
        Number of joins of clusters without affinity.
    apart
        (m, 2) pairs of samples that are kept apart; joins of their clusters come last.

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
    n, n_initial = len(vectors), int(initial.max()) + 1
    inside, top = _merge_within_initial(
        np.ascontiguousarray(neighbors.indices[:, 0]),
        np.argsort(neighbors.distances[:, 0], kind="stable"),
        initial,
        n_initial,
    )
    # Translate numbers of clusters, as in `merges`, into nodes of the tree.
    node_of = np.concatenate([top, n + len(inside) + np.arange(len(merges) + n_joins)])
    joins, n_forced = join_by_distance(vectors, initial, n_initial, merges, n_joins, apart)
    return MergeTree(
        n,
        np.concatenate([inside, node_of[merges], node_of[joins]]),
        np.concatenate([np.full(len(inside), np.nan), affinities, np.zeros(len(joins))]),
        n_forced=n_forced,
    )


@njit(cache=True)
def _merge_within_initial(nearest, by_distance, initial, n_initial):
    """Join the samples of each initial cluster; returns the merges and the top node of each."""
    n = nearest.shape[0]
    parents = np.arange(n)
    node = np.arange(n)
    start = np.full(n_initial, -1, np.int64)
    merges = np.empty((n - n_initial, 2), np.int64)
    made = 0
    for sample in range(n - 1, -1, -1):
        start[initial[sample]] = sample
    for step in range(2 * n):
        # Nearest neighbours first, then samples not yet connected to the first of their cluster.
        sample = by_distance[step] if step < n else step - n
        other = nearest[sample] if step < n else start[initial[sample]]
        if initial[sample] != initial[other]:
            continue
        a, b = find_root(parents, sample), find_root(parents, other)
        if a != b:
            merges[made, 0], merges[made, 1] = node[a], node[b]
            parents[b] = a
            node[a] = n + made
            made += 1
    top = np.empty(n_initial, np.int64)
    for cluster in range(n_initial):
        top[cluster] = node[find_root(parents, start[cluster])]
    return merges, top


def join_by_distance(
    vectors: NDArray[np.floating],
    initial: NDArray[np.integer],
    n_initial: int,
    merges: NDArray[np.int64],
    n_joins: int,
    apart: NDArray[np.integer] | None = None,
) -> tuple[NDArray[np.int64], int]:
    """Join clusters without affinity along the minimum spanning tree of their means.

    Clusters with samples that are kept apart are joined last; the second value is the number of
    such joins.
    """
    if n_joins == 0:
        return np.empty((0, 2), np.int64), 0
    vectors, _ = fit_range(vectors)
    remaining, labels = np.unique(_clusters_after(n_initial, merges), return_inverse=True)
    means = cluster_means(vectors, labels[initial]).astype(np.float64)
    spanning_tree = few_spanning_tree if len(means) <= FEW else _minimum_spanning_tree
    ends, lengths = spanning_tree(means)
    edges = ends[np.argsort(lengths, kind="stable")]
    n_forced = 0
    if apart is not None and len(apart):
        found, n_forced = allowed_joins(means, edges, labels[initial[apart]])
        n_forced = max(0, n_forced - (len(found) - n_joins))
        edges = np.array(found, np.int64)
    node = remaining.copy()
    parents = list(range(len(remaining)))

    def root(cluster: int) -> int:
        while parents[cluster] != cluster:
            parents[cluster] = parents[parents[cluster]]
            cluster = parents[cluster]
        return cluster

    joins = np.empty((n_joins, 2), np.int64)
    for t, (one, other) in enumerate(edges[:n_joins].tolist()):
        a, b = root(one), root(other)
        joins[t] = node[a], node[b]
        parents[b] = a
        node[a] = n_initial + len(merges) + t
    return joins, n_forced


def _clusters_after(n_initial: int, merges: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the final cluster of every initial cluster."""
    cluster_of = list(range(n_initial + len(merges)))
    for made, (one, other) in zip(reversed(cluster_of), reversed(merges.tolist()), strict=False):
        cluster_of[one] = cluster_of[other] = made
    return np.array(cluster_of[:n_initial])


@njit(cache=True)
def _minimum_spanning_tree(points):
    """Compute the tree by Prim's algorithm, with one row of distances at a time."""
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
                for feature in range(d):
                    length += (points[point, feature] - points[newest, feature]) ** 2
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
