"""Rearrange a merge tree so that it passes through given labels.

Labels need not be a cut of the tree: the labels of the recurrent process, labels that were edited
by hand, and exact copies that must stay together may all disagree with it. The tree is rearranged
so that they become a cut.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from jule.forward.affinity import Digraph
from jule.forward.agglomerate import join_by_distance
from jule.forward.branches import leaf_intervals
from jule.forward.init import find_root
from jule.forward.linkage import merge_clusters
from jule.forward.tree import MergeTree
from jule.jit import njit


def tree_through_labels(
    tree: MergeTree,
    labels: NDArray[np.integer],
    graph: Digraph,
    vectors: NDArray[np.floating],
    *,
    first_copies: NDArray[np.integer] | None = None,
    n_near: int = 5,
    lam: float = 1.0,
    apart: NDArray[np.integer] | None = None,
) -> MergeTree:
    """Rearrange a merge tree so that its cut into K clusters is exactly the given labels.

    Within each cluster, the merges are those of the tree, restricted to its samples and in the same
    order. The clusters themselves are then merged by graph degree linkage.

    Parameters
    ----------
    tree
        A complete tree, with one cluster left.
    labels
        (n,) clusters 0 .. K-1 without gaps.
    graph, vectors
        The digraph W over the samples, and the vectors it was built from.
    first_copies
        (n,) index of the original of each sample. Exact copies, which must share a label, are
        joined first, so that every cut keeps them together.
    n_near, lam
        Merging criterion for the clusters: see `merge_clusters`.
    apart
        (m, 2) pairs of samples that are kept apart: see `merge_clusters`. Pairs that share a
        cluster do not count.

    Examples
    --------
    >>> from jule.forward import affinity_graph, agglomerate, nearest_neighbors
    >>> line = np.array([[0.0], [1.0], [2.1], [8.0], [9.0], [10.1]])
    >>> graph = affinity_graph(nearest_neighbors(line, k=2))
    >>> labels = np.array([0, 0, 1, 1, 1, 1])
    >>> tree_through_labels(agglomerate(line, n_neighbors=2), labels, graph, line).cut(2).tolist()
    [0, 0, 1, 1, 1, 1]
    """
    if tree.n_clusters != 1:
        raise ValueError(f"the tree must be complete, but it stops at {tree.n_clusters} clusters")
    n, k = tree.n_samples, int(labels.max()) + 1
    copies = np.arange(n) if first_copies is None else np.asarray(first_copies)
    if (labels[copies] != labels).any():
        raise ValueError("exact copies must have the same label as their original")
    pairs, affinities = _pairs_below(tree, labels, copies)
    below, top = nodes_of_pairs(n, pairs, labels, k)
    if apart is not None:
        apart = apart[labels[apart[:, 0]] != labels[apart[:, 1]]]
    merges, merge_affinities = merge_clusters(graph, labels, n_near=n_near, lam=lam, apart=apart)
    n_joins = k - 1 - len(merges)
    joins, n_forced = join_by_distance(vectors, labels, k, merges, n_joins, apart)
    node_of = np.concatenate([top, n + len(below) + np.arange(len(merges) + n_joins)])
    return MergeTree(
        n,
        np.concatenate([below, node_of[merges], node_of[joins]]),
        np.concatenate([affinities, merge_affinities, np.zeros(n_joins)]),
        int((copies != np.arange(n)).sum()),
        n_forced,
    )


def join_copies_first(tree: MergeTree, first_copies: NDArray[np.integer]) -> MergeTree:
    """Rearrange a merge tree so that exact copies are joined before all others.

    Cuts of the new tree into as many clusters as there are different samples, or fewer, keep copies
    together. The other merges are those of the tree, in its order.

    Parameters
    ----------
    tree
        A complete tree, with one cluster left.
    first_copies
        (n,) index of the original of each sample; its own index if it is not a copy.

    Examples
    --------
    >>> tree = MergeTree(3, np.array([[0, 1], [2, 3]]), np.array([0.5, 0.1]))
    >>> join_copies_first(tree, np.array([0, 1, 0])).merges.tolist()
    [[0, 2], [1, 3]]
    """
    n = tree.n_samples
    together = np.zeros(n, np.int32)
    pairs, affinities = _pairs_below(tree, together, first_copies)
    merges, _ = nodes_of_pairs(n, pairs, together, 1)
    # Merges that constraints forbid come last in both trees: they join no copies.
    n_copies = int((first_copies != np.arange(n)).sum())
    return MergeTree(n, merges, affinities, n_copies, tree.n_forced)


def _pairs_below(
    tree: MergeTree, labels: NDArray[np.integer], copies: NDArray[np.integer]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """List pairs of samples to join, in order, with the affinities of their merges in the tree.

    Two samples of one cluster that follow each other in the order of the leaves are joined by the
    tree at their lowest common ancestor; these are all the merges of the restricted tree.
    """
    n = tree.n_samples
    copied = np.flatnonzero(copies != np.arange(n))
    starts, splits = leaf_intervals(tree)
    leaf_at = np.argsort(starts[:n])
    originals = leaf_at[copies[leaf_at] == leaf_at]
    order = np.argsort(labels[originals], kind="stable")  # by cluster, then by leaf
    left, right = originals[order][:-1], originals[order][1:]
    same = labels[left] == labels[right]
    left, right = left[same], right[same]
    # Exactly one merge separates leaves p and p + 1; ancestors have larger numbers.
    merge_at = np.empty(max(n - 1, 0), np.int64)
    merge_at[splits] = np.arange(n - 1)
    joined_by = range_maxima(merge_at, starts[left], starts[right])
    by_merge = np.argsort(joined_by, kind="stable")
    pairs = np.column_stack(
        (
            np.concatenate([copies[copied], left[by_merge]]),
            np.concatenate([copied, right[by_merge]]),
        )
    )
    inside = np.full(len(copied), np.nan)
    return pairs, np.concatenate([inside, tree.affinities[joined_by[by_merge]]])


def range_maxima(
    values: NDArray[np.int64], starts: NDArray[np.int64], stops: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return max(values[start:stop]) for every start < stop, by doubling.

    Examples
    --------
    >>> range_maxima(np.array([3, 1, 2]), np.array([0, 1]), np.array([3, 3])).tolist()
    [3, 2]
    """
    found = np.zeros(len(starts), np.int64)
    lengths = stops - starts
    table, width = values, 1
    while len(table) and (lengths >= width).any():
        # `table[i]` is the maximum of `width` values from i on; two windows cover a range.
        now = (lengths >= width) & (lengths < 2 * width)
        found[now] = np.maximum(table[starts[now]], table[stops[now] - width])
        table = np.maximum(table[:-width], table[width:])
        width *= 2
    return found


@njit(cache=True)
def nodes_of_pairs(n, pairs, labels, k):
    """Turn pairs of samples into pairs of tree nodes; also returns the top node per cluster."""
    parents = np.arange(n)
    node = np.arange(n)
    merges = np.empty((pairs.shape[0], 2), np.int64)
    for t in range(pairs.shape[0]):
        a, b = find_root(parents, pairs[t, 0]), find_root(parents, pairs[t, 1])
        merges[t, 0], merges[t, 1] = node[a], node[b]
        parents[b] = a
        node[a] = n + t
    top = np.empty(k, np.int64)
    for sample in range(n):
        top[labels[sample]] = node[find_root(parents, sample)]
    return merges, top
