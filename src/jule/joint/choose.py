"""Suggest a number of clusters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jule.forward import Digraph, MergeTree, default_min_cluster_size
from jule.forward.assign import modularity
from jule.forward.tree import counting_affinities
from jule.joint.values import finite_in, is_whole, object_of, shortened, whole_in

MOST_CLUSTERS = 100
LARGE_GAP = 5.0  # gaps are capped here, because larger ones carry no more information
CONSIDERED = 10  # the number of largest gaps that are scored


@dataclass(frozen=True)
class Choice:
    """A suggested number of clusters.

    Attributes
    ----------
    k
        The suggestion.
    sureness
        Its score as a fraction of the largest possible score, from 0 to 1.
    candidates
        The best numbers of clusters with their scores, best first.
    """

    k: int
    sureness: float
    candidates: tuple[tuple[int, float], ...]

    @classmethod
    def from_json(cls, value: Any) -> Choice:
        """Build a choice from a JSON object; raise ValueError if it is damaged.

        Examples
        --------
        >>> Choice.from_json({"k": 3, "sureness": 0.5, "candidates": [[3, 0.9]]}).candidates
        ((3, 0.9),)
        """
        values = object_of(value, "the choice", frozenset({"k", "sureness", "candidates"}))
        k = whole_in(values, "k")
        if k < 1:
            raise ValueError(f"k must be 1 or more, got {k}")
        return cls(k, finite_in(values, "sureness"), read_suggestions(values.get("candidates")))


def read_suggestions(value: Any) -> tuple[tuple[int, float], ...]:
    """Return suggested numbers of clusters with their scores from JSON, or raise ValueError.

    Examples
    --------
    >>> read_suggestions([[3, 0.9], [5, 0.2]])
    ((3, 0.9), (5, 0.2))
    """
    if not isinstance(value, list | tuple):
        raise ValueError(f"suggestions must be a list of pairs, got {shortened(value)}")
    for pair in value:
        if not isinstance(pair, list | tuple) or len(pair) != 2 or not is_whole(pair[0]):
            raise ValueError(f"a suggestion must be a number with a score, got {shortened(pair)}")
    return tuple(
        (whole_in({"suggestion": k}, "suggestion"), finite_in({"score": score}, "score"))
        for k, score in value
    )


def choose_n_clusters(tree: MergeTree, graph: Digraph, most: int = MOST_CLUSTERS) -> Choice:
    """Suggest the number of clusters at which further merging costs most.

    Let b_k be the affinity of the merge that ends k clusters (clusters of fewer than n / (20 k)
    samples do not count). If b_{k+1} is much larger than b_k, the last merge joined similar
    clusters and the next one would join dissimilar ones. The score of k is the logarithm of that
    relative gap, capped at 5, times the modularity of the k clusters. The modularity keeps a
    split into two halves with several groups each from winning.

    Examples
    --------
    >>> from jule.forward import affinity_graph, agglomerate, nearest_neighbors
    >>> rng = np.random.default_rng(0)
    >>> samples = np.concatenate([rng.normal(c, 0.3, (40, 2)) for c in (0, 3, 6)])
    >>> graph = affinity_graph(nearest_neighbors(samples, 20))
    >>> choose_n_clusters(agglomerate(samples), graph).k
    3
    """
    most = max(2, min(most, tree.n_initial // 2, tree.n_samples - 1))
    gaps = _relative_gaps(counting_affinities(tree, most + 1))
    scored = []
    for place in np.argsort(-gaps, kind="stable")[:CONSIDERED]:
        k = int(place) + 2
        labels = tree.cut(k, default_min_cluster_size(tree.n_samples, k))
        scored.append((k, float(np.log(gaps[place])) * modularity(graph, labels)))
    scored.sort(key=lambda pair: -pair[1])
    k, best = scored[0]
    return Choice(k, float(np.clip(best / np.log(LARGE_GAP), 0.0, 1.0)), tuple(scored[:5]))


def _relative_gaps(ending: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return b_{k+1} / b_k, from 1 to 5, for k = 2, 3, ...; `ending` holds b_2, b_3, ..."""
    if len(ending) < 2:
        return np.ones(1)
    known = ending[np.isfinite(ending) & (ending > 0)]
    least, largest = (known.min(), known.max()) if len(known) else (1.0, 1.0)
    # A merge without affinity is a large step down; a merge inside initial clusters is none.
    ending = np.clip(ending, least / LARGE_GAP, largest)
    gaps: NDArray[np.float64] = np.clip(ending[1:] / ending[:-1], 1.0, LARGE_GAP)
    return gaps
