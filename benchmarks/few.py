"""Few images: linkage with the paper's 20 neighbours, against the square root of their number."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.common import write
from jule.baselines import GraphDegreeLinkage
from jule.evaluation import accuracy, nmi
from jule.forward import prepare
from jule.images import load_dataset
from jule.joint import Config
from jule.joint.clustering import count_neighbors

SETS = ("digits", "usps", "umist", "coil20", "cmu-pie", "mnist-test")
COUNTS = (60, 120, 240, 360)
PER_CLUSTER = 12  # images per class at least, as far as there are classes
DRAWS = 8
PAPERS = 20  # neighbours, K_s


def main() -> None:
    measured: dict[str, dict[str, Any]] = {}
    for name in SETS:
        data = load_dataset(name)
        vectors = prepare(data.images, "l2")
        rng = np.random.default_rng(0)
        for n in COUNTS:
            k = min(data.n_clusters, n // PER_CLUSTER)
            runs: dict[str, list[dict[str, float]]] = {"20": [], "square root": []}
            for _ in range(DRAWS):
                classes = rng.choice(data.n_clusters, k, replace=False)
                rows = rng.choice(np.flatnonzero(np.isin(data.labels, classes)), n, replace=False)
                truth = data.labels[rows]
                found = len(np.unique(truth))
                for which, near in (("20", PAPERS), ("square root", count_neighbors(n, Config()))):
                    model = GraphDegreeLinkage(found, n_neighbors=near)
                    labels = model.fit_predict(vectors[rows])
                    runs[which].append({"nmi": nmi(truth, labels), "ac": accuracy(truth, labels)})
            measured[f"{name}, {n}"] = runs
    settings = {"draws": DRAWS, "classes": f"as many as give {PER_CLUSTER} images each, or all"}
    write("few", "python -m benchmarks.few", settings, measured)


if __name__ == "__main__":
    main()
