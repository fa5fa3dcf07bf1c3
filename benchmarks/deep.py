"""Joint learning end to end, against ClustPy's deep methods and UMAP on the same machine."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from numpy.typing import NDArray
from torch import get_num_threads

from benchmarks.common import seconds, write
from jule import JULE
from jule.baselines.modern import MODERN
from jule.evaluation import accuracy, nmi
from jule.forward import prepare
from jule.images import Dataset, load_dataset

SETS = ("usps", "mnist-test")
OTHERS = ("DEC", "IDEC", "DCN", "UMAP + HDBSCAN", "UMAP + K-means")
SEEDS = 3
FEW = 300  # samples of the first call, which compiles and imports and is not timed


def joint(data: Dataset, seed: int) -> NDArray:
    """Return the clusters of joint learning with default settings."""
    labels: NDArray = JULE(data.n_clusters, random_state=seed).fit_predict(data.images)
    return labels


def other(name: str, data: Dataset, seed: int) -> NDArray:
    """Return the clusters of another method on images divided by their L2 norms."""
    model = MODERN[name](data.n_clusters, random_state=seed)
    labels: NDArray = model.fit_predict(prepare(data.images, "l2"))
    return labels


def warm_up(data: Dataset) -> None:
    """Compile the kernels and import the libraries, which is not timed."""
    few = prepare(data.images[:FEW], "l2")
    MODERN["UMAP + HDBSCAN"](2).fit(few)
    MODERN["DEC"](2, pretrain_epochs=1, clustering_epochs=1).fit(few)
    JULE(2, settings={"min_images": 100, "max_images": 100}).fit(data.images[:FEW])


def main() -> None:
    methods: dict[str, Callable[[Dataset, int], NDArray]] = {"JULE": joint}
    methods |= {name: partial(other, name) for name in OTHERS}
    measured: dict[str, Any] = {}
    settings = {"seeds": SEEDS, "threads": get_num_threads()}
    warm_up(load_dataset(SETS[0]))
    for dataset in SETS:
        data = load_dataset(dataset)
        measured[dataset] = {name: [] for name in methods}
        for seed in range(SEEDS):
            for name, method in methods.items():
                taken, labels = seconds(partial(method, data, seed))
                found = {"nmi": nmi(data.labels, labels), "ac": accuracy(data.labels, labels)}
                measured[dataset][name].append(found | {"seconds": taken})
                print(dataset, name, seed, measured[dataset][name][-1], flush=True)
            write("deep", "python -m benchmarks.deep", settings, measured)


if __name__ == "__main__":
    main()
