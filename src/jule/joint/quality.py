"""How well labels fit a representation, without true classes: silhouette and modularity."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jule.forward import Digraph
from jule.forward.assign import modularity

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
    return _silhouette(_centred(vectors), labels)


def _centred(vectors: NDArray[np.floating]) -> NDArray[np.float64]:
    """Return vectors minus their mean, so that no digits are lost to an offset."""
    centred: NDArray[np.float64] = vectors - vectors.mean(axis=0, dtype=np.float64)
    return centred


def _silhouette(vectors: NDArray[np.float64], labels: NDArray[np.integer]) -> float:
    _, labels, sizes = np.unique(labels, return_inverse=True, return_counts=True)
    if len(sizes) < 2:
        return 0.0
    every = np.arange(len(labels))
    squares = np.einsum("ij,ij->i", vectors, vectors)
    starts = np.cumsum(sizes) - sizes
    totals = np.add.reduceat(vectors[np.argsort(labels, kind="stable")], starts)  # per cluster
    sums = sizes * squares[:, None] - 2.0 * vectors @ totals.T + np.bincount(labels, squares)
    own = sums[every, labels]
    distances = np.maximum(sums, 0.0) / sizes
    distances[every, labels] = np.inf
    a, b = np.maximum(own, 0.0) / np.maximum(sizes[labels] - 1, 1), distances.min(axis=1)
    largest = np.maximum(a, b)
    is_defined = (sizes[labels] > 1) & (largest > 0)
    return float(np.where(is_defined, (b - a) / np.where(largest > 0, largest, 1.0), 0.0).mean())


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
        return _silhouette(self.vectors, labels[self.rows]), modularity(self.graph, labels)

    def score(self, labels: NDArray[np.integer]) -> float:
        """Return the silhouette plus the modularity of labels."""
        return sum(self.measure(labels))
