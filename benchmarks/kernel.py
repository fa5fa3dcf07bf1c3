"""Joint learning with a bandwidth of W per sample (`kernel="local"`), against that of the paper."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

from torch import get_num_threads

import jule.joint.clustering
from benchmarks.common import write
from jule import JULE
from jule.evaluation import accuracy, nmi
from jule.forward.affinity import KERNELS, Kernel
from jule.images import load_dataset

SETS = ("digits", "umist", "usps")
SEEDS = 3
COMPARED: tuple[Kernel, ...] = ("global", "local")


def measure(name: str, kernel: Kernel, seed: int) -> dict[str, float]:
    """Score joint learning with one kernel.

    Joint learning has no such option, so its kernel is replaced from outside.
    """
    data = load_dataset(name)
    with patch.object(jule.joint.clustering, "affinity_graph", KERNELS[kernel]):
        labels = JULE(data.n_clusters, random_state=seed).fit_predict(data.images)
    return {"nmi": nmi(data.labels, labels), "ac": accuracy(data.labels, labels)}


def main() -> None:
    measured: dict[str, Any] = {}
    settings = {"sets": SETS, "seeds": SEEDS, "threads": get_num_threads()}
    for name in SETS:
        measured[name] = {kernel: [] for kernel in COMPARED}
        for seed in range(SEEDS):
            for kernel in COMPARED:
                measured[name][kernel].append(measure(name, kernel, seed))
                print(name, kernel, seed, measured[name][kernel][-1], flush=True)
        write("kernel", "python -m benchmarks.kernel", settings, measured)


if __name__ == "__main__":
    main()
