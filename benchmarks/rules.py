"""Other rules for the confidence, scored on finished runs.

`python -m benchmarks.rules [SET ...] --runs FOLDER` reads the runs that `benchmarks.trust`
has kept there and scores several rules on each. Nothing is trained. No run could use the rules that
are marked as needing labels; they are for comparison.

Resampling: every sample keeps a random quarter of its neighbours, the samples are merged into K
clusters again, and this is repeated. A sample agrees if it would be with its class, were the new
clusters the classes. Branches: the smallest share, over the branches of its cluster that contain a
sample, of the affinity of a branch that stays in the cluster. Warps: the share of its own cluster
among the neighbours of small warps of an image. By pixels: with neighbours by pixels instead of
those by colours, edges and textures. Nearer to the mean: the share of the own cluster as
m + r (x - m), where r is the correlation of the shares in both graphs. Fitted with labels: what a
model predicts that was told which images are right, of all other clusters or of nine tenths of all
images. The latter also knows the sizes of clusters and, for images in colour, the share of the own
cluster among the neighbours by colour; a rule without labels can hardly do better.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold, StratifiedKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks.common import RESULTS, write
from benchmarks.trust import (
    PHOTOS,
    SEEDS,
    SETS,
    judge,
    load,
    purities,
    run_name,
)
from jule.backward import embed
from jule.backward.augment import small_warps
from jule.backward.embedder import as_images
from jule.evaluation import with_own_class
from jule.features.appearance import can_be_described
from jule.forward import (
    Digraph,
    MergeTree,
    Neighbors,
    affinity_graph,
    nearest_neighbors,
    prepare,
)
from jule.forward.assign import (
    borne_out,
    count_votes,
    graph_weights,
    label_confidence,
    neighbor_votes,
    own_fractions,
)
from jule.joint.clustering import (
    Representation,
    count_neighbors,
    cut_tree,
    initial_clusters,
    merge_tree,
    represent,
)
from jule.joint.config import Config
from jule.joint.result import Result
from jule.runs.folder import RunFolder
from jule.runs.results import RunResults, read_network, read_results

RESAMPLED = 20  # clusterings per graph
KEPT = 0.25  # fraction of the neighbours that each of them keeps
WARPS = 4  # per image
COLOURS = 4  # intensities per channel of a histogram of colours


def thin(neighbors: Neighbors, rng: np.random.Generator) -> Neighbors:
    """Keep a random part of the neighbours of each sample, still nearest first."""
    count = max(1, round(KEPT * neighbors.k))
    order = rng.random(neighbors.indices.shape).argsort(axis=1)[:, :count]
    kept = np.sort(order, axis=1)
    return Neighbors(
        np.take_along_axis(neighbors.indices, kept, axis=1),
        np.take_along_axis(neighbors.distances, kept, axis=1),
    )


def resampled_agreement(
    neighbors: Neighbors, result: Result, config: Config
) -> NDArray[np.float64]:
    """Return the fraction of resampled clusterings in which each sample is with its class."""
    rng = np.random.default_rng(0)
    agree = np.zeros(len(result.labels))
    for _ in range(RESAMPLED):
        some = thin(neighbors, rng)
        drawn = Representation(result.embedding, some, affinity_graph(some, config.a))
        tree = merge_tree(drawn, initial_clusters(drawn, config), config)
        agree += with_own_class(cut_tree(tree, result.n_clusters, config), result.labels)
    found: NDArray[np.float64] = agree / RESAMPLED
    return found


def branch_shares(
    tree: MergeTree, graph: Digraph, labels: NDArray[np.integer]
) -> NDArray[np.float64]:
    """Return the smallest share of affinity within the cluster, over the branches of each sample.

    The cut of the tree into K clusters is `labels`; branches are its nodes up to the clusters.
    """
    n = tree.n_samples
    merges = tree.merges[: n - int(labels.max()) - 1]
    inside = graph.weights * (labels[graph.indices] == labels[:, None])
    own, total = (
        np.concatenate([_both_ways(graph, weights), np.zeros(len(merges))])
        for weights in (inside, graph.weights)
    )
    for node, (left, right) in enumerate(merges, n):
        own[node], total[node] = own[left] + own[right], total[left] + total[right]
    shares = np.divide(own, total, out=np.ones_like(own), where=total > 0)
    for node in range(n + len(merges) - 1, n - 1, -1):
        children = merges[node - n]
        shares[children] = np.minimum(shares[children], shares[node])
    found: NDArray[np.float64] = shares[:n]
    return found


def _both_ways(graph: Digraph, weights: NDArray[np.floating]) -> NDArray[np.float64]:
    """Return the sum of the weights of edges from and to each sample."""
    into = np.bincount(graph.indices.ravel(), weights.ravel(), len(graph))
    total: NDArray[np.float64] = weights.sum(axis=1, dtype=np.float64) + into
    return total


def warped_shares(name: str, run: RunFolder, results: RunResults) -> NDArray[np.float64]:
    """Return the share of its own cluster among the neighbours of warps of each image."""
    images, result, network = load(name)[0], results.result, read_network(run)
    every = np.arange(len(images))
    shares = np.zeros(len(images))
    for seed in range(WARPS):
        generator = torch.Generator().manual_seed(seed)
        warped = small_warps(as_images(images).float(), generator=generator)
        pixels = warped.round().clamp(0, 255).to(torch.uint8).permute(0, 2, 3, 1).numpy()
        nearest, weights = neighbor_votes(
            embed(network, np.ascontiguousarray(pixels).reshape(images.shape)),
            result.embedding,
            sigma2=result.sigma2,
            n_neighbors=count_neighbors(len(images), results.config),
        )
        weights[nearest == every[:, None]] = 0.0  # a warp says nothing by being near its image
        votes = count_votes(nearest, weights, result.labels)
        total = votes.sum(axis=1)
        # A warp that has no other neighbour counts as one of its cluster.
        shares += np.divide(
            votes[every, result.labels], total, np.ones_like(total), where=total > 0
        )
    found: NDArray[np.float64] = np.minimum(shares / WARPS, 1.0)
    return found


def colour_shares(images: NDArray[np.uint8], labels: NDArray[np.integer]) -> NDArray[np.float64]:
    """Return the share of its own cluster among the neighbours by colour of each image."""
    red, green, blue = np.moveaxis(images // (256 // COLOURS), -1, 0)
    codes = ((red * COLOURS + green) * COLOURS + blue).reshape(len(images), -1)
    counts = np.stack([np.bincount(row, minlength=COLOURS**3) for row in codes])
    histograms = np.sqrt(counts / codes.shape[1]).astype(np.float32)
    return own_fractions([affinity_graph(nearest_neighbors(histograms, 20))], labels)


def _nearer_to_mean(
    shares: NDArray[np.float64], parts: list[NDArray[np.float64]]
) -> NDArray[np.float64]:
    """Return shares nearer to their mean by as much as the shares in two graphs disagree."""
    if any(np.ptp(part) == 0.0 for part in parts):
        return shares
    learned, given = parts
    r = max(0.0, float(np.corrcoef(learned, given)[0, 1]))
    found: NDArray[np.float64] = shares.mean() + r * (shares - shares.mean())
    return found


def fitted_elsewhere(
    parts: list[NDArray[np.float64]], labels: NDArray[np.integer], is_right: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """Return what a logistic regression on the parts predicts, fitted on all other clusters."""
    model = make_pipeline(StandardScaler(), LogisticRegression())
    folds = GroupKFold(min(int(labels.max()) + 1, 20))
    found: NDArray[np.float64] = cross_val_predict(
        model, np.stack(parts, 1), is_right, groups=labels, cv=folds, method="predict_proba"
    )[:, 1]
    return found


def fitted_here(
    parts: list[NDArray[np.float64]], labels: NDArray[np.integer], is_right: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """Return what boosted trees predict that were fitted on nine tenths of all images."""
    sizes = np.bincount(labels)[labels] / len(labels)
    known = np.stack([*parts, sizes, *(part / sizes for part in parts)], 1)
    model = GradientBoostingClassifier(n_estimators=60, max_depth=2, subsample=0.7, random_state=0)
    folds = StratifiedKFold(10, shuffle=True, random_state=0)
    found: NDArray[np.float64] = cross_val_predict(
        model, known, is_right, cv=folds, method="predict_proba"
    )[:, 1]
    return found


def score(name: str, run: RunFolder) -> dict[str, Any]:
    """Return how well each rule agrees with what is right on one run."""
    results, classes = read_results(run), load(name)[1]
    result, config = results.result, results.config
    labels = result.labels
    assert result.input_neighbors is not None
    is_right = with_own_class(classes, labels)
    weights = graph_weights(result.graphs, borne_out(result.graphs, labels))
    near = [own_fractions([graph], labels) for graph in result.graphs]
    again = [
        resampled_agreement(neighbors, result, config)
        for neighbors in (result.neighbors, result.input_neighbors)
    ]
    branch = [branch_shares(result.tree, graph, labels) for graph in result.graphs]
    in_use, resampled = label_confidence(result.graphs, labels), np.dot(weights, again)
    rules = {
        "in use": in_use,
        "without sizes": np.dot(weights, near),
        "nearer to the mean": _nearer_to_mean(np.dot(weights, near), near),
        "resampled": resampled,
        "2/3 in use, 1/3 resampled": (2 * in_use + resampled) / 3,
        "2/3 in use, 1/3 branches": (2 * in_use + branch[0]) / 3,
        "2/3 in use, 1/3 branches of both graphs": (2 * in_use + np.dot(weights, branch)) / 3,
        "1/3 in use, resampled, branches": (in_use + resampled + branch[0]) / 3,
    }
    parts = [*near, *again, *branch]
    images = load(name)[0]
    if not name.startswith(PHOTOS):
        if can_be_described(images):
            pixels = represent(prepare(images, config.preparation), config).graph
            rules["by pixels"] = label_confidence([result.graph, pixels], labels)
        rules["warps"] = warped_shares(name, run, results)
        parts.append(rules["warps"])
    rules["purity (needs labels)"] = purities(classes, labels)
    if not is_right.all():
        rules["fitted elsewhere (needs labels)"] = fitted_elsewhere(parts, labels, is_right)
        if images.ndim == 4:
            parts.append(colour_shares(images, labels))
        rules["fitted here (needs labels)"] = fitted_here(parts, labels, is_right)
    return {
        "with their class": float(is_right.mean()),
        "rules": {rule: judge(np.clip(each, 0, 1), is_right) for rule, each in rules.items()},
    }


def kept_runs(name: str, runs: Path) -> Iterator[tuple[int, RunFolder]]:
    """Yield the seeds of a set whose runs are finished, and the runs."""
    for seed in range(SEEDS):
        run = RunFolder(runs / run_name("learned", name, seed))
        if run.is_finished:
            yield seed, run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("sets", nargs="*", metavar="SET", help=f"of {', '.join(SETS)}")
    parser.add_argument("--runs", type=Path, default=Path("runs"), help="where runs are kept")
    given = parser.parse_args()
    settings = {"clusterings per graph": RESAMPLED, "neighbours kept": KEPT, "warps": WARPS}
    path = RESULTS / "rules.json"
    record = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    measured = record["measured"] if record.get("settings") == settings else {}
    for name in given.sets or SETS:
        seeds = {str(seed): score(name, run) for seed, run in kept_runs(name, given.runs)}
        if seeds:
            measured[name] = seeds
            print(name, seeds, flush=True)
    if not measured:
        parser.error(f"{given.runs} has no finished runs: make them with benchmarks.trust")
    write("rules", "python -m benchmarks.rules", settings, measured)


if __name__ == "__main__":
    main()
