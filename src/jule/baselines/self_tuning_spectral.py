"""SC-ST: self-tuning spectral clustering."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import check_random_state

from jule.baselines._base import BaseClusterer, Preset
from jule.baselines._checks import check_count, check_not_negative
from jule.baselines._cosine_kmeans import cosine_kmeans
from jule.baselines._eigenvectors import leading_eigenvectors
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


class SelfTuningSpectralClustering(BaseClusterer):
    """Spectral clustering with one kernel width per sample, taken from its neighbourhood.

    Parameters
    ----------
    n_clusters
        Number of clusters, K.
    graph
        Which pairs of samples are compared: ``"dense"`` for all pairs, ``"neighbors"`` for nearest
        neighbours, ``"auto"`` for all pairs up to 12,000 samples and neighbours beyond.
    n_neighbors
        Number of neighbours of each sample in the neighbour graph.
    scale_neighbor
        Which neighbour sets the width of the kernel: the distance to the 7th neighbour by default.
    min_width
        Lower bound of the product s_i s_j of the widths, in squared units of the samples. None
        means the preset's.
    n_init
        Number of starts of K-means.
    preset
        Value of `min_width` if it is None: ``"original"`` (0) or ``"jule-paper"`` (0.004, meant
        for samples of unit length), as in the tables of the JULE paper.
    random_state
        Random seed of K-means.

    Attributes
    ----------
    labels_
        (n,) cluster of every sample, 0 .. n_clusters_ - 1.
    n_clusters_
        Number of clusters.

    Notes
    -----
    1. s_i^2 = squared distance D of sample i to its `scale_neighbor`-th neighbour.
    2. A_ij = exp(-D_ij / (s_i s_j)), and A_ii = 0. In the neighbour graph, A_ij is 0 unless i is
       among the neighbours of j or j among those of i.
    3. N_ij = A_ij / sqrt(d_i d_j), where d are the row sums of A.
    4. The K eigenvectors of N with the largest absolute eigenvalues (its singular vectors), as
       columns.
    5. Rows to unit length.
    6. K-means on the rows, from rows at wide angles: see
       `jule.baselines._cosine_kmeans.cosine_kmeans`.

    The original paper also chooses K, by rotating the eigenvectors; here K is given, and K-means
    makes the clusters, as in the tables of the JULE paper. The neighbour graph is not part of the
    original. The dense graph needs one n x n table.

    References
    ----------
    L. Zelnik-Manor, P. Perona: Self-tuning spectral clustering. NIPS 2004.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> samples = np.concatenate([rng.normal(3 * s, s, (50, 2)) for s in (0.1, 2)])
    >>> labels = SelfTuningSpectralClustering(2).fit_predict(samples)
    >>> labels[:50].max().item(), labels[50:].mean().item() > 0.9
    (0, True)
    """

    _presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "original": {"min_width": 0.0},
        "jule-paper": {"min_width": 0.004},
    }

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        graph: Graph = "auto",
        n_neighbors: int = 7,
        scale_neighbor: int = 7,
        min_width: float | None = None,
        n_init: int = 50,
        preset: Preset = "original",
        random_state: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.graph = graph
        self.n_neighbors = n_neighbors
        self.scale_neighbor = scale_neighbor
        self.min_width = min_width
        self.n_init = n_init
        self.preset = preset
        self.random_state = random_state

    def _check_parameters(self, k: int) -> None:
        super()._check_parameters(k)
        check_graph(self.graph, self.n_neighbors)
        check_count(self.scale_neighbor, "scale_neighbor")
        check_not_negative(self._settings()["min_width"], "min_width")
        check_count(self.n_init, "n_init")

    def _cluster(self, samples: NDArray[np.floating], k: int) -> NDArray[np.intp]:
        min_width = float(self._settings()["min_width"])
        which = min(self.scale_neighbor, len(samples) - 1)
        samples, exponent = fit_range(samples)
        min_width = float(np.ldexp(min_width, -2 * exponent))
        affinity: Matrix
        if is_dense(self.graph, len(samples)):
            affinity = dense_self_tuning(squared_distances(samples), which, min_width)
        else:
            neighbors = find_neighbors(samples, max(self.n_neighbors, which))
            affinity = neighbor_self_tuning(neighbors, self.n_neighbors, which, min_width)
        normalized = normalize(affinity, affinity.sum(axis=1))
        rows = unit_rows(leading_eigenvectors(normalized, k, "LM"))
        return cosine_kmeans(rows, k, check_random_state(self.random_state), n_init=self.n_init)


def dense_self_tuning(
    distances: NDArray[np.float64], which: int, min_width: float
) -> NDArray[np.float64]:
    """Overwrite the squared distances of all pairs with their affinities (step 2).

    Parameters
    ----------
    distances
        (n, n) squared distances.
    which
        The neighbour that sets the width.
    min_width
        Lower bound of the products of two widths.

    Examples
    --------
    >>> dense_self_tuning(np.array([[0.0, 4.0], [4.0, 0.0]]), 1, 0.0).round(3).tolist()
    [[0.0, 0.368], [0.368, 0.0]]
    """
    # The sample itself comes first, at distance 0.
    kth = np.array([np.partition(row, which)[which] for row in distances])
    widths = local_widths(kth)
    for row, width in zip(distances, widths, strict=True):
        row /= -np.maximum(width * widths, min_width)
    np.exp(distances, out=distances)
    np.fill_diagonal(distances, 0.0)
    return distances


def neighbor_self_tuning(
    neighbors: Neighbors, n_neighbors: int, which: int, min_width: float
) -> sparse.csr_array:
    """Return the affinities between neighbours (step 2).

    Parameters
    ----------
    neighbors
        The neighbours of every sample, at least `which`.
    n_neighbors
        Number of neighbours that are linked.
    which, min_width
        As in `dense_self_tuning`.

    Examples
    --------
    >>> from jule.forward import nearest_neighbors
    >>> neighbors = nearest_neighbors([[0.0], [1.0], [2.0]], 1)
    >>> neighbor_self_tuning(neighbors, 1, 1, 0.0).toarray().round(3)
    array([[0.   , 0.368, 0.   ],
           [0.368, 0.   , 0.368],
           [0.   , 0.368, 0.   ]])
    """
    widths = local_widths(neighbors.distances[:, which - 1])
    indices, distances = neighbors.indices[:, :n_neighbors], neighbors.distances[:, :n_neighbors]
    products = np.maximum(widths[:, None] * widths[indices], min_width)
    return symmetric_graph(indices, np.exp(-distances / products))


def local_widths(kth_distances: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the width s_i of every sample; it is positive even if the sample has many copies.

    Parameters
    ----------
    kth_distances
        Squared distances of the samples to the neighbours that set the widths.

    Examples
    --------
    >>> local_widths(np.array([4.0, 9.0])).tolist()
    [2.0, 3.0]
    """
    least = np.finfo(np.float64).eps * kth_distances.max() or 1.0
    return np.sqrt(np.maximum(kth_distances, least))
