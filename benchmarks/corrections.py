"""Corrections: how good suggestions are, and how fast edits, updates and constrained merging are.

`python -m benchmarks.corrections PART ...` measures parts: suggestions, edits, apply, update,
refining, merging. For suggestions and update, `--runs` is a folder of finished runs with an open
number of clusters, named open-DATASET-SEED. For merging, `--before PATH` is a checkout
without constraints.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.common import RESULTS, seconds, write
from benchmarks.photos import flowers
from jule import JULE
from jule.corrections.apply import start
from jule.corrections.suggest import near_duplicates, same_pairs, strangers
from jule.evaluation import accuracy, nmi
from jule.features import encode_images, photos_encoder
from jule.files import array_bytes, write_atomic
from jule.forward import MergeTree, Neighbors
from jule.forward.affinity import weigh_neighbors
from jule.forward.restrict import tree_through_labels
from jule.images import fingerprint, load_dataset, read_images
from jule.images.read import digests_of
from jule.joint import Config, init_network
from jule.joint.result import Result, recut, with_labels
from jule.paper.records import read_record
from jule.runs.corrected import base_of
from jule.runs.edits import EditSession
from jule.runs.folder import RunFolder, create_run
from jule.runs.names import DIGESTS
from jule.runs.refining import refine
from jule.runs.results import new_results, read_found, read_results, write_results

SETS = ("usps", "digits", "umist", "cmu-pie", "coil20", "coil100", "mnist-test")
SEEDS = (0, 1, 2)
N_LARGE, K_LARGE = 70_000, 100
TURNS = 10
MERGING_TURNS = 3  # of separate processes; each merges 40 times and reports the fastest
NEW = 1000
N_CORRECTED = 50  # must-links before refining
REFINED = ("before", "trained on without corrections", "corrected", "refined")
MERGE = """
import json, sys, time
import numpy as np
from jule.forward import Digraph, merge_clusters
with np.load(sys.argv[1]) as found:
    graph, initial = Digraph(found["indices"], found["weights"], 1.0), found["initial"]
    apart = found["apart"] if sys.argv[2] == "apart" else None
options = {} if apart is None else {"apart": apart}
taken = []
for _ in range(41):  # the first one loads the kernels
    started = time.process_time()
    merge_clusters(graph, initial, **options)
    taken.append(time.process_time() - started)
print(json.dumps(min(taken[1:])))
"""


# ---- suggestions


def measure_suggestions(runs: Path) -> dict[str, Any]:
    """Return how often suggested pairs and branches are right, by data set, over the seeds."""
    pairs: dict[str, list[dict[str, float]]] = {}
    branches: dict[str, list[dict[str, float]]] = {}
    for name in SETS:
        classes = np.asarray(load_dataset(name).labels)
        for seed in SEEDS:
            results = read_results(RunFolder(runs / f"open-{name}-{seed}"))
            k = len(np.unique(classes))
            pairs.setdefault(name, []).append(_pairs(results, classes, 2 * k))
            branches.setdefault(name, []).append(_branches(results, classes, round(0.7 * k)))
    return {"pairs at twice the classes": pairs, "branches at 0.7 of the classes": branches}


def _recut(results: Any, k: int) -> Result:
    result = results.result
    return with_labels(result, recut(result, k, results.config), results.config)


def _pairs(results: Any, classes: NDArray, k: int) -> dict[str, float]:
    """Average precision of suggested pairs: right ones have the same most frequent class."""
    result = _recut(results, min(k, results.result.tree.n_different))
    base = base_of(results, result)
    frequent = [np.bincount(classes[result.labels == c]).argmax() for c in range(result.n_clusters)]
    found = same_pairs(result.graph, base, start(base))
    right = np.array([frequent[one.label] == frequent[one.other] for one in found])
    n = len(frequent)
    possible = sum(frequent[a] == frequent[b] for a in range(n) for b in range(a))
    by_degree = _by_degree_linkage(result)
    return {
        "average precision": _average_precision(right, possible),
        "average precision of Eq. 12": _average_precision(
            np.array([frequent[a] == frequent[b] for a, b in by_degree]), possible
        ),
        "share of all pairs": possible / (n * (n - 1) / 2),
    }


def _by_degree_linkage(result: Result) -> list[tuple[int, int]]:
    """Return the pairs of clusters in the order of their affinity of Eq. 12."""
    labels, graph, k = result.labels, result.graph, result.n_clusters
    n, wide = graph.indices.shape
    outward, inward = np.zeros((n, k)), np.zeros((n, k))
    source, target = np.repeat(np.arange(n), wide), graph.indices.ravel()
    np.add.at(outward, (source, labels[target]), graph.weights.ravel())
    np.add.at(inward, (target, labels[source]), graph.weights.ravel())
    sums = np.zeros((k, k))
    np.add.at(sums, labels, outward * inward)
    affinity = sums / np.bincount(labels).astype(float) ** 2
    affinity += affinity.T
    rows, columns = np.triu_indices(k, 1)
    order = np.argsort(-affinity[rows, columns], kind="stable")
    order = order[affinity[rows, columns][order] > 0]
    return list(zip(rows[order].tolist(), columns[order].tolist(), strict=True))


def _average_precision(right: NDArray[np.bool_], possible: int) -> float:
    precision = np.cumsum(right) / np.arange(1, len(right) + 1)
    return float((precision * right).sum() / max(possible, 1))


def _branches(results: Any, classes: NDArray, k: int) -> dict[str, float]:
    """Precision of suggested branches: right ones have another class than the rest."""
    result = _recut(results, max(k, 2))
    base = base_of(results, result)
    starts, stops = base.intervals
    places = starts[: len(classes)]
    right = []
    for one in strangers(result.graph, base, start(base)):
        inside = (places >= starts[one.branch]) & (places < stops[one.branch])
        rest = (result.labels == one.label) & ~inside
        right.append(np.bincount(classes[inside]).argmax() != np.bincount(classes[rest]).argmax())
    joined = 0
    for cluster in range(result.n_clusters):
        counts = np.sort(np.bincount(classes[result.labels == cluster]))
        joined += len(counts) > 1 and counts[-2] >= 0.2 * counts.sum()
    first = max(1, min(joined, len(right)))
    return {
        "clusters that join classes": float(joined),
        "precision of as many": float(np.mean(right[:first])) if right else 0.0,
        "precision of all": float(np.mean(right)) if right else 0.0,
    }


# ---- edits


def measure_edits() -> dict[str, Any]:
    """Return the milliseconds of edits on a run of 70,000 made-up samples."""
    with tempfile.TemporaryDirectory() as folder:
        run = large_run(Path(folder) / "run")
        opening, session = seconds(lambda: EditSession(run))
        editor = session.editor
        edits = {
            "name": lambda i: editor.name(i, f"name {i}"),
            "move of 200": lambda i: editor.move(range(200 * i, 200 * i + 200), 5),
            "split": lambda i: editor.split(10 + i),
            "merge": lambda i: editor.merge(30 + 2 * i, 31 + 2 * i),
            "must-link": lambda i: editor.must_link([40_000 + i, 50_000 + i]),
            "cannot-link": lambda i: editor.cannot_link([60_000 + i], [65_000 + i]),
            "shelve": lambda i: editor.shelve([69_000 + i]),
        }
        taken: dict[str, list[float]] = {}
        for kind, make in edits.items():
            for turn in range(TURNS):
                spent, _ = seconds(lambda make=make, turn=turn: session.add(make(turn)))  # type: ignore[misc]
                taken.setdefault(kind, []).append(1e3 * spent)
        for kind, change in (("undo", session.undo), ("redo", session.redo)):
            taken[kind] = [1e3 * seconds(change)[0] for _ in range(TURNS)]
        found, log = session.found.result, session.editor.log.in_effect
        others = {
            "opening": opening,
            "same pairs": seconds(
                lambda: same_pairs(found.graph, editor.base, session.state, log, 50)
            )[0],
            "strangers": seconds(lambda: strangers(found.graph, editor.base, session.state, 50))[0],
            "near-duplicates": seconds(
                lambda: near_duplicates(found.neighbors, session.state.labels)
            )[0],
        }
        return {
            "ms of an edit": taken,
            "median ms of all": float(np.median(np.concatenate(list(taken.values())))),
            "seconds": others,
        }


def measure_apply() -> dict[str, Any]:
    """Return the processor seconds of `jule apply` on the large run, from start to end.

    The run has a new name and a new move each time. The fastest of several turns counts: other
    programs on the same cores make a process slower. `import numpy` shows by how much.
    """
    taken: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        run = large_run(Path(folder) / "run")
        command = ["-m", "jule", "apply", str(run.folder)]
        processor_seconds(command)  # makes the page, and compiles what is not yet compiled
        for turn in range(TURNS // 2):
            session = EditSession(run)
            editor = session.editor
            session.add(editor.name(turn, f"name {turn}"))
            session.add(editor.move(range(1000 * turn, 1000 * turn + 200), 50))
            session.add(editor.split(60 + turn))
            for name, what in (
                ("import numpy", ["-c", "import numpy"]),
                ("apply --no-page", [*command, "--no-page"]),
                ("apply", command),
            ):
                taken.setdefault(name, []).append(processor_seconds(what))
    return {
        "processor seconds": taken,
        "fastest": {name: min(values) for name, values in taken.items()},
    }


def processor_seconds(arguments: list[str]) -> float:
    """Return the processor seconds of a Python process, as users start it: with stored bytecode."""
    environment = {**os.environ, "PYTHONPATH": str(Path("src").resolve())}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    before = os.times()
    subprocess.run(
        [sys.executable, *arguments], check=True, env=environment, stdout=subprocess.DEVNULL
    )
    after = os.times()
    return (after.children_user - before.children_user) + (
        after.children_system - before.children_system
    )


def large_run(folder: Path, n: int = N_LARGE, wide: int = 160) -> RunFolder:
    """Write a run of samples in a line, with clusters that are intervals of it.

    Its pictures are noise, in an array beside it; its vectors have `wide` dimensions.
    """
    rng = np.random.default_rng(0)
    labels = np.sort(rng.integers(K_LARGE, size=n)).astype(np.int32)
    labels = np.unique(labels, return_inverse=True)[1].astype(np.int32)
    steps = np.concatenate([np.arange(-10, 0), np.arange(1, 11)])
    distances = np.abs(steps) * 0.01 + rng.random((n, 20)) * 0.001
    order = np.argsort(distances, axis=1)
    indices = (np.arange(n)[:, None] + steps[order]) % n
    neighbors = Neighbors(indices.astype(np.int32), np.take_along_axis(distances, order, axis=1))
    nodes, merges, made = list(range(n)), [], n
    while len(nodes) > 1:
        pairs = list(zip(nodes[::2], nodes[1::2], strict=False))
        left = nodes[2 * len(pairs) :]
        merges += pairs
        nodes = [*range(made, made + len(pairs)), *left]
        made += len(pairs)
    vectors = rng.standard_normal((n, wide), np.float32)
    graph = weigh_neighbors(neighbors, 0.05)
    tree = MergeTree(n, np.array(merges), np.linspace(1, 0.01, n - 1))
    tree = tree_through_labels(tree, labels, graph, vectors)
    result = Result(
        labels, labels, labels, "rc", np.ones(n), tree, vectors, neighbors, 0.05, (), None
    )
    config, images = Config(n_clusters=K_LARGE), rng.integers(0, 255, (n, 8, 8), np.uint8)
    source = folder.with_suffix(".npy")
    np.save(source, images)
    run = create_run(folder, config, fingerprint(images), source=str(source))
    write_atomic(run.path(DIGESTS), array_bytes(digests_of(images)))
    names = [f"photos/2024/IMG_{number:06d}.jpg" for number in range(n)]
    results = new_results(config, result, (), names=names)
    write_results(run, results, init_network(images, config))
    return run


# ---- update


def measure_update(runs: Path) -> dict[str, Any]:
    """Return the seconds to add 1,000 images of MNIST to a run of its 10,000 test images."""
    from jule.runs.adding import add_pictures, only_new
    from jule.runs.results import read_found

    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(runs / "open-mnist-test-0", Path(folder) / "run")
        run = RunFolder(Path(folder) / "run")
        every = load_dataset("mnist")
        more = Path(folder) / "more.npz"
        np.savez(more, images=every.images[-11_000:-10_000])

        def update() -> int:
            data = read_images(more)
            new = only_new(read_found(run).digests, data)
            return add_pictures(run, data, new, data.samples[new], source=str(more)).n_new

        before = read_results(run)
        taken, n_new = seconds(update)
        after = read_results(run)
        n = len(before.names)
        assert np.array_equal(after.result.labels[:n], before.result.labels)
        return {"seconds": taken, "images before": n, "images added": n_new}


# ---- refining


def measure_refining() -> dict[str, Any]:
    """Return the scores of pictures that were not corrected, before and after `jule refine`.

    Runs of flowers17 are corrected as a person would do it: of the pictures in a cluster with most
    of another class, the most doubtful ones get a must-link to a typical picture of their own
    class. The same training without corrections is measured for comparison.
    """
    images, kinds = flowers()
    vectors = encode_images(photos_encoder(), images)
    named, classes = np.unique(kinds, return_inverse=True)
    n, k = len(images), len(named)
    measured: dict[str, list[dict[str, float]]] = {name: [] for name in REFINED}
    for seed in SEEDS:
        with tempfile.TemporaryDirectory() as folder:
            model = JULE(k, features="photos", random_state=seed).fit(images)
            model.save(Path(folder) / "run")
            run = RunFolder(Path(folder) / "run")
            plain = refine(run, vectors).after
            corrected = _correct(EditSession(run), classes)
            others = np.setdiff1d(np.arange(n), corrected)
            refined = refine(run, vectors)
            found = (read_found(run), plain, refined.before, refined.after)
            for name, results in zip(REFINED, found, strict=True):
                labels, true = results.result.labels[others], classes[others]
                measured[name].append({"nmi": nmi(true, labels), "ac": accuracy(true, labels)})
    return {"images": n, "corrections": N_CORRECTED, "scores": measured}


def _correct(session: EditSession, classes: NDArray) -> list[int]:
    """Correct the most doubtful pictures of wrong clusters; return all pictures in the edits."""
    editor, result = session.editor, session.found.result
    typical = [
        editor.typical_of(np.flatnonzero(result.labels == cluster), 1)[0]
        for cluster in range(result.n_clusters)
    ]
    frequent = np.array(
        [np.bincount(classes[result.labels == c]).argmax() for c in range(result.n_clusters)]
    )
    edits, involved = [], []
    for sample in np.argsort(result.confidence, kind="stable").tolist():
        own = np.flatnonzero(frequent == classes[sample])
        if frequent[result.labels[sample]] == classes[sample] or len(own) == 0:
            continue
        example = int(typical[own[0]])
        if classes[example] != classes[sample]:
            continue
        edits.append(editor.must_link([example, sample]))
        involved += [example, sample]
        if len(edits) == N_CORRECTED:
            break
    session.add(*edits)
    return sorted(set(involved))


# ---- merging


def measure_merging(before: Path) -> dict[str, Any]:
    """Return the seconds of merging MNIST-test: before, now, and with constraints, in turn."""
    from jule.forward import affinity_graph, nearest_neighbor_components, nearest_neighbors, prepare

    data = load_dataset("mnist-test")
    vectors = prepare(data.images, "l2").reshape(len(data), -1)
    neighbors = nearest_neighbors(vectors, 20)
    graph, initial = affinity_graph(neighbors), nearest_neighbor_components(neighbors)
    rng = np.random.default_rng(0)
    pairs = rng.integers(len(data), size=(2000, 2))
    kept = (data.labels[pairs[:, 0]] != data.labels[pairs[:, 1]]) & (
        initial[pairs[:, 0]] != initial[pairs[:, 1]]
    )
    taken: dict[str, list[float]] = {"before": [], "now": [], "with constraints": []}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "graph.npz"
        np.savez(
            path, indices=graph.indices, weights=graph.weights, initial=initial, apart=pairs[kept]
        )
        trees = {"before": before, "now": Path(), "with constraints": Path()}
        for _ in range(MERGING_TURNS):
            for name, tree in trees.items():
                how = "apart" if name == "with constraints" else "free"
                done = subprocess.run(
                    [sys.executable, "-c", MERGE, str(path), how],
                    check=True,
                    stdout=subprocess.PIPE,
                    env={**os.environ, "PYTHONPATH": str((tree / "src").resolve())},
                )
                taken[name].append(json.loads(done.stdout))
    fastest = {name: min(values) for name, values in taken.items()}  # others were disturbed
    return {
        "seconds": taken,
        "now / before": fastest["now"] / fastest["before"],
        "with constraints / now": fastest["with constraints"] / fastest["now"],
        "cannot-links": int(kept.sum()),
    }


def main() -> None:
    """Measure the parts that were asked for; other parts of the result file stay."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "parts",
        nargs="*",
        default=["edits"],
        help="those above",
    )
    parser.add_argument("--runs", type=Path, default=Path("runs"))
    parser.add_argument("--before", type=Path)
    given = parser.parse_args()
    path = RESULTS / "corrections.json"
    measured = read_record(path)["measured"] if path.exists() else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about numbers of clusters that copies do not allow
        for part in given.parts:
            started = time.perf_counter()
            if part == "suggestions":
                measured[part] = measure_suggestions(given.runs)
            elif part == "update":
                measured[part] = measure_update(given.runs)
            elif part == "apply":
                measured[part] = measure_apply()
            elif part == "refining":
                measured[part] = measure_refining()
            elif part == "merging":
                measured[part] = measure_merging(given.before)
            else:
                measured[part] = measure_edits()
            print(f"{part}: {time.perf_counter() - started:.0f} s")
    settings = {"sets": SETS, "seeds": SEEDS, "images of the large run": N_LARGE, "new": NEW}
    write("corrections", "python -m benchmarks.corrections", settings, measured)


if __name__ == "__main__":
    main()
