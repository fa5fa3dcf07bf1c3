"""Score the outcomes: against true classes if they are known, otherwise from the samples alone."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from jule.comparison.process import Outcome
from jule.evaluation import accuracy, ari, nmi
from jule.forward import Digraph, affinity_graph, nearest_neighbors
from jule.forward.assign import modularity

N_NEIGHBORS = 20  # K_s of the graph W
MOST_IN_SILHOUETTE = 2000  # samples; it needs the distances between all pairs
NOISE = -1  # label of samples in no cluster


@dataclass(frozen=True, eq=False)
class Geometry:
    """The graph and the distances that internal scores are computed from.

    Attributes
    ----------
    graph
        The graph W of the nearest neighbours.
    rows
        (m,) indices of the samples on which the silhouette is computed, in order.
    distances
        (m, m) their Euclidean distances.
    """

    graph: Digraph
    rows: NDArray[np.intp]
    distances: NDArray[np.floating]


@dataclass(frozen=True, eq=False)
class Row:
    """The row of one method in the table.

    Attributes
    ----------
    method
        Name of the method.
    labels
        (n,) the clusters of its first seed; None if it failed.
    n_clusters
        Smallest and largest number of clusters over the seeds; noise does not count.
    noise
        Mean fraction of samples in no cluster.
    scores
        Mean and standard deviation of each score over the seeds.
    seeds
        Number of seeds that were finished.
    seconds
        Mean wall time of a fit.
    memory
        Peak memory in bytes; None if it is not known.
    reason
        Why the method failed; empty if it succeeded.
    """

    method: str
    labels: NDArray[np.int32] | None = field(repr=False)
    n_clusters: tuple[int, int]
    noise: float
    scores: Mapping[str, tuple[float, float]]
    seeds: int
    seconds: float
    memory: int | None
    reason: str


def make_geometry(
    vectors: NDArray[np.floating], graph: Digraph | None = None, *, seed: int = 0
) -> Geometry:
    """Compute what internal scores need, once for all methods.

    Parameters
    ----------
    vectors
        (n, d) samples.
    graph
        Their graph W, if there is one already.
    seed
        Random seed of the samples that are drawn for the silhouette.

    Examples
    --------
    >>> make_geometry(np.eye(3)).distances.shape
    (3, 3)
    """
    from sklearn.metrics import pairwise_distances

    n = len(vectors)
    if graph is None:
        graph = affinity_graph(nearest_neighbors(vectors, min(N_NEIGHBORS, n - 1)))
    rows = np.arange(n)
    if n > MOST_IN_SILHOUETTE:
        drawn = np.random.default_rng(seed).choice(n, MOST_IN_SILHOUETTE, replace=False)
        rows = np.sort(drawn)
    distances = pairwise_distances(vectors[rows])
    np.fill_diagonal(distances, 0.0)  # silhouette_score requires exact zeros
    return Geometry(graph, rows, distances)


def internal_scores(geometry: Geometry, labels: NDArray[np.integer]) -> dict[str, float]:
    """Compute scores that need no true classes: silhouette and modularity of W.

    Samples in no cluster count as a cluster of their own. The silhouette is NaN if it is not
    defined: for a single cluster, or if every sample is a cluster of its own.

    Examples
    --------
    >>> geometry = make_geometry(np.array([[0.0], [0.1], [9.0], [9.1]]))
    >>> found = internal_scores(geometry, np.array([0, 0, 1, 1]))
    >>> round(found["silhouette"], 3)
    0.989
    """
    from sklearn.metrics import silhouette_score

    numbers = np.unique(labels, return_inverse=True)[1]
    drawn = numbers[geometry.rows]
    silhouette = math.nan
    if 1 < len(np.unique(drawn)) < len(drawn):
        silhouette = float(silhouette_score(geometry.distances, drawn, metric="precomputed"))
    return {"silhouette": silhouette, "modularity": modularity(geometry.graph, numbers)}


def external_scores(true: NDArray, labels: NDArray[np.integer]) -> dict[str, float]:
    """Compute NMI and AC; samples in no cluster count as a cluster of their own.

    Examples
    --------
    >>> external_scores(np.array(["a", "a", "b"]), np.array([0, 0, -1]))
    {'nmi': 1.0, 'ac': 1.0}
    """
    return {"nmi": nmi(true, labels), "ac": accuracy(true, labels)}


def score_outcome(
    outcome: Outcome, *, true: NDArray | None = None, geometry: Geometry | None = None
) -> Row:
    """Return the row of a method: external scores with true classes, internal ones without.

    Examples
    --------
    >>> outcome = Outcome("mine", (np.array([0, 0, 1]), np.array([0, 1, 1])), (1.0, 2.0))
    >>> row = score_outcome(outcome, true=np.array([5, 5, 6]))
    >>> row.n_clusters, row.seconds, row.scores["ac"]
    ((2, 2), 1.5, (0.8333333333333333, 0.16666666666666669))
    """
    found: list[dict[str, float]] = []
    for labels in outcome.labels:
        if true is not None:
            found.append(external_scores(true, labels))
        elif geometry is not None:
            found.append(internal_scores(geometry, labels))
    scores = {
        name: _mean_and_spread([one[name] for one in found]) for name in (found[0] if found else ())
    }
    counts = [len(np.unique(labels[labels != NOISE])) for labels in outcome.labels]
    return Row(
        method=outcome.method,
        labels=outcome.labels[0] if outcome.labels else None,
        n_clusters=(min(counts, default=0), max(counts, default=0)),
        noise=float(np.mean([labels == NOISE for labels in outcome.labels])) if counts else 0.0,
        scores=scores,
        seeds=len(outcome.labels),
        seconds=float(np.mean(outcome.seconds)) if outcome.seconds else math.nan,
        memory=outcome.memory,
        reason=outcome.reason,
    )


def _mean_and_spread(values: Sequence[float]) -> tuple[float, float]:
    return float(np.mean(values)), float(np.std(values))  # NaN if one of them is


def sort_rows(rows: Iterable[Row], by: str) -> list[Row]:
    """Sort rows by a score, the largest first; rows without the score are last.

    Examples
    --------
    >>> rows = [
    ...     score_outcome(Outcome(name, (np.array(labels),)), true=np.array([0, 0, 1]))
    ...     for name, labels in (("bad", [0, 1, 1]), ("good", [0, 0, 1]))
    ... ]
    >>> [row.method for row in sort_rows(rows, "nmi")]
    ['good', 'bad']
    """
    return sorted(rows, key=lambda row: -row.scores.get(by, (-math.inf, 0.0))[0])


def agreement(labelings: Sequence[NDArray]) -> NDArray[np.float64]:
    """Return the adjusted Rand index of every pair of labellings.

    Examples
    --------
    >>> agreement([np.array([0, 0, 1, 1]), np.array([1, 1, 0, 0])]).tolist()
    [[1.0, 1.0], [1.0, 1.0]]
    """
    matrix = np.eye(len(labelings))
    for i, first in enumerate(labelings):
        for j, second in enumerate(labelings[:i]):
            matrix[i, j] = matrix[j, i] = ari(first, second)
    return matrix
