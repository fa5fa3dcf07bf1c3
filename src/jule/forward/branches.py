"""The nodes of a merge tree: their order in a line, and numbers that stay with a branch."""

from __future__ import annotations

from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from jule.forward.tree import MergeTree, node_sizes
from jule.jit import njit

MOST_LEVELS = 1000  # of a tree: the nodes of a deeper one are visited one by one

_intervals: WeakKeyDictionary[MergeTree, tuple[NDArray[np.int64], NDArray[np.int64]]] = (
    WeakKeyDictionary()
)


def leaf_intervals(tree: MergeTree) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Arrange the samples in a line so that every node of the tree is an interval.

    Returns
    -------
    starts
        (n + t,) where the interval of each node begins; for a sample, its place in the line.
    splits
        (t,) the last place of the left part of each merge.

    Examples
    --------
    >>> tree = MergeTree(3, np.array([[0, 2], [1, 3]]), np.array([0.5, 0.1]))
    >>> starts, splits = leaf_intervals(tree)
    >>> starts[:3].tolist(), splits.tolist()
    ([1, 0, 2], [1, 0])
    """
    starts, stops = node_intervals(tree)
    return starts, stops[tree.merges[:, 0]] - 1


def node_intervals(tree: MergeTree) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return where the interval of each node begins and ends; see `leaf_intervals`.

    They are kept as long as the tree, because several steps need those of the same one.

    Examples
    --------
    >>> tree = MergeTree(3, np.array([[0, 2], [1, 3]]), np.array([0.5, 0.1]))
    >>> starts, stops = node_intervals(tree)
    >>> starts[3:].tolist(), stops[3:].tolist()
    ([1, 0], [3, 3])
    """
    if tree not in _intervals:
        _intervals[tree] = _compute_intervals(tree)
    return _intervals[tree]


def _compute_intervals(tree: MergeTree) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    levels = _levels(tree)
    begin, end = _by_node(tree) if levels is None else _by_level(tree, levels)
    for array in (begin, end):
        array.flags.writeable = False  # others may use it
    return begin, end


def _levels(tree: MergeTree) -> list[NDArray[np.int64]] | None:
    """Return the merges by their depth in the tree, from the top; None if it is very deep."""
    levels = [np.flatnonzero(_is_root(tree)[tree.n_samples :])]
    while len(levels[-1]):
        if len(levels) > MOST_LEVELS:
            return None
        below = tree.merges[levels[-1]].ravel() - tree.n_samples
        levels.append(below[below >= 0])
    return levels


def _is_root(tree: MergeTree) -> NDArray[np.bool_]:
    is_root = np.ones(tree.n_samples + len(tree.merges), bool)
    is_root[tree.merges] = False
    return is_root


def _by_level(
    tree: MergeTree, levels: list[NDArray[np.int64]]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    n = tree.n_samples
    lefts, rights = tree.merges.T
    sizes = np.ones(n + len(tree.merges), np.int64)
    for level in reversed(levels):
        sizes[n + level] = sizes[lefts[level]] + sizes[rights[level]]
    starts = np.empty_like(sizes)
    roots = np.flatnonzero(_is_root(tree))[::-1]
    starts[roots] = np.cumsum(sizes[roots]) - sizes[roots]
    for level in levels:
        starts[lefts[level]] = starts[n + level]
        starts[rights[level]] = starts[n + level] + sizes[lefts[level]]
    return starts, starts + sizes


def _by_node(tree: MergeTree) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    # Lists, because loading a compiled kernel takes longer than this loop over 100,000 samples.
    lefts, rights = tree.merges.T.tolist()
    sizes = [1] * tree.n_samples
    for left, right in zip(lefts, rights, strict=True):
        sizes.append(sizes[left] + sizes[right])
    starts = [0] * len(sizes)
    free = 0
    for root in np.flatnonzero(_is_root(tree))[::-1].tolist():
        starts[root] = free
        free += sizes[root]
    # The start of a node is known before those of its parts, which have smaller numbers.
    for start, left, right in zip(*map(reversed, (starts, lefts, rights)), strict=False):
        starts[left] = start
        starts[right] = start + sizes[left]
    begin = np.array(starts, np.int64)
    return begin, begin + np.array(sizes, np.int64)


def branch_numbers(
    tree: MergeTree, labels: NDArray[np.integer], shelf: int | None = None
) -> NDArray[np.int32]:
    """Number the nodes of a tree so that a cluster keeps its number while the tree is recut.

    The nodes of the K clusters have their labels as numbers. Above them, a merged node keeps the
    number of its larger part (of equal ones, the smaller number). Below them, the larger part of a
    node keeps its number (of equal ones, the smaller node), and the other part of merge t gets the
    number n - 1 - t: splitting K clusters into K + 1 creates number K.

    Parameters
    ----------
    tree
        A complete tree whose cut into K clusters is `labels`; see `tree_through_labels`.
    labels
        (n,) clusters 0 .. K-1.
    shelf
        A cluster whose samples do not count, so that what it merges with keeps its number.

    Returns
    -------
    numbers
        (n + t,) the number of every node.

    Examples
    --------
    >>> merges = np.array([[0, 1], [3, 4], [2, 6], [5, 7]])
    >>> tree = MergeTree(5, merges, np.zeros(4))
    >>> branch_numbers(tree, np.array([0, 0, 1, 1, 1]))[-4:].tolist()
    [0, 1, 1, 1]
    """
    numbers: NDArray[np.int32] = _branch_numbers(
        tree.n_samples, tree.merges, labels, int(labels.max()) + 1, -1 if shelf is None else shelf
    )
    return numbers


@njit(cache=True)
def _branch_numbers(n, merges, labels, k, shelf):
    sizes = node_sizes(n, merges)
    if shelf >= 0:
        for leaf in range(n):
            sizes[leaf] = labels[leaf] != shelf
        for t in range(merges.shape[0]):
            sizes[n + t] = sizes[merges[t, 0]] + sizes[merges[t, 1]]
    numbers = np.full(sizes.shape[0], -1, np.int32)
    sample = np.empty(sizes.shape[0], np.int64)  # any sample below each node
    sample[:n] = np.arange(n)
    for t in range(merges.shape[0]):
        sample[n + t] = sample[merges[t, 0]]
    for t in range(n - k, merges.shape[0]):
        for side in range(2):
            child = merges[t, side]
            if child < 2 * n - k:  # a node of the cut into k clusters
                numbers[child] = labels[sample[child]]
        left, right = merges[t, 0], merges[t, 1]
        larger = left
        if sizes[right] > sizes[left] or (
            sizes[right] == sizes[left] and numbers[right] < numbers[left]
        ):
            larger = right
        numbers[n + t] = numbers[larger]
    if k == 1:
        numbers[-1] = 0
    for t in range(n - k - 1, -1, -1):
        left, right = merges[t, 0], merges[t, 1]
        larger, other = (right, left) if sizes[right] > sizes[left] else (left, right)
        numbers[larger] = numbers[n + t]
        numbers[other] = n - 1 - t
    return numbers
