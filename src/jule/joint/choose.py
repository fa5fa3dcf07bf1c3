"""Suggest a number of clusters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from jule.forward import MergeTree, default_min_cluster_size
from jule.joint.quality import Space
from jule.joint.values import finite_in, is_whole, object_of, shortened, whole_in

MOST_CLUSTERS = 400
EVERY = 30  # numbers of clusters up to this one are all considered ...
LARGER = 30  # ... and that many larger ones
SUGGESTIONS = 3
TIE = 0.01  # of the largest possible value: what differs by less is about equally good
HIGHEST = 2.0  # score: silhouette and modularity are at most 1

Evidence: TypeAlias = list[tuple[int, float, float]]  # number of clusters, silhouette, modularity


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
        The suggestion and the next best numbers of clusters, with their scores. None of the latter
        is worse than the numbers next to it.
    evidence
        Silhouette and modularity of all numbers of clusters that were considered; their sum is the
        score.
    """

    k: int
    sureness: float
    candidates: tuple[tuple[int, float], ...]
    evidence: tuple[tuple[int, float, float], ...] = ()

    @classmethod
    def from_json(cls, value: Any) -> Choice:
        """Build a choice from a JSON object; raise ValueError if it is damaged.

        Examples
        --------
        >>> Choice.from_json({"k": 3, "sureness": 0.5, "candidates": [[3, 0.9]]}).candidates
        ((3, 0.9),)
        """
        names = frozenset({"k", "sureness", "candidates", "evidence"})
        values = object_of(value, "the choice", names)
        k = whole_in(values, "k")
        if k < 1:
            raise ValueError(f"k must be 1 or more, got {k}")
        return cls(
            k,
            finite_in(values, "sureness"),
            read_suggestions(values.get("candidates")),
            read_evidence(values.get("evidence", [])),
        )


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


def read_evidence(value: Any) -> tuple[tuple[int, float, float], ...]:
    """Return numbers of clusters with silhouette and modularity from JSON, or raise ValueError.

    Examples
    --------
    >>> read_evidence([[3, 0.5, 0.6]])
    ((3, 0.5, 0.6),)
    """
    if not isinstance(value, list | tuple):
        raise ValueError(f"evidence must be a list, got {shortened(value)}")
    found = []
    for entry in value:
        if not isinstance(entry, list | tuple) or len(entry) != 3 or not is_whole(entry[0]):
            raise ValueError(f"evidence must be a number with two scores, got {shortened(entry)}")
        named = dict(zip(("k", "silhouette", "modularity"), entry, strict=True))
        scores = finite_in(named, "silhouette"), finite_in(named, "modularity")
        found.append((whole_in(named, "k"), *scores))
    return tuple(found)


def choose_n_clusters(
    tree: MergeTree,
    space: Space,
    most: int = MOST_CLUSTERS,
    *,
    min_cluster_size: int | None = None,
) -> Choice:
    """Suggest a number of clusters from the scores of the cuts of a merge tree.

    The score is the mean silhouette plus the modularity of the clusters (`Space.measure`). Of peaks
    that are about equally high, the smallest number is taken. The silhouette tends to split
    classes: if a smaller number has a clearly larger modularity, the number with the largest
    modularity is taken. One tree gives all cuts, so nothing is trained or searched again.

    Parameters
    ----------
    tree
        The merge tree.
    space
        The representation that it was made from.
    most
        The largest number of clusters that is considered. It is reduced to half the number of
        initial clusters, or to 30 if that is more.
    min_cluster_size
        Smaller clusters do not count; None: those of fewer than n / (20 k) samples.

    Examples
    --------
    >>> from jule.forward import affinity_graph, agglomerate, nearest_neighbors
    >>> rng = np.random.default_rng(0)
    >>> samples = np.concatenate([rng.normal(c, 0.3, (40, 2)) for c in (0, 3, 6)])
    >>> space = Space.of(samples, affinity_graph(nearest_neighbors(samples, 20)))
    >>> choose_n_clusters(agglomerate(samples), space).k
    3
    """
    enough = max(tree.n_initial // 2, min(tree.n_initial, EVERY))
    most = max(2, min(most, enough, tree.n_samples - 1))

    def measure(numbers: list[int]) -> Evidence:
        sizes = (min_cluster_size or default_min_cluster_size(tree.n_samples, k) for k in numbers)
        cuts = [tree.cut(k, size) for k, size in zip(numbers, sizes, strict=True)]
        found = space.measure_all(cuts)
        return [(k, *scores) for k, scores in zip(numbers, found, strict=True)]

    least = max(2, tree.fewest)  # what is kept apart cannot be cut into fewer
    evidence = measure([k for k in considered(most) if k >= least] or [least])
    place = _suggested_place(evidence)
    around = [k for k, _, _ in evidence[max(0, place - 1) : place + 2]]
    between = sorted(set(range(around[0], around[-1])) - {k for k, _, _ in evidence})
    if between:  # of larger numbers, only some were considered
        evidence = sorted(evidence + measure(between))
        place = _suggested_place(evidence)
    scores = _scores(evidence)
    others = sorted(set(_peaks(scores)) - {place}, key=lambda other: -scores[other])
    best = [(evidence[one][0], float(scores[one])) for one in (place, *others)]
    k, score = best[0]
    sureness = float(np.clip(score / HIGHEST, 0.0, 1.0))
    return Choice(k, sureness, tuple(best[:SUGGESTIONS]), tuple(evidence))


def _suggested_place(evidence: Evidence) -> int:
    """Return the place of the suggested number of clusters in the evidence.

    It is that of the highest peak of the score, unless a smaller number has a clearly larger
    modularity: the silhouette rises where classes are split, and the modularity falls. Then it is
    that of the largest modularity.
    """
    scores, inside = _scores(evidence), np.array([inside for _, _, inside in evidence])
    peaks = np.array(_peaks(scores))
    best = int(peaks[scores[peaks] >= scores.max() - TIE * HIGHEST][0])
    joined = int(inside[: best + 1].argmax())
    return joined if inside[joined] > inside[best] + TIE else best


def _scores(evidence: Evidence) -> NDArray[np.float64]:
    return np.array([separation + inside for _, separation, inside in evidence])


def considered(most: int) -> list[int]:
    """Return the numbers of clusters that are considered: all small ones, and some larger ones.

    Examples
    --------
    >>> considered(4), len(considered(400))
    ([2, 3, 4], 59)
    """
    small = range(2, min(EVERY, most) + 1)
    if most <= EVERY:
        return list(small)
    larger = np.geomspace(EVERY, most, LARGER + 1).round().astype(int)
    return sorted({*small, *larger.tolist()})


def _peaks(scores: NDArray[np.float64]) -> list[int]:
    """Return the places of scores that are not below their neighbours, the first of equal ones."""
    padded = np.concatenate([[-np.inf], scores, [-np.inf]])
    return np.flatnonzero((scores > padded[:-2]) & (scores >= padded[2:])).tolist()
