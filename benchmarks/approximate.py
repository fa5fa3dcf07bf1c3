"""Approximate neighbours: time and recall of our cells, pynndescent and faiss."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import faiss
import numpy as np
from pynndescent import NNDescent
from sklearn.decomposition import PCA

from benchmarks.common import mnist_vectors, processor_seconds, write
from jule.forward import nearest_neighbors

K = 20
SEED = 0


def cells(vectors: np.ndarray) -> np.ndarray:
    found: np.ndarray = nearest_neighbors(vectors, K, method="approximate", seed=SEED).indices
    return found


def pynndescent(vectors: np.ndarray) -> np.ndarray:
    found: np.ndarray = NNDescent(vectors, n_neighbors=K + 1, random_state=SEED).neighbor_graph[0]
    return found


def faiss_hnsw(vectors: np.ndarray, links: int, effort: int) -> np.ndarray:
    index = faiss.IndexHNSWFlat(vectors.shape[1], links)
    index.hnsw.efConstruction = effort
    index.hnsw.efSearch = effort
    index.add(vectors)
    found: np.ndarray = index.search(vectors, K + 1)[1]
    return found


def faiss_ivf(vectors: np.ndarray, lists: int, probes: int) -> np.ndarray:
    quantizer = faiss.IndexFlatL2(vectors.shape[1])
    index = faiss.IndexIVFFlat(quantizer, vectors.shape[1], lists)
    index.train(vectors)
    index.add(vectors)
    index.nprobe = probes
    found: np.ndarray = index.search(vectors, K + 1)[1]
    return found


CANDIDATES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "jule approximate": cells,
    "pynndescent": pynndescent,
    "faiss HNSW32, ef 64": lambda vectors: faiss_hnsw(vectors, 32, 64),
    "faiss IVF1024, 16 probes": lambda vectors: faiss_ivf(vectors, 1024, 16),
    "faiss IVF1024, 64 probes": lambda vectors: faiss_ivf(vectors, 1024, 64),
}


def recall(found: np.ndarray, true: np.ndarray) -> float:
    """Return the share of the true neighbours that were found."""
    hits = [len(np.intersect1d(a, b)) for a, b in zip(found, true, strict=True)]
    return float(np.mean(hits) / K)


def compare(vectors: np.ndarray) -> dict[str, dict[str, float]]:
    exact, neighbors = processor_seconds(lambda: nearest_neighbors(vectors, K))
    rows = {"jule exact": {"seconds": exact, "recall": 1.0}}
    for name, search in CANDIDATES.items():
        taken, found = processor_seconds(partial(search, vectors))
        rows[name] = {"seconds": taken, "recall": recall(found, neighbors.indices)}
        print(name, rows[name], flush=True)
    return rows


def main() -> None:
    vectors = mnist_vectors()
    pynndescent(vectors[:3000])  # compiles before the clock runs
    nearest_neighbors(vectors[:3000], K)
    cells(vectors[:10_000])
    reduced = PCA(64, random_state=0).fit_transform(vectors).astype(np.float32)
    write(
        "approximate",
        "python -m benchmarks.approximate",
        {
            "data": "mnist, l2; and its 64 principal components",
            "k": K,
            "seed": SEED,
            "time": "processor",
        },
        {"784 dimensions": compare(vectors), "64 dimensions": compare(reduced)},
    )


if __name__ == "__main__":
    main()
