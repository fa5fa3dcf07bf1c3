"""Small images: joint learning with and without enlarging, against raw linkage and K-means."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from sklearn.cluster import KMeans
from torch import get_num_threads

from benchmarks.common import seconds, write
from jule import JULE, GraphDegreeLinkage
from jule.evaluation import accuracy, nmi
from jule.forward import prepare
from jule.forward.assign import modularity
from jule.images import load_dataset

# Data set, side of the images, step between the images used, number of seeds.
SETS = (
    ("digits", 8, 1, 5),
    ("usps", 8, 4, 3),
    ("mnist-test", 7, 4, 3),
    ("mnist-test", 14, 4, 3),
    ("cmu-pie", 8, 1, 3),
    ("coil20", 12, 1, 3),
)
SIDES = {"as they are": None, "enlarged to 16": 16}


def shrink(images: NDArray[np.uint8], side: int) -> NDArray[np.uint8]:
    """Average square images down."""
    if images.shape[1] == side:
        return images
    size = (side, side)
    box = Image.Resampling.BOX
    return np.stack([np.asarray(Image.fromarray(one).resize(size, box)) for one in images])


def measure(name: str, side: int, every: int, seeds: int) -> dict[str, Any]:
    """Score every method on one set of small images."""
    data = load_dataset(name)
    images, labels, k = shrink(data.images[::every], side), data.labels[::every], data.n_clusters
    vectors = prepare(images, "l2")

    def scores(found: NDArray) -> dict[str, float]:
        return {"nmi": nmi(labels, found), "ac": accuracy(labels, found)}

    kmeans = [KMeans(k, n_init=10, random_state=seed) for seed in range(seeds)]
    found: dict[str, Any] = {
        "images": len(images),
        "K-means": [scores(model.fit_predict(vectors)) for model in kmeans],
        "linkage": [scores(GraphDegreeLinkage(k, n_near=5).fit_predict(vectors))],
    }
    for title, min_side in SIDES.items():
        found[title] = []
        for seed in range(seeds):
            model = JULE(k, random_state=seed, settings={"min_side": min_side})
            taken, _ = seconds(lambda model=model: model.fit(images))  # type: ignore[misc]
            inside = modularity(model.result_.graph, model.labels_)
            row = scores(model.labels_) | {"modularity": inside, "seconds": taken}
            found[title].append(row)
            print(name, side, title, seed, found[title][-1], flush=True)
    return found


def main() -> None:
    measured: dict[str, Any] = {}
    settings = {"sets": SETS, "sides": SIDES, "seeds": "0, 1, ...", "threads": get_num_threads()}
    for name, side, every, seeds in SETS:
        measured[f"{name} {side} x {side}"] = measure(name, side, every, seeds)
        write("small", "python -m benchmarks.small", settings, measured)


if __name__ == "__main__":
    main()
