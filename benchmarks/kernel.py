"""Joint learning with one bandwidth per sample in the graph W, against the paper's single one."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

from torch import get_num_threads

import jule.joint.clustering
from benchmarks.common import RESULTS, write
from jule import JULE
from jule.evaluation import accuracy, nmi
from jule.forward.affinity import KERNELS
from jule.images import load_dataset
from jule.paper.records import read_record

SETS = ("usps", "umist")
SEEDS = 3


def learn_with_local_kernel(name: str, seed: int) -> dict[str, float]:
    """Score joint learning with the local kernel.

    Joint learning has no option for the kernel, so the function that makes W is replaced.
    """
    data = load_dataset(name)
    with patch.object(jule.joint.clustering, "affinity_graph", KERNELS["local"]):
        labels = JULE(data.n_clusters, random_state=seed).fit_predict(data.images)
    return {"nmi": nmi(data.labels, labels), "ac": accuracy(data.labels, labels)}


def published(name: str, seed: int) -> dict[str, float]:
    """Return the scores of the same run with the paper's kernel (`jule reproduce joint`)."""
    path = RESULTS.parent / "joint" / "default" / f"{name}-{seed}.json"
    scores: dict[str, float] = read_record(path)["scores"]["labels"]
    return {name: scores[name] for name in ("nmi", "ac")}


def main() -> None:
    measured: dict[str, Any] = {}
    settings = {"sets": SETS, "seeds": SEEDS, "threads": get_num_threads()}
    for name in SETS:
        measured[name] = {"global": [published(name, seed) for seed in range(SEEDS)], "local": []}
        for seed in range(SEEDS):
            measured[name]["local"].append(learn_with_local_kernel(name, seed))
            print(name, seed, {which: runs[seed] for which, runs in measured[name].items()})
        write("kernel", "python -m benchmarks.kernel", settings, measured)


if __name__ == "__main__":
    main()
