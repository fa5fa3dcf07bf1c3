"""Joint learning end to end, against ClustPy's deep methods and UMAP on the same machine.

It takes two hours. Runs that an interrupted benchmark has finished are not repeated.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from torch import get_num_threads

from benchmarks.common import RESULTS, package_versions, seconds, write
from jule import JULE
from jule.baselines._clustpy import import_clustpy, scale_for_clustpy, silenced
from jule.baselines._seeds import global_seeds_kept
from jule.baselines.modern import MODERN
from jule.evaluation import accuracy, nmi
from jule.forward import prepare
from jule.images import Dataset, load_dataset

Labels: TypeAlias = NDArray[np.integer]
Timed: TypeAlias = tuple[float, Labels]

SETS = ("usps", "mnist-test")
FROM_AUTOENCODER = ("DEC", "IDEC")
FROM_UMAP = ("UMAP + HDBSCAN", "UMAP + K-means")
N_METHODS = 1 + len(FROM_UMAP) + len(FROM_AUTOENCODER)
SEEDS = 3
PRETRAIN_EPOCHS, CLUSTERING_EPOCHS, BATCH = 100, 150, 256  # ClustPy's defaults
FEW = 300  # samples of the first call, which compiles and imports and is not timed


def joint(data: Dataset, seed: int) -> dict[str, Timed]:
    """Run joint learning with default settings."""
    return {
        "JULE": seconds(lambda: JULE(data.n_clusters, random_state=seed).fit(data.images).labels_)
    }


def umap(data: Dataset, seed: int) -> dict[str, Timed]:
    """Run UMAP before HDBSCAN and before K-means, on images divided by their L2 norms."""
    vectors = prepare(data.images, "l2")
    models = {name: MODERN[name](data.n_clusters, random_state=seed) for name in FROM_UMAP}
    return {name: seconds(partial(model.fit_predict, vectors)) for name, model in models.items()}


def clustpy(
    data: Dataset,
    seed: int,
    pretrain_epochs: int = PRETRAIN_EPOCHS,
    clustering_epochs: int = CLUSTERING_EPOCHS,
) -> dict[str, Timed]:
    """Run ClustPy's methods on images divided by their L2 norms.

    They start from one autoencoder, whose training counts for each of them.
    """
    deep = import_clustpy()
    from clustpy.deep._train_utils import get_trained_network

    vectors = scale_for_clustpy(prepare(data.images, "l2"))
    found = {}
    with global_seeds_kept(), silenced():
        pretraining, autoencoder = seconds(
            lambda: get_trained_network(
                data=vectors, n_epochs=pretrain_epochs, batch_size=BATCH, random_state=seed
            )
        )
        for name in FROM_AUTOENCODER:
            model = getattr(deep, name)(
                data.n_clusters,
                neural_network=copy.deepcopy(autoencoder),
                clustering_epochs=clustering_epochs,
                random_state=seed,
            )
            clustering, labels = seconds(partial(model.fit_predict, vectors))
            found[name] = pretraining + clustering, labels
    return found


def warm_up(data: Dataset) -> None:
    """Compile the kernels and import the libraries, which is not timed."""
    few = Dataset(data.name, data.images[:FEW], data.labels[:FEW])
    umap(few, 0)
    clustpy(few, 0, pretrain_epochs=1, clustering_epochs=1)
    JULE(2, settings={"min_images": 100, "max_images": 100}).fit(few.images)


def earlier(settings: dict[str, Any]) -> dict[str, dict[str, list[dict[str, float]]]]:
    """Return the finished runs of an interrupted benchmark with the same settings and versions."""
    path = RESULTS / "deep.json"
    record = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    found: dict[str, dict[str, list[dict[str, float]]]] = record.get("measured", {})
    runs = [len(each) for methods in found.values() for each in methods.values()]
    is_complete = len(runs) == len(SETS) * N_METHODS and min(runs) == SEEDS
    same = record.get("settings") == settings and record.get("versions") == package_versions()
    return found if same and not is_complete else {dataset: {} for dataset in SETS}


def main() -> None:
    groups: dict[Callable[[Dataset, int], dict[str, Timed]], tuple[str, ...]]
    groups = {joint: ("JULE",), umap: FROM_UMAP, clustpy: FROM_AUTOENCODER}
    settings = {
        "seeds": SEEDS,
        "threads": get_num_threads(),
        "DEC and IDEC": f"{PRETRAIN_EPOCHS} epochs of one autoencoder per seed, whose time counts "
        f"for both, and {CLUSTERING_EPOCHS} epochs of each",
    }
    measured = earlier(settings)
    warm_up(load_dataset(SETS[0]))
    for dataset in SETS:
        data = load_dataset(dataset)
        for seed in range(SEEDS):
            for run, names in groups.items():
                if all(len(measured[dataset].get(name, [])) > seed for name in names):
                    continue
                for name, (taken, labels) in run(data, seed).items():
                    found = {"nmi": nmi(data.labels, labels), "ac": accuracy(data.labels, labels)}
                    measured[dataset].setdefault(name, []).append(found | {"seconds": taken})
                    print(dataset, name, seed, measured[dataset][name][-1], flush=True)
                write("deep", "python -m benchmarks.deep", settings, measured)


if __name__ == "__main__":
    main()
