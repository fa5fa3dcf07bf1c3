"""Exact nearest neighbours, by matrix products between blocks of samples.

One product serves the samples of both blocks, so half the products of the full table are needed.
The best candidates of every sample are selected while a block is in cache. Their distances are then
recomputed from the differences, so that neither the order nor the ties depend on the blocks or on
rounding. Besides a copy of the samples, the search needs memory for one block of products per core
and for the candidates.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from threading import Lock, local

import numpy as np
from numpy.typing import NDArray

from jule.forward.neighbors import Neighbors
from jule.forward.prepare import MAX_SAMPLES
from jule.jit import get_num_threads, njit, prange
from jule.scratch import scratch_array

BLOCK = 1024  # rows of a block of products ...
WIDTH = 4 * BLOCK  # ... and its columns: 16 MiB per core, about the last-level cache
N_SPARE = 8  # candidates beyond K_s, so that rounding hardly ever hides a true neighbour
STRIPE = 128  # products whose signs are tested together, before any of them is compared


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
    everyone = np.arange(n, dtype=np.int32)
    rank_candidates(vectors, everyone, candidates, half_bounds, indices, distances, certain)
    # Rows with nearly equal distances beyond the candidates, as among many duplicates.
    search_all(vectors, np.flatnonzero(~certain), indices, distances)
    return Neighbors(indices, distances)


def centred_float32(vectors: NDArray[np.floating]) -> NDArray[np.float32]:
    """Subtract the mean, which reduces the cancellation in |x|^2 - 2xy + |y|^2."""
    mean = vectors.mean(axis=0, dtype=np.float64).astype(vectors.dtype)
    centred = scratch_array(vectors.shape, np.float32)
    for start in range(0, len(vectors), BLOCK):
        centred[start : start + BLOCK] = vectors[start : start + BLOCK] - mean
    return centred


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
            own_rows = np.arange(len(rows), dtype=np.int32)
            norms = half_norms[j : j + len(columns)]
            select_along_rows(products, norms, own_rows, i, j, scores[i:], indices[i:])
        for start in range(max(j, i + BLOCK), j + len(columns), BLOCK):
            with locks[start]:
                stop = min(start + BLOCK, n)
                _select_along_columns(products, half_norms, i, j, start, stop, scores, indices)

    from concurrent.futures import ThreadPoolExecutor  # most commands search nothing

    from threadpoolctl import threadpool_limits

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
def select_along_rows(products, norms, rows, first, j, scores, indices):
    """Update the candidates of some samples with the samples of the columns.

    Parameters
    ----------
    products
        (r, c) of samples with the samples j, j + 1, ...
    norms
        (c,) half the squared norms of the latter.
    rows
        (r,) int32: the rows of `scores` and `indices` that belong to the former.
    first
        The sample of the first row of `scores`; a sample is never its own candidate.
    scores, indices
        The candidates so far, sorted; updated in place.
    """
    n_rows, n_columns = products.shape
    margins = np.empty(n_columns, np.float32)
    signs = margins.view(np.int32)
    for row in range(n_rows):
        own_scores, own_indices = scores[rows[row]], indices[rows[row]]
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
                if score < own_scores[-1] and j + column != first + rows[row]:
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
def rank_candidates(vectors, samples, candidates, half_bounds, indices, distances, certain):
    """Order the candidates of some samples by true distance, and keep the best."""
    n, n_candidates = candidates.shape
    for row in prange(n):
        distances[row] = np.inf
        indices[row] = MAX_SAMPLES
        for rank in range(n_candidates):
            other = candidates[row, rank]
            distance = _squared_distance(vectors[samples[row]], vectors[other])
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
