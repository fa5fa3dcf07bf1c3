"""The images that the page of a large run shows, and the merge tree of these alone.

A page with every image of a run of a million would be too large to open. It shows some of them, the
same share of every part of the merge tree: each stands for the images around it in the tree.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from jule.forward import MergeTree
from jule.forward.branches import leaf_intervals
from jule.forward.tree import node_sizes
from jule.runs.results import RunResults

WHOLE_MOST = 16_000_000  # bytes of a page with all images; one that would be larger has a sample
SAMPLE_MOST = 4_000_000  # bytes of the images of such a sample
MOST_GROUPS = 300  # numbers of clusters that the slider shows
FEWEST_NEIGHBORS = 8  # of each kind, per image
NEIGHBOR_MOST = 4_000_000  # bytes of neighbours, unless the fewest take more
NEIGHBOR_BYTES = 2 * (4 + 1)  # of one neighbour of each kind, with its affinity
# Per image: labels, confidence, tree, place, neighbours, map.
ARRAY_BYTES = 4 + 2 + 8 + 4 + 4 + FEWEST_NEIGHBORS * NEIGHBOR_BYTES + 16 * 2


@dataclass(frozen=True, eq=False)
class Sample:
    """Some samples of a run, and the tree in which they merge.

    Attributes
    ----------
    rows
        (m,) the samples, by their rows in labels.csv, in order.
    stands_for
        (n,) for every sample of the run, the place in `rows` of the one that stands for it: nearby
        in the tree, and in the same cluster.
    merges, affinities
        The merges of the tree that join any of `rows`, in the order of the tree; `rows` are
        numbered 0 .. m-1, and the result of merge t is m + t.
    sizes
        (m + t,) how many samples of the run each node has when it is merged.
    n_copies, n_forced
        How many of these merges join what is kept together, at the beginning, and what is kept
        apart, at the end; see `MergeTree`.
    """

    rows: NDArray[np.int64]
    stands_for: NDArray[np.int32]
    merges: NDArray[np.int32]
    affinities: NDArray[np.float32]
    sizes: NDArray[np.int32]
    n_copies: int = 0
    n_forced: int = 0

    @cached_property
    def counts(self) -> NDArray[np.int32]:
        """How many samples of the run each of the rows stands for."""
        return np.bincount(self.stands_for, minlength=len(self.rows)).astype(np.int32)

    @classmethod
    def of(cls, tree: MergeTree, labels: NDArray[np.integer], rows: NDArray[np.integer]) -> Sample:
        """Find the tree of some samples.

        Parameters
        ----------
        tree
            The tree of the run; its cut into as many clusters as there are is `labels`.
        labels
            (n,) clusters.
        rows
            Different samples, in order.

        Examples
        --------
        >>> tree = MergeTree(4, np.array([[0, 1], [2, 3], [4, 5]]), np.array([0.5, 0.4, 0.1]))
        >>> some = Sample.of(tree, np.zeros(4, int), np.array([0, 2]))
        >>> some.merges.tolist(), some.sizes.tolist(), some.stands_for.tolist()
        ([[0, 1]], [2, 2, 4], [0, 0, 1, 1])
        """
        starts, splits = leaf_intervals(tree)
        n, n_merges = tree.n_samples, len(tree.merges)
        places = starts[:n]
        order = np.argsort(places[rows])
        line = places[rows][order]  # the places of the rows, from left to right
        between = np.full(n, n_merges)  # the merge that joins each place with the next
        between[splits] = np.arange(n_merges)
        joined = np.maximum.reduceat(between[: line[-1]], line[:-1]) if len(line) > 1 else line[:0]
        merges, sizes = _merges_of(tree, joined, order, len(rows))
        is_root = np.ones(n + n_merges, bool)
        is_root[tree.merges] = False
        roots = np.flatnonzero(is_root)
        by_place = roots[np.argsort(starts[roots])]
        whole = node_sizes(n, tree.merges)
        at = np.searchsorted(starts[by_place], places[rows], "right") - 1
        alone = sizes[: len(rows)] == 0  # which nothing merges with
        sizes[: len(rows)][alone] = whole[by_place[at[alone]]]
        sizes[sizes == 0] = whole[roots].max()
        found = np.sort(joined[joined < n_merges])
        return cls(
            np.asarray(rows, np.int64),
            _stands_for(places, labels, line, order),
            merges,
            tree.affinities[found].astype(np.float32),
            sizes,
            int((found < tree.n_copies).sum()),
            int((found >= n_merges - tree.n_forced).sum()),
        )


def _merges_of(
    tree: MergeTree, joined: NDArray[np.int64], order: NDArray[np.int64], m: int
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return the merges of samples that are in a line, and the sizes of the nodes that merge.

    `joined` is the merge of the tree that joins each with the next in the line.
    """
    whole = node_sizes(tree.n_samples, tree.merges)
    steps = np.argsort(joined, kind="stable")
    steps = steps[joined[steps] < len(tree.merges)]
    first, last = np.arange(m), np.arange(m)  # of the node that ends, and begins, at each place
    node = order.copy()  # by the first place of each
    merges = np.empty((len(steps), 2), np.int32)
    sizes = np.zeros(m + len(steps), np.int32)
    for step, at in enumerate(steps.tolist()):
        left, right = int(first[at]), at + 1
        end = int(last[right])
        merges[step] = node[left], node[right]
        sizes[merges[step]] = whole[tree.merges[joined[at]]]
        first[end], last[left], node[left] = left, end, m + step
    return merges, sizes


def _stands_for(
    places: NDArray[np.int64],
    labels: NDArray[np.integer],
    line: NDArray[np.int64],
    order: NDArray[np.int64],
) -> NDArray[np.int32]:
    """Return the row that stands for each sample: the last one before it in its cluster."""
    in_line = np.empty(len(places), np.int64)
    in_line[places] = np.arange(len(places))
    own = labels[in_line]
    before = np.searchsorted(line, np.arange(len(places)), "right") - 1
    after = np.minimum(before + 1, len(line) - 1)
    fits = (before >= 0) & (own == own[line[before]])
    found = np.where(fits, before, after)
    stands = np.empty(len(places), np.int32)
    stands[in_line] = order[found]
    return stands


def most_shown(results: RunResults) -> int:
    """Return how many images the page of a run shows: all of them, if they are not too many."""
    n = len(results.names)
    each = 4 * ARRAY_BYTES / 3 + 3 + sum(map(len, results.names)) / n
    return n if n * each <= WHOLE_MOST else int(SAMPLE_MOST / each)


def neighbors_shown(results: RunResults) -> int:
    """Return how many neighbours of every image a page of all images has.

    With all of them, the page computes the confidence in any clusters as Python does.
    """
    n = len(results.names)
    fitting = NEIGHBOR_MOST // (n * 4 * NEIGHBOR_BYTES // 3)
    return min(results.result.neighbors.k, max(FEWEST_NEIGHBORS, fitting))


def choose_rows(results: RunResults, count: int, listed: Iterable[int] = ()) -> NDArray[np.int64]:
    """Choose about as many samples as asked for, evenly from the tree.

    Every branch with the n-th part of `count` of all samples has one of them, so cuts of their
    tree are those of the whole one. Every cluster that the slider can show has one, too.

    Parameters
    ----------
    results
        The results of the run.
    count
        How many.
    listed
        Samples that must be among them.
    """
    tree = results.result.tree
    n = tree.n_samples
    starts, _ = leaf_intervals(tree)
    in_line = np.argsort(starts[:n])
    evenly = in_line[:: max(1, -(-n // count))]
    merged = max(0, min(len(tree.merges), n - max(MOST_GROUPS, results.result.n_clusters)))
    gone = np.zeros(n + merged, bool)
    gone[tree.merges[:merged]] = True
    of_groups = in_line[starts[np.flatnonzero(~gone)]]
    some = np.fromiter(listed, np.int64)
    return np.unique(np.concatenate([evenly, of_groups, some]))
