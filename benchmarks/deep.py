"""Joint learning end to end, against ClustPy's deep methods and UMAP on the same machine.

It takes three hours. Runs that an interrupted benchmark has finished are not repeated.
"""

from __future__ import annotations

import copy
import json
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from torch import get_num_threads, manual_seed

from benchmarks.common import RESULTS, Result, package_versions, seconds, write
from jule import JULE
from jule.baselines._clustpy import import_clustpy, scale_for_clustpy, silenced
from jule.baselines._seeds import global_seeds_kept
from jule.baselines.modern import MODERN
from jule.evaluation import accuracy, nmi
from jule.forward import prepare
from jule.images import Dataset, load_dataset

Labels: TypeAlias = NDArray[np.integer]
Timed: TypeAlias = tuple[float, float, Labels]  # seconds, seconds of the processor, labels
Names: TypeAlias = Sequence[str]
Measured: TypeAlias = dict[str, dict[str, list[dict[str, Any]]]]  # data set -> method -> runs

SETS = ("usps", "mnist-test")
FROM_AUTOENCODER = ("DEC", "IDEC", "DCN")
FROM_UMAP = ("UMAP + HDBSCAN", "UMAP + K-means")
N_METHODS = 1 + len(FROM_UMAP) + len(FROM_AUTOENCODER)
SEEDS = 3
PRETRAIN_EPOCHS, CLUSTERING_EPOCHS, BATCH = 100, 150, 256  # ClustPy's defaults
FEW = 300  # samples of the first call, which compiles and imports and is not timed


def timed(work: Callable[[], Result]) -> tuple[float, float, Result]:
    """Return the seconds and the seconds of the processor that a call takes, and its result."""
    before = time.process_time()
    taken, result = seconds(work)
    return taken, time.process_time() - before, result


def joint(data: Dataset, seed: int, names: Names = ("JULE",)) -> dict[str, Timed]:
    """Run joint learning with default settings."""
    model = JULE(data.n_clusters, random_state=seed)
    return {name: timed(lambda: model.fit(data.images).labels_) for name in names}


def umap(data: Dataset, seed: int, names: Names = FROM_UMAP) -> dict[str, Timed]:
    """Run UMAP before HDBSCAN and before K-means, on images divided by their L2 norms."""
    vectors = prepare(data.images, "l2")
    models = {name: MODERN[name](data.n_clusters, random_state=seed) for name in names}
    return {name: timed(partial(model.fit_predict, vectors)) for name, model in models.items()}


def clustpy(
    data: Dataset,
    seed: int,
    names: Names = FROM_AUTOENCODER,
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
        manual_seed(seed)  # for the initial weights; ClustPy seeds the rest
        *pretraining, autoencoder = timed(
            lambda: get_trained_network(
                data=vectors, n_epochs=pretrain_epochs, batch_size=BATCH, random_state=seed
            )
        )
        for name in names:
            model = getattr(deep, name)(
                data.n_clusters,
                neural_network=copy.deepcopy(autoencoder),
                clustering_epochs=clustering_epochs,
                random_state=seed,
            )
            taken, processor, labels = timed(partial(model.fit_predict, vectors))
            found[name] = pretraining[0] + taken, pretraining[1] + processor, labels
    return found


def warm_up(data: Dataset) -> None:
    """Compile the kernels and import the libraries, which is not timed."""
    few = Dataset(data.name, data.images[:FEW], data.labels[:FEW])
    umap(few, 0)
    clustpy(few, 0, pretrain_epochs=1, clustering_epochs=1)
    JULE(2, settings={"min_images": 100, "max_images": 100}).fit(few.images)


def earlier(settings: dict[str, Any]) -> Measured:
    """Return the finished runs of an interrupted benchmark with the same settings and versions.

    Settings and packages that its record does not name do not concern the runs in it.
    """
    path = RESULTS / "deep.json"
    record = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    found: Measured = {dataset: record.get("measured", {}).get(dataset, {}) for dataset in SETS}
    runs = [run for methods in found.values() for each in methods.values() for run in each]
    same = (
        record.get("settings", {}).items() <= settings.items()
        and record.get("versions", {}).items() <= package_versions().items()
    )
    if not same or len(runs) == len(SETS) * N_METHODS * SEEDS:
        return {dataset: {} for dataset in SETS}
    for run in runs:
        run.setdefault("date", record["date"])
    return found


def main() -> None:
    groups: dict[Callable[[Dataset, int, Names], dict[str, Timed]], Names]
    groups = {joint: ("JULE",), umap: FROM_UMAP, clustpy: FROM_AUTOENCODER}
    settings = {
        "seeds": SEEDS,
        "threads": get_num_threads(),
        "DEC and IDEC": f"{PRETRAIN_EPOCHS} epochs of one autoencoder per seed, whose time counts "
        f"for both, and {CLUSTERING_EPOCHS} epochs of each",
        "DCN": "the same, from an autoencoder of its own if DEC and IDEC had been measured before",
    }
    measured = earlier(settings)
    warm_up(load_dataset(SETS[0]))
    for dataset in SETS:
        data = load_dataset(dataset)
        for seed in range(SEEDS):
            for run, names in groups.items():
                of_set = measured[dataset]
                missing = [name for name in names if len(of_set.get(name, [])) <= seed]
                if not missing:
                    continue
                for name, (taken, processor, labels) in run(data, seed, missing).items():
                    found = {
                        "nmi": nmi(data.labels, labels),
                        "ac": accuracy(data.labels, labels),
                        "seconds": taken,
                        "seconds of the processor": processor,
                        "date": time.strftime("%Y-%m-%d"),
                    }
                    of_set.setdefault(name, []).append(found)
                    print(dataset, name, seed, found, flush=True)
                write("deep", "python -m benchmarks.deep", settings, measured)


if __name__ == "__main__":
    main()
