"""Baselines against the best-known public implementation of the same or a similar method.

The spectral methods have a benchmark of their own, `benchmarks.spectral`.

`python -m benchmarks.peers` compares with scikit-learn and scipy. `--cdlib PYTHON` adds cdlib, in
an interpreter that has it, and `--gactoolbox FOLDER` adds a checkout of gactoolbox, under Octave.
Rows of these two from an earlier run are kept, with its date.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.io import loadmat, savemat
from scipy.sparse import csr_array, save_npz
from sklearn.base import ClusterMixin
from sklearn.cluster import KMeans
from sklearn.decomposition import NMF
from threadpoolctl import threadpool_info

from benchmarks.common import RESULTS, seconds, write
from jule.baselines import (
    AverageLinkage,
    GraphDegreeLinkage,
    LocalityPreservingNMF,
    PathIntegralLinkage,
    ZetaLinkage,
)
from jule.baselines.locality_preserving_nmf import N_FIRST
from jule.evaluation import accuracy, nmi
from jule.forward import affinity_graph, nearest_neighbors, prepare
from jule.images import load_dataset
from jule.jit import get_num_threads

Samples: TypeAlias = NDArray[np.floating]
Labels: TypeAlias = NDArray[np.integer]
Run: TypeAlias = Callable[[Samples], tuple[float, Labels]]  # returns seconds and labels

N_CLUSTERS = 10
N_NEIGHBORS = 20  # of the graphs of the agglomerative methods
N_WARM = 500  # samples of the first run, which compiles the kernels and is not timed
TURNS = 3
LONG = 20.0  # seconds; what takes longer is run once
N_FACTORS = 10
NMF_STARTS, NMF_MAX_ITER = 10, 50  # as in the preset "jule-paper"
NMF_ITERATIONS = NMF_STARTS * N_FIRST + NMF_MAX_ITER - N_FIRST  # over all starts
CDLIB_SAMPLES = 5_500  # cdlib takes about a minute
CDLIB_NEAR = 10  # clusters that cdlib keeps near each, as in the paper on graph degree linkage
GACTOOLBOX_SAMPLES = 2_500  # gactoolbox takes up to two minutes

CDLIB = """
import sys, time
import networkx, numpy, scipy.sparse
from cdlib.algorithms import agdl
source, target, k, near = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
weights = scipy.sparse.load_npz(source)
graph = networkx.from_scipy_sparse_array(weights, create_using=networkx.DiGraph)
start = time.perf_counter()
clusters = agdl(graph, number_communities=k, kc=near).communities
taken = time.perf_counter() - start
labels = numpy.empty(weights.shape[0], int)
for label, members in enumerate(clusters):
    labels[members] = label
numpy.savez(target, seconds=taken, labels=labels)
"""
GACTOOLBOX = """
[folder, source, target, descriptor, k, near, a] = argv(){:};
addpath(folder, fullfile(folder, 'gacfiles'));
load(source);
tic;
norms = sum(samples .^ 2, 2);
distances = max(norms + norms' - 2 * samples * samples', 0);
distances(1 : rows(samples) + 1 : end) = 0;
labels = gacCluster(distances, str2num(k), descriptor, str2num(near), str2num(a));
taken = toc;
save('-v6', target, 'labels', 'taken');
"""


@dataclass(frozen=True, eq=False)
class Comparison:
    """Methods of jule and their peers, on the same samples.

    Attributes
    ----------
    data
        Name of the data set.
    samples
        (n, d) samples, each of unit length.
    classes
        (n,) true classes.
    runs
        Every method and peer by name.
    pairs
        Method of jule -> peer.
    iterations
        Number of iterations of both; None if they are not the same.
    """

    data: str
    samples: Samples
    classes: Labels
    runs: dict[str, Run]
    pairs: dict[str, str]
    iterations: int | None = None


def load(name: str, n: int | None = None) -> tuple[Samples, Labels]:
    """Return samples divided by their L2 norms and their classes: all, or n random ones."""
    data = load_dataset(name)
    chosen = np.random.RandomState(0).permutation(len(data.labels))[:n]
    return prepare(data.images[chosen], "l2"), np.asarray(data.labels)[chosen]


def in_process(fit: Callable[[Samples], Labels]) -> Run:
    """Return a run that times a function of the samples in this process."""
    return lambda samples: seconds(lambda: fit(samples))


def estimator(model: ClusterMixin) -> Run:
    """Return a run that times an estimator."""
    return in_process(model.fit_predict)


def time_in_turn(runs: dict[str, Run], samples: Samples) -> dict[str, tuple[list[float], Labels]]:
    """Run the methods in turn, several times; return all seconds and the last labels of each."""
    for run in runs.values():
        run(samples[:N_WARM])
    times: dict[str, list[float]] = {name: [] for name in runs}
    labels = {}
    for _ in range(TURNS):
        for name, run in runs.items():
            if not times[name] or times[name][0] < LONG:
                taken, labels[name] = run(samples)
                times[name].append(taken)
    return {name: (times[name], labels[name]) for name in runs}


def compare(comparison: Comparison) -> list[dict[str, Any]]:
    """Measure all methods of a comparison; return one row per pair."""
    found = time_in_turn(comparison.runs, comparison.samples)
    rows = []
    for method, peer in comparison.pairs.items():
        sides = {"peer": found[peer], "jule": found[method]}
        medians = {side: float(np.median(times)) for side, (times, _) in sides.items()}
        labels = {side: labels for side, (_, labels) in sides.items()}
        row = {
            "method": method,
            "peer": peer,
            "data": comparison.data,
            "samples": len(comparison.samples),
            "seconds": medians,
            "all seconds": {side: times for side, (times, _) in sides.items()},
            "peer / jule": medians["peer"] / medians["jule"],
            "nmi": {side: nmi(comparison.classes, of) for side, of in labels.items()},
            "ac": {side: accuracy(comparison.classes, of) for side, of in labels.items()},
            "nmi of both": nmi(labels["peer"], labels["jule"]),
        }
        if comparison.iterations is not None:
            row["iterations"] = comparison.iterations
            row["seconds per iteration"] = {
                side: taken / comparison.iterations for side, taken in medians.items()
            }
        print(row, flush=True)
        rows.append(row)
    return rows


def factorization(samples: Samples, classes: Labels) -> Comparison:
    """Return NMF-LP without its penalty, against scikit-learn's NMF of as many iterations.

    The time of both includes K-means on the factors. That of jule also includes the initialisation
    of its ten starts by K-means; the iterations of all starts are counted.
    """
    nmf = NMF(
        N_FACTORS,
        beta_loss="kullback-leibler",
        solver="mu",
        tol=0.0,
        max_iter=NMF_ITERATIONS,
        random_state=0,
    )
    kmeans = KMeans(N_CLUSTERS, n_init=10, random_state=0)
    own = LocalityPreservingNMF(
        N_CLUSTERS,
        preset="jule-paper",
        n_factors=N_FACTORS,
        n_init=NMF_STARTS,
        max_iter=NMF_MAX_ITER,
    )
    peer = "scikit-learn NMF, K-means"
    return Comparison(
        "mnist-test",
        samples,
        classes,
        {
            peer: in_process(lambda samples: kmeans.fit_predict(nmf.fit_transform(samples))),
            "NMF-LP": estimator(own),
        },
        {"NMF-LP": peer},
        iterations=NMF_ITERATIONS,
    )


def average(samples: Samples, classes: Labels) -> Comparison:
    """Return average linkage, against scipy's."""
    peer = "scipy linkage"

    def cut_tree(samples: Samples) -> Labels:
        labels: Labels = fcluster(linkage(samples, "average"), N_CLUSTERS, "maxclust")
        return labels

    runs = {peer: in_process(cut_tree), "AC-Link": estimator(AverageLinkage(N_CLUSTERS))}
    return Comparison("mnist-test", samples, classes, runs, {"AC-Link": peer})


def degree_linkage(python: Path, samples: Samples, classes: Labels) -> Comparison:
    """Return graph degree linkage, against cdlib's, which is given the graph."""
    peer = "cdlib agdl"
    own = GraphDegreeLinkage(N_CLUSTERS, n_neighbors=N_NEIGHBORS, min_cluster_size=1)
    runs = {peer: cdlib(python), "AC-GDL": estimator(own)}
    return Comparison("usps", samples, classes, runs, {"AC-GDL": peer})


def structure_linkage(folder: Path, samples: Samples, classes: Labels) -> Comparison:
    """Return the linkages by cycles and by paths, against those of gactoolbox."""
    zeta = ZetaLinkage(N_CLUSTERS, n_neighbors=N_NEIGHBORS, min_cluster_size=1)
    path = PathIntegralLinkage(N_CLUSTERS, n_neighbors=N_NEIGHBORS, min_cluster_size=1)
    return Comparison(
        "usps",
        samples,
        classes,
        {
            "gactoolbox zeta": gactoolbox(folder, "zeta", zeta.a),
            "gactoolbox path": gactoolbox(folder, "path", path.a),
            "AC-Zell": estimator(zeta),
            "AC-PIC": estimator(path),
        },
        {"AC-Zell": "gactoolbox zeta", "AC-PIC": "gactoolbox path"},
    )


def cdlib(python: Path) -> Run:
    """Return a run of cdlib's AGDL on the graph that jule's linkage makes of the samples."""

    def run(samples: Samples) -> tuple[float, Labels]:
        graph = affinity_graph(nearest_neighbors(samples, N_NEIGHBORS))
        n, k = graph.indices.shape
        edges = graph.weights.ravel(), graph.indices.ravel(), np.arange(0, n * k + 1, k)
        with tempfile.TemporaryDirectory() as folder:
            source, target = Path(folder, "graph.npz"), Path(folder, "found.npz")
            save_npz(source, csr_array(edges, shape=(n, n)))
            run_quietly(python, "-c", CDLIB, source, target, N_CLUSTERS, CDLIB_NEAR)
            with np.load(target) as found:
                return float(found["seconds"]), found["labels"]

    return run


def gactoolbox(toolbox: Path, descriptor: str, a: float) -> Run:
    """Return a run of gactoolbox on all squared distances, which it computes first."""

    def run(samples: Samples) -> tuple[float, Labels]:
        with tempfile.TemporaryDirectory() as folder:
            script, source, target = (Path(folder, of) for of in ("run.m", "in.mat", "out.mat"))
            script.write_text(GACTOOLBOX, encoding="utf-8")
            savemat(source, {"samples": samples.astype(np.float64)})
            files = "octave-cli", "--norc", "--quiet", script, toolbox, source, target
            run_quietly(*files, descriptor, N_CLUSTERS, N_NEIGHBORS, a)
            found = loadmat(target)
        return float(found["taken"].item()), found["labels"].ravel().astype(np.int64)

    return run


def run_quietly(*command: object) -> str:
    """Run a command and return its output, which is part of the error if it fails."""
    words = [str(word) for word in command]
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        raise RuntimeError(f"{words[0]} failed:\n{done.stdout}")
    return done.stdout


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--cdlib", type=Path, metavar="PYTHON", help="interpreter that has cdlib")
    parser.add_argument("--gactoolbox", type=Path, metavar="FOLDER", help="checkout of gactoolbox")
    given = parser.parse_args()
    pools = threadpool_info()
    settings: dict[str, Any] = {
        "data": f"l2, {N_CLUSTERS} clusters",
        "seconds": f"median of {TURNS} in turn, or one run if it takes more than {LONG:.0f} s",
        "threads": {
            "numba": get_num_threads(),
            "BLAS and OpenMP": max(pool["num_threads"] for pool in pools),
        },
    }
    command = "python -m benchmarks.peers"
    digits = load("mnist-test")
    rows = compare(factorization(*digits)) + compare(average(*digits))
    if given.cdlib is not None:
        command += " --cdlib PYTHON"
        script = "from importlib.metadata import version; print(version('cdlib'))"
        settings["cdlib"] = run_quietly(given.cdlib, "-c", script).strip()
        settings["time of cdlib"] = "without the neighbours and the graph, which jule's includes"
        rows += compare(degree_linkage(given.cdlib, *load("usps", CDLIB_SAMPLES)))
    if given.gactoolbox is not None:
        command += " --gactoolbox FOLDER"
        settings["octave"] = run_quietly("octave-cli", "--version").splitlines()[0]
        settings["time of gactoolbox"] = "with all distances, without starting Octave"
        toolbox = given.gactoolbox.resolve()
        rows += compare(structure_linkage(toolbox, *load("usps", GACTOOLBOX_SAMPLES)))
    kept_rows, kept_settings = earlier({row["method"] for row in rows})
    write("peers", command, kept_settings | settings, rows + kept_rows)


def earlier(measured: set[str]) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Return the rows and settings of an earlier run whose peers were not there this time."""
    path = RESULTS / "peers.json"
    if not path.exists():
        return [], {}
    record = json.loads(path.read_text(encoding="utf-8"))
    about = {"date": record["date"], "command": record["command"]}
    kept = [
        about | row
        for row in record["measured"]
        if row["method"] not in measured and row["peer"].startswith(("cdlib", "gactoolbox"))
    ]
    return kept, record["settings"]


if __name__ == "__main__":
    main()
