"""Spectral methods against scikit-learn's: several seeds, three data sets, and where time goes.

Seconds are those of the processor, so run it with one thread: OMP_NUM_THREADS=1,
OPENBLAS_NUM_THREADS=1 and NUMBA_NUM_THREADS=1. Seeds that an interrupted benchmark has measured are
not repeated.
"""

from __future__ import annotations

import cProfile
import json
import pstats
import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClusterMixin
from sklearn.cluster import SpectralClustering
from threadpoolctl import threadpool_info

from benchmarks.common import RESULTS, package_versions, write
from jule.baselines import (
    LandmarkSpectralClustering,
    NJWSpectralClustering,
    NormalizedCuts,
    SelfTuningSpectralClustering,
)
from jule.evaluation import accuracy, nmi
from jule.forward import prepare
from jule.images import Dataset, load_dataset
from jule.jit import get_num_threads

Make: TypeAlias = Callable[..., ClusterMixin]
Run: TypeAlias = dict[str, float]

SETS = ("mnist-test", "usps", "umist")
PROFILED = "mnist-test"
STAGES_ON = f"stages on {PROFILED}"
SEEDS = 5
N_WARM = 500  # samples of the first run, which compiles the kernels and is not timed

_peer = partial(SpectralClustering, affinity="nearest_neighbors")
METHODS: dict[str, Make] = {
    "scikit-learn, kmeans": partial(_peer, assign_labels="kmeans"),
    "scikit-learn, discretize": partial(_peer, assign_labels="discretize"),
    "SC-NJW": partial(NJWSpectralClustering, graph="neighbors"),
    "SC-ST": partial(SelfTuningSpectralClustering, graph="neighbors"),
    "SC-LS": LandmarkSpectralClustering,
    "SC-LS, 3 nearest, random starts": partial(
        LandmarkSpectralClustering, n_nearest=3, rounding="random"
    ),
    "N-Cuts": partial(NormalizedCuts, graph="neighbors"),
}
# The functions that do the stages of all methods; none calls another.
STAGES = {
    "neighbours or landmarks": ("kneighbors_graph", "nearest_neighbors", "choose_landmarks"),
    "weights": (
        "neighbor_gaussian",
        "neighbor_self_tuning",
        "neighbor_quartic",
        "landmark_weights",
        "normalize",
    ),
    "eigenvectors": ("_spectral_embedding", "leading_eigenvectors", "spectral_rows"),
    "rounding": (
        "k_means",
        "discretize",
        "cosine_kmeans",
        "round_by_kmeans",
        "round_from_random_rows",
    ),
}


def measure(make: Make, data: Dataset, vectors: NDArray[np.floating], seed: int) -> Run:
    """Run a method once; return its scores and its seconds."""
    model = make(n_clusters=data.n_clusters, random_state=seed)
    wall, processor = time.perf_counter(), time.process_time()
    labels = model.fit_predict(vectors)
    return {
        "seconds of the processor": time.process_time() - processor,
        "seconds": time.perf_counter() - wall,
        "nmi": nmi(data.labels, labels),
        "ac": accuracy(data.labels, labels),
    }


def stages(make: Make, n_clusters: int, vectors: NDArray[np.floating]) -> dict[str, float]:
    """Return the seconds of the processor that the stages of a method take, with seed 0."""
    model = make(n_clusters=n_clusters, random_state=0)
    profile = cProfile.Profile(time.process_time)
    start = time.process_time()
    profile.runcall(model.fit_predict, vectors)
    total = time.process_time() - start
    seconds_of: dict[str, float] = {}
    for (_, _, function), (_, _, _, taken, _) in pstats.Stats(profile).stats.items():  # type: ignore[attr-defined]
        # scikit-learn has functions that call methods of the same name.
        seconds_of[function] = max(seconds_of.get(function, 0.0), taken)
    found = {
        stage: sum(seconds_of.get(function, 0.0) for function in functions)
        for stage, functions in STAGES.items()
    }
    return found | {"rest": total - sum(found.values())}


def main() -> None:
    warnings.simplefilter("ignore")  # graphs of several components, which all methods meet
    settings: dict[str, Any] = {
        "data": "l2",
        "seeds": SEEDS,
        "peer": 'SpectralClustering(affinity="nearest_neighbors")',
        "graphs of SC-NJW, SC-ST and N-Cuts": "neighbors",
        "threads": {
            "numba": get_num_threads(),
            "BLAS and OpenMP": max(pool["num_threads"] for pool in threadpool_info()),
        },
    }
    measured = earlier(settings)
    for name in SETS:
        data = load_dataset(name)
        vectors = prepare(data.images, "l2")
        found = measured["sets"].setdefault(
            name, {"samples": len(data), "clusters": data.n_clusters, "seeds": []}
        )
        if len(found["seeds"]) < SEEDS or (name == PROFILED and not measured[STAGES_ON]):
            for make in METHODS.values():
                make(n_clusters=data.n_clusters).fit(vectors[:N_WARM])
        for seed in range(len(found["seeds"]), SEEDS):
            found["seeds"].append(
                {method: measure(make, data, vectors, seed) for method, make in METHODS.items()}
            )
            print(name, seed, found["seeds"][-1], flush=True)
            write("spectral", "python -m benchmarks.spectral", settings, measured)
        if name == PROFILED and not measured[STAGES_ON]:
            measured[STAGES_ON] = {
                method: stages(make, data.n_clusters, vectors) for method, make in METHODS.items()
            }
            write("spectral", "python -m benchmarks.spectral", settings, measured)


def earlier(settings: dict[str, Any]) -> dict[str, Any]:
    """Return what an interrupted benchmark with the same settings and versions has measured."""
    path = RESULTS / "spectral.json"
    record = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    found: dict[str, Any] = record.get("measured", {"sets": {}, STAGES_ON: {}})
    n_seeds = sum(len(each["seeds"]) for each in found["sets"].values())
    is_complete = n_seeds == SEEDS * len(SETS) and bool(found[STAGES_ON])
    same = record.get("settings") == settings and record.get("versions") == package_versions()
    return found if same and not is_complete else {"sets": {}, STAGES_ON: {}}


if __name__ == "__main__":
    main()
