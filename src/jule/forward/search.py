"""Search for the nearest neighbours of samples: exactly or approximately, alone or with others."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jule.forward.cells import search_cells
from jule.forward.exact import search_exactly
from jule.forward.neighbors import Neighbors
from jule.forward.prepare import as_vectors, fit_range
from jule.forward.remembered import remembered_searches

Method = Literal["exact", "approximate"]
METHODS = ("exact", "approximate")
Progress = Callable[[float], None]
# Called with vectors, the number of neighbours, the method, the seed and a progress function.
Search = Callable[[NDArray[np.floating], int, Method, int, Progress | None], Neighbors]

_search: ContextVar[Search | None] = ContextVar("_search", default=None)


def nearest_neighbors(
    samples: ArrayLike,
    k: int = 20,
    *,
    method: Method = "exact",
    seed: int = 0,
    progress: Callable[[float], None] | None = None,
) -> Neighbors:
    """Find the k nearest neighbours of every sample (the paper's N_i^Ks).

    Parameters
    ----------
    samples
        Vectors (n, d), or images, which are flattened.
    k
        Number of neighbours, at most n - 1.
    method
        ``"exact"``, or ``"approximate"``: only the samples of the nearest cells are compared; see
        `jule.forward.cells`. The recall is measured on a few hundred samples.
    seed
        Random seed of the approximate search.
    progress
        Called from time to time with the fraction of the work done.

    Notes
    -----
    In an exact search, samples at the same distance are ordered by index. An error is raised if the
    squared distances are beyond the range of float64.

    Examples
    --------
    >>> found = nearest_neighbors([[0.0], [1.0], [3.0]], k=1)
    >>> found.indices.ravel().tolist(), found.distances.ravel().tolist()
    ([1, 0, 1], [1.0, 1.0, 4.0])
    """
    vectors = as_vectors(samples)
    if not 1 <= k < len(vectors):
        raise ValueError(
            f"k must be between 1 and n_samples - 1 = {len(vectors) - 1}, got {k}: "
            "a sample is never its own neighbour"
        )
    vectors, exponent = fit_range(vectors)
    if method not in METHODS:
        raise ValueError(f"unknown method {method!r}: choose 'exact' or 'approximate'")
    search = _search.get() or search_alone
    searches = remembered_searches()
    if method == "exact" and searches is not None:
        found = searches.search(
            vectors, k, lambda vectors, k: search(vectors, k, method, seed, progress)
        )
    else:
        found = search(vectors, k, method, seed, progress)
    return _scaled_back(found, exponent) if exponent else found


def _scaled_back(found: Neighbors, exponent: int) -> Neighbors:
    """Return neighbours of samples that were divided by 2 ** exponent with the true distances."""
    with np.errstate(over="ignore", under="ignore"):
        distances = np.ldexp(found.distances, 2 * exponent)
        exact = np.array_equal(np.ldexp(distances, -2 * exponent), found.distances)
    if not exact:
        raise ValueError(
            "the squared distances of these samples are beyond the range of float64: scale the "
            f"samples with np.ldexp(samples, {-exponent}) first"
        )
    return Neighbors(found.indices, distances, found.recall)


def search_alone(
    vectors: NDArray[np.floating],
    k: int,
    method: Method,
    seed: int,
    progress: Progress | None = None,
) -> Neighbors:
    """Find the neighbours of checked vectors in this process."""
    if method == "exact":
        return search_exactly(vectors, k, progress)
    return search_cells(vectors, k, seed, progress)


@contextmanager
def search_with(search: Search | None) -> Iterator[None]:
    """Within this context, `nearest_neighbors` calls another function.

    Examples
    --------
    >>> def last(vectors, k, method, seed, progress):
    ...     return Neighbors(np.array([[1], [0]], np.int32), np.ones((2, 1)))
    >>> with search_with(last):
    ...     nearest_neighbors([[0.0], [5.0]], k=1).distances.ravel().tolist()
    [1.0, 1.0]
    """
    token = _search.set(search)
    try:
        yield
    finally:
        _search.reset(token)
