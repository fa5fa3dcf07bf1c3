"""What a run claims without labels, against labels: confidence, doubts, the number of clusters.

`python -m benchmarks.trust [SET ...]` runs joint learning with default settings, three seeds per
set, once with the true number of clusters and once without. It takes hours. Runs that an
interrupted benchmark has finished are not repeated.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score
from torch import get_num_threads

from benchmarks.common import RESULTS, package_versions, seconds, write
from benchmarks.photos import flowers
from jule import JULE
from jule.evaluation import accuracy, calibration_error, nmi, with_own_class
from jule.forward.assign import label_confidence
from jule.images import load_dataset
from jule.report.summary import doubtful_samples

SEEDS = 3
PIXELS = ("usps", "digits", "umist", "mnist-test", "cmu-pie", "coil20", "coil100")
PHOTOS, FLOWER_PIXELS = "flowers17, photos", "flowers17, pixels"
SETS = (PHOTOS, *PIXELS, FLOWER_PIXELS)
SIDE = 64  # of the flowers whose pixels are clustered


def load(name: str) -> tuple[NDArray[np.uint8], NDArray[np.integer], str]:
    """Return the images of a set, their classes, and what the clustering sees of them."""
    if name == PHOTOS:
        return *flowers(), "photos"
    if name == FLOWER_PIXELS:
        return *flowers(SIDE), "pixels"
    data = load_dataset(name)
    return data.images, data.labels, "pixels"


def judge(confidence: NDArray[np.floating], is_right: NDArray[np.bool_]) -> dict[str, float]:
    """Return how well confidences agree with what is right."""
    found = {
        "mean": float(confidence.mean()),
        "calibration error": calibration_error(confidence, is_right),
    }
    if 0 < is_right.mean() < 1:
        found["AUC"] = float(roc_auc_score(is_right, confidence))
    return found


def measure(name: str, seed: int) -> dict[str, Any]:
    """Return what one seed claims on one set, and what is true."""
    images, classes, features = load(name)
    k = len(np.unique(classes))
    taken, model = seconds(lambda: JULE(k, features=features, random_state=seed).fit(images))
    result, is_right = model.result_, with_own_class(classes, model.labels_)
    doubted, _ = doubtful_samples(result)
    open_taken, open_model = seconds(lambda: JULE(features=features, random_state=seed).fit(images))
    assert open_model.choice_ is not None
    return {
        "nmi": nmi(classes, model.labels_),
        "ac": accuracy(classes, model.labels_),
        "chosen": result.chosen,
        "with their class": float(is_right.mean()),
        "learned graph alone": judge(label_confidence([result.graph], result.labels), is_right),
        "confidence": judge(result.confidence, is_right),
        "doubts": {
            "listed": len(doubted),
            "listed and wrong": int((~is_right[doubted]).sum()),
            "wrong": int((~is_right).sum()),
        },
        "seconds": taken,
        "suggested": [number for number, _ in open_model.choice_.candidates],
        "nmi, suggested": nmi(classes, open_model.labels_),
        "ac, suggested": accuracy(classes, open_model.labels_),
        "seconds, suggested": open_taken,
    }


def earlier(path: Path, settings: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the finished runs of an interrupted benchmark with the same settings and versions."""
    record = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    same = record.get("settings") == settings and record.get("versions") == package_versions()
    return dict(record["measured"]) if same else {}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("sets", nargs="*", metavar="SET", help=f"of {', '.join(SETS)}")
    wanted = parser.parse_args().sets or SETS
    settings = {"threads": get_num_threads(), "side of flowers17, pixels": SIDE}
    path = RESULTS / "trust.json"
    measured = earlier(path, settings)
    for name in wanted:
        found = measured.setdefault(name, {"clusters": len(np.unique(load(name)[1])), "seeds": {}})
        for seed in range(SEEDS):
            if str(seed) not in found["seeds"]:
                found["seeds"][str(seed)] = measure(name, seed)
                print(name, seed, found["seeds"][str(seed)], flush=True)
                measured = earlier(path, settings) | {name: found}  # another process may write, too
                write("trust", "python -m benchmarks.trust", settings, measured)


if __name__ == "__main__":
    main()
