"""Helper functions shared by the matrix factorisations."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve, qr
from scipy.sparse import csr_array

from jule.memory import check_memory

BLOCK_BYTES = 2**20  # one block of rows and its approximation fit in the cache of a core
MIN_ROWS = 32  # fewer rows make matrix products slow
RIDGE = 1e-9  # of a Gram matrix, times its trace
TOLERANCE = 1e-5  # of the residual of a linear system, relative to its right-hand side
MIN_RESIDUAL = 1e-10  # smaller residuals count as 0
MAX_ITER = 1000  # of conjugate gradients

Array = NDArray[np.floating]


def row_blocks(samples: Array) -> Iterator[slice]:
    """Yield slices of rows, in order, that are small enough for the cache.

    Examples
    --------
    >>> [block.stop for block in row_blocks(np.zeros((70, 10_000)))]
    [32, 64, 96]
    """
    rows = max(MIN_ROWS, BLOCK_BYTES // samples[:1].nbytes)
    for start in range(0, len(samples), rows):
        yield slice(start, start + rows)


def rotate_to_fewer(samples: Array) -> Array:
    """Rotate n samples with more than n features to n features; inner products stay the same.

    Examples
    --------
    >>> rotate_to_fewer(np.array([[1.0, 1.0, 1.0, 1.0], [0.0, 0.0, 3.0, 3.0]])).shape
    (2, 2)
    """
    n, d = samples.shape
    if d <= n:
        return samples
    check_memory(2 * samples.nbytes, f"the rotation of {n:,} samples with {d:,} values")
    (triangle,) = qr(samples.T, mode="r")
    return np.ascontiguousarray(triangle[:n].T)


def solve_gram(gram: Array, right: Array) -> Array:
    """Solve normal equations: return ``pinv(A) @ Y`` for ``gram = A.T @ A``, ``right = A.T @ Y``.

    The solution is by Cholesky factorisation. A small ridge is added to the Gram matrix, so that
    dependent columns of A share their coefficients. The ridge is far above the rounding errors of
    float64, which therefore contribute almost nothing along the null space; those of float32 would.

    Parameters
    ----------
    gram
        (p, p) Gram matrix.
    right
        (p, m) right-hand sides.

    Examples
    --------
    >>> matrix = np.array([[1.0, 1.0], [0.0, 1.0], [0.0, 0.0]])
    >>> right = matrix.T @ np.array([[3.0], [2.0], [7.0]])
    >>> solve_gram(matrix.T @ matrix, right).round(6).tolist()
    [[1.0], [2.0]]
    """
    gram = np.array(gram, np.float64)
    gram.flat[:: len(gram) + 1] += max(RIDGE * float(np.trace(gram)), np.finfo(np.float64).tiny)
    solution: Array = cho_solve(cho_factor(gram, overwrite_a=True), right)
    return solution


def divide_by_mean_length(samples: Array) -> Array:
    """Return a copy of the samples whose mean Euclidean length is 1.

    Examples
    --------
    >>> divide_by_mean_length(np.array([[3e200, 4e200], [0.0, 5e200]])).round(3).tolist()
    [[0.6, 0.8], [0.0, 1.0]]
    """
    scaled: Array = samples / np.abs(samples).max()  # so that no square overflows
    squares = np.einsum("ij,ij->i", scaled, scaled, dtype=np.float64)
    scaled /= samples.dtype.type(np.sqrt(squares).mean())
    return scaled


def solve_shifted(matrix: csr_array, shifts: Array, right: Array, start: Array) -> Array:
    """Solve ``(matrix + diag(shifts[:, f])) x = right[:, f]`` for every column f.

    Conjugate gradients with a diagonal preconditioner run on all columns together, so that every
    product with the matrix serves all of them.

    Parameters
    ----------
    matrix
        (n, n) symmetric, positive semidefinite matrix.
    shifts
        (n, p) positive numbers.
    right
        (n, p) right-hand sides.
    start
        (n, p) initial guesses of the solutions.

    Examples
    --------
    >>> matrix = csr_array(np.array([[1.0, -1.0], [-1.0, 1.0]]))
    >>> shifts, right = np.ones((2, 1)), np.array([[3.0], [0.0]])
    >>> solve_shifted(matrix, shifts, right, np.zeros((2, 1))).round(3).tolist()
    [[2.0], [1.0]]
    """
    tiny = np.finfo(right.dtype).tiny
    diagonal = shifts + matrix.diagonal()[:, None]
    solution = np.where(right.any(axis=0), start, 0)  # exact where the right-hand side is 0
    residual = right - matrix @ solution - shifts * solution
    direction = residual / diagonal
    product = _dots(residual, direction)
    goals = np.maximum(TOLERANCE**2 * _dots(right, right), MIN_RESIDUAL**2)
    for _ in range(MAX_ITER):
        if (_dots(residual, residual) <= goals).all():
            break
        image = matrix @ direction + shifts * direction
        step = product / np.maximum(_dots(direction, image), tiny)
        solution += step * direction
        residual -= step * image
        improved = residual / diagonal
        previous, product = product, _dots(residual, improved)
        direction *= product / np.maximum(previous, tiny)
        direction += improved
    return solution


def _dots(a: Array, b: Array) -> Array:
    dots: Array = np.einsum("ij,ij->j", a, b)
    return dots
