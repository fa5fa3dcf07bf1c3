"""Linkage: everything after the neighbours on MNIST-full, against scikit-learn's Ward."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.cluster import AgglomerativeClustering
from sklearn.decomposition import PCA

from benchmarks.common import (
    Memory,
    in_fresh_process,
    load_neighbors,
    mnist_vectors,
    save_neighbors,
    seconds,
    write,
)
from jule.forward import (
    MergeTree,
    Neighbors,
    affinity_graph,
    default_min_cluster_size,
    merge_clusters,
    nearest_neighbor_components,
    nearest_neighbors,
)
from jule.forward.agglomerate import grow_tree

N_CLUSTERS = 10
WARD_DIMENSIONS = 64


def after_neighbors(vectors: np.ndarray, neighbors: Neighbors) -> np.ndarray:
    """Return labels from neighbours: W, initial clusters, all merges, the tree, the cut."""
    initial = nearest_neighbor_components(neighbors)
    merges, affinities = merge_clusters(affinity_graph(neighbors), initial)
    joins = int(initial.max()) - len(merges)
    tree: MergeTree = grow_tree(vectors, neighbors, initial, merges, affinities, joins)
    return tree.cut(N_CLUSTERS, default_min_cluster_size(len(vectors), N_CLUSTERS))


def ward(vectors: np.ndarray, neighbors: Neighbors) -> np.ndarray:
    n, k = neighbors.indices.shape
    rows = np.repeat(np.arange(n), k)
    graph = csr_matrix((np.ones(n * k), (rows, neighbors.indices.ravel())), shape=(n, n))
    model = AgglomerativeClustering(N_CLUSTERS, linkage="ward", connectivity=graph)
    labels: np.ndarray = model.fit_predict(vectors)
    return labels


def warm(vectors: np.ndarray) -> float:
    """Compile the kernels, or load them from the cache; return the seconds it took."""
    few = np.ascontiguousarray(vectors[:500])
    return seconds(lambda: after_neighbors(few, nearest_neighbors(few, 20)))[0]


def measure(path: Path) -> None:
    """Print time and memory of clustering with stored neighbours, in this process."""
    vectors = mnist_vectors()
    neighbors = load_neighbors(path)
    compiling = warm(vectors)
    memory = Memory()
    taken, _ = seconds(lambda: after_neighbors(vectors, neighbors))
    found = {"seconds": taken, "MiB above input": memory.peak(), "warm-up": compiling}
    print(json.dumps(found))


def main() -> None:
    vectors = mnist_vectors()
    neighbors = nearest_neighbors(vectors, 20)
    reduced = PCA(WARD_DIMENSIONS, random_state=0).fit_transform(vectors)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "neighbors.npz"
        save_neighbors(path, neighbors)
        here = "benchmarks.linkage"
        cold = in_fresh_process(here, str(path), NUMBA_CACHE_DIR=str(Path(folder) / "cache"))
        cached = in_fresh_process(here, str(path), NUMBA_CACHE_DIR=str(Path(folder) / "cache"))
    warm(vectors)
    times = [seconds(lambda: after_neighbors(vectors, neighbors))[0] for _ in range(5)]
    ward_seconds, _ = seconds(lambda: ward(reduced, neighbors))
    ours = float(np.median(times))
    write(
        "linkage",
        "python -m benchmarks.linkage",
        {
            "data": "mnist, l2, 20 neighbours, to 10 clusters",
            "ward": f"scikit-learn, same neighbour graph, {WARD_DIMENSIONS} principal components",
        },
        {
            "seconds": {"jule (median of 5)": ours, "all five": times, "ward": ward_seconds},
            "ward / jule": ward_seconds / ours,
            "MiB above input": cached["MiB above input"],
            "seconds to compile the kernels once": cold["warm-up"],
            "seconds to read them from the cache": cached["warm-up"],
        },
    )


if __name__ == "__main__":
    if len(sys.argv) > 1:
        measure(Path(sys.argv[1]))
    else:
        main()
