"""The K_s nearest neighbours of every sample, exact or approximate.

Exact search multiplies blocks of samples with each other (one matrix product for two blocks serves
both of them, so half the products of the full table are made) and keeps, while a block's products
are still in cache, the best few candidates of every sample. Their distances are then taken anew
from the differences themselves, so that neither the order nor the ties depend on how a matrix
product was cut up or rounded. Memory is one block of products and the candidates.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import Lock, local
from typing import Literal

import numpy as np
from numba import get_num_threads, njit, prange
from numpy.typing import ArrayLike, NDArray
from threadpoolctl import threadpool_limits

from jule.forward.prepare import MOST_SAMPLES, as_vectors

Method = Literal["exact", "approximate"]

BLOCK = 1024  # samples whose products are made at once ...
WIDTH = 4 * BLOCK  # ... with so many others: 16 MiB a core, about the last-level cache
SPARE = 8  # candidates kept beyond K_s, so that rounding can hardly hide a true neighbour
RECALL_PROBES = 1000
STRIPE = 128  # products whose signs are looked at together; only one with a hit is looked into


@dataclass(frozen=True, eq=False)
class Neighbors:
    """The nearest neighbours of n samples, nearest first, never the sample itself.

    Attributes
    ----------
    indices
        (n, k) int32: whom each sample points to.
    distances
        (n, k) float64: their squared Euclidean distances.
    recall
        The share of true neighbours found: 1.0 for exact search, an estimate otherwise.
    """

    indices: NDArray[np.int32]
    distances: NDArray[np.float64]
    recall: float = 1.0

    @property
    def k(self) -> int:
        """How many neighbours every sample has."""
        return int(self.indices.shape[1])

    def __len__(self) -> int:
        return int(self.indices.shape[0])


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
        How many; at most n - 1.
    method
        ``"exact"``, or ``"approximate"`` (pynndescent; ``pip install "jule[approximate]"``), whose
        recall is estimated on a thousand samples.
    seed
        Of the approximate search alone; the exact one has no chance in it.
    progress
        Called now and then with the share of the work that is done.

    Notes
    -----
    Samples at the same distance come in the order of their numbers.

    Examples
    --------
    >>> found = nearest_neighbors([[0.0], [1.0], [3.0]], k=1)
    >>> found.indices.ravel().tolist(), found.distances.ravel().tolist()
    ([1, 0, 1], [1.0, 1.0, 4.0])
    """
    vectors = as_vectors(samples)
    if not 1 <= k < len(vectors):
        raise ValueError(
            f"k must lie between 1 and n_samples - 1 = {len(vectors) - 1}, got {k}: "
            "a sample is never its own neighbour"
        )
    if method == "exact":
        return _exact(vectors, k, progress)
    if method == "approximate":
        found = _approximate(vectors, k, seed)
        if progress is not None:
            progress(1.0)
        return found
    raise ValueError(f"unknown method {method!r}: choose 'exact' or 'approximate'")


def _exact(
    vectors: NDArray[np.floating], k: int, progress: Callable[[float], None] | None
) -> Neighbors:
    n = len(vectors)
    kept = k + SPARE
    indices = np.empty((n, k), np.int32)
    distances = np.empty((n, k), np.float64)
    if kept >= n - 1:
        _measure_all(vectors, np.arange(n), indices, distances)
        if progress is not None:
            progress(1.0)
        return Neighbors(indices, distances)
    centred = _centred_float32(vectors)
    half_norms = 0.5 * np.einsum("ij,ij->i", centred, centred)
    candidates, bounds = _candidates(centred, half_norms, kept, progress)
    least_left_out = _least_half_distance_left_out(bounds, half_norms, vectors.shape[1])
    certain = np.empty(n, np.bool_)
    _measure_candidates(vectors, candidates, least_left_out, indices, distances, certain)
    # Rows whose last places are tied, or nearly, beyond the candidates (many duplicates).
    _measure_all(vectors, np.flatnonzero(~certain), indices, distances)
    return Neighbors(indices, distances)


def _centred_float32(vectors: NDArray[np.floating]) -> NDArray[np.float32]:
    """Move the mean to the origin: distances stay, and |x|^2 - 2xy + |y|^2 cancels less."""
    mean = vectors.mean(axis=0, dtype=np.float64).astype(vectors.dtype)
    centred: NDArray[np.floating] = vectors - mean
    return centred.astype(np.float32, copy=False)


def _candidates(
    centred: NDArray[np.float32],
    half_norms: NDArray[np.float32],
    kept: int,
    progress: Callable[[float], None] | None,
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Keep, for every sample, the `kept` samples y of least |y|^2/2 - xy, and the largest of these.

    Together with |x|^2/2 that is half the squared distance. Products of a block with itself and
    with what comes after it are enough: read along their rows they serve the samples of the block,
    along their columns the others.

    Every core makes products of its own and selects from them; threads that shared one product
    would spend a good part of their time waiting for each other.
    """
    n = len(centred)
    scores = np.full((n, kept), np.inf, np.float32)
    indices = np.zeros((n, kept), np.int32)
    starts = range(0, n, BLOCK)
    tasks = [(i, j) for i in starts for j in range(i, n, WIDTH)]
    locks = {start: Lock() for start in starts}  # of the candidates of a block's samples
    own = local()

    def select(task: tuple[int, int]) -> None:
        i, j = task
        rows, columns = centred[i : i + BLOCK], centred[j : j + WIDTH]
        if not hasattr(own, "products"):
            own.products = np.empty(BLOCK * WIDTH, np.float32)
        products = own.products[: len(rows) * len(columns)].reshape(len(rows), len(columns))
        # Values too large for float32 overflow; such rows are measured in full afterwards.
        with np.errstate(over="ignore", invalid="ignore"):
            np.matmul(rows, columns.T, out=products)
        with locks[i]:
            _offer_along_rows(products, half_norms, i, j, scores, indices)
        for start in range(max(j, i + BLOCK), j + len(columns), BLOCK):
            with locks[start]:
                stop = min(start + BLOCK, n)
                _offer_along_columns(products, half_norms, i, j, start, stop, scores, indices)

    with threadpool_limits(1, "blas"), ThreadPoolExecutor(get_num_threads()) as pool:
        try:
            for done, _ in enumerate(pool.map(select, tasks), start=1):
                if progress is not None:
                    progress(done / len(tasks))
        except BaseException:
            pool.shutdown(cancel_futures=True)  # Ctrl-C waits for the blocks in hand alone
            raise
    return indices, scores[:, -1]


@njit(cache=True, inline="always")
def _insert(score, index, scores, indices):
    """Put a candidate into a sorted row whose last place it beats."""
    place = scores.shape[0] - 1
    while place > 0 and scores[place - 1] > score:
        scores[place] = scores[place - 1]
        indices[place] = indices[place - 1]
        place -= 1
    scores[place] = score
    indices[place] = index


@njit(cache=True, nogil=True)
def _offer_along_rows(products, half_norms, i, j, scores, indices):
    """Offer the samples from j on, the columns, to the samples from i on, the rows."""
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
                    _insert(score, j + column, own_scores, own_indices)


@njit(cache=True, nogil=True)
def _offer_along_columns(products, half_norms, i, j, first, last, scores, indices):
    """Offer the samples from i on, the rows, to the samples first .. last - 1, some columns."""
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
                    _insert(score, i + row, scores[first + column], indices[first + column])
                    bounds[column] = scores[first + column, -1]


@njit(cache=True, inline="always")
def _none_negative(signs, start, stop):
    """Look at the sign bits of many floats at once: a loop that the compiler can vectorise."""
    together = np.int32(0)
    for place in range(start, stop):
        together |= signs[place]
    return together >= 0


def _least_half_distance_left_out(
    bounds: NDArray[np.float32], half_norms: NDArray[np.float32], d: int
) -> NDArray[np.float64]:
    """Bound from below what any sample outside the candidates can have as half squared distance.

    Rounding errors of a float32 product of length d grow as sqrt(d) unit roundoffs; eight times
    that is exceeded with a probability below 1e-13 (Higham and Mary, 2019).
    """
    roundoff = 8.0 * math.sqrt(d + 16) * 2.0**-24
    own = half_norms.astype(np.float64)
    slack = roundoff * (np.sqrt(own) + math.sqrt(own.max())) ** 2
    with np.errstate(invalid="ignore"):  # inf - inf: not certain, as it should be
        return own + bounds.astype(np.float64) - 2.0 * slack


@njit(cache=True, inline="always", fastmath={"nsz", "contract", "reassoc"})
def _squared_distance(a, b):
    total = 0.0
    for place in range(a.shape[0]):
        difference = np.float64(a[place]) - np.float64(b[place])
        total += difference * difference
    return total


@njit(cache=True, inline="always")
def _insert_ties_by_index(distance, index, distances, indices):
    """Put a neighbour into a row sorted by (distance, index), if it belongs there."""
    last = distances.shape[0] - 1
    if distance > distances[last] or (distance == distances[last] and index > indices[last]):
        return
    place = last
    while place > 0 and (
        distances[place - 1] > distance
        or (distances[place - 1] == distance and indices[place - 1] > index)
    ):
        distances[place] = distances[place - 1]
        indices[place] = indices[place - 1]
        place -= 1
    distances[place] = distance
    indices[place] = index


@njit(cache=True, parallel=True)
def _measure_candidates(vectors, candidates, least_left_out, indices, distances, certain):
    n, kept = candidates.shape
    for sample in prange(n):
        distances[sample] = np.inf
        indices[sample] = MOST_SAMPLES
        for place in range(kept):
            other = candidates[sample, place]
            distance = _squared_distance(vectors[sample], vectors[other])
            _insert_ties_by_index(distance, other, distances[sample], indices[sample])
        certain[sample] = 0.5 * distances[sample, -1] < least_left_out[sample]


@njit(cache=True, parallel=True)
def _measure_all(vectors, doubtful, indices, distances):
    for which in prange(doubtful.shape[0]):
        sample = doubtful[which]
        distances[sample] = np.inf
        indices[sample] = MOST_SAMPLES
        for other in range(vectors.shape[0]):
            if other != sample:
                distance = _squared_distance(vectors[sample], vectors[other])
                _insert_ties_by_index(distance, other, distances[sample], indices[sample])


def _approximate(vectors: NDArray[np.floating], k: int, seed: int) -> Neighbors:
    try:
        from pynndescent import NNDescent
    except ImportError:
        raise ImportError(
            "approximate neighbours need pynndescent: pip install 'jule[approximate]'"
        ) from None
    # One more than wanted: the search lists the sample itself, most often.
    index = NNDescent(vectors, n_neighbors=k + 1, random_state=seed)
    indices = np.empty((len(vectors), k), np.int32)
    distances = np.empty((len(vectors), k), np.float64)
    complete = np.empty(len(vectors), np.bool_)
    _measure_found(vectors, index.neighbor_graph[0], indices, distances, complete)
    _measure_all(vectors, np.flatnonzero(~complete), indices, distances)
    return Neighbors(indices, distances, _recall(vectors, indices, seed))


@njit(cache=True, parallel=True)
def _measure_found(vectors, found, indices, distances, complete):
    """Order what a search found by true distance, without the sample itself or empty places."""
    for sample in prange(found.shape[0]):
        distances[sample] = np.inf
        indices[sample] = MOST_SAMPLES
        for place in range(found.shape[1]):
            other = found[sample, place]
            if other >= 0 and other != sample:
                distance = _squared_distance(vectors[sample], vectors[other])
                _insert_ties_by_index(distance, other, distances[sample], indices[sample])
        complete[sample] = distances[sample, -1] < np.inf


def _recall(vectors: NDArray[np.floating], indices: NDArray[np.int32], seed: int) -> float:
    """Estimate the share of true neighbours among those found, on a thousand samples."""
    n, k = indices.shape
    probes = np.random.default_rng(seed).choice(n, min(n, RECALL_PROBES), replace=False)
    true, distances = np.empty((n, k), np.int32), np.empty((n, k), np.float64)
    _measure_all(vectors, probes, true, distances)
    hits = (indices[probes][:, :, None] == true[probes][:, None, :]).any(axis=2)
    return float(hits.mean())
