"""80 pictures, clustered from pixels: at most 100 epochs per period, or at least 24,000 images."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from torch import get_num_threads

from benchmarks.common import seconds, write
from jule import JULE
from jule.evaluation import accuracy, nmi
from jule.images import load_dataset

SETS = ("digits", "umist")
IMAGES, CLASSES, DRAWS = 80, 6, 3
TRAININGS: dict[str, dict[str, Any]] = {
    "default": {},
    "at least 24,000 images per period": {"max_epochs": 1e9},
}


def main() -> None:
    measured: dict[str, dict[str, list[dict[str, float]]]] = {}
    for name in SETS:
        data = load_dataset(name)
        rng = np.random.default_rng(0)
        runs: dict[str, list[dict[str, float]]] = {which: [] for which in TRAININGS}
        for draw in range(DRAWS):
            classes = rng.choice(data.n_clusters, CLASSES, replace=False)
            inside = np.flatnonzero(np.isin(data.labels, classes))
            rows = rng.choice(inside, IMAGES, replace=False)
            truth = data.labels[rows]
            for which, settings in TRAININGS.items():
                model = JULE(len(np.unique(truth)), settings=settings, random_state=draw)
                taken, _ = seconds(partial(model.fit, data.images[rows]))
                found = {"nmi": nmi(truth, model.labels_), "ac": accuracy(truth, model.labels_)}
                runs[which].append(found | {"seconds": taken})
                print(name, draw, which, runs[which][-1], flush=True)
        measured[name] = runs
    settings = {
        "images": IMAGES,
        "classes": CLASSES,
        "draws": DRAWS,
        "threads": get_num_threads(),
    }
    write("folder", "python -m benchmarks.folder", settings, measured)


if __name__ == "__main__":
    main()
