"""SC-NJW: the spectral clustering of Ng, Jordan and Weiss."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import check_random_state

from jule.baselines._base import BaseClusterer, Preset
from jule.baselines._checks import check_count, check_not_negative, check_positive
from jule.baselines._eigenvectors import leading_eigenvectors
from jule.baselines._rounding import round_by_kmeans
from jule.baselines._spectral import (
    Graph,
    Matrix,
    check_graph,
    find_neighbors,
    is_dense,
    normalize,
    squared_distances,
    symmetric_graph,
    unit_rows,
)
from jule.forward import Neighbors
from jule.forward.prepare import fit_range

NEIGHBOR_SCALE = 0.5  # in a neighbour graph, whose mean distance is small itself


class NJWSpectralClustering(BaseClusterer):
    """NJW spectral clustering: K-means on the leading eigenvectors, rows scaled to unit length.

    Parameters
    ----------
    n_clusters
        Number of clusters, K.
    graph
        Which pairs of samples are compared: ``"dense"`` for all pairs, ``"neighbors"`` for nearest
        neighbours, ``"auto"`` for all pairs up to 12,000 samples and neighbours beyond.
    n_neighbors
        Number of neighbours of each sample in the neighbour graph.
    scale
        Width of the Gaussian kernel: exp(-D / (scale x mean D)), where D is the squared distance
        and the mean is over the pairs of the graph. Of several values, the one with the tightest
        clusters is kept. None means the preset's in the dense graph, and 0.5 in the neighbour
        graph.
    self_affinity
        Affinity of each sample to itself, the diagonal of the matrix. None means the preset's.
    n_init
        Number of runs of K-means. None means the preset's.
    preset
        Values of the parameters that are None: ``"original"`` (`scale` 0.02, 0.05 and 0.1,
        `self_affinity` 0, `n_init` 10) or ``"jule-paper"`` (0.05, 1 and 1), as in the tables of
        the JULE paper.
    random_state
        Random seed of K-means.

    Attributes
    ----------
    labels_
        (n,) cluster of every sample, 0 .. n_clusters_ - 1.
    n_clusters_
        Number of clusters.
    scale_
        The value of `scale` that was kept; not set if there is nothing to compute, as for 1
        cluster.

    Notes
    -----
    1. A_ij = exp(-D_ij / (scale x mean D)). In the neighbour graph, A_ij is 0 unless i is among
       the neighbours of j or j among those of i.
    2. N_ij = A_ij / sqrt(d_i d_j), where d are the row sums of A.
    3. The K eigenvectors of N with the largest eigenvalues, as columns.
    4. Rows to unit length.
    5. K-means on the rows.

    The neighbour graph is not part of the original. The dense graph needs two n x n tables if
    several scales are tried and one otherwise.

    References
    ----------
    A. Ng, M. Jordan, Y. Weiss: On spectral clustering: analysis and an algorithm. NIPS 2001.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> angles = rng.uniform(0, 2 * np.pi, 200)
    >>> rings = np.repeat([1.0, 3.0], 100)[:, None] * np.stack([np.cos(angles), np.sin(angles)], 1)
    >>> labels = NJWSpectralClustering(2).fit_predict(rings)
    >>> labels[:100].max().item(), labels[100:].min().item()
    (0, 1)
    """

    scale_: float

    _presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "original": {"scale": (0.02, 0.05, 0.1), "self_affinity": 0.0, "n_init": 10},
        "jule-paper": {"scale": 0.05, "self_affinity": 1.0, "n_init": 1},
    }

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        graph: Graph = "auto",
        n_neighbors: int = 7,
        scale: float | Sequence[float] | None = None,
        self_affinity: float | None = None,
        n_init: int | None = None,
        preset: Preset = "original",
        random_state: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.graph = graph
        self.n_neighbors = n_neighbors
        self.scale = scale
        self.self_affinity = self_affinity
        self.n_init = n_init
        self.preset = preset
        self.random_state = random_state

    def _check_parameters(self, k: int) -> None:
        super()._check_parameters(k)
        settings = self._settings()
        check_graph(self.graph, self.n_neighbors)
        check_count(settings["n_init"], "n_init")
        check_not_negative(settings["self_affinity"], "self_affinity")
        _check_scales(settings["scale"])

    def _cluster(self, samples: NDArray[np.floating], k: int) -> NDArray[np.int32]:
        settings = self._settings()
        random_state = check_random_state(self.random_state)
        samples, _ = fit_range(samples)
        tightest = np.inf
        for scale, affinity in self._affinities(samples, settings):
            normalized = normalize(affinity, affinity.sum(axis=1))
            rows = unit_rows(leading_eigenvectors(normalized, k))
            found = round_by_kmeans(rows, k, n_init=settings["n_init"], random_state=random_state)
            scatter = within_scatter(rows, found)
            if scatter < tightest:
                tightest, labels, self.scale_ = scatter, found, scale
            del affinity, normalized  # before the next ones are made
        return labels

    def _affinities(
        self, samples: NDArray[np.floating], settings: dict[str, Any]
    ) -> Iterator[tuple[float, Matrix]]:
        """Yield every scale with its affinities (step 1)."""
        own = float(settings["self_affinity"])
        if is_dense(self.graph, len(samples)):
            scales = _check_scales(settings["scale"])
            distances = squared_distances(samples, n_tables=min(len(scales), 2))
            for scale in scales:
                out = distances if scale == scales[-1] else np.empty_like(distances)
                yield scale, dense_gaussian(distances, scale, own, out)
        else:
            neighbors = find_neighbors(samples, self.n_neighbors)
            for scale in _check_scales(NEIGHBOR_SCALE if self.scale is None else self.scale):
                yield scale, neighbor_gaussian(neighbors, scale, own)


def dense_gaussian(
    distances: NDArray[np.float64], scale: float, own: float, out: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return exp(-D / (scale x mean D)) with a given diagonal.

    Parameters
    ----------
    distances
        (n, n) squared distances, D.
    scale
        Width of the kernel.
    own
        The diagonal.
    out
        Where the result is written; it may be `distances` itself.

    Examples
    --------
    >>> distances = np.array([[0.0, 2.0], [2.0, 0.0]])
    >>> dense_gaussian(distances, 2.0, 0.0, distances).round(3).tolist()
    [[0.0, 0.368], [0.368, 0.0]]
    """
    np.divide(distances, -scale * distances.mean(), out=out)
    np.exp(out, out=out)
    np.fill_diagonal(out, own)
    return out


def neighbor_gaussian(neighbors: Neighbors, scale: float, own: float) -> sparse.csr_array:
    """Return exp(-D / (scale x mean D)) between neighbours with a given diagonal.

    Parameters
    ----------
    neighbors
        The neighbours of every sample. The mean is over their squared distances.
    scale
        Width of the kernel.
    own
        The diagonal.

    Examples
    --------
    >>> from jule.forward import nearest_neighbors
    >>> neighbors = nearest_neighbors([[0.0], [1.0], [2.0]], 1)
    >>> neighbor_gaussian(neighbors, 1.0, 0.0).toarray().round(3).tolist()
    [[0.0, 0.368, 0.0], [0.368, 0.0, 0.368], [0.0, 0.368, 0.0]]
    """
    # If every sample has enough copies, all distances are 0; all weights are then 1.
    width = scale * neighbors.distances.mean() or 1.0
    graph = symmetric_graph(neighbors.indices, np.exp(-neighbors.distances / width))
    return sparse.csr_array(graph + own * sparse.eye_array(len(neighbors))) if own else graph


def within_scatter(rows: NDArray[np.floating], labels: NDArray[np.integer]) -> float:
    """Return the sum of squared distances of all rows to the means of their clusters.

    Examples
    --------
    >>> within_scatter(np.array([[0.0], [2.0], [5.0]]), np.array([0, 0, 1]))
    2.0
    """
    scatter = 0.0
    for label in np.unique(labels):
        members = rows[labels == label]
        scatter += float(np.square(members - members.mean(axis=0)).sum())
    return scatter


def _check_scales(scale: float | Sequence[float]) -> list[float]:
    values = [check_positive(value, "scale") for value in np.atleast_1d(scale).tolist()]
    scales = list(dict.fromkeys(values))
    if not scales:
        raise ValueError("scale must be a positive number, or several, got none")
    return scales
