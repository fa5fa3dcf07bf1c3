"""Exact neighbours of MNIST-full: against faiss, and against the matrix products alone."""

from __future__ import annotations

import faiss
import numpy as np

from benchmarks.approximate import recall
from benchmarks.common import mnist_vectors, seconds, write
from jule.forward import nearest_neighbors

K = 20
BLOCK = 4096  # the fastest of the sizes tried


def bare_products(vectors: np.ndarray, half: bool) -> None:
    """Multiply every block of samples by every other one, or each pair of blocks once."""
    products = np.empty((BLOCK, BLOCK), np.float32)
    starts = range(0, len(vectors), BLOCK)
    for i in starts:
        for j in starts[i // BLOCK :] if half else starts:
            rows, columns = vectors[i : i + BLOCK], vectors[j : j + BLOCK]
            np.matmul(rows, columns.T, out=products[: len(rows), : len(columns)])


def faiss_flat(vectors: np.ndarray) -> np.ndarray:
    index = faiss.IndexFlatL2(vectors.shape[1])
    index.add(vectors)
    found: np.ndarray = index.search(vectors, K + 1)[1]
    return found


def main() -> None:
    vectors = mnist_vectors()
    nearest_neighbors(vectors[:3000], K)  # compiles before the clock runs
    ours, found = seconds(lambda: nearest_neighbors(vectors, K))
    half, _ = seconds(lambda: bare_products(vectors, half=True))
    full, _ = seconds(lambda: bare_products(vectors, half=False))
    flat, theirs = seconds(lambda: faiss_flat(vectors))
    shared = recall(theirs, found.indices)
    multiply_adds = len(vectors) ** 2 / 2 * vectors.shape[1]
    write(
        "neighbors",
        "python -m benchmarks.neighbors",
        {"data": "mnist, l2", "k": K, "threads": faiss.omp_get_max_threads()},
        {
            "seconds": {
                "jule exact": ours,
                "faiss IndexFlatL2": flat,
                "bare products, every pair of blocks once": half,
                "bare products, all": full,
            },
            "faiss / jule": flat / ours,
            "jule / bare products once": ours / half,
            "jule / bare products all": ours / full,
            "GFLOP/s of the floor (n^2 d / 2 multiply-adds)": 2 * multiply_adds / ours / 1e9,
            "share of neighbours also found by faiss": shared,
        },
    )


if __name__ == "__main__":
    main()
