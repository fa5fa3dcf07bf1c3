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
from jule.forward.branches import node_intervals
from jule.forward.few import FEW, merge_few
from jule.forward.linkage import merge_clusters
from jule.forward.tree import MergeTree

BLOCK = 2**13  # ranges that are looked up at once: what they need stays in the cache of a core


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
    below, affinities, top = _merges_below(tree, labels, copies)
    if apart is not None:
        apart = apart[labels[apart[:, 0]] != labels[apart[:, 1]]]
    merge = merge_few if k <= FEW else merge_clusters
    merges, merge_affinities = merge(graph, labels, n_near=n_near, lam=lam, apart=apart)
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
    merges, affinities, _ = _merges_below(tree, together, first_copies)
    # Merges that constraints forbid come last in both trees: they join no copies.
    n_copies = int((first_copies != np.arange(n)).sum())
    return MergeTree(n, merges, affinities, n_copies, tree.n_forced)


def _merges_below(
    tree: MergeTree, labels: NDArray[np.integer], copies: NDArray[np.integer]
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.int64]]:
    """Restrict a tree to each cluster; return merges, their affinities, and the top per cluster.

    Copies are joined first. Two originals of one cluster that follow each other in the order of the
    leaves are joined by the tree at their lowest common ancestor; these are all other merges.
    """
    n = tree.n_samples
    starts, stops = node_intervals(tree)
    leaf_at = np.empty(n, np.int64)
    leaf_at[starts[:n]] = np.arange(n)
    originals = leaf_at[copies[leaf_at] == leaf_at]
    line = originals[np.argsort(labels[originals], kind="stable")]  # by cluster, then by leaf
    joins = np.flatnonzero(labels[line[:-1]] == labels[line[1:]])  # of this place and the next
    # Exactly one merge separates leaves p and p + 1; ancestors have larger numbers.
    merge_at = np.empty(max(n - 1, 0), np.int64)
    merge_at[stops[tree.merges[:, 0]] - 1] = np.arange(n - 1)
    joined_by = range_maxima(merge_at, starts[line[joins]], starts[line[joins + 1]])
    by_merge = np.argsort(joined_by, kind="stable")
    joins, joined_by = joins[by_merge], joined_by[by_merge]
    chains, bottom = _chains_of_copies(copies)
    new = n + len(chains) + np.arange(len(joins))  # the node that each join makes
    # A merge of originals of one cluster only is the same in the new tree.
    mixed = (labels[leaf_at[1:]] != labels[leaf_at[:-1]]) | (copies[leaf_at[1:]] != leaf_at[1:])
    mixed_before = np.concatenate([[0], np.cumsum(mixed)])
    is_same = mixed_before[starts[n:]] == mixed_before[stops[n:] - 1]
    is_same &= (copies[leaf_at] == leaf_at)[starts[n:]]
    same = is_same[joined_by]
    node_of = np.concatenate([bottom, np.full(n - 1, -1)])
    node_of[n + joined_by[same]] = new[same]
    merges = np.empty((len(joins), 2), np.int64)
    merges[same] = node_of[tree.merges[joined_by[same]]]
    top = _join_runs(line, labels, joins, same, new, bottom, merges)
    affinities = np.concatenate([np.full(len(chains), np.nan), tree.affinities[joined_by]])
    return np.concatenate([chains, merges]), affinities, top


def _chains_of_copies(
    copies: NDArray[np.integer],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Join copies to their originals, one by one; return merges and the node of every original."""
    n = len(copies)
    bottom = np.arange(n)
    merges = []
    for copy in np.flatnonzero(copies != bottom).tolist():
        original = copies[copy]
        merges.append((bottom[original], copy))
        bottom[original] = n + len(merges) - 1
    return np.array(merges, np.int64).reshape(-1, 2), bottom


def _join_runs(
    line: NDArray[np.int64],
    labels: NDArray[np.integer],
    joins: NDArray[np.int64],
    same: NDArray[np.bool_],
    new: NDArray[np.int64],
    bottom: NDArray[np.int64],
    merges: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Fill in the merges that are not as they were; return the top node of every cluster.

    Merges that are as they were join runs of the line. The others join these runs, and each of
    them needs to know only the run that ends, and the run that begins, where it joins them.
    """
    is_end = np.ones(len(line), bool)
    is_end[joins[same]] = False
    run = np.concatenate([[0], np.cumsum(is_end)[:-1]])  # of every place in the line
    node = bottom[line[is_end]]
    np.maximum.at(node, run[joins[same]], new[same])
    nodes, first, last = node.tolist(), list(range(len(node))), list(range(len(node)))
    others = np.flatnonzero(~same)
    filled = []
    for left, made in zip(run[joins[others]].tolist(), new[others].tolist(), strict=True):
        begin, end = first[left], last[left + 1]
        filled.append((nodes[begin], nodes[left + 1]))
        nodes[begin] = made
        first[end], last[begin] = begin, end
    merges[others] = np.array(filled, np.int64).reshape(-1, 2)
    top = np.empty(int(labels.max()) + 1, np.int64)
    _, begins = np.unique(labels[line], return_index=True)
    top[labels[line[begins]]] = np.array(nodes)[run[begins]]
    return top


def range_maxima(
    values: NDArray[np.integer], starts: NDArray[np.integer], stops: NDArray[np.integer]
) -> NDArray[np.integer]:
    """Return max(values[start:stop]) for every start < stop, by doubling.

    Examples
    --------
    >>> range_maxima(np.array([3, 1, 2]), np.array([0, 1]), np.array([3, 3])).tolist()
    [3, 2]
    """
    n, longest = len(values), (stops - starts).max(initial=1)
    doublings = np.frexp(np.arange(1, longest + 1))[1].astype(np.int64) - 1
    # Row d has at i the maximum of 2^d values from i on; two such windows cover a range.
    table = np.empty((doublings[-1] + 1, n), values.dtype)
    table[0] = values
    for row in range(1, len(table)):
        half = 1 << (row - 1)
        np.maximum(table[row - 1, :-half], table[row - 1, half:], out=table[row, :-half])
        table[row, -half:] = table[row - 1, -half:]
    windows = table.reshape(-1)
    # By length: from the start and from the stop of a range to its windows.
    to_first = np.concatenate([[0], n * doublings])
    to_last = to_first - np.concatenate([[0], 1 << doublings])
    found = np.empty(len(starts), values.dtype)
    for begin in range(0, len(starts), BLOCK):
        start, stop = starts[begin : begin + BLOCK], stops[begin : begin + BLOCK]
        first = windows.take(start + to_first.take(stop - start))
        last = windows.take(stop + to_last.take(stop - start))
        np.maximum(first, last, out=found[begin : begin + BLOCK])
    return found
