"""The K_s nearest neighbours of every sample, exact or approximate.

Exact search computes matrix products between blocks of samples. One product serves the samples of
both blocks, so half the products of the full table are needed. The best candidates of every sample
are selected while a block is in cache. Their distances are then recomputed from the differences, so
that neither the order nor the ties depend on the blocks or on rounding. Besides a copy of the
samples, the search needs memory for one block of products per core and for the candidates.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.util import find_spec
from threading import Lock, local
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from threadpoolctl import threadpool_limits

from jule.forward.prepare import MAX_SAMPLES, as_vectors, fit_range
from jule.forward.remembered import remembered_searches
from jule.forward.searching import chosen_search
from jule.jit import get_num_threads, njit, prange

Method = Literal["exact", "approximate"]

BLOCK = 1024  # rows of a block of products ...
WIDTH = 4 * BLOCK  # ... and its columns: 16 MiB per core, about the last-level cache
N_SPARE = 8  # candidates beyond K_s, so that rounding hardly ever hides a true neighbour
RECALL_PROBES = 1000
STRIPE = 128  # products whose signs are tested together, before any of them is compared


@dataclass(frozen=True, eq=False)
class Neighbors:
    """The nearest neighbours of n samples, nearest first, never the sample itself.

    Attributes
    ----------
    indices
        (n, k) int32: indices of the neighbours.
    distances
        (n, k) float64: their squared Euclidean distances.
    recall
        Fraction of true neighbours found: 1.0 for exact search, otherwise an estimate.
    """

    indices: NDArray[np.int32]
    distances: NDArray[np.float64]
    recall: float = 1.0

    def __post_init__(self) -> None:
        check_indices(self.indices)
        if self.distances.shape != self.indices.shape or self.distances.dtype != np.float64:
            raise ValueError(
                f"distances must be float64 of shape {self.indices.shape}, got "
                f"{self.distances.dtype} {self.distances.shape}"
            )
        # Not the other way round, so that NaN is noticed.
        if self.distances.size and not (
            self.distances.min() >= 0 and self.distances.max() < np.inf
        ):
            raise ValueError("distances must be finite and 0 or more")

    @property
    def k(self) -> int:
        """Number of neighbours per sample."""
        return int(self.indices.shape[1])

    def __len__(self) -> int:
        return int(self.indices.shape[0])

    def nearest(self, k: int) -> Neighbors:
        """Return the k nearest of these neighbours.

        Examples
        --------
        >>> nearest_neighbors([[0.0], [1.0], [3.0]], k=2).nearest(1).indices.ravel().tolist()
        [1, 0, 1]
        """
        if k == self.k:
            return self
        indices, distances = self.indices[:, :k], self.distances[:, :k]
        return Neighbors(
            np.ascontiguousarray(indices), np.ascontiguousarray(distances), self.recall
        )


def check_indices(indices: NDArray[np.integer]) -> None:
    """Raise an error unless every row lists other samples; the kernels would not notice it.

    Examples
    --------
    >>> check_indices(np.array([[1], [0]], np.int32))
    """
    if indices.ndim != 2 or indices.dtype != np.int32:
        raise ValueError(
            f"neighbours must be int32 of shape (n, k), got {indices.dtype} {indices.shape}"
        )
    n = len(indices)
    if indices.size and (indices.min() < 0 or indices.max() >= n):
        raise ValueError(f"neighbours must be samples from 0 to {n - 1}")
    if (indices == np.arange(n, dtype=np.int32)[:, None]).any():
        raise ValueError("a sample must not be its own neighbour")


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
        ``"exact"``, or ``"approximate"`` (pynndescent; ``pip install "jule[approximate]"``), whose
        recall is estimated on a thousand samples.
    seed
        Random seed of the approximate search.
    progress
        Called from time to time with the fraction of the work done.

    Notes
    -----
    Samples at the same distance are ordered by index. An error is raised if the squared distances
    are beyond the range of float64.

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
    searches, search = remembered_searches(), chosen_search() or search_exactly
    if method == "exact" and searches is not None:
        found = searches.search(vectors, k, lambda vectors, k: search(vectors, k, progress))
    elif method == "exact":
        found = search(vectors, k, progress)
    elif method == "approximate":
        found = _approximate(vectors, k, seed)
        if progress is not None:
            progress(1.0)
    else:
        raise ValueError(f"unknown method {method!r}: choose 'exact' or 'approximate'")
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


def search_exactly(
    vectors: NDArray[np.floating], k: int, progress: Callable[[float], None] | None
) -> Neighbors:
    """Find the exact neighbours of checked vectors, in this process."""
    n = len(vectors)
    n_candidates = k + N_SPARE
    indices = np.empty((n, k), np.int32)
    distances = np.empty((n, k), np.float64)
    if n_candidates >= n - 1:
        search_all(vectors, np.arange(n), indices, distances)
        if progress is not None:
            progress(1.0)
        return Neighbors(indices, distances)
    centred = centred_float32(vectors)
    half_norms = 0.5 * np.einsum("ij,ij->i", centred, centred)
    scores, candidates = find_candidates(centred, half_norms, n_candidates, progress)
    half_bounds = half_distance_bounds(scores[:, -1], half_norms, vectors.shape[1])
    certain = np.empty(n, np.bool_)
    rank_candidates(vectors, candidates, half_bounds, indices, distances, certain)
    # Rows with nearly equal distances beyond the candidates, as among many duplicates.
    search_all(vectors, np.flatnonzero(~certain), indices, distances)
    return Neighbors(indices, distances)


def centred_float32(vectors: NDArray[np.floating]) -> NDArray[np.float32]:
    """Subtract the mean, which reduces the cancellation in |x|^2 - 2xy + |y|^2."""
    mean = vectors.mean(axis=0, dtype=np.float64).astype(vectors.dtype)
    centred: NDArray[np.floating] = vectors - mean
    return centred.astype(np.float32, copy=False)


def find_candidates(
    centred: NDArray[np.float32],
    half_norms: NDArray[np.float32],
    n_candidates: int,
    progress: Callable[[float], None] | None,
    pairs: Sequence[tuple[int, int]] | None = None,
) -> tuple[NDArray[np.float32], NDArray[np.int32]]:
    """Find, for every sample x, the samples y with the least scores |y|^2/2 - xy.

    With |x|^2/2 added, the score is half the squared distance. Each block is multiplied with itself
    and with later samples only: the rows of a product serve the samples of the block, the columns
    the later samples. Every core selects from products of its own; threads sharing one product
    would often wait for each other.

    Returns the scores and the candidates of every sample, the least score first. With `pairs`, only
    these of `block_pairs` are multiplied; a sample then may have fewer candidates, and the scores
    of those that are missing are infinite.
    """
    n = len(centred)
    tasks = list(block_pairs(n)) if pairs is None else pairs
    scores = np.full((n, n_candidates), np.inf, np.float32)
    indices = np.zeros((n, n_candidates), np.int32)
    starts = range(0, n, BLOCK)
    locks = {start: Lock() for start in starts}  # for the candidates of each block
    own = local()

    def select(task: tuple[int, int]) -> None:
        i, j = task
        rows, columns = centred[i : i + BLOCK], centred[j : j + WIDTH]
        if not hasattr(own, "products"):
            own.products = np.empty(BLOCK * WIDTH, np.float32)
        products = own.products[: len(rows) * len(columns)].reshape(len(rows), len(columns))
        # Values too large for float32 overflow; such rows are searched in full afterwards.
        with np.errstate(over="ignore", invalid="ignore"):
            np.matmul(rows, columns.T, out=products)
        with locks[i]:
            _select_along_rows(products, half_norms, i, j, scores, indices)
        for start in range(max(j, i + BLOCK), j + len(columns), BLOCK):
            with locks[start]:
                stop = min(start + BLOCK, n)
                _select_along_columns(products, half_norms, i, j, start, stop, scores, indices)

    with threadpool_limits(1, "blas"), ThreadPoolExecutor(get_num_threads()) as pool:
        try:
            for done, _ in enumerate(pool.map(select, tasks), start=1):
                if progress is not None:
                    progress(done / len(tasks))
        except BaseException:
            pool.shutdown(cancel_futures=True)  # Ctrl-C waits for the current blocks only
            raise
    return scores, indices


def block_pairs(n: int) -> dict[tuple[int, int], int]:
    """Return where the rows and the columns of each product start, and how many numbers it has."""
    return {
        (i, j): (min(i + BLOCK, n) - i) * (min(j + WIDTH, n) - j)
        for i in range(0, n, BLOCK)
        for j in range(i, n, WIDTH)
    }


@njit(cache=True, inline="always")
def insert_candidate(score, index, scores, indices):
    """Insert a candidate into a sorted row, given that it is better than the last one."""
    rank = scores.shape[0] - 1
    while rank > 0 and scores[rank - 1] > score:
        scores[rank] = scores[rank - 1]
        indices[rank] = indices[rank - 1]
        rank -= 1
    scores[rank] = score
    indices[rank] = index


@njit(cache=True, nogil=True)
def _select_along_rows(products, half_norms, i, j, scores, indices):
    """Update the candidates of the rows, samples from i on, with the columns, samples from j on."""
    n_rows, n_columns = products.shape
    margins = np.empty(n_columns, np.float32)
    signs = margins.view(np.int32)
    norms = half_norms[j : j + n_columns]
    for row in range(n_rows):
        sample = i + row
        own_scores, own_indices = scores[sample], indices[sample]
        bound = own_scores[-1]
        own_products = products[row]
        for column in range(n_columns):
            margins[column] = norms[column] - own_products[column] - bound
        for start in range(0, n_columns, STRIPE):
            stop = min(start + STRIPE, n_columns)
            if _none_negative(signs, start, stop):
                continue
            for column in range(start, stop):
                score = norms[column] - own_products[column]
                if score < own_scores[-1] and j + column != sample:
                    insert_candidate(score, j + column, own_scores, own_indices)


@njit(cache=True, nogil=True)
def _select_along_columns(products, half_norms, i, j, first, last, scores, indices):
    """Update the candidates of the samples first .. last - 1 with the rows, samples from i on."""
    n_rows, n_columns = products.shape[0], last - first
    margins = np.empty(n_columns, np.float32)
    signs = margins.view(np.int32)
    bounds = scores[first:last, -1].copy()
    for row in range(n_rows):
        half_norm = half_norms[i + row]
        own_products = products[row, first - j : last - j]
        for column in range(n_columns):
            margins[column] = half_norm - own_products[column] - bounds[column]
        for start in range(0, n_columns, STRIPE):
            stop = min(start + STRIPE, n_columns)
            if _none_negative(signs, start, stop):
                continue
            for column in range(start, stop):
                score = half_norm - own_products[column]
                if score < bounds[column]:
                    insert_candidate(
                        score, i + row, scores[first + column], indices[first + column]
                    )
                    bounds[column] = scores[first + column, -1]


@njit(cache=True, inline="always")
def _none_negative(signs, start, stop):
    """Test the sign bits of many floats at once, in a loop that the compiler can vectorise."""
    combined = np.int32(0)
    for position in range(start, stop):
        combined |= signs[position]
    return combined >= 0


def half_distance_bounds(
    bounds: NDArray[np.float32], half_norms: NDArray[np.float32], d: int
) -> NDArray[np.float64]:
    """Bound half the squared distance to any sample that is not a candidate from below.

    The rounding error of a float32 product of length d grows as sqrt(d) unit roundoffs; eight times
    that is exceeded with a probability below 1e-13 (Higham and Mary, 2019).
    """
    roundoff = 8.0 * math.sqrt(d + 16) * 2.0**-24
    own = half_norms.astype(np.float64)
    slack = roundoff * (np.sqrt(own) + math.sqrt(own.max())) ** 2
    with np.errstate(invalid="ignore"):  # inf - inf is NaN, which is never certain
        return own + bounds.astype(np.float64) - 2.0 * slack


@njit(cache=True, inline="always", fastmath={"nsz", "contract", "reassoc"})
def _squared_distance(a, b):
    total = 0.0
    for feature in range(a.shape[0]):
        difference = np.float64(a[feature]) - np.float64(b[feature])
        total += difference * difference
    return total


@njit(cache=True, inline="always")
def _insert_ties_by_index(distance, index, distances, indices):
    """Insert a neighbour into a row sorted by (distance, index), if it is near enough."""
    last = distances.shape[0] - 1
    if distance > distances[last] or (distance == distances[last] and index > indices[last]):
        return
    rank = last
    while rank > 0 and (
        distances[rank - 1] > distance
        or (distances[rank - 1] == distance and indices[rank - 1] > index)
    ):
        distances[rank] = distances[rank - 1]
        indices[rank] = indices[rank - 1]
        rank -= 1
    distances[rank] = distance
    indices[rank] = index


@njit(cache=True, parallel=True)
def rank_candidates(vectors, candidates, half_bounds, indices, distances, certain, first=0):
    """Order the candidates of the samples from `first` on by true distance, and keep the best."""
    n, n_candidates = candidates.shape
    for row in prange(n):
        distances[row] = np.inf
        indices[row] = MAX_SAMPLES
        for rank in range(n_candidates):
            other = candidates[row, rank]
            distance = _squared_distance(vectors[first + row], vectors[other])
            _insert_ties_by_index(distance, other, distances[row], indices[row])
        certain[row] = 0.5 * distances[row, -1] < half_bounds[row]


@njit(cache=True, parallel=True)
def search_all(vectors, queries, indices, distances, first=0):
    """Find the neighbours of some samples by comparing them with all samples.

    The first row of the results is that of the sample `first`.
    """
    for which in prange(queries.shape[0]):
        sample = queries[which]
        row = sample - first
        distances[row] = np.inf
        indices[row] = MAX_SAMPLES
        for other in range(vectors.shape[0]):
            if other != sample:
                distance = _squared_distance(vectors[sample], vectors[other])
                _insert_ties_by_index(distance, other, distances[row], indices[row])


def has_approximate() -> bool:
    """Return whether the package for approximate neighbours is installed.

    Examples
    --------
    >>> has_approximate() in (True, False)
    True
    """
    return find_spec("pynndescent") is not None


def _approximate(vectors: NDArray[np.floating], k: int, seed: int) -> Neighbors:
    try:
        from pynndescent import NNDescent
    except ImportError:
        raise ImportError(
            "approximate neighbours need pynndescent: pip install 'jule[approximate]'"
        ) from None
    # One more than needed, because the search usually lists the sample itself.
    index = NNDescent(vectors, n_neighbors=k + 1, random_state=seed)
    indices = np.empty((len(vectors), k), np.int32)
    distances = np.empty((len(vectors), k), np.float64)
    complete = np.empty(len(vectors), np.bool_)
    _rank_found(vectors, index.neighbor_graph[0], indices, distances, complete)
    search_all(vectors, np.flatnonzero(~complete), indices, distances)
    return Neighbors(indices, distances, _recall(vectors, indices, seed))


@njit(cache=True, parallel=True)
def _rank_found(vectors, found, indices, distances, complete):
    """Order the results of a search by true distance, without the sample itself or gaps."""
    for sample in prange(found.shape[0]):
        distances[sample] = np.inf
        indices[sample] = MAX_SAMPLES
        for rank in range(found.shape[1]):
            other = found[sample, rank]
            if other >= 0 and other != sample:
                distance = _squared_distance(vectors[sample], vectors[other])
                _insert_ties_by_index(distance, other, distances[sample], indices[sample])
        complete[sample] = distances[sample, -1] < np.inf


def _recall(vectors: NDArray[np.floating], indices: NDArray[np.int32], seed: int) -> float:
    """Estimate the fraction of true neighbours that were found, on a thousand samples."""
    n, k = indices.shape
    probes = np.random.default_rng(seed).choice(n, min(n, RECALL_PROBES), replace=False)
    true, distances = np.empty((n, k), np.int32), np.empty((n, k), np.float64)
    search_all(vectors, probes, true, distances)
    hits = (indices[probes][:, :, None] == true[probes][:, None, :]).any(axis=2)
    return float(hits.mean())
