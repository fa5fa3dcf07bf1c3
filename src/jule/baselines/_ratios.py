"""Kernels of non-negative factorisations: products with samples divided by their approximations."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from jule.jit import njit, prange

Array = NDArray[np.floating]

CHUNK = 1024  # features of a row that are computed while they are in cache ...
ROWS = 64  # ... with the parts, for so many samples


@njit(cache=True, parallel=True, fastmath={"nsz", "contract", "reassoc"})
def ratios_times_parts(samples: Array, factors: Array, parts: Array, floor: float) -> Array:
    """Return ``(X / (F P)) P'``: samples divided by their approximations, times the parts.

    The n x d quotients are not stored.

    Parameters
    ----------
    samples
        (n, d) X.
    factors
        (n, p) F.
    parts
        (p, d) P.
    floor
        Lower bound of the approximations.

    Examples
    --------
    >>> ratios_times_parts(np.array([[6.0, 2.0]]), np.ones((1, 1)), np.full((1, 2), 2.0), 0.0)
    array([[8.]])
    """
    n, d = samples.shape
    p = len(parts)
    products = np.zeros((n, p), samples.dtype)
    for block in prange((n + ROWS - 1) // ROWS):
        ratios = np.empty(CHUNK, samples.dtype)
        for start in range(0, d, CHUNK):
            stop = min(d, start + CHUNK)
            own = np.ascontiguousarray(parts[:, start:stop])
            for row in range(block * ROWS, min(n, (block + 1) * ROWS)):
                _divide(samples[row, start:stop], factors[row], own, floor, ratios)
                for f in range(p):
                    total = products[row, f]
                    for column in range(stop - start):
                        total += ratios[column] * own[f, column]
                    products[row, f] = total
    return products


@njit(cache=True, parallel=True, fastmath={"nsz", "contract", "reassoc"})
def ratios_times_factors(
    samples: Array, factors: Array, parts: Array, weights: Array, floor: float
) -> Array:
    """Return ``(g F)' (X / (F P))``: weighted factors times samples divided by approximations.

    Parameters
    ----------
    samples, factors, parts, floor
        As in `ratios_times_parts`.
    weights
        (n,) weights of the samples, g.

    Examples
    --------
    >>> one, parts = np.ones((1, 1)), np.full((1, 2), 2.0)
    >>> ratios_times_factors(np.array([[6.0, 2.0]]), one, parts, np.full(1, 0.5), 0.0)
    array([[1.5, 0.5]])
    """
    n, d = samples.shape
    p = len(parts)
    products = np.zeros((p, d), samples.dtype)
    for chunk in prange((d + CHUNK - 1) // CHUNK):
        start, stop = chunk * CHUNK, min(d, (chunk + 1) * CHUNK)
        ratios = np.empty(CHUNK, samples.dtype)
        own = np.ascontiguousarray(parts[:, start:stop])
        sums = np.zeros((p, stop - start), samples.dtype)
        for row in range(n):
            _divide(samples[row, start:stop], factors[row], own, floor, ratios)
            for f in range(p):
                factor = weights[row] * factors[row, f]
                for column in range(stop - start):
                    sums[f, column] += factor * ratios[column]
        products[:, start:stop] = sums
    return products


@njit(cache=True, inline="always", fastmath={"nsz", "contract", "reassoc"})
def _divide(row: Array, factors: Array, parts: Array, floor: float, ratios: Array) -> None:
    """Divide values of one sample by their approximations, which are at least `floor`."""
    for column in range(len(row)):
        ratios[column] = 0
    for f in range(len(factors)):
        factor = factors[f]
        for column in range(len(row)):
            ratios[column] += factor * parts[f, column]
    least = row.dtype.type(floor)
    for column in range(len(row)):
        ratios[column] = row[column] / max(ratios[column], least)
