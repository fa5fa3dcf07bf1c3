"""Merging in rounds, compared with the exact order: quality, order and time.

`python -m benchmarks.rounds sets` compares them on the labelled sets, `python -m benchmarks.rounds
million` on a million shifted digits. `python -m benchmarks.rounds noise` merges the million in the
exact order with weights that are changed a little, to see how much a cut depends on nothing that
matters. What the other parts measured is kept. `--neighbors FOLDER` stores the samples and the
neighbours of the million, or reads them from there.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numba import set_num_threads
from numpy.typing import NDArray
from scipy.stats import kendalltau

from benchmarks.common import RESULTS, load_neighbors, read_measured, save_neighbors, write
from benchmarks.growth import shifted_mnist, shifted_mnist_labels
from benchmarks.merging_in_rounds import merge_in_rounds
from jule.evaluation import nmi
from jule.forward import (
    Neighbors,
    affinity_graph,
    default_min_cluster_size,
    merge_clusters,
    nearest_neighbor_components,
    nearest_neighbors,
    prepare,
)
from jule.forward.affinity import Digraph
from jule.forward.agglomerate import grow_tree
from jule.forward.linkage_state import init_state, sort_by_cluster
from jule.images import load_dataset

SETS = ("usps", "mnist-test", "mnist", "coil20", "coil100", "umist", "cmu-pie")
EPSILONS = (0.02, 0.1, 0.5)
TIMED = 0.1
MILLION = 1_000_000
CUTS = (10, 100, 1_000)
ALL_ROUNDS_UP_TO = 20_000
NOISE = 0.001  # of weights
SEED = 0
Result = TypeVar("Result")


class Clustered:
    """One set with its graph, and the merges of the exact order."""

    def __init__(
        self, vectors: NDArray[np.floating], neighbors: Neighbors, labels: NDArray[np.integer]
    ):
        self.vectors, self.neighbors, self.labels = vectors, neighbors, labels
        self.classes = len(np.unique(labels))
        self.graph = affinity_graph(neighbors)
        self.initial = nearest_neighbor_components(neighbors)
        self.times, (self.nodes, self.affinities) = timed(
            lambda: merge_clusters(self.graph, self.initial)
        )

    def rounds(self, eps: float, workers: int = 1) -> tuple[dict[str, float], Any]:
        """Merge in rounds; return how long it took, and the merges."""
        return timed(lambda: merge_in_rounds(self.graph, self.initial, eps, workers=workers))

    def cuts(
        self, nodes: NDArray[np.int64], affinities: NDArray[np.float64], numbers: list[int]
    ) -> dict[int, NDArray[np.integer]]:
        """Cut the tree of some merges into several numbers of clusters."""
        joins = int(self.initial.max()) - len(nodes)
        tree = grow_tree(self.vectors, self.neighbors, self.initial, nodes, affinities, joins)
        n = len(self.vectors)
        return {k: tree.cut(k, default_min_cluster_size(n, k)) for k in numbers}

    def compare(self, more_cuts: tuple[int, ...]) -> dict[str, Any]:
        """Compare rounds with the exact order, for every eps."""
        exact = self.cuts(self.nodes, self.affinities, [self.classes, *more_cuts])
        found: dict[str, Any] = {
            "samples": len(self.labels),
            "classes": self.classes,
            "initial clusters": int(self.initial.max()) + 1,
            "NMI with the labels, exact": nmi(self.labels, exact[self.classes]),
            "share of merges with a larger affinity than the one before, exact": float(
                np.mean(np.diff(self.affinities) > 0)
            ),
            "time, exact": self.times,
            "rounds": {},
        }
        for eps in EPSILONS:
            times, (nodes, affinities, sizes) = self.rounds(eps)
            found["rounds"][str(eps)] = {
                "rounds": len(sizes),
                "time": times,
                **self.likeness(nodes, affinities, exact),
            }
            print(eps, found["rounds"][str(eps)], flush=True)
        return found

    def likeness(
        self,
        nodes: NDArray[np.int64],
        affinities: NDArray[np.float64],
        exact: dict[int, NDArray[np.integer]],
    ) -> dict[str, Any]:
        """Compare other merges with the exact order and its cuts."""
        own = self.cuts(nodes, affinities, list(exact))
        return {
            "NMI with the labels": nmi(self.labels, own[self.classes]),
            "NMI with the exact cut": {str(k): nmi(exact[k], own[k]) for k in exact},
            **self.order(nodes),
        }

    def noise(self, more_cuts: tuple[int, ...]) -> dict[str, Any]:
        """Compare the exact order with that of weights that differ by `NOISE` at most."""
        exact = self.cuts(self.nodes, self.affinities, [self.classes, *more_cuts])
        rng = np.random.default_rng(SEED)
        factors = 1 + NOISE * rng.uniform(-1, 1, self.graph.weights.shape)
        noisy = Digraph(self.graph.indices, self.graph.weights * factors, self.graph.sigma2)
        merges = merge_clusters(noisy, self.initial)
        return {"weights differ by at most": NOISE, **self.likeness(*merges, exact)}

    def order(self, nodes: NDArray[np.int64]) -> dict[str, float]:
        """Compare the order of the clusters that both trees have."""
        exact, own = (sets_of_nodes(int(self.initial.max()) + 1, n) for n in (self.nodes, nodes))
        _, rank_exact, rank_own = np.intersect1d(exact, own, return_indices=True)
        tau = kendalltau(rank_exact, rank_own).statistic
        return {
            "clusters that the exact tree has as well": len(rank_own) / len(own),
            "pairs of them in another order": float((1 - tau) / 2),
        }


def sets_of_nodes(n_initial: int, nodes: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Return a number for every merge that depends only on the initial clusters below it."""
    rng = np.random.default_rng(SEED)
    numbers = np.empty(n_initial + len(nodes), np.uint64)
    numbers[:n_initial] = rng.integers(2**63, size=n_initial, dtype=np.uint64)
    with np.errstate(over="ignore"):
        for t, (a, b) in enumerate(nodes):
            numbers[n_initial + t] = numbers[a] + numbers[b]
    return numbers[n_initial:]


def measure_set(name: str) -> dict[str, Any]:
    data = load_dataset(name)
    vectors = prepare(data.images, "l2")
    clustered = Clustered(vectors, nearest_neighbors(vectors, 20), data.labels)
    found = clustered.compare((2 * clustered.classes, 5 * clustered.classes))
    if len(data) <= ALL_ROUNDS_UP_TO:  # with eps 0 every merge is a round
        nodes = clustered.rounds(0.0)[1][0]
        found["exact order with eps 0"] = bool(np.array_equal(nodes, clustered.nodes))
    print(name, found, flush=True)
    return found


def load_million(folder: Path) -> Clustered:
    path, stored = folder / "shifted mnist.npz", folder / "shifted mnist.vectors.npy"
    if not stored.exists():
        np.save(stored, shifted_mnist(MILLION))
    vectors = np.load(stored, allow_pickle=False)
    if not path.exists():
        save_neighbors(path, nearest_neighbors(vectors, 20, method="approximate", seed=SEED))
    compile_kernels(vectors)
    return Clustered(vectors, load_neighbors(path), shifted_mnist_labels(MILLION))


def compile_kernels(vectors: NDArray[np.floating]) -> None:
    few = np.ascontiguousarray(vectors[:500])
    small = Clustered(few, nearest_neighbors(few, 20), np.arange(500) % 10)
    small.rounds(TIMED)


def measure_times(clustered: Clustered) -> dict[str, dict[str, float]]:
    """Time the setup, and rounds with two workers; others may use the machine meanwhile."""
    found = {"setup of both": timed(lambda: set_up(clustered))[0]}
    for threads, where in ((1, "in turn on one core"), (2, "on two cores")):
        set_num_threads(threads)
        found[f"two workers {where}"] = clustered.rounds(TIMED, workers=2)[0]
        print(found, flush=True)
    return found


def set_up(clustered: Clustered) -> None:
    """Do what comes before the first merge, which both orders have in common."""
    n_initial = int(clustered.initial.max()) + 1
    graph, owner, old_number = sort_by_cluster(clustered.graph, clustered.initial, n_initial)
    init_state(graph, owner, old_number, n_initial - 1, 5)


def timed(work: Callable[[], Result]) -> tuple[dict[str, float], Result]:
    """Return how long a call takes, and its result; the machine may be busy with other work."""
    start, used = time.perf_counter(), time.process_time()
    result = work()
    taken = {
        "seconds": time.perf_counter() - start,
        "processor seconds": time.process_time() - used,
        "load average": os.getloadavg()[0],
    }
    return taken, result


def main(part: str = "all", folder: Path | None = None) -> None:
    set_num_threads(1)
    path = RESULTS / "rounds.json"
    measured = read_measured(RESULTS.parent, "rounds") if path.exists() else {}
    if part in ("sets", "all"):
        measured["sets"] = {name: measure_set(name) for name in SETS}
    if part in ("million", "noise", "all"):
        with tempfile.TemporaryDirectory() as temporary:
            million = load_million(folder or Path(temporary))
        if part != "noise":
            measured["million"] = million.compare(CUTS) | {"times": measure_times(million)}
        if part != "million":
            measured["noise"] = million.noise(CUTS)
    if path.exists():  # the other part may have been measured meanwhile
        measured = read_measured(RESULTS.parent, "rounds") | measured
    write(
        "rounds",
        "python -m benchmarks.rounds",
        {
            "data": "l2, 20 neighbours, K_c = 5, lambda = 1",
            "million": "shifted MNIST of benchmarks.growth, approximate neighbours",
            "eps": EPSILONS,
            "eps with two workers": TIMED,
            "seed": SEED,
        },
        measured,
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "part", nargs="?", default="all", choices=("sets", "million", "noise", "all")
    )
    parser.add_argument("--neighbors", type=Path)
    arguments = parser.parse_args()
    main(arguments.part, arguments.neighbors)
