"""Growth: time and memory of clustering from ten thousand to a million samples."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.decomposition import PCA

from benchmarks.common import (
    Memory,
    in_fresh_process,
    load_neighbors,
    save_neighbors,
    seconds,
    write,
)
from benchmarks.linkage import after_neighbors, warm
from jule.forward import nearest_neighbors, prepare
from jule.forward.search import Method
from jule.images import load_dataset

SIZES = (10_000, 30_000, 100_000, 300_000, 1_000_000)
DIMENSIONS = 64
EXACT_UP_TO = 100_000
SAMPLES_PER_GAUSSIAN = 1_000
REPEATS = 3
PLOT = Path(__file__).parent.parent / "docs" / "growth.png"


def gaussians(n: int) -> np.ndarray:
    """Return a mixture of n / 1000 Gaussians, so that neighbourhoods are alike at every n."""
    rng = np.random.default_rng(0)
    centres = rng.standard_normal((n // SAMPLES_PER_GAUSSIAN, DIMENSIONS), dtype=np.float32)
    samples = rng.standard_normal((n, DIMENSIONS), dtype=np.float32) * np.float32(0.7)
    return samples + centres[rng.integers(len(centres), size=n)]


def shifted_mnist(n: int) -> np.ndarray:
    """Return MNIST digits, each shifted by up to two pixels, as principal components."""
    images = load_dataset("mnist").images
    rng = np.random.default_rng(0)
    pick = _picks(n, len(images), rng)
    shifts = rng.integers(-2, 3, (n, 2))
    axes = PCA(DIMENSIONS, random_state=0).fit(prepare(images, "l2"))
    blocks = []
    for start in range(0, n, 10_000):
        block = images[pick[start : start + 10_000]]
        for at, shift in enumerate(shifts[start : start + 10_000]):
            block[at] = np.roll(block[at], shift, axis=(0, 1))
        blocks.append(axes.transform(prepare(block, "l2")).astype(np.float32))
    return np.concatenate(blocks)


def shifted_mnist_labels(n: int) -> np.ndarray:
    """Return the digits that `shifted_mnist` shows."""
    labels: np.ndarray = load_dataset("mnist").labels
    return np.take(labels, _picks(n, len(labels), np.random.default_rng(0)))


def _picks(n: int, n_images: int, rng: np.random.Generator) -> np.ndarray:
    """Return n images, in random order, each as often as any other, or once more."""
    turns = -(-n // n_images)
    return np.concatenate([rng.permutation(n_images) for _ in range(turns)])[:n]


DATA = {"gaussians": gaussians, "shifted mnist": shifted_mnist}


def measure(folder: Path) -> None:
    """Print time and memory of clustering stored vectors and neighbours, in this process."""
    vectors = np.load(folder / "vectors.npy", allow_pickle=False)
    neighbors = load_neighbors(folder / "neighbors.npz")
    warm(vectors)
    memory = Memory()
    times = [seconds(lambda: after_neighbors(vectors, neighbors))[0] for _ in range(REPEATS)]
    print(json.dumps({"seconds": times, "MiB above input": memory.peak()}))


def one_size(name: str, n: int) -> dict[str, Any]:
    vectors = DATA[name](n)
    method: Method = "exact" if n <= EXACT_UP_TO else "approximate"
    searching, neighbors = seconds(lambda: nearest_neighbors(vectors, 20, method=method))
    with tempfile.TemporaryDirectory() as folder:
        np.save(Path(folder) / "vectors.npy", vectors)
        save_neighbors(Path(folder) / "neighbors.npz", neighbors)
        found = in_fresh_process("benchmarks.growth", folder)
    in_degrees = np.bincount(neighbors.indices.ravel(), minlength=n)
    row = {
        "n": n,
        "seconds": float(np.median(found["seconds"])),
        "all": found["seconds"],
        "MiB above input": found["MiB above input"],
        "neighbours": method,
        "recall": neighbors.recall,
        "seconds for neighbours": searching,
        "largest in-degree": int(in_degrees.max()),
    }
    print(name, row, flush=True)
    return row


def exponent(rows: list[dict[str, Any]]) -> float:
    """Return the slope of log time over log n, by least squares."""
    n, taken = (np.log([row[key] for row in rows]) for key in ("n", "seconds"))
    return float(np.polyfit(n, taken, 1)[0])


def plot(curves: dict[str, list[dict[str, Any]]], exponents: dict[str, float]) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    for name, rows in curves.items():
        n = [row["n"] for row in rows]
        label = f"{name}: n^{exponents[name]:.2f}"
        left.loglog(n, [row["seconds"] for row in rows], "o-", label=label)
        right.loglog(n, [row["MiB above input"] for row in rows], "o-", label=name)
    left.set(title="time after the neighbours", xlabel="samples", ylabel="seconds")
    right.set(title="memory above the input", xlabel="samples", ylabel="MiB")
    for axes in (left, right):
        axes.grid(alpha=0.3)
        axes.legend(frameon=False)
    PLOT.parent.mkdir(exist_ok=True)
    figure.savefig(PLOT, dpi=110)


def main() -> None:
    curves = {name: [one_size(name, n) for n in SIZES] for name in DATA}
    exponents = {name: exponent(rows) for name, rows in curves.items()}
    write(
        "growth",
        "python -m benchmarks.growth",
        {
            "dimensions": DIMENSIONS,
            "k": 20,
            "repeats": REPEATS,
            "samples per Gaussian": SAMPLES_PER_GAUSSIAN,
        },
        {"exponents": exponents, "curves": curves},
    )
    plot(curves, exponents)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        measure(Path(sys.argv[1]))
    else:
        main()
