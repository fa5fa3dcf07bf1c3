"""Graphs and helper functions shared by the spectral methods."""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from jule.baselines._checks import check_choice, check_count
from jule.forward import Neighbors, nearest_neighbors
from jule.memory import check_memory

Graph = Literal["auto", "dense", "neighbors"]
Matrix: TypeAlias = NDArray[np.float64] | sparse.csr_array

MAX_DENSE = 12_000  # samples up to which "auto" compares all pairs: a table of 1.2 GB
BLOCK = 512  # rows of a block of distances


def check_graph(graph: Graph, n_neighbors: int) -> None:
    """Raise an error unless the parameters of a graph are usable.

    Examples
    --------
    >>> check_graph("neighbors", 7)
    """
    check_choice(graph, "graph", get_args(Graph))
    check_count(n_neighbors, "n_neighbors")


def is_dense(graph: Graph, n: int) -> bool:
    """Return whether all pairs of samples are compared, not only neighbours.

    Parameters
    ----------
    graph
        ``"dense"``, ``"neighbors"``, or ``"auto"``: dense up to 12,000 samples.
    n
        Number of samples.

    Examples
    --------
    >>> is_dense("auto", 12_000), is_dense("auto", 12_001)
    (True, False)
    """
    return graph == "dense" or (graph == "auto" and n <= MAX_DENSE)


def squared_distances(samples: NDArray[np.floating], n_tables: int = 1) -> NDArray[np.float64]:
    """Return the squared Euclidean distances of all pairs.

    They are float64 for float32 samples, too, because rounding would mix the eigenvectors of nearly
    equal eigenvalues, which well separated clusters produce.

    Parameters
    ----------
    samples
        (n, d) samples.
    n_tables
        Number of tables of this size that the caller will hold at once.

    Raises
    ------
    NotEnoughMemoryError
        If that many tables do not fit into memory.

    Examples
    --------
    >>> squared_distances(np.array([[0.0], [1.0], [3.0]])).round(6).tolist()
    [[0.0, 1.0, 9.0], [1.0, 0.0, 4.0], [9.0, 4.0, 0.0]]
    """
    n = len(samples)
    check_memory(
        8 * n_tables * n * n,
        f"comparing all pairs of {n:,} samples (graph='neighbors' needs far less)",
    )
    # Centred, because |x|^2 - 2xy + |y|^2 loses digits if the samples are far from 0.
    centred = samples - samples.mean(axis=0, dtype=np.float64)
    norms = np.einsum("ij,ij->i", centred, centred)
    distances = np.empty((n, n))
    for start in range(0, n, BLOCK):
        stop = min(start + BLOCK, n)
        block = centred[start:stop] @ centred[start:].T
        block *= -2.0
        block += norms[start:stop, None]
        block += norms[start:]
        np.maximum(block, 0.0, out=block)
        distances[start:stop, start:] = block
        distances[start:, start:stop] = block.T
    np.fill_diagonal(distances, 0.0)
    return distances


def find_neighbors(samples: NDArray[np.floating], n_neighbors: int) -> Neighbors:
    """Return the nearest neighbours of every sample: all other samples if there are fewer.

    Examples
    --------
    >>> find_neighbors(np.array([[0.0], [1.0], [3.0]]), 20).indices.tolist()
    [[1, 2], [0, 2], [1, 0]]
    """
    return nearest_neighbors(samples, min(n_neighbors, len(samples) - 1))


def symmetric_graph(
    indices: NDArray[np.integer], weights: NDArray[np.floating]
) -> sparse.csr_array:
    """Return the graph in which two samples are linked if either is a neighbour of the other.

    Parameters
    ----------
    indices
        (n, k) neighbours of every sample.
    weights
        (n, k) weights of the edges to them, the same in both directions.

    Examples
    --------
    >>> symmetric_graph(np.array([[1], [0], [1]]), np.array([[0.5], [0.5], [0.2]])).toarray()
    array([[0. , 0.5, 0. ],
           [0.5, 0. , 0.2],
           [0. , 0.2, 0. ]])
    """
    n, k = indices.shape
    starts = np.arange(0, n * k + 1, k)
    directed = sparse.csr_array((weights.ravel(), indices.ravel(), starts), shape=(n, n))
    graph = sparse.csr_array(directed.maximum(directed.T))
    graph.eliminate_zeros()
    return graph


def normalize(affinity: Matrix, degrees: NDArray[np.floating]) -> Matrix:
    """Divide every entry a_ij by sqrt(degree_i degree_j), in place; a degree of 0 gives zeros.

    Examples
    --------
    >>> normalize(np.array([[0.0, 4.0], [4.0, 0.0]]), np.array([4.0, 4.0]))
    array([[0., 1.],
           [1., 0.]])
    """
    factors = inverse_roots(degrees)
    if isinstance(affinity, np.ndarray):
        affinity *= factors[:, None]
        affinity *= factors
    else:
        affinity.data *= np.repeat(factors, np.diff(affinity.indptr)) * factors[affinity.indices]
    return affinity


def inverse_roots(degrees: NDArray[np.floating]) -> NDArray[np.float64]:
    """Return 1 / sqrt(degree), and 0 for a degree of 0.

    Examples
    --------
    >>> inverse_roots(np.array([4.0, 0.0])).tolist()
    [0.5, 0.0]
    """
    roots = np.sqrt(degrees, dtype=np.float64)
    inverse: NDArray[np.float64] = np.divide(1.0, roots, out=np.zeros_like(roots), where=roots > 0)
    return inverse


def unit_rows(rows: NDArray[np.floating]) -> NDArray[np.floating]:
    """Return the rows scaled to unit length; a row of zeros stays as it is.

    Examples
    --------
    >>> unit_rows(np.array([[3.0, 4.0], [0.0, 0.0]])).tolist()
    [[0.6, 0.8], [0.0, 0.0]]
    """
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    units: NDArray[np.floating] = np.divide(rows, norms, out=np.zeros_like(rows), where=norms > 0)
    return units
