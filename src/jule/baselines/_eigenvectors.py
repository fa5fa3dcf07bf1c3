"""Leading eigenvectors of dense and sparse symmetric matrices, component by component."""

from __future__ import annotations

import warnings
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from jule.baselines._spectral import Matrix

Order = Literal["LA", "LM"]

BLOCK = 512  # rows that are searched for edges at once
SMALL = 300  # samples of a neighbour graph up to which all eigenvectors are computed ...
MAX_COMPLETE = 3000  # ... and of a dense graph, or where the iteration does not converge
N_SPARE = 10  # vectors in a block beyond those asked for, for faster convergence
MAX_DEGREE = 40  # of a filter
LEAST_BOUND = 1e-3  # of the eigenvalues that a filter keeps
GROWTH = 1e4  # largest growth by a filter; beyond, the vectors of a block become parallel
MAX_PRODUCTS = 300  # of the matrix and a block: minutes for 10,000 samples in a dense graph
NO_EDGE = 1e-12  # smaller entries change no eigenvalue of the matrices here by more than rounding
TOLERANCE = 1e-6  # of a residual; divided by the gap to the next eigenvalue, it is the error
TIE = 1e-12  # eigenvalues this close count as equal


def leading_eigenvectors(matrix: Matrix, k: int, order: Order = "LA") -> NDArray[np.float64]:
    """Return the k leading eigenvectors of a symmetric matrix with entries of 0 or more.

    Every connected component of the graph has eigenvectors of its own, so that equal eigenvalues
    of any number of components are all found. Of equal eigenvalues, those of larger components come
    first.

    Parameters
    ----------
    matrix
        (n, n) normalised affinities, dense or sparse; the eigenvalues are between -1 and 1.
    k
        Number of eigenvectors, at most n.
    order
        ``"LA"`` for the largest eigenvalues, ``"LM"`` for the largest absolute values.

    Returns
    -------
    (n, k) eigenvectors, as columns of unit length.

    Examples
    --------
    >>> two_pairs = np.kron(np.eye(2), np.ones((2, 2)))
    >>> np.abs(leading_eigenvectors(two_pairs, 2)).round(2).tolist()
    [[0.71, 0.0], [0.71, 0.0], [0.0, 0.71], [0.0, 0.71]]
    """
    n = matrix.shape[0]
    groups = sorted(_components(matrix), key=len, reverse=True)
    if len(groups) == 1:
        return _eigenpairs(matrix, k, order)[1]
    found = [_eigenpairs(matrix[np.ix_(group, group)], k, order) for group in groups]
    values = np.concatenate([values for values, _ in found])
    owners = np.repeat(np.arange(len(groups)), [len(values) for values, _ in found])
    columns = np.concatenate([np.arange(len(values)) for values, _ in found])
    best = _ranking(values, order)[:k]  # stable, and larger components come first
    vectors = np.zeros((n, k))
    for position, pair in enumerate(best):
        owner = owners[pair]
        vectors[groups[owner], position] = found[owner][1][:, columns[pair]]
    return vectors


def _eigenpairs(
    matrix: Matrix, k: int, order: Order
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the leading eigenvalues and eigenvectors of one component, the leading one first."""
    n = matrix.shape[0]
    # Samples with hardly any affinity to others have tiny rows, which only `eigh` gets right.
    is_small = n <= (MAX_COMPLETE if isinstance(matrix, np.ndarray) else SMALL)
    if not is_small and n > 4 * (k + N_SPARE):
        values, vectors, has_converged = filtered_subspace(matrix, k, order)
        if has_converged:
            return values, vectors
        if n > MAX_COMPLETE:
            warnings.warn(
                "the leading eigenvectors are inaccurate, because the next eigenvalues are nearly "
                "the same; if the graph almost falls apart into more parts than clusters, a wider "
                "kernel or more neighbours may help",
                UserWarning,
                stacklevel=2,
            )
            return values, vectors
    values, vectors = np.linalg.eigh(matrix if isinstance(matrix, np.ndarray) else matrix.toarray())
    best = _ranking(values, order)[:k]
    return values[best], vectors[:, best]


def _ranking(values: NDArray[np.float64], order: Order) -> NDArray[np.intp]:
    """Return the order of eigenvalues, the leading one first, positive before negative ones."""
    return np.lexsort((values < 0, -np.round(_sizes(values, order) / TIE)))


def _sizes(values: NDArray[np.float64], order: Order) -> NDArray[np.float64]:
    return np.abs(values) if order == "LM" else values


def filtered_subspace(
    matrix: Matrix, k: int, order: Order
) -> tuple[NDArray[np.float64], NDArray[np.float64], bool]:
    """Return the leading eigenpairs of a large matrix by iteration, and whether it converged.

    A block of vectors is multiplied by a Chebyshev polynomial of the matrix, which enlarges the
    leading eigenvectors, and made orthonormal, in turn. Unlike in Lanczos' method with single
    vectors, nearly equal eigenvalues, which well separated clusters produce, do not slow it down,
    and none is missed. It slows down only if the next eigenvalues beyond those asked for are nearly
    the same, too.

    Parameters
    ----------
    matrix, k, order
        As in `leading_eigenvectors`.

    References
    ----------
    Y. Zhou, Y. Saad, M. Tiago, J. Chelikowsky: Self-consistent-field calculations using
    Chebyshev-filtered subspace iteration. Journal of Computational Physics 219(1), 2006.

    Examples
    --------
    >>> matrix = np.diag(np.linspace(-1, 1, 401))
    >>> values, vectors, has_converged = filtered_subspace(matrix, 2, "LA")
    >>> values.round(6).tolist(), vectors.shape, has_converged
    ([1.0, 0.995], (401, 2), True)
    """
    start = np.random.RandomState(0).standard_normal((matrix.shape[0], k + N_SPARE))
    block = np.linalg.qr(start)[0]
    n_products = 0
    while True:
        product = matrix @ block
        projected = block.T @ product
        values, vectors = np.linalg.eigh((projected + projected.T) / 2)
        best = _ranking(values, order)
        values, block, product = values[best], block @ vectors[:, best], product @ vectors[:, best]
        residuals = np.linalg.norm(product[:, :k] - block[:, :k] * values[:k], axis=0)
        has_converged = bool(residuals.max() <= TOLERANCE)
        if has_converged or n_products >= MAX_PRODUCTS:
            return values[:k], block[:, :k], has_converged
        # The eigenvalues between these bounds are unwanted.
        high = float(np.clip(_sizes(values, order)[-1], LEAST_BOUND, 1.0 - TIE))
        low = -high if order == "LM" else -1.0
        block, degree = _filter(matrix, block, product, low, high)
        n_products += degree
        block = np.linalg.qr(block)[0]


def _filter(
    matrix: Matrix,
    block: NDArray[np.float64],
    product: NDArray[np.float64],
    low: float,
    high: float,
) -> tuple[NDArray[np.float64], int]:
    """Return a Chebyshev polynomial of the matrix times a block, and its degree.

    The polynomial is at most 1 in absolute value between the bounds and grows fast outside them.
    `product` is the matrix times the block.
    """
    centre, half = (low + high) / 2, (high - low) / 2
    growth_per_degree = np.arccosh((1.0 - centre) / half)
    degree = int(np.clip(np.arccosh(GROWTH) / growth_per_degree, 2, MAX_DEGREE))
    before, now = block, (product - centre * block) / half
    for _ in range(degree - 1):
        after = matrix @ now
        after -= centre * now
        after *= 2.0 / half
        after -= before
        before, now = now, after
    return now, degree


def _components(matrix: Matrix) -> list[NDArray[np.intp]]:
    """Return the samples of every connected component."""
    if isinstance(matrix, np.ndarray):
        labels = _dense_components(matrix)
    else:
        links = matrix > NO_EDGE
        labels = connected_components(links, directed=False)[1]
    order = np.argsort(labels, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(labels[order])) + 1)


def _dense_components(matrix: NDArray[np.float64]) -> NDArray[np.intp]:
    """Number the components by a breadth-first search in blocks; it stops once all are reached."""
    labels = np.full(len(matrix), -1)
    for first in range(len(matrix)):
        if labels[first] >= 0:
            continue
        label = labels.max() + 1
        labels[first] = label
        waiting = [np.array([first])]
        while waiting and (left := np.flatnonzero(labels < 0)).size:
            rows = waiting.pop()
            reached = left[(matrix[rows][:, left] > NO_EDGE).any(axis=0)]
            labels[reached] = label
            waiting += np.array_split(reached, len(reached) // BLOCK + 1) if reached.size else []
    return labels
