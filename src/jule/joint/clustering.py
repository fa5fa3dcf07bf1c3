"""The forward pass as the joint loop uses it: vectors to a graph, to a tree, to labels."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from jule.features.appearance import can_be_described, describe_appearance
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
    prepare,
)
from jule.forward.agglomerate import SAMPLES_PER_INITIAL_CLUSTER, grow_tree
from jule.forward.constraints import Constraints
from jule.forward.restrict import join_copies_first
from jule.forward.search import Method
from jule.joint.choose import Choice, choose_n_clusters
from jule.joint.config import Config
from jule.joint.quality import Space
from jule.progress import Progress

FEW_SAMPLES = 400  # below this, the square root of their number is below 20
# An exact search compares n^2 / 2 pairs in 160 dimensions. A period trains on at least n images,
# each with three forward passes of some 5 million products. Here both take equally long.
MOST_EXACT = 200_000


@dataclass(frozen=True, eq=False)
class Representation:
    """Vectors of all samples, their nearest neighbours, and the digraph W over them.

    Attributes
    ----------
    vectors, neighbors, graph
        The vectors, their nearest neighbours, and the digraph.
    constraints
        What every clustering of them must obey; None if nothing.
    """

    vectors: NDArray[np.floating]
    neighbors: Neighbors
    graph: Digraph
    constraints: Constraints | None = None

    @property
    def apart(self) -> NDArray[np.int64] | None:
        """(m, 2) pairs of samples that are kept apart; None without constraints."""
        return None if self.constraints is None else self.constraints.apart


@dataclass(frozen=True, eq=False)
class Inputs:
    """The samples before learning: what is known of them without a network.

    Attributes
    ----------
    neighbors
        The nearest neighbours of all samples.
    graph
        The digraph W over them.
    tree
        The merge tree of the samples; its cuts are the clustering without learning.
    """

    neighbors: Neighbors
    graph: Digraph
    tree: MergeTree

    @classmethod
    def of(cls, raw: Representation, tree: MergeTree) -> Inputs:
        """Return what is kept of prepared samples and their merge tree."""
        return cls(raw.neighbors, raw.graph, tree)


def count_neighbors(n_samples: int, config: Config) -> int:
    """Return K_s for a number of samples: at most their square root if they are few.

    With 20 neighbours each, samples of clusters of a dozen would mostly point to other clusters.

    Examples
    --------
    >>> [count_neighbors(n, Config()) for n in (2, 50, 120, 400, 10_000)]
    [1, 8, 11, 20, 20]
    """
    most = n_samples - 1
    if n_samples < FEW_SAMPLES:
        most = min(most, math.ceil(math.sqrt(n_samples)))
    return min(config.n_neighbors, most)


def search_method(n_samples: int, config: Config) -> Method:
    """Return how neighbours are searched: exactly, or approximately if there are very many samples.

    Examples
    --------
    >>> search_method(10_000, Config()), search_method(10, Config(neighbors="approximate"))
    ('exact', 'approximate')
    """
    if config.neighbors != "auto":
        return config.neighbors
    return "exact" if n_samples <= MOST_EXACT else "approximate"


def represent(
    vectors: NDArray[np.floating],
    config: Config,
    progress: Progress | None = None,
    constraints: Constraints | None = None,
) -> Representation:
    """Find the K_s nearest neighbours of every sample and build the digraph W (Eq. 4).

    Examples
    --------
    >>> represent(np.eye(3), Config(n_neighbors=1)).graph.indices.ravel().tolist()
    [1, 0, 0]
    """
    neighbors = nearest_neighbors(
        vectors,
        count_neighbors(len(vectors), config),
        method=search_method(len(vectors), config),
        seed=config.seed,
        progress=progress and partial(progress, "neighbours"),
    )
    return Representation(vectors, neighbors, affinity_graph(neighbors, config.a), constraints)


def initial_clusters(representation: Representation, config: Config) -> NDArray[np.int32]:
    """Return the clusters from which merging starts; they obey the constraints.

    Examples
    --------
    >>> line = np.array([[0.0], [1.0], [8.0], [9.5]])
    >>> initial_clusters(represent(line, Config(n_neighbors=2)), Config()).tolist()
    [0, 0, 1, 1]
    """
    if config.init == "nearest":
        clusters = nearest_neighbor_components(representation.neighbors)
    else:
        count = -(-len(representation.vectors) // SAMPLES_PER_INITIAL_CLUSTER)
        clusters = kmeans_clusters(representation.vectors, count, config.seed)
    constraints = representation.constraints
    return clusters if constraints is None else constraints.initial(clusters)


def merge_tree(
    representation: Representation, clusters: NDArray[np.int32], config: Config
) -> MergeTree:
    """Merge clusters by Eq. 7 until one is left; those that are kept apart are joined last.

    Examples
    --------
    >>> representation = represent(np.array([[0.0], [1.0], [8.0], [9.5]]), Config(n_neighbors=2))
    >>> merge_tree(representation, np.arange(4, dtype=np.int32), Config()).cut(2).tolist()
    [0, 0, 1, 1]
    """
    merges, affinities = merge_clusters(
        representation.graph,
        clusters,
        n_near=config.n_near,
        lam=config.lam,
        apart=representation.apart,
    )
    n_joins = int(clusters.max()) - len(merges)
    tree = grow_tree(
        representation.vectors,
        representation.neighbors,
        clusters,
        merges,
        affinities,
        n_joins,
        representation.apart,
    )
    if representation.constraints is None:
        return tree
    return join_copies_first(tree, representation.constraints.units)


def suggest_n_clusters(
    representation: Representation, tree: MergeTree, config: Config
) -> Choice | None:
    """Suggest K from the tree; return None if the user has given it.

    Examples
    --------
    >>> representation = represent(np.array([[0.0], [1.0], [8.0], [9.5]]), Config(n_neighbors=2))
    >>> tree = merge_tree(representation, np.arange(4, dtype=np.int32), Config())
    >>> suggest_n_clusters(representation, tree, Config()).k
    2
    """
    if config.n_clusters:
        return None
    space = Space.of(representation.vectors, representation.graph)
    return choose_n_clusters(tree, space, min_cluster_size=config.min_cluster_size)


def examine_inputs(
    samples: NDArray,
    config: Config,
    progress: Progress | None = None,
    constraints: Constraints | None = None,
) -> Inputs:
    """Cluster samples before any learning.

    Examples
    --------
    >>> examine_inputs(np.eye(4)[[0, 0, 1, 1]], Config(n_clusters=2)).tree.cut(2).tolist()
    [0, 0, 1, 1]
    """
    raw = represent(prepare(samples, config.preparation), config, progress, constraints)
    return Inputs.of(raw, merge_tree(raw, initial_clusters(raw, config), config))


def examine_appearance(
    samples: NDArray, config: Config, progress: Progress | None = None
) -> Representation | None:
    """Find the neighbours of pictures in colour by their colours, edges and textures.

    Pixels say little about what photographs show, and the network was trained on clusters of
    pixels, so they are not independent evidence; these histograms are. Return None for samples that
    are not colour pictures of at least 16 x 16 pixels.

    Examples
    --------
    >>> images = np.random.default_rng(0).integers(0, 256, (9, 16, 16, 3), np.uint8)
    >>> examine_appearance(images, Config()).graph.indices.shape
    (9, 3)
    """
    if not can_be_described(samples):
        return None
    vectors = describe_appearance(samples, progress and partial(progress, "appearance"))
    return represent(vectors, config, progress)


def cut_tree(tree: MergeTree, k: int, config: Config) -> NDArray[np.int32]:
    """Cut a tree into k clusters; clusters below the minimum size are absorbed.

    Examples
    --------
    >>> tree = MergeTree(4, np.array([[0, 1], [2, 3], [4, 5]]), np.array([0.5, 0.4, 0.1]))
    >>> cut_tree(tree, 2, Config()).tolist()
    [0, 0, 1, 1]
    """
    return tree.cut(k, min_size(tree, k, config))


def min_size(tree: MergeTree, k: int, config: Config) -> int:
    """Return the smallest size at which a cluster counts towards k.

    Examples
    --------
    >>> tree = MergeTree(4, np.array([[0, 1], [2, 3], [4, 5]]), np.array([0.5, 0.4, 0.1]))
    >>> min_size(tree, 2, Config()), min_size(tree, 2, Config(min_cluster_size=2))
    (1, 2)
    """
    return config.min_cluster_size or default_min_cluster_size(tree.n_samples, max(1, k))
