"""Random graphs: the compiled kernels against the equations, as plain loops write them.

Every case is drawn from a seed of its own: a digraph over at most a few dozen samples, with weights
of 0, ties, isolated samples, groups without an edge between them, and duplicates. The kernels and
the oracle of the tests must make the same merges, with the same affinities, and the same cuts.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tests.oracles import linkage, neighbors, tree

from jule.forward import (
    Digraph,
    MergeTree,
    affinity_graph,
    merge_clusters,
    nearest_neighbor_components,
    nearest_neighbors,
)
from jule.forward.linkage import UPDATES
from torture.campaign import Outcome, Progress

CRITERIA = ((1, 0.0), (5, 1.0), (2, 0.5), (3, 4.0))  # K_c and lambda
MOST_SAMPLES = 24  # the oracle takes time in proportion to the cube of this
STEPS = 8  # weights are multiples of 1/8: their sums are exact, so ties are ties in any order
TOLERANCE = 1e-9  # of affinities, where sums are not exact


@dataclass(frozen=True)
class Case:
    """A graph with initial clusters, and the settings for merging them."""

    kind: str
    graph: Digraph
    initial: NDArray[np.integer]
    settings: dict[str, Any]


def random_case(seed: list[int]) -> Case:
    """Draw a case.

    Examples
    --------
    >>> random_case([0, 1]).kind in ("edges", "points", "updates")
    True
    """
    rng = np.random.default_rng(seed)
    kind = str(rng.choice(["edges", "points", "updates"], p=[0.6, 0.3, 0.1]))
    n = int(
        rng.choice([1, 2, 3, int(rng.integers(4, MOST_SAMPLES + 1))], p=[0.02, 0.05, 0.08, 0.85])
    )
    n_near, lam = CRITERIA[rng.integers(len(CRITERIA))]
    settings: dict[str, Any] = {"n_near": n_near, "lam": lam}
    if rng.random() < 0.2:
        settings["n_clusters"] = int(rng.integers(1, n + 1))
    if rng.random() < 0.1:
        settings["max_merges"] = int(rng.integers(n + 1))
    if kind == "points" and n > 1:
        graph, initial = _of_points(rng, n)
    else:
        graph = _of_edges(rng, n, exact=kind != "updates")
        initial = _clusters(rng, n)
    if kind == "updates":
        settings |= {"update": str(rng.choice(UPDATES)), "alpha": float(rng.choice([0.0, 0.3]))}
    return Case(kind, graph, initial, settings)


def _of_edges(rng: np.random.Generator, n: int, exact: bool) -> Digraph:
    """Draw a digraph in which many edges have weight 0, and some samples have no other edges."""
    k = int(rng.integers(1, min(6, n - 1) + 1)) if n > 1 else 0
    indices = np.array(
        [rng.choice(np.delete(np.arange(n), i), k, replace=False) for i in range(n)], np.int32
    ).reshape(n, k)
    weights = rng.integers(1, STEPS + 1, (n, k)) / STEPS if exact else rng.random((n, k))
    weights[rng.random((n, k)) < rng.choice([0.0, 0.2, 0.6, 0.9])] = 0.0
    if rng.random() < 0.3:  # groups without an edge between them
        group = rng.integers(1, 5, n)
        weights[group[:, None] != group[indices]] = 0.0
    if rng.random() < 0.3:  # isolated samples: nothing leads to them or away from them
        alone = rng.random(n) < 0.3
        weights[alone[:, None] | alone[indices]] = 0.0
    if rng.random() < 0.2:  # all weights that are left are equal: every comparison is a tie
        weights[weights > 0] = 1.0
    if rng.random() < 0.15:  # so small that products vanish, or on either side of the least weight
        weights = weights * rng.choice([2.0**-1074, 2.0**-499, 2.0**-300])
    return Digraph(indices, weights, 1.0)


def _clusters(rng: np.random.Generator, n: int) -> NDArray[np.integer]:
    if rng.random() < 0.4:
        return np.arange(n)
    drawn = rng.integers(int(rng.integers(1, n + 1)), size=n)
    clusters: NDArray[np.integer] = np.unique(drawn, return_inverse=True)[1].reshape(-1)
    return clusters


def _of_points(rng: np.random.Generator, n: int) -> tuple[Digraph, NDArray[np.integer]]:
    """Draw points with duplicates or in far groups; small weights are rounded to 0."""
    points = rng.integers(4, size=(n, 2)).astype(np.float64)
    points += 1000.0 * rng.integers(int(rng.integers(1, 4)), size=(n, 1))
    found = nearest_neighbors(points, int(rng.integers(1, min(6, n - 1) + 1)))
    expected = neighbors.nearest_neighbors(points.tolist(), found.k)
    if [[index for _, index in row] for row in expected] != found.indices.tolist():
        raise AssertionError("the neighbours differ")
    initial = nearest_neighbor_components(found)
    if initial.tolist() != neighbors.components(found.indices[:, 0].tolist()):
        raise AssertionError("the initial clusters differ")
    graph = affinity_graph(found)
    return Digraph(graph.indices, np.round(graph.weights * 64) / 64, graph.sigma2), initial


def problem_with(case: Case) -> str | None:
    """Return how the kernels differ from the oracle, or None.

    Examples
    --------
    >>> problem_with(random_case([0, 1])) is None
    True
    """
    nodes, affinities = merge_clusters(case.graph, case.initial, **case.settings)
    expected = linkage.merge_clusters(
        case.graph.indices, case.graph.weights, case.initial.tolist(), **case.settings
    )
    pairs = [(a, b) for a, b, _ in expected]
    if list(map(tuple, nodes.tolist())) != pairs:
        return f"merges {nodes.tolist()} instead of {pairs}"
    values = np.array([value for _, _, value in expected])
    if case.kind != "updates" and not np.array_equal(affinities, values):
        return f"affinities {affinities.tolist()} instead of {values.tolist()}"
    if not np.allclose(affinities, values, rtol=TOLERANCE, atol=0.0):
        return f"affinities {affinities.tolist()} instead of {values.tolist()}"
    n_initial = int(case.initial.max()) + 1
    merged = MergeTree(n_initial, nodes, affinities)
    for k in range(merged.n_clusters, n_initial + 1):
        if merged.cut(k).tolist() != tree.cut(n_initial, pairs, k):
            return f"other labels for {k} clusters"
    return None


@dataclass(frozen=True)
class GraphCampaign:
    """Random graphs, clustered by the kernels and by the oracle."""

    name: str = "graphs"
    title: str = "random graphs against the equations"
    goal: int = 20_000
    promise: str = "The kernels make the merges, affinities and labels of the equations."

    def run(self, n_cases: int | None, seed: int, progress: Progress) -> Outcome:
        """Run `n_cases` cases (all of the goal if None) and return how they ended."""
        total = self.goal if n_cases is None else n_cases
        counts: Counter[str] = Counter()
        failures = []
        for number in range(total):
            try:
                case = random_case([seed, number])
                problem = problem_with(case)
            except Exception as error:  # a crash is a failure of its case, not of the campaign
                problem = f"{type(error).__name__}: {error}"
            if problem is None:
                counts[f"{case.kind}, identical"] += 1
                counts["with weights of 0"] += bool((case.graph.weights == 0).any())
            else:
                counts["different"] += 1
                failures.append(f"torture.graphs.random_case([{seed}, {number}]): {problem}")
            progress(number + 1, total)
        return Outcome(total, dict(counts), failures)
