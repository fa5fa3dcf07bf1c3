"""Several networks: the clusterings of each, what they have in common, and how they vote."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from jule.forward import MergeTree, default_min_cluster_size
from jule.forward.constraints import Constraints
from jule.joint.clustering import initial_clusters, merge_tree, represent
from jule.joint.config import Config
from jule.progress import Progress


def cluster_members(
    vectors: NDArray[np.floating],
    config: Config,
    progress: Progress | None = None,
    constraints: Constraints | None = None,
) -> tuple[MergeTree, ...]:
    """Cluster the representation of each network of an ensemble; return the merge trees.

    Parameters
    ----------
    vectors
        (n, E d) the representations of the E networks side by side.
    config
        The settings; `ensemble` is E.
    progress
        Called with the name of a stage and the fraction of it that is done.
    constraints
        What the clusters must obey.

    Examples
    --------
    >>> line = np.array([[0.0], [1.0], [8.0], [9.5]])
    >>> both = np.hstack([line, line[[0, 2, 1, 3]]])
    >>> trees = cluster_members(both, Config(ensemble=2, n_neighbors=2))
    >>> [tree.cut(2).tolist() for tree in trees]
    [[0, 0, 1, 1], [0, 1, 0, 1]]
    """
    trees = []
    for part in np.split(vectors, config.ensemble, axis=1):
        own = represent(np.ascontiguousarray(part), config, progress, constraints)
        trees.append(merge_tree(own, initial_clusters(own, config), config))
    return tuple(trees)


def common_clusters(clusterings: Sequence[NDArray[np.integer]]) -> NDArray[np.int32]:
    """Return the largest clusters that none of several clusterings divides.

    Examples
    --------
    >>> common_clusters([np.array([0, 0, 1, 1]), np.array([1, 1, 1, 0])]).tolist()
    [0, 0, 2, 1]
    """
    common = np.zeros(len(clusterings[0]), np.int64)
    for labels in clusterings:
        pairs = common * (int(labels.max()) + 1) + labels
        common = np.unique(pairs, return_inverse=True)[1].reshape(-1)
    return common.astype(np.int32)


def member_votes(trees: Sequence[MergeTree], labels: NDArray[np.integer]) -> NDArray[np.int64]:
    """Return the cluster in which each network of an ensemble would put each sample.

    The tree of a network is cut into as many clusters as there are. Of all pairs of such a cluster
    and a given one, those with the most samples in common are matched first, one to one.

    Parameters
    ----------
    trees
        The merge trees of the networks.
    labels
        (n,) clusters 0, 1, ... without gaps.

    Returns
    -------
    NDArray
        (E, n) clusters; -1 for samples in a cluster of the network that is left over.

    Examples
    --------
    >>> tree = MergeTree(4, np.array([[2, 3], [0, 1], [4, 5]]), np.array([0.5, 0.4, 0.1]))
    >>> member_votes([tree], np.array([1, 1, 1, 0])).tolist()
    [[1, 1, 0, 0]]
    """
    k = int(labels.max()) + 1
    size = default_min_cluster_size(len(labels), k)
    return np.stack([_matched(tree.cut(k, size), labels, k) for tree in trees])


def _matched(own: NDArray[np.int32], labels: NDArray[np.integer], k: int) -> NDArray[np.int64]:
    """Return a network's own clusters, 0 .. k-1, renamed to the given ones."""
    pairs, counts = np.unique(own.astype(np.int64) * k + labels, return_counts=True)
    given, is_taken = np.full(k, -1), np.zeros(k, bool)
    for pair in pairs[np.argsort(-counts, kind="stable")].tolist():
        cluster, other = divmod(pair, k)
        if given[cluster] < 0 and not is_taken[other]:
            given[cluster], is_taken[other] = other, True
    return given[own]
