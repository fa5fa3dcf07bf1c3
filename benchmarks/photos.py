"""Photographs described by a pretrained encoder: linkage and K-means alone, and joint learning.

`python -m benchmarks.photos` needs the folder flowers17 and four other sets in $JULE_DATA.
`--cifar FILE` adds the 10,000 test images of CIFAR-10 from an .npz file with images, labels and
split.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import get_num_threads

from benchmarks.common import seconds, write
from jule import JULE, read_images
from jule.baselines import METHODS
from jule.evaluation import accuracy, nmi
from jule.features import encode_images, photos_encoder
from jule.images import ImageSpec, load_dataset, open_source

SEEDS = 3
SIDE = 224
PARTS = ((1, 8), (9, 13), (13, 17))  # kinds of flowers that are clustered alone
OTHERS = {"coil100": 25, "umist": 20, "ytf-frames": 347}  # other pictures, and how many classes
LFW_IMAGES = 8  # of a person, at least


def flowers(side: int = SIDE) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Return the photographs of flowers17, and the kind of flower of each."""
    folder = Path(os.environ["JULE_DATA"], "flowers17")
    opened = open_source(str(folder), labels_from_folders=True)
    found = read_images(opened, ImageSpec(side, side, 3))
    assert found.labels is not None
    return found.samples, found.labels


def cifar(file: Path) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Return the test images of CIFAR-10 and their classes."""
    with np.load(file, allow_pickle=False) as archive:
        is_test = archive["split"] == 1
        return archive["images"][is_test], archive["labels"][is_test]


def lfw() -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Return the faces of people with many images in Labeled Faces in the Wild."""
    data = load_dataset("lfw")
    some = np.bincount(data.labels)[data.labels] >= LFW_IMAGES
    return data.images[some], data.labels[some]


def measure(images: NDArray[np.uint8], classes: NDArray[np.int64]) -> dict[str, Any]:
    """Return the scores and seconds of every method, without those of the encoder."""
    vectors = encode_images(photos_encoder(), images)  # stored, so that joint learning finds them
    k = len(np.unique(classes))

    def scored(taken: float, labels: NDArray[np.integer]) -> dict[str, float]:
        return {"nmi": nmi(classes, labels), "ac": accuracy(classes, labels), "seconds": taken}

    runs: dict[str, list[dict[str, float]]]
    runs = {"K-means": [], "linkage": [], "joint learning": []}
    runs["linkage"].append(scored(*seconds(lambda: METHODS["AC-GDL"](k).fit_predict(vectors))))
    for seed in range(SEEDS):
        means = METHODS["K-means"](k, random_state=seed)
        runs["K-means"].append(scored(*seconds(lambda m=means: m.fit_predict(vectors))))  # type: ignore[misc]
        model = JULE(k, features="photos", random_state=seed)
        taken, labels = seconds(lambda m=model: m.fit(images).labels_)  # type: ignore[misc]
        runs["joint learning"].append(scored(taken, labels))
    return {"images": len(images), "clusters": k, "runs": runs}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--cifar", type=Path, metavar="FILE", help="CIFAR-10 as .npz")
    given = parser.parse_args()
    images, kinds = flowers()
    measured = {"flowers17": measure(images, kinds)}
    for first, last in PARTS:
        some = np.isin(kinds, np.unique(kinds)[first - 1 : last])
        measured[f"flowers17, kinds {first} to {last}"] = measure(images[some], kinds[some])
    for name, k in OTHERS.items():
        data = load_dataset(name)
        some = data.labels < k
        title = f"{name}, {k} classes"
        measured[title] = measure(data.images[some], data.labels[some])
    measured[f"lfw, people with {LFW_IMAGES} images"] = measure(*lfw())
    command = "python -m benchmarks.photos"
    if given.cifar is not None:
        measured["CIFAR-10, test images"] = measure(*cifar(given.cifar))
        command += " --cifar FILE"
    settings = {"seeds": SEEDS, "threads": get_num_threads(), "encoder": photos_encoder().about}
    write("photos", command, settings, measured)


if __name__ == "__main__":
    main()
