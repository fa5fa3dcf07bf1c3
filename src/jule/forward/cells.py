"""Approximate nearest neighbours: compare every sample only with those of the nearest cells.

K-means divides the samples into cells of some five hundred. A sample is compared, by matrix
products, with all samples of the cells whose centres are nearest to it. How many cells that takes
is read off the data: the true neighbours of a few hundred samples are found first, and as many
cells are searched as hold 99 % of them. The recall is then measured on a few hundred others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from jule.forward.exact import N_SPARE, rank_candidates, search_exactly, select_along_rows
from jule.forward.init import cluster_means
from jule.forward.neighbors import Neighbors
from jule.jit import get_num_threads
from jule.scratch import scratch_array

CELL = 512  # samples per cell: products with as many columns run at full speed
LARGEST = 2 * CELL  # larger cells are halved
FEWEST_CELLS = 16  # with fewer, comparing all samples is as fast
TRAINED_ON = 64  # samples per cell, from which K-means finds the centres ...
N_ITERATIONS = 8  # ... in so many iterations: cells need not be the best ones
QUERIES = 1024  # samples whose neighbours are searched at once
RECALL = 0.99  # share of the true neighbours to be found
N_PROBES = 256  # samples that decide how many cells are searched, and as many that test it
SCORES_AT_ONCE = 2**26  # numbers in the table of some samples against all


@dataclass(frozen=True, eq=False)
class Cells:
    """Samples divided into cells, and how many of the cells are searched for each of them.

    Attributes
    ----------
    order
        (n,) int32: all samples, those of the first cell first.
    bounds
        (c + 1,) int64: where each cell starts in `order`, and where the last one ends.
    centres
        (c, d) float32: the mean of every cell, after the mean of all samples was subtracted.
    n_searched
        Number of cells that are searched for each sample.
    probes, reaches
        Samples that test the search, and half the squared distance to the farthest of their true
        neighbours; only the process that measures the recall knows them.
    """

    order: NDArray[np.int32]
    bounds: NDArray[np.int64]
    centres: NDArray[np.float32]
    n_searched: int
    probes: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    reaches: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))


def search_cells(
    vectors: NDArray[np.floating],
    k: int,
    seed: int = 0,
    progress: Callable[[float], None] | None = None,
) -> Neighbors:
    """Find approximate neighbours of checked vectors, in this process.

    The search is exact if there are few samples, or if their neighbours are spread over so many
    cells that comparing all samples is as fast.

    Examples
    --------
    >>> search_cells(np.eye(3), 1).recall
    1.0
    """
    cells = divide(vectors, k, seed)
    if cells is None:
        return search_exactly(vectors, k, progress)
    return arrange(cells, *search_rows(vectors, cells, k, 0, len(vectors), progress))


def divide(vectors: NDArray[np.floating], k: int, seed: int) -> Cells | None:
    """Divide samples into cells; return None if searching them would not pay.

    Examples
    --------
    >>> divide(np.eye(3), 1, seed=0) is None
    True
    """
    n = len(vectors)
    if n < FEWEST_CELLS * CELL or k + N_SPARE >= CELL:
        return None
    mean = vectors.mean(axis=0, dtype=np.float64).astype(vectors.dtype)
    rng = np.random.default_rng(seed)
    labels = _halve_large_cells(vectors, _kmeans(vectors, mean, n // CELL, rng))
    order = np.argsort(labels, kind="stable").astype(np.int32)
    bounds = np.concatenate([[0], np.cumsum(np.bincount(labels))])
    centres = (cluster_means(vectors, labels) - mean).astype(np.float32)
    probes = rng.choice(n, min(n, 2 * N_PROBES), replace=False)
    ranked = _ranked(vectors, order)
    with np.errstate(over="ignore", invalid="ignore"):
        half_norms = _half_norms(ranked)
        if not np.isfinite(half_norms).all():
            return None  # the products of these samples are beyond float32
    positions = np.empty(n, np.int64)
    positions[order] = np.arange(n)
    reaches, shares = _true_neighbors(ranked, half_norms, bounds, centres, positions[probes], k)
    enough = np.flatnonzero(shares[::2].mean(axis=0) >= RECALL)
    n_searched = int(enough[0]) + 1 if len(enough) else len(centres)
    if n_searched * CELL >= n / 2:  # an exact search computes half of all products
        return None
    return Cells(order, bounds, centres, n_searched, probes[1::2], reaches[1::2])


def search_rows(
    vectors: NDArray[np.floating],
    cells: Cells,
    k: int,
    first: int,
    last: int,
    progress: Callable[[float], None] | None = None,
) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    """Find the neighbours of the samples ``cells.order[first:last]``.

    Returns their indices and squared distances, (last - first, k), nearest first.
    """
    ranked = _ranked(vectors, cells.order)
    half_norms = _half_norms(ranked)
    candidates = np.empty((last - first, k + N_SPARE), np.int32)

    def search(start: int) -> None:
        stop = min(start + QUERIES, last)
        candidates[start - first : stop - first] = cells.order[
            _candidates(ranked, half_norms, cells, start, stop, k + N_SPARE)
        ]

    starts = range(first, last, QUERIES)
    for done, _ in enumerate(_on_all_cores(search, starts), start=1):
        if progress is not None:
            progress(done / len(starts))
    indices = np.empty((last - first, k), np.int32)
    distances = np.empty((last - first, k), np.float64)
    bounds, certain = np.zeros(last - first), np.empty(last - first, np.bool_)
    samples = cells.order[first:last]
    rank_candidates(vectors, samples, candidates, bounds, indices, distances, certain)
    return indices, distances


def arrange(cells: Cells, indices: NDArray[np.int32], distances: NDArray[np.float64]) -> Neighbors:
    """Return the neighbours found for ``cells.order`` in the order of the samples.

    The recall is measured on samples that had no part in choosing how many cells are searched.
    """
    sorted_indices, sorted_distances = np.empty_like(indices), np.empty_like(distances)
    sorted_indices[cells.order] = indices
    sorted_distances[cells.order] = distances
    reached = 0.5 * sorted_distances[cells.probes] <= cells.reaches[:, None]
    return Neighbors(sorted_indices, sorted_distances, float(reached.mean()))


# ---- the cells


def _kmeans(
    vectors: NDArray[np.floating], mean: NDArray, n_cells: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Return the cell of every sample, by K-means on some of them."""
    some = rng.choice(len(vectors), min(len(vectors), TRAINED_ON * n_cells), replace=False)
    sample = (vectors[np.sort(some)] - mean).astype(np.float32)
    centres = sample[rng.choice(len(sample), n_cells, replace=False)]
    for _ in range(N_ITERATIONS):
        nearest = nearest_centres(sample, centres, 1)[:, 0]
        centres = cluster_means(sample, np.unique(nearest, return_inverse=True)[1])
    labels = np.empty(len(vectors), np.int64)
    step = QUERIES * 16
    for start in range(0, len(vectors), step):
        block = (vectors[start : start + step] - mean).astype(np.float32)
        labels[start : start + step] = nearest_centres(block, centres, 1)[:, 0]
    return np.unique(labels, return_inverse=True)[1]


def _halve_large_cells(
    vectors: NDArray[np.floating], labels: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Halve cells until none is large, as K-means cannot do among many copies of a sample."""
    labels = labels.copy()
    n_cells = int(labels.max()) + 1
    order = np.argsort(labels, kind="stable")
    waiting = np.split(order, np.cumsum(np.bincount(labels))[:-1])
    while waiting:
        members = waiting.pop()
        if len(members) <= LARGEST:
            continue
        own = vectors[members]
        members = members[np.argsort(own[:, own.var(axis=0).argmax()], kind="stable")]
        half = len(members) // 2
        labels[members[half:]] = n_cells
        n_cells += 1
        waiting += [members[:half], members[half:]]
    return labels


def nearest_centres(
    vectors: NDArray[np.float32], centres: NDArray[np.float32], count: int
) -> NDArray[np.int32]:
    """Return the centres that are nearest to every vector, nearest first.

    Examples
    --------
    >>> line = np.array([[0.0], [5.0], [9.0]], np.float32)
    >>> nearest_centres(np.array([[6.0]], np.float32), line, 2).tolist()
    [[1, 2]]
    """
    half_norms = _half_norms(centres)
    nearest = np.zeros((len(vectors), count), np.int32)

    def search(start: int) -> None:
        block = vectors[start : start + QUERIES]
        scores = np.full((len(block), count), np.inf, np.float32)
        rows = np.arange(len(block), dtype=np.int32)
        own = nearest[start : start + QUERIES]
        select_along_rows(block @ centres.T, half_norms, rows, -len(block), 0, scores, own)

    for _ in _on_all_cores(search, range(0, len(vectors), QUERIES)):
        pass
    return nearest


# ---- the search


def _candidates(
    ranked: NDArray[np.float32],
    half_norms: NDArray[np.float32],
    cells: Cells,
    first: int,
    last: int,
    n_candidates: int,
) -> NDArray[np.int32]:
    """Return the best candidates of the samples at the positions first .. last - 1."""
    queries = ranked[first:last]
    scores = np.full((len(queries), n_candidates), np.inf, np.float32)
    candidates = np.zeros((len(queries), n_candidates), np.int32)
    nearest = _few_nearest(queries, cells)
    by_cell = np.argsort(nearest.ravel(), kind="stable").astype(np.int32)
    searched = nearest.ravel()[by_cell]
    starts = np.flatnonzero(np.diff(searched, prepend=-1))
    stops = np.append(starts[1:], len(searched))
    # The cells of most of these samples first: their candidates soon rule out most others.
    for group in np.argsort(starts - stops):
        start, stop = starts[group], stops[group]
        rows = by_cell[start:stop] // nearest.shape[1]
        low, high = cells.bounds[searched[start]], cells.bounds[searched[start] + 1]
        products = queries[rows] @ ranked[low:high].T
        select_along_rows(products, half_norms[low:high], rows, first, low, scores, candidates)
    # Outliers whose nearest cells hold too few samples are compared with all of them.
    lacking = np.flatnonzero(np.isinf(scores[:, -1])).astype(np.int32)
    scores[lacking] = np.inf
    at_once = max(1, SCORES_AT_ONCE // len(ranked))
    for start in range(0, len(lacking), at_once):
        rows = lacking[start : start + at_once]
        products = queries[rows] @ ranked.T
        select_along_rows(products, half_norms, rows, first, 0, scores, candidates)
    return candidates


def _few_nearest(queries: NDArray[np.float32], cells: Cells) -> NDArray[np.int32]:
    """Return the nearest cells of some samples; unlike `nearest_centres`, on one core."""
    count = cells.n_searched
    scores = np.full((len(queries), count), np.inf, np.float32)
    nearest = np.zeros((len(queries), count), np.int32)
    rows = np.arange(len(queries), dtype=np.int32)
    products = queries @ cells.centres.T
    select_along_rows(products, _half_norms(cells.centres), rows, -len(queries), 0, scores, nearest)
    return nearest


def _true_neighbors(
    ranked: NDArray[np.float32],
    half_norms: NDArray[np.float32],
    bounds: NDArray[np.int64],
    centres: NDArray[np.float32],
    positions: NDArray[np.int64],
    k: int,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Find the true neighbours of the samples at some positions, and the cells that hold them.

    Returns half the squared distance to the farthest of the k neighbours of each sample, and the
    share of them (p, c) that is found in the nearest 1, 2, ... cells. Samples at the same distance
    count alike.
    """
    n_cells = len(centres)
    at_once = max(1, SCORES_AT_ONCE // len(ranked))
    reaches = np.empty(len(positions))
    shares = np.empty((len(positions), n_cells))
    by_distance = np.argsort(_half_norms(centres) - ranked[positions] @ centres.T, axis=1)
    cell_of = np.repeat(np.arange(n_cells), np.diff(bounds))

    def compare(start: int) -> None:
        own = positions[start : start + at_once]
        products = ranked[own] @ ranked.T
        products[np.arange(len(own)), own] = -np.inf  # a sample is not its own neighbour
        best = np.full((len(own), k), np.inf, np.float32)
        rows = np.arange(len(own), dtype=np.int32)
        select_along_rows(
            products, half_norms, rows, -len(own), 0, best, np.empty_like(rows, shape=best.shape)
        )
        slack = 1e-5 * (half_norms[own] + np.abs(best[:, -1]))  # rounding of the products
        limits = best[:, -1] + slack
        near, others = np.nonzero(half_norms - products <= limits[:, None])
        held = np.bincount(near * n_cells + cell_of[others], minlength=len(own) * n_cells)
        held = held.reshape(len(own), n_cells)
        found = np.take_along_axis(held, by_distance[start : start + at_once], axis=1).cumsum(
            axis=1
        )
        shares[start : start + at_once] = np.minimum(found, k) / k
        reaches[start : start + at_once] = half_norms[own] + limits.astype(np.float64)

    for _ in _on_all_cores(compare, range(0, len(positions), at_once)):
        pass
    return reaches, shares


def _ranked(vectors: NDArray[np.floating], order: NDArray[np.int32]) -> NDArray[np.float32]:
    """Return the samples in the order of their cells, without their mean."""
    mean = vectors.mean(axis=0, dtype=np.float64).astype(vectors.dtype)
    ranked = scratch_array(vectors.shape, np.float32)
    for start in range(0, len(order), QUERIES):
        ranked[start : start + QUERIES] = vectors[order[start : start + QUERIES]] - mean
    return ranked


def _half_norms(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    norms: NDArray[np.float32] = 0.5 * np.einsum("ij,ij->i", vectors, vectors)
    return norms


def _on_all_cores(work: Callable[[int], None], tasks: Iterable[int]) -> Iterable[None]:
    """Call a function for every task, one thread per core; yield after each of them."""
    from concurrent.futures import ThreadPoolExecutor  # most commands search nothing

    from threadpoolctl import threadpool_limits

    with threadpool_limits(1, "blas"), ThreadPoolExecutor(get_num_threads()) as pool:
        try:
            yield from pool.map(work, tasks)
        except BaseException:
            pool.shutdown(cancel_futures=True)  # Ctrl-C waits for the current blocks only
            raise
