"""The forward pass: cluster vectors, and return a merge tree and labels."""

from jule.forward.affinity import Digraph, affinity_graph
from jule.forward.agglomerate import agglomerate
from jule.forward.init import kmeans_clusters, nearest_neighbor_components
from jule.forward.linkage import merge_clusters
from jule.forward.neighbors import Neighbors
from jule.forward.prepare import prepare
from jule.forward.search import nearest_neighbors
from jule.forward.tree import MergeTree, default_min_cluster_size

__all__ = [
    "Digraph",
    "MergeTree",
    "Neighbors",
    "affinity_graph",
    "agglomerate",
    "default_min_cluster_size",
    "kmeans_clusters",
    "merge_clusters",
    "nearest_neighbor_components",
    "nearest_neighbors",
    "prepare",
]
