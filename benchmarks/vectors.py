"""Plain vectors, scikit-learn's own sets: linkage and K-means alone, and joint learning."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.preprocessing import StandardScaler
from torch import get_num_threads

from benchmarks.common import seconds, write
from jule import JULE, GraphDegreeLinkage
from jule.baselines import METHODS
from jule.evaluation import accuracy, nmi

SETS = {
    "iris": load_iris,
    "wine": load_wine,
    "breast cancer": load_breast_cancer,
    "digits, as vectors": load_digits,
}
SEEDS = 3


def main() -> None:
    measured: dict[str, Any] = {}
    for name, load in SETS.items():
        vectors, classes = load(return_X_y=True)
        vectors = StandardScaler().fit_transform(vectors)
        k = len(np.unique(classes))
        models: dict[str, list[Any]] = {
            "K-means": [METHODS["K-means"](k, random_state=seed) for seed in range(SEEDS)],
            "linkage": [GraphDegreeLinkage(k)],
            "joint learning": [JULE(k, random_state=seed) for seed in range(SEEDS)],
        }
        runs: dict[str, list[dict[str, float]]] = {}
        for method, instances in models.items():
            for model in instances:
                taken, labels = seconds(partial(model.fit_predict, vectors))
                found = {"nmi": nmi(classes, labels), "ac": accuracy(classes, labels)}
                runs.setdefault(method, []).append(found | {"seconds": taken})
        measured[name] = {"images": len(vectors), "clusters": k, "runs": runs}
        print(name, measured[name], flush=True)
    settings = {"seeds": SEEDS, "threads": get_num_threads(), "features": "standardised"}
    write("vectors", "python -m benchmarks.vectors", settings, measured)


if __name__ == "__main__":
    main()
