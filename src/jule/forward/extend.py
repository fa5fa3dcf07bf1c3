"""Add samples to neighbours and to a merge tree, without clustering again."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from jule.forward.assign import BLOCK_CELLS
from jule.forward.init import find_root
from jule.forward.neighbors import Neighbors
from jule.forward.tree import MergeTree
from jule.jit import njit


def extend_tree(
    tree: MergeTree, partners: NDArray[np.integer], first_copies: NDArray[np.integer]
) -> MergeTree:
    """Add samples to a complete tree, each joined with one of its samples at the bottom.

    Every cut of the new tree is that of the old one, with each new sample in the cluster of its
    partner.

    Parameters
    ----------
    tree
        A complete tree of n samples.
    partners
        (m,) the sample that each new one joins.
    first_copies
        (m,) index of the original of each new sample among the new ones; copies have one partner.

    Examples
    --------
    >>> tree = MergeTree(3, np.array([[0, 2], [1, 3]]), np.array([0.5, 0.1]))
    >>> extend_tree(tree, np.array([1, 1]), np.array([0, 1])).cut(2).tolist()
    [0, 1, 0, 1, 1]
    """
    n, m = tree.n_samples, len(partners)
    new = np.arange(m)
    copied = first_copies != new
    # Any sample below a node stands for it.
    sample = np.arange(n + len(tree.merges))
    for t, (left, _) in enumerate(tree.merges.tolist()):
        sample[n + t] = sample[left]
    old = sample[tree.merges]
    joins = np.column_stack((np.where(copied, n + first_copies, partners), n + new))
    pairs = np.concatenate(
        [old[: tree.n_copies], joins[copied], joins[~copied], old[tree.n_copies :]]
    )
    merges = _nodes_of_pairs(n + m, pairs)
    affinities = np.concatenate([np.full(m, np.nan), tree.affinities])
    return MergeTree(
        n + m, merges, affinities, tree.n_copies + int(copied.sum()), n_forced=tree.n_forced
    )


def extend_neighbors(
    neighbors: Neighbors, samples: NDArray[np.floating], new: NDArray[np.floating]
) -> Neighbors:
    """Add samples to nearest neighbours, among all of which they are searched.

    Parameters
    ----------
    neighbors
        The nearest neighbours of n samples.
    samples, new
        (n, d) and (m, d) vectors of the samples and of those that are added.

    Examples
    --------
    >>> from jule.forward import nearest_neighbors
    >>> line = np.array([[0.0], [1.0], [8.0], [9.5]])
    >>> known = nearest_neighbors(line[:3], 1)
    >>> extend_neighbors(known, line[:3], line[3:]).indices.ravel().tolist()
    [1, 0, 3, 2]
    """
    n, m = len(samples), len(new)
    k = neighbors.indices.shape[1]
    every = np.concatenate([samples, new]).astype(np.float64)
    norms = np.einsum("ij,ij->i", every, every)
    indices = np.concatenate([neighbors.indices, np.zeros((m, k), np.int32)])
    distances = np.concatenate([neighbors.distances, np.full((m, k), np.inf)])
    rows = max(1, BLOCK_CELLS // (n + m))
    for start in range(n, n + m, rows):
        block = np.arange(start, min(start + rows, n + m))
        gaps = np.maximum(norms[block, None] + norms - 2.0 * every[block] @ every.T, 0.0)
        gaps[np.arange(len(block)), block] = np.inf
        found = np.argpartition(gaps, k - 1, axis=1)[:, :k]
        lengths = np.take_along_axis(gaps, found, axis=1)
        order = np.lexsort((found, lengths), axis=1)
        indices[block] = np.take_along_axis(found, order, axis=1)
        distances[block] = np.take_along_axis(lengths, order, axis=1)
        _insert(indices[:n], distances[:n], block, gaps[:, :n])
    return Neighbors(indices, distances)


def _insert(
    indices: NDArray[np.int32],
    distances: NDArray[np.float64],
    block: NDArray[np.int64],
    gaps: NDArray[np.float64],
) -> None:
    """Insert a block of new samples into the neighbours of the old ones, where they are nearer."""
    nearer = gaps < distances[:, -1]
    for sample in np.flatnonzero(nearer.any(axis=0)).tolist():
        which = np.flatnonzero(nearer[:, sample])
        both = np.concatenate([distances[sample], gaps[which, sample]])
        names = np.concatenate([indices[sample], block[which]])
        order = np.lexsort((names, both))[: indices.shape[1]]
        indices[sample], distances[sample] = names[order], both[order]


@njit(cache=True)
def _nodes_of_pairs(n, pairs):
    """Turn pairs of samples into pairs of tree nodes."""
    parents = np.arange(n)
    node = np.arange(n)
    merges = np.empty((pairs.shape[0], 2), np.int64)
    for t in range(pairs.shape[0]):
        a, b = find_root(parents, pairs[t, 0]), find_root(parents, pairs[t, 1])
        merges[t, 0], merges[t, 1] = node[a], node[b]
        parents[b] = a
        node[a] = n + t
    return merges
