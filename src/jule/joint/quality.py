"""How well labels fit a representation, without true classes: silhouette and modularity."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jule.forward import Digraph
from jule.jit import njit

MOST_SAMPLES = 4_000  # whose silhouettes are computed; each is compared with every cluster


def silhouette(vectors: NDArray[np.floating], labels: NDArray[np.integer]) -> float:
    """Compute the mean silhouette of samples under squared Euclidean distances.

    The silhouette of a sample is (b - a) / max(a, b), where a is its mean distance from the other
    samples of its cluster, and b that from the samples of the nearest other cluster. It is 0 for a
    sample that is alone in its cluster. Mean squared distances from a cluster follow from the sums
    of its vectors, so that no two samples are ever compared. For unit vectors, they are twice the
    cosine distances, and the silhouettes are the same.

    References
    ----------
    P. Rousseeuw: Silhouettes: a graphical aid to the interpretation and validation of cluster
    analysis, Journal of Computational and Applied Mathematics 20, 1987.

    Examples
    --------
    >>> silhouette(np.array([[0.0], [1.0], [9.0]]), np.array([0, 0, 1])).__round__(3)
    0.657
    """
    return _silhouettes(_centred(vectors), [labels])[0]


def _centred(vectors: NDArray[np.floating]) -> NDArray[np.float64]:
    """Return vectors minus their mean, so that no digits are lost to an offset."""
    centred: NDArray[np.float64] = vectors - vectors.mean(axis=0, dtype=np.float64)
    return centred


def _silhouettes(vectors: NDArray[np.float64], cuts: Sequence[NDArray[np.integer]]) -> list[float]:
    """Return the mean silhouette of each of several clusterings of the same vectors.

    Sums of squared distances are computed once for the parts that all clusterings leave together,
    and added up: the cuts of a tree have hardly more parts than the finest of them has clusters.
    """
    levels = _refine(cuts)
    parts = levels[-1].parts
    order, sizes = np.argsort(parts, kind="stable"), np.bincount(parts)
    totals = np.add.reduceat(vectors[order], np.cumsum(sizes) - sizes)
    squares = np.einsum("ij,ij->i", vectors, vectors)
    # (sample, part): the sum of the squared distances of a sample from the samples of a part.
    sums = -2.0 * vectors @ totals.T
    sums += squares[:, None] * sizes
    sums += np.bincount(parts, squares)
    found = np.empty(len(levels))
    for place in reversed(range(len(levels))):
        level = levels[place]
        labels = level.clusters[level.parts]
        sizes = np.bincount(labels, minlength=level.n_clusters)
        coarser = np.zeros((len(vectors), level.n_coarser))
        each = np.empty(len(vectors))
        _add_up(sums, level.clusters, level.coarser, labels, sizes, coarser, each)
        found[place], sums = each.mean(), coarser
    return found.tolist()


@njit(cache=True)
def _add_up(
    sums: NDArray[np.float64],
    clusters: NDArray[np.int64],
    coarser: NDArray[np.int64],
    labels: NDArray[np.int64],
    sizes: NDArray[np.int64],
    coarser_sums: NDArray[np.float64],
    found: NDArray[np.float64],
) -> None:
    """Compute the silhouette of each sample, and its sums for the parts of the level before."""
    n_clusters = len(sizes)
    of_cluster = np.empty(n_clusters)
    for i in range(len(sums)):
        of_cluster[:] = 0.0
        for part in range(len(clusters)):
            of_cluster[clusters[part]] += sums[i, part]
            coarser_sums[i, coarser[part]] += sums[i, part]
        own = labels[i]
        found[i] = 0.0
        if sizes[own] < 2 or n_clusters < 2:
            continue
        nearest = np.inf
        for cluster in range(n_clusters):
            if cluster != own:
                nearest = min(nearest, of_cluster[cluster] / sizes[cluster])
        a, b = max(of_cluster[own], 0.0) / (sizes[own] - 1), max(nearest, 0.0)
        if max(a, b) > 0.0:
            found[i] = (b - a) / max(a, b)


def _modularities(graph: Digraph, cuts: Sequence[NDArray[np.integer]]) -> list[float]:
    """Return the modularity of each of several clusterings, from the affinities between parts."""
    finest = _refine(cuts)[-1].parts
    n_parts = int(finest.max()) + 1
    between = finest[:, None] * n_parts + finest[graph.indices]
    pairs, place = np.unique(between, return_inverse=True)
    weights = np.bincount(place.reshape(-1), graph.weights.reshape(-1))
    source, target = np.divmod(pairs, n_parts)
    first = np.zeros(n_parts, np.int64)
    first[finest] = np.arange(len(finest))  # a sample of each part
    total = float(weights.sum())
    found = []
    for labels in cuts:
        of_part = labels[first]
        from_, to = of_part[source], of_part[target]
        k = int(of_part.max()) + 1
        out_mass, in_mass = np.bincount(from_, weights, k), np.bincount(to, weights, k)
        inside = float(weights[from_ == to].sum())
        expected = float(out_mass @ in_mass)
        found.append(inside / total - expected / total**2 if total else 0.0)
    return found


@dataclass(frozen=True, eq=False)
class _Level:
    """The parts of the samples that a clustering and all before it leave together.

    Attributes
    ----------
    parts
        (n,) part of each sample.
    clusters, n_clusters
        (parts,) cluster of each part, without gaps, and how many there are.
    coarser, n_coarser
        (parts,) part of the level before that each part lies in, and how many there are.
    """

    parts: NDArray[np.int64]
    clusters: NDArray[np.int64]
    n_clusters: int
    coarser: NDArray[np.int64]
    n_coarser: int


def _refine(cuts: Sequence[NDArray[np.integer]]) -> list[_Level]:
    """Return the parts of the first clustering, of the first two, and so on."""
    parts = np.zeros(len(cuts[0]), np.int64)
    levels = []
    for labels in cuts:
        clusters, n_clusters = _without_gaps(labels.astype(np.int64))
        n_coarser = int(parts.max()) + 1
        finer, n_finer = _without_gaps(parts * n_clusters + clusters)
        of_part, before = np.zeros(n_finer, np.int64), np.zeros(n_finer, np.int64)
        of_part[finer], before[finer] = clusters, parts
        levels.append(_Level(finer, of_part, n_clusters, before, n_coarser))
        parts = finer
    return levels


def _without_gaps(numbers: NDArray[np.int64]) -> tuple[NDArray[np.int64], int]:
    """Return small numbers renumbered 0, 1, ..., and how many different ones there are."""
    occurs = np.zeros(int(numbers.max()) + 1, np.int64)
    occurs[numbers] = 1
    return (np.cumsum(occurs) - 1)[numbers], int(occurs.sum())


@dataclass(frozen=True, eq=False)
class Space:
    """A representation in which labels are scored.

    Attributes
    ----------
    graph
        The digraph W of all samples.
    rows
        (m,) the samples whose silhouettes are computed.
    vectors
        (m, d) their vectors, minus the mean.
    """

    graph: Digraph
    rows: NDArray[np.int64]
    vectors: NDArray[np.float64]

    @classmethod
    def of(cls, vectors: NDArray[np.floating], graph: Digraph) -> Space:
        """Return the space of vectors and their digraph.

        Examples
        --------
        >>> from jule.forward import affinity_graph, nearest_neighbors
        >>> Space.of(np.eye(3), affinity_graph(nearest_neighbors(np.eye(3), 1))).rows.tolist()
        [0, 1, 2]
        """
        n = len(vectors)
        rows = np.arange(n)
        if n > MOST_SAMPLES:
            rows = np.sort(np.random.default_rng(0).choice(n, MOST_SAMPLES, replace=False))
        return cls(graph, rows, _centred(vectors[rows]))

    def measure(self, labels: NDArray[np.integer]) -> tuple[float, float]:
        """Return the silhouette and the modularity of labels; their sum is the score.

        Both are at most 1. The silhouette looks at distances and tends to split clusters; the
        modularity looks at the graph of neighbours and tends to join them.

        Examples
        --------
        >>> from jule.forward import affinity_graph, nearest_neighbors
        >>> line = np.array([[0.0], [1.0], [8.0], [9.0]])
        >>> space = Space.of(line, affinity_graph(nearest_neighbors(line, 1)))
        >>> space.measure(np.array([0, 0, 1, 1]))[1], space.measure(np.array([0, 1, 0, 1]))[1]
        (0.5, -0.5)
        """
        return self.measure_all([labels])[0]

    def measure_all(self, cuts: Sequence[NDArray[np.integer]]) -> list[tuple[float, float]]:
        """Return the silhouette and the modularity of each of several clusterings.

        For cuts of a tree, it takes hardly longer than the finest of them alone.

        Examples
        --------
        >>> from jule.forward import affinity_graph, nearest_neighbors
        >>> line = np.array([[0.0], [1.0], [8.0], [9.0]])
        >>> space = Space.of(line, affinity_graph(nearest_neighbors(line, 1)))
        >>> cuts = [np.array([0, 0, 1, 1]), np.array([0, 0, 1, 2])]
        >>> space.measure_all(cuts) == [space.measure(labels) for labels in cuts]
        True
        """
        separations = _silhouettes(self.vectors, [labels[self.rows] for labels in cuts])
        return list(zip(separations, _modularities(self.graph, cuts), strict=True))
