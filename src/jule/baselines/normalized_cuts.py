"""N-Cuts: normalised cuts into K clusters."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import check_random_state

from jule.baselines._base import BaseClusterer
from jule.baselines._checks import check_positive
from jule.baselines._discretize import discretize
from jule.baselines._eigenvectors import leading_eigenvectors
from jule.baselines._spectral import (
    Graph,
    Matrix,
    check_graph,
    find_neighbors,
    inverse_roots,
    is_dense,
    normalize,
    squared_distances,
    symmetric_graph,
)
from jule.forward import Neighbors
from jule.forward.prepare import fit_range

DENSE_SCALE = 0.05  # times the largest squared distance
NEIGHBOR_SCALE = 4.0  # times the mean squared distance to a neighbour
LEAST_AFFINITY = 1e-6  # smaller affinities are set to 0
OFFSET = 0.5  # regularisation of the degrees, step 2


class NormalizedCuts(BaseClusterer):
    """Normalised cuts: leading eigenvectors of the normalised affinities, discretised.

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
        Width of the kernel, relative to the largest squared distance in the dense graph, and to
        the mean squared distance between neighbours in the neighbour graph. None means 0.05 in
        the dense graph and 4 in the neighbour graph.
    random_state
        Random seed of the discretisation.

    Attributes
    ----------
    labels_
        (n,) cluster of every sample, 0 .. n_clusters_ - 1.
    n_clusters_
        Number of clusters.

    Notes
    -----
    1. W_ij = exp(-(D_ij / s)^2), where D are squared distances and s is `scale` times their
       maximum (or mean, see `scale`); values below 1e-6 are set to 0. In the neighbour graph, W_ij
       is 0 unless i is among the neighbours of j or j among those of i.
    2. Regularisation: degrees d_i = sum_j W_ij + 1, and W_ii + 1/2 on the diagonal.
    3. The K eigenvectors of W_ij / sqrt(d_i d_j) with the largest eigenvalues, as columns.
    4. Row i divided by sqrt(d_i), columns scaled to the length sqrt(n), signs such that the
       first entry is not positive.
    5. Discretisation: see `jule.baselines._discretize.discretize`.

    The constants are those of the code of T. Cour, S. Yu and J. Shi, which squares the squared
    distances. The neighbour graph is not part of it. The dense graph needs one n x n table.

    References
    ----------
    J. Shi, J. Malik: Normalized cuts and image segmentation. IEEE TPAMI 22(8), 2000.

    S. Yu, J. Shi: Multiclass spectral clustering. ICCV 2003.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> samples = np.concatenate([rng.normal(c, 0.1, (30, 2)) for c in (0, 3)])
    >>> labels = NormalizedCuts(2).fit_predict(samples)
    >>> labels[:30].max().item(), labels[30:].min().item()
    (0, 1)
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        graph: Graph = "auto",
        n_neighbors: int = 7,
        scale: float | None = None,
        random_state: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.graph = graph
        self.n_neighbors = n_neighbors
        self.scale = scale
        self.random_state = random_state

    def _check_parameters(self, k: int) -> None:
        super()._check_parameters(k)
        check_graph(self.graph, self.n_neighbors)
        if self.scale is not None:
            check_positive(self.scale, "scale")

    def _cluster(self, samples: NDArray[np.floating], k: int) -> NDArray[np.intp]:
        samples, _ = fit_range(samples)
        affinity: Matrix
        if is_dense(self.graph, len(samples)):
            scale = DENSE_SCALE if self.scale is None else self.scale
            affinity = dense_quartic(squared_distances(samples), scale)
        else:
            scale = NEIGHBOR_SCALE if self.scale is None else self.scale
            affinity = neighbor_quartic(find_neighbors(samples, self.n_neighbors), scale)
        return discretize(cut_vectors(affinity, k), check_random_state(self.random_state))


def dense_quartic(distances: NDArray[np.float64], scale: float) -> NDArray[np.float64]:
    """Return exp(-(D / (scale x max D))^2), values below 1e-6 set to 0, in place.

    Examples
    --------
    >>> dense_quartic(np.array([[0.0, 2.0], [2.0, 0.0]]), 1.0).round(3).tolist()
    [[1.0, 0.368], [0.368, 1.0]]
    """
    distances /= scale * distances.max()
    return _quartic(distances)


def neighbor_quartic(neighbors: Neighbors, scale: float) -> sparse.csr_array:
    """Return exp(-(D / (scale x mean D))^2) between neighbours, values below 1e-6 set to 0.

    The affinity of a sample to itself is 1, as in the dense graph.

    Examples
    --------
    >>> from jule.forward import nearest_neighbors
    >>> neighbor_quartic(nearest_neighbors([[0.0], [1.0], [2.0]], 1), 1.0).toarray().round(3)
    array([[1.   , 0.368, 0.   ],
           [0.368, 1.   , 0.368],
           [0.   , 0.368, 1.   ]])
    """
    # If every sample has enough copies, all distances are 0; all weights are then 1.
    width = scale * neighbors.distances.mean() or 1.0
    graph = symmetric_graph(neighbors.indices, _quartic(neighbors.distances / width))
    return sparse.csr_array(graph + sparse.eye_array(len(neighbors)))


def _quartic(relative: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return exp(-relative^2), values below 1e-6 set to 0, in place."""
    np.square(relative, out=relative)
    np.negative(relative, out=relative)
    np.exp(relative, out=relative)
    relative[relative < LEAST_AFFINITY] = 0.0
    return relative


def cut_vectors(affinity: Matrix, k: int) -> NDArray[np.float64]:
    """Return the K vectors of steps 2 to 4; the affinities are overwritten.

    Examples
    --------
    >>> cut_vectors(np.ones((2, 2)), 1).round(3).tolist()
    [[-1.0], [-1.0]]
    """
    degrees = affinity.sum(axis=1) + 2.0 * OFFSET
    diagonal = affinity.diagonal() + OFFSET
    if isinstance(affinity, np.ndarray):
        np.fill_diagonal(affinity, diagonal)
    else:
        affinity.setdiag(diagonal)
    vectors = leading_eigenvectors(normalize(affinity, degrees), k)
    vectors *= inverse_roots(degrees)[:, None]
    vectors *= np.sqrt(len(vectors)) / np.linalg.norm(vectors, axis=0)
    # The sign of an eigenvector depends on the LAPACK in use; fixing it makes results portable.
    vectors *= np.where(vectors[0] > 0, -1.0, 1.0)
    return vectors
