"""AC-Link: agglomerative clustering by average linkage."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import fcluster

from jule.baselines._base import BaseClusterer
from jule.forward.init import find_root
from jule.forward.prepare import fit_range
from jule.jit import njit, prange
from jule.memory import check_memory

TILE = 64  # samples compared with as many others while both are in cache


class AverageLinkage(BaseClusterer):
    """Agglomerative clustering by the mean Euclidean distance between two clusters.

    Parameters
    ----------
    n_clusters
        Number of clusters, K.

    Attributes
    ----------
    labels_
        (n,) cluster of every sample, 0 .. n_clusters_ - 1.
    linkage_
        (n - 1, 4) the tree of all merges as a scipy linkage matrix, which
        `scipy.cluster.hierarchy.dendrogram` and similar functions take.
    n_clusters_
        Number of clusters. Exact copies share a cluster, so it is at most the number of different
        samples.

    Notes
    -----
    1. Compute the distances between all pairs of samples.
    2. Merge the two clusters with the smallest mean distance between their samples, until one is
       left. Chains of nearest neighbours find all merges in O(n^2); they are sorted afterwards.
    3. Undo the last K - 1 merges.

    The result is that of `scipy.cluster.hierarchy.linkage(samples, "average")`. The table of
    distances is computed faster, and merged in place rather than in a copy: n^2 / 2 values of the
    type of the samples, 2 GB for 30,000 samples in float32, where scipy needs 7 GB.

    References
    ----------
    R. Sokal and C. Michener, "A statistical method for evaluating systematic relationships",
    University of Kansas Science Bulletin, 1958.
    D. Müllner, "Modern hierarchical, agglomerative clustering algorithms", arXiv:1109.2378, 2011.

    Examples
    --------
    >>> model = AverageLinkage(n_clusters=2).fit([[0.0], [1.0], [5.0], [7.0]])
    >>> model.labels_.tolist()
    [0, 0, 1, 1]
    >>> model.linkage_[:, 2].tolist()  # the last: mean of 5, 7, 4 and 6
    [1.0, 2.0, 5.5]
    """

    linkage_: NDArray[np.float64]

    def __init__(self, n_clusters: int = 8) -> None:
        self.n_clusters = n_clusters

    def _is_always_needed(self) -> bool:
        return True  # for the tree

    def _cluster(self, samples: NDArray[np.floating], k: int) -> NDArray[np.int32]:
        self.linkage_ = average_linkage(samples)
        # By rank rather than height: a cut at a height that several merges share may leave fewer.
        ranks = self.linkage_.copy()
        ranks[:, 2] = np.arange(1, len(samples))
        return np.asarray(fcluster(ranks, len(samples) - k, "distance"), np.int32)


def average_linkage(samples: NDArray[np.floating]) -> NDArray[np.float64]:
    """Return the merges of average linkage as a scipy linkage matrix.

    Parameters
    ----------
    samples
        (n, d) samples. The distances have their type.

    Examples
    --------
    >>> average_linkage(np.array([[0.0], [1.0], [3.0]])).tolist()
    [[0.0, 1.0, 1.0, 2.0], [2.0, 3.0, 2.5, 3.0]]
    """
    n = len(samples)
    n_pairs = n * (n - 1) // 2
    check_memory(
        n_pairs * samples.itemsize,
        f"the table of distances between {n:,} samples, which GraphDegreeLinkage does without,",
    )
    vectors, exponent = fit_range(samples)
    distances = np.empty(n_pairs, samples.dtype)
    _fill_distances(np.ascontiguousarray(vectors), distances)
    pairs, heights = _merge_all(distances, n)
    order = np.argsort(heights, kind="stable")
    merges = np.empty((n - 1, 4))
    merges[:, 2] = np.ldexp(heights[order], exponent)
    _number_clusters(pairs[order], merges)
    return merges


@njit(cache=True, parallel=True, fastmath={"nsz", "contract", "reassoc"})
def _fill_distances(vectors: NDArray[np.floating], distances: NDArray[np.floating]) -> None:
    """Compute the distances between the pairs (0, 1), (0, 2), ..., (1, 2), ..., in this order."""
    n, d = vectors.shape
    n_tiles = (n + TILE - 1) // TILE
    for which in prange(n_tiles):
        # Threads get consecutive numbers; long and short rows of tiles alternate to share the work.
        tile = which // 2 if which % 2 == 0 else n_tiles - 1 - which // 2
        for start in range(tile * TILE, n, TILE):
            for a in range(tile * TILE, min(n, (tile + 1) * TILE)):
                offset = _offset(a, n)
                for b in range(max(start, a + 1), min(n, start + TILE)):
                    total = vectors[a, 0] - vectors[a, 0]  # 0 of their type
                    for feature in range(d):
                        difference = vectors[a, feature] - vectors[b, feature]
                        total += difference * difference
                    distances[offset + b] = np.sqrt(total)


@njit(cache=True, inline="always")
def _offset(a: int, n: int) -> int:
    """Return where the distances of sample a begin: that to b > a is at _offset(a, n) + b."""
    return a * n - a * (a + 1) // 2 - a - 1


@njit(cache=True)
def _merge_all(
    distances: NDArray[np.floating], n: int
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Merge clusters until one is left, in the order in which chains of neighbours find the pairs.

    The chain goes from each cluster to its nearest, until two are nearest to each other. The merged
    cluster takes the place of the second of the two in the table of distances.
    """
    pairs = np.empty((n - 1, 2), np.int64)
    heights = np.empty(n - 1)
    sizes = np.ones(n)
    active = np.arange(n)  # clusters that are left: the first n - merge
    chain = np.empty(n, np.int64)
    length = 0
    for merge in range(n - 1):
        if length == 0:
            chain[0] = active[0]
            length = 1
        while True:
            previous = chain[length - 2] if length > 1 else -1
            nearest, height = _nearest(
                distances, n, active[: n - merge], chain[length - 1], previous
            )
            if nearest == previous:
                break
            chain[length] = nearest
            length += 1
        a, b = min(previous, chain[length - 1]), max(previous, chain[length - 1])
        length -= 2
        pairs[merge] = a, b
        heights[merge] = height
        gap = np.searchsorted(active[: n - merge], a)
        active[gap : n - merge - 1] = active[gap + 1 : n - merge]
        _merge(distances, n, active[: n - merge - 1], a, b, sizes)
    return pairs, heights


@njit(cache=True)
def _nearest(
    distances: NDArray[np.floating], n: int, active: NDArray[np.int64], cluster: int, previous: int
) -> tuple[int, float]:
    """Return the nearest cluster and its distance; ties go to the previous one, then the first."""
    nearest, least = previous, np.inf
    if previous >= 0:
        low, high = min(cluster, previous), max(cluster, previous)
        least = np.float64(distances[_offset(low, n) + high])
    own = _offset(cluster, n)
    for other in active:
        if other == cluster:
            continue
        place = own + other if other > cluster else _offset(other, n) + cluster
        if distances[place] < least:
            nearest, least = other, np.float64(distances[place])
    return nearest, least


@njit(cache=True)
def _merge(
    distances: NDArray[np.floating],
    n: int,
    active: NDArray[np.int64],
    a: int,
    b: int,
    sizes: NDArray[np.float64],
) -> None:
    """Replace the distances to b by those to the union of a and b, weighted by their sizes."""
    total = sizes[a] + sizes[b]
    weight_a, weight_b = sizes[a] / total, sizes[b] / total
    sizes[b] = total
    for other in active:
        if other == b:
            continue
        to_a = _offset(min(a, other), n) + max(a, other)
        to_b = _offset(min(b, other), n) + max(b, other)
        distances[to_b] = weight_a * distances[to_a] + weight_b * distances[to_b]


@njit(cache=True)
def _number_clusters(pairs: NDArray[np.int64], merges: NDArray[np.float64]) -> None:
    """Fill in the numbers and sizes of the clusters: n, n + 1, ... in the order of the merges."""
    n = len(pairs) + 1
    parents = np.arange(2 * n - 1)
    sizes = np.ones(2 * n - 1)
    for merge in range(n - 1):
        a, b = find_root(parents, pairs[merge, 0]), find_root(parents, pairs[merge, 1])
        parents[a] = parents[b] = n + merge
        sizes[n + merge] = sizes[a] + sizes[b]
        merges[merge, 0], merges[merge, 1] = min(a, b), max(a, b)
        merges[merge, 3] = sizes[n + merge]
