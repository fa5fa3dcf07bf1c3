"""The forward pass as the joint loop uses it: from vectors to a graph, to a tree, to labels."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from jule.forward import (
    Digraph,
    MergeTree,
    Neighbors,
    affinity_graph,
    default_min_cluster_size,
    kmeans_clusters,
    merge_clusters,
    nearest_neighbor_components,
    nearest_neighbors,
)
from jule.forward.agglomerate import SAMPLES_A_FIRST_CLUSTER, grow_tree
from jule.joint.choose import choose_n_clusters
from jule.joint.config import Config
from jule.joint.stages import Progress


@dataclass(frozen=True, eq=False)
class View:
    """A representation of all samples, and the graph W over it."""

    vectors: NDArray[np.floating]
    neighbors: Neighbors
    graph: Digraph


def view(vectors: NDArray[np.floating], config: Config, progress: Progress | None = None) -> View:
    """Find the K_s neighbours of every sample and weigh them (Eq. 4).

    Examples
    --------
    >>> view(np.eye(3), Config(n_neighbors=1)).graph.indices.ravel().tolist()
    [1, 0, 0]
    """
    neighbors = nearest_neighbors(
        vectors,
        min(config.n_neighbors, len(vectors) - 1),
        progress=progress and partial(progress, "neighbours"),
    )
    return View(vectors, neighbors, affinity_graph(neighbors, config.a))


def first_clusters(seen: View, config: Config) -> NDArray[np.int32]:
    """Give the first clusters of a representation.

    Examples
    --------
    >>> line = np.array([[0.0], [1.0], [8.0], [9.5]])
    >>> first_clusters(view(line, Config(n_neighbors=2)), Config()).tolist()
    [0, 0, 1, 1]
    """
    if config.first == "nearest":
        return nearest_neighbor_components(seen.neighbors)
    count = -(-len(seen.vectors) // SAMPLES_A_FIRST_CLUSTER)
    return kmeans_clusters(seen.vectors, count, config.seed)


def merge_tree(seen: View, clusters: NDArray[np.int32], config: Config) -> MergeTree:
    """Merge clusters by Eq. 7 to the very end; the tree can be cut anywhere.

    Examples
    --------
    >>> line = np.array([[0.0], [1.0], [8.0], [9.5]])
    >>> seen = view(line, Config(n_neighbors=2))
    >>> merge_tree(seen, np.arange(4, dtype=np.int32), Config()).cut(2).tolist()
    [0, 0, 1, 1]
    """
    merges, affinities = merge_clusters(seen.graph, clusters, n_near=config.n_near, lam=config.lam)
    apart = int(clusters.max()) - len(merges)
    return grow_tree(seen.vectors, seen.neighbors, clusters, merges, affinities, apart)


def target(seen: View, tree: MergeTree, config: Config) -> int:
    """Give K: what the user wants, or what the tree suggests.

    Examples
    --------
    >>> seen = view(np.array([[0.0], [1.0], [8.0], [9.5]]), Config(n_neighbors=2))
    >>> tree = merge_tree(seen, np.arange(4, dtype=np.int32), Config())
    >>> target(seen, tree, Config(n_clusters=3)), target(seen, tree, Config())
    (3, 2)
    """
    return config.n_clusters or choose_n_clusters(tree, seen.graph).k


def cut(tree: MergeTree, k: int, config: Config) -> NDArray[np.int32]:
    """Give k clusters, outliers left to the clusters around them.

    Examples
    --------
    >>> tree = MergeTree(4, np.array([[0, 1], [2, 3], [4, 5]]), np.array([0.5, 0.4, 0.1]))
    >>> cut(tree, 2, Config()).tolist()
    [0, 0, 1, 1]
    """
    size = config.min_cluster_size or default_min_cluster_size(tree.n_samples, k)
    return tree.cut(k, size)
