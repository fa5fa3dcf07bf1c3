"""Neighbours found by several processes, each of which holds all vectors.

In an exact search, each pair of blocks is multiplied by one process. Every process then owns a
range of samples: it gets the candidates that the others found for them, and ranks them as a single
process does. In an approximate search, every process searches the cells for a range of samples. The
neighbours and their distances are therefore those of `nearest_neighbors`, ties included.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from jule.forward.cells import Cells, arrange, search_rows
from jule.forward.exact import (
    N_SPARE,
    block_pairs,
    centred_float32,
    find_candidates,
    half_distance_bounds,
    insert_candidate,
    rank_candidates,
    search_all,
)
from jule.forward.neighbors import Neighbors
from jule.jit import njit


class Sharers(Protocol):
    """The processes that share a search; `jule.ranks.Ranks` is one."""

    rank: int
    size: int

    def exchange_rows(self, rows: NDArray, counts: Sequence[int]) -> NDArray:
        """Give every process the rows that it owns, as each of the processes has them."""

    def gather_rows(self, part: NDArray, counts: Sequence[int]) -> NDArray | None:
        """Return the rows of all processes, in their order, to the first one; None to others."""


def is_worth_sharing(n_samples: int, k: int, size: int) -> bool:
    """Return whether a search has a pair of blocks for each of several processes.

    Examples
    --------
    >>> is_worth_sharing(1000, 20, 2), is_worth_sharing(2000, 20, 2)
    (False, True)
    """
    return size > 1 and k + N_SPARE < n_samples - 1 and len(block_pairs(n_samples)) >= size


def shares_of_pairs(n_samples: int, size: int) -> list[list[tuple[int, int]]]:
    """Deal the pairs of blocks to processes, so that all have about as many products.

    Examples
    --------
    >>> shares_of_pairs(3000, 2)
    [[(0, 0)], [(1024, 1024), (2048, 2048)]]
    """
    pairs = block_pairs(n_samples)
    shares: list[list[tuple[int, int]]] = [[] for _ in range(size)]
    loads = [(0, rank) for rank in range(size)]
    for pair in sorted(pairs, key=lambda pair: -pairs[pair]):  # the largest first
        load, rank = heapq.heappop(loads)
        shares[rank].append(pair)
        heapq.heappush(loads, (load + pairs[pair], rank))
    return [sorted(share) for share in shares]


def even_counts(n_samples: int, size: int, multiple: int = 1) -> list[int]:
    """Return how many samples each of several processes owns, in multiples except for the last.

    Examples
    --------
    >>> even_counts(10, 3), even_counts(1200, 2, 500), even_counts(400, 2, 500)
    ([3, 3, 4], [500, 700], [0, 400])
    """
    ends = [n_samples * (rank + 1) // size // multiple * multiple for rank in range(size)]
    ends[-1] = n_samples
    return [end - start for start, end in pairwise([0, *ends])]


def search_together(
    vectors: NDArray[np.floating],
    k: int,
    ranks: Sharers,
    progress: Callable[[float], None] | None = None,
) -> Neighbors | None:
    """Find the k nearest neighbours of every sample, together with the other processes.

    All processes call this with the same vectors; `is_worth_sharing` must be true.

    Returns
    -------
    Neighbors
        The neighbours, in the first process; None in the others.
    """
    n = len(vectors)
    counts = even_counts(n, ranks.size)
    first = sum(counts[: ranks.rank])
    own = slice(first, first + counts[ranks.rank])
    centred = centred_float32(vectors)
    half_norms = 0.5 * np.einsum("ij,ij->i", centred, centred)
    share = shares_of_pairs(n, ranks.size)[ranks.rank]
    scores, candidates = find_candidates(centred, half_norms, k + N_SPARE, progress, share)
    del centred
    scores, candidates = (ranks.exchange_rows(each, counts) for each in (scores, candidates))
    _merge_candidates(scores, candidates)
    bounds = np.full(n, np.inf, np.float32)
    bounds[own] = scores[0, :, -1]
    half_bounds = half_distance_bounds(bounds, half_norms, vectors.shape[1])[own]
    indices = np.empty((counts[ranks.rank], k), np.int32)
    distances = np.empty((counts[ranks.rank], k), np.float64)
    certain = np.empty(len(indices), np.bool_)
    samples = np.arange(own.start, own.stop, dtype=np.int32)
    rank_candidates(vectors, samples, candidates[0], half_bounds, indices, distances, certain)
    search_all(vectors, first + np.flatnonzero(~certain), indices, distances, first)
    all_indices = ranks.gather_rows(indices, counts)
    all_distances = ranks.gather_rows(distances, counts)
    if all_indices is None or all_distances is None:
        return None
    return Neighbors(all_indices, all_distances)


def search_cells_together(
    vectors: NDArray[np.floating],
    cells: Cells,
    k: int,
    ranks: Sharers,
    progress: Callable[[float], None] | None = None,
) -> Neighbors | None:
    """Find approximate neighbours of every sample, together with the other processes.

    All processes call this with the same vectors and cells.

    Returns
    -------
    Neighbors
        The neighbours, in the first process; None in the others.
    """
    counts = even_counts(len(vectors), ranks.size)
    first = sum(counts[: ranks.rank])
    own = search_rows(vectors, cells, k, first, first + counts[ranks.rank], progress)
    indices, distances = (ranks.gather_rows(each, counts) for each in own)
    if indices is None or distances is None:
        return None
    return arrange(cells, indices, distances)


@njit(cache=True)
def _merge_candidates(scores, indices):
    """Merge the candidates of all processes, sorted rows (p, m, c), into those of the first."""
    for other in range(1, scores.shape[0]):
        for row in range(scores.shape[1]):
            for rank in range(scores.shape[2]):
                score = scores[other, row, rank]
                if not score < scores[0, row, -1]:
                    break
                insert_candidate(score, indices[other, row, rank], scores[0, row], indices[0, row])
