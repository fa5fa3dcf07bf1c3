"""What a run claims of its images without labels, against labels: confidence and doubts.

`python -m benchmarks.trust [SET ...]` runs joint learning with default settings and the true number
of clusters, three seeds per set. It takes hours. The runs are kept in the folder `--runs`, so that
they are not repeated.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score
from torch import get_num_threads

from benchmarks.common import RESULTS, write
from benchmarks.photos import flowers
from jule.evaluation import accuracy, calibration_error, nmi, with_own_class
from jule.forward.assign import label_confidence, modularity
from jule.images import Dataset, load_dataset
from jule.joint.config import kind_of, preset
from jule.paper.joint import learn
from jule.report.summary import doubtful_samples
from jule.runs.encoding import as_encoder, encode
from jule.runs.results import RunResults

SEEDS = 3
PIXELS = ("usps", "digits", "umist", "mnist-test", "cmu-pie", "coil20", "coil100", "mnist")
ASIDE = ("ytf-frames",)  # not used to choose the rule of the confidence
PHOTOS, FLOWER_PIXELS = "flowers17, photos", "flowers17, pixels"
UNEQUAL = ", unequal"  # at the end of a name: classes of unequal sizes
SETS = (
    PHOTOS,
    *PIXELS,
    FLOWER_PIXELS,
    *ASIDE,
    *(name + UNEQUAL for name in (PHOTOS, "digits", "usps")),
)
SIDE = 64  # of the flowers whose pixels are clustered
RATIO = 8  # of the largest unequal class to the smallest


def load(name: str) -> tuple[NDArray[np.uint8], NDArray[np.int64], str]:
    """Return the images of a set, their classes, and what the clustering sees of them."""
    if name.endswith(UNEQUAL):
        images, classes, features = load(name.removesuffix(UNEQUAL))
        some = unequal_classes(classes)
        return images[some], classes[some], features
    if name == PHOTOS:
        return *flowers(), "photos"
    if name == FLOWER_PIXELS:
        return *flowers(SIDE), "pixels"
    data = load_dataset(name)
    return data.images, data.labels, "pixels"


def unequal_classes(classes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the rows of a part of a set whose class sizes fall geometrically, in random order."""
    rng = np.random.default_rng(0)
    numbers = rng.permutation(np.unique(classes))
    kept = []
    for number, share in zip(numbers, np.geomspace(1, 1 / RATIO, len(numbers)), strict=True):
        rows = np.flatnonzero(classes == number)
        kept.append(rng.choice(rows, max(2, round(len(rows) * share)), replace=False))
    return np.sort(np.concatenate(kept))


def judge(confidence: NDArray[np.floating], is_right: NDArray[np.bool_]) -> dict[str, float]:
    """Return how well confidences agree with what is right."""
    found = {
        "mean": float(confidence.mean()),
        "calibration error": calibration_error(confidence, is_right),
    }
    if 0 < is_right.mean() < 1:
        found["AUC"] = float(roc_auc_score(is_right, confidence))
    return found


def purities(classes: NDArray[np.integer], labels: NDArray[np.integer]) -> NDArray[np.float64]:
    """Return the share of each image's cluster that is with its class.

    It is the best confidence that is the same for all images of a cluster, and needs labels.
    """
    is_right = with_own_class(classes, labels)
    found: NDArray[np.float64] = (np.bincount(labels, is_right) / np.bincount(labels))[labels]
    return found


def learn_set(name: str, seed: int, k: int | None, runs: Path) -> RunResults:
    """Run joint learning on a set, or read the run that an earlier measurement kept."""
    images, classes, features = load(name)
    samples = encode(as_encoder(features), images)
    kind = kind_of(samples.shape[1:], encoded=features != "pixels")
    config = preset("default", of=kind, n_clusters=k, seed=seed)
    folder = runs / run_name("learned" if k else "open", name, seed)
    return learn(Dataset(name, samples, classes), config, folder)


def run_name(what: str, name: str, seed: int) -> str:
    """Return the name of the folder in which a run on a set is kept."""
    return f"{what}-{name.replace(', ', '-')}-{seed}"


def measure(name: str, seed: int, runs: Path) -> dict[str, Any]:
    """Return what one seed claims on one set, and what is true."""
    classes = load(name)[1]
    given = learn_set(name, seed, len(np.unique(classes)), runs)
    # A run that was kept has the confidence of the time when it was made.
    result = replace(given.result, confidence=given.result.confidence_in(given.result.labels))
    is_right = with_own_class(classes, result.labels)
    modularities = [modularity(graph, result.labels) for graph in result.graphs]
    doubted, _ = doubtful_samples(result)
    return {
        "nmi": nmi(classes, result.labels),
        "ac": accuracy(classes, result.labels),
        "chosen": result.chosen,
        "with their class": float(is_right.mean()),
        "modularity": dict(zip(("learned", "inputs"), modularities, strict=True)),
        "learned graph alone": judge(label_confidence([result.graph], result.labels), is_right),
        "inputs alone": judge(label_confidence(result.graphs[1:], result.labels), is_right),
        "confidence": judge(result.confidence, is_right),
        "purity of the cluster": judge(purities(classes, result.labels), is_right),
        "doubts": {
            "listed": len(doubted),
            "listed and wrong": int((~is_right[doubted]).sum()),
            "wrong": int((~is_right).sum()),
        },
        "seconds": given.seconds,
    }


def measure_sets(name: str, what: str, measure: Callable[[str, int, Path], dict[str, Any]]) -> None:
    """Measure the sets that the command line names, and write each to a record as it is finished.

    Sets that were measured earlier with the same settings stay in the record.
    """
    parser = argparse.ArgumentParser(description=what)
    parser.add_argument("sets", nargs="*", metavar="SET", help=f"of {', '.join(SETS)}")
    parser.add_argument("--runs", type=Path, default=Path("runs"), help="where runs are kept")
    parser.add_argument("--seeds", type=int, default=SEEDS, help=f"seeds per set; {SEEDS}")
    given = parser.parse_args()
    settings = {"threads": get_num_threads(), "side of flowers17, pixels": SIDE}
    path = RESULTS / f"{name}.json"
    record = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    measured = record["measured"] if record.get("settings") == settings else {}
    for one in given.sets or SETS:
        seeds = {}
        for seed in range(given.seeds):
            seeds[str(seed)] = measure(one, seed, given.runs)
            print(one, seed, seeds[str(seed)], flush=True)
        _, sizes = np.unique(load(one)[1], return_counts=True)
        measured[one] = {
            "clusters": len(sizes),
            "largest class / smallest": float(sizes.max() / sizes.min()),
            "seeds": seeds,
        }
        write(name, f"python -m benchmarks.{name}", settings, measured)


def main() -> None:
    measure_sets("trust", __doc__.partition("\n")[0], measure)


if __name__ == "__main__":
    main()
