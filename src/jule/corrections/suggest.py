"""Suggestions: clusters that may be the same, clusters that may join strangers, near-duplicates.

Everything is computed from the neighbours that a run stores; nothing takes n x n memory.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jule.corrections.apply import SHELF, Base, Corrected
from jule.corrections.edits import Edit
from jule.forward import Digraph, Neighbors
from jule.forward.restrict import range_maxima

LEAST_BRANCH = 0.05  # of its cluster: smaller branches are doubtful pictures, not strangers
NEAR = 0.1  # of the squared distance to the last neighbour: so near are near-duplicates
MOST_PER_PICTURE = 5  # nearest neighbours of a picture that may be near-duplicates of it


@dataclass(frozen=True)
class SamePair:
    """Two clusters that are probably the same.

    Attributes
    ----------
    label, other
        The clusters, the larger one first.
    affinity
        Mean affinity (Eq. 4) between a picture of one and a picture of the other.
    """

    label: int
    other: int
    affinity: float


@dataclass(frozen=True)
class Stranger:
    """A branch of a cluster that has little to do with the rest of it.

    Attributes
    ----------
    label
        The cluster.
    branch
        The branch, a node of the tree: `Editor.split(label, branch)` splits it off.
    size
        Its number of pictures.
    share
        Fraction of the affinity that leaves the branch and stays in the cluster.
    """

    label: int
    branch: int
    size: int
    share: float


def same_pairs(
    graph: Digraph,
    base: Base,
    state: Corrected,
    edits: Iterable[Edit] = (),
    count: int | None = None,
) -> list[SamePair]:
    """Return pairs of clusters that are probably the same, the most likely first.

    Parameters
    ----------
    graph
        The digraph W of the final representation.
    base, state
        The clustering and its corrections.
    edits
        The edits in effect: pairs that were refused, or that a split or a move to a new cluster
        made, are not suggested again; pairs with a cannot-link never are.
    count
        The largest number of pairs; all by default.

    Examples
    --------
    >>> from jule.corrections.apply import start
    >>> from jule.corrections.pictures import PictureIndex
    >>> from jule.forward import affinity_graph, agglomerate, nearest_neighbors
    >>> line = np.array([[0.0], [1.0], [2.0], [3.0], [20.0], [21.0]])
    >>> base = Base(np.array([0, 0, 1, 1, 2, 2], np.int32), agglomerate(line, n_neighbors=3),
    ...             PictureIndex("abcdef"), np.arange(6))
    >>> graph = affinity_graph(nearest_neighbors(line, 3))
    >>> [(pair.label, pair.other) for pair in same_pairs(graph, base, start(base), count=1)]
    [(0, 1)]
    """
    numbers, sizes = np.unique(state.labels, return_counts=True)
    k = len(numbers)
    place = np.searchsorted(numbers, state.labels)
    keys = place[:, None] * k + place.take(graph.indices)
    pairs, weights = _sum_by_key(keys.ravel(), graph.weights.ravel(), k * k)
    between: dict[tuple[int, int], float] = {}
    for key, weight in zip(pairs, weights, strict=True):
        i, j = divmod(key, k)
        if i != j and weight > 0 and SHELF not in (numbers[i], numbers[j]):
            pair = (min(i, j), max(i, j))
            between[pair] = between.get(pair, 0.0) + weight / float(sizes[i] * sizes[j])
    closed = _closed_pairs(base, state, edits)
    found = []
    for (i, j), affinity in sorted(between.items(), key=lambda item: (-item[1], item[0])):
        a, b = (i, j) if sizes[i] >= sizes[j] else (j, i)
        one = SamePair(int(numbers[a]), int(numbers[b]), affinity / 2.0)
        if frozenset((one.label, one.other)) not in closed:
            found.append(one)
        if count is not None and len(found) == count:
            break
    return found


def _sum_by_key(
    keys: NDArray[np.integer], weights: NDArray[np.floating], count: int
) -> tuple[list[int], list[float]]:
    """Return the keys that occur, below `count`, and the sum of the weights of each."""
    if count > len(keys):
        found, at = np.unique(keys, return_inverse=True)
        return found.tolist(), np.bincount(at, weights, len(found)).tolist()
    sums = np.bincount(keys, weights, count)
    found = np.flatnonzero(sums)
    return found.tolist(), sums[found].tolist()


def _closed_pairs(base: Base, state: Corrected, edits: Iterable[Edit]) -> set[frozenset[int]]:
    """Return the pairs of clusters of which a person has said that they are different."""
    closed = {
        frozenset((int(state.labels[one]), int(state.labels[other])))
        for one, other in state.kept_apart
    }
    for edit in edits:
        if edit.kind in ("refuse", "split"):
            labels = [
                _most_of(state, base.pictures.find_all(cluster))
                for cluster in (edit.pictures, edit.others)
            ]
            closed.add(frozenset(labels))
    return closed


def _most_of(state: Corrected, samples: NDArray[np.int64]) -> int:
    labels = state.labels[samples]
    labels = labels[labels != SHELF]
    return int(np.bincount(labels).argmax()) if len(labels) else SHELF


def strangers(
    graph: Digraph, base: Base, state: Corrected, count: int | None = None
) -> list[Stranger]:
    """Return branches that may not belong to their clusters, the most doubtful first.

    The affinity that leaves a branch of a cluster goes to the rest of the cluster, if that is one
    thing, and elsewhere, if it joins strangers. For each cluster, the branch with the smallest
    share that stays is returned, among those with at most half of its pictures.

    Parameters
    ----------
    graph
        The digraph W of the final representation.
    base, state
        The clustering and its corrections.
    count
        The largest number of branches; by default one for every cluster that has any.

    Examples
    --------
    >>> from jule.corrections.apply import start
    >>> from jule.corrections.pictures import PictureIndex
    >>> from jule.forward import affinity_graph, agglomerate, nearest_neighbors
    >>> line = np.array([[0.0], [1.0], [2.0], [40.0], [41.0], [42.0], [43.0]])
    >>> tree, graph = agglomerate(line, n_neighbors=2), affinity_graph(nearest_neighbors(line, 2))
    >>> base = Base(np.zeros(7, np.int32), tree, PictureIndex("abcdefg"), np.arange(7))
    >>> found = strangers(graph, base, start(base))[0]
    >>> found.size, found.share
    (3, 0.0)
    """
    n = base.tree.n_samples
    starts, stops = base.intervals
    labels = state.labels
    ordered = np.empty_like(labels)  # as the leaves are in the line
    ordered[starts[:n]] = labels
    changes = np.concatenate([[0], np.cumsum(ordered[1:] != ordered[:-1])])
    own = changes[starts] == changes[stops - 1]  # all pictures of the branch are in one cluster
    label = ordered[starts]
    size, sizes = stops - starts, np.bincount(labels + 1)
    whole = sizes[label + 1]
    least = np.maximum(2, LEAST_BRANCH * whole)
    fits = own & (label != SHELF) & (size >= least) & (2 * size <= whole)
    leaves, stays = _outward(graph, labels, base)
    share = np.ones(len(own))
    np.divide(stays, leaves, out=share, where=leaves > 1e-9)
    share[leaves <= 1e-9] = 0.0  # joined only because nothing else was left
    np.clip(share, 0.0, 1.0, out=share)  # differences of sums can be a little below 0 or above 1
    nodes = np.flatnonzero(fits)
    nodes = nodes[np.lexsort((-size[nodes], share[nodes]))]
    _, first = np.unique(label[nodes], return_index=True)
    best = nodes[np.sort(first)]
    return [
        Stranger(int(label[node]), int(node), int(size[node]), float(share[node]))
        for node in best[:count]
    ]


def _outward(
    graph: Digraph, labels: NDArray[np.int32], base: Base
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the weight of edges between each branch and others, and between it and its cluster."""
    place = base.intervals[0][: len(labels)]
    source, target = place[:, None], place.take(graph.indices)
    # An edge is inside every branch from the merge that joins its ends upwards.
    left, right = np.minimum(source, target).ravel(), np.maximum(source, target).ravel()
    joined_by = range_maxima(base.merge_between.astype(np.int32), left, right)
    weight = graph.weights.ravel()
    same = labels[:, None] == labels.take(graph.indices)
    inside = np.where(same.ravel(), weight, 0.0)
    return tuple(  # type: ignore[return-value]
        _leaving(base, left, right, weights, joined_by) for weights in (weight, inside)
    )


def _leaving(
    base: Base,
    left: NDArray[np.int64],
    right: NDArray[np.int64],
    weight: NDArray[np.floating],
    joined_by: NDArray[np.integer],
) -> NDArray[np.float64]:
    """Return the weight of edges with one end in each branch: of all its ends, less the inside."""
    n = len(base.labels)
    starts, stops = base.intervals
    ends = np.bincount(left, weight, n) + np.bincount(right, weight, n)
    inside = np.bincount(joined_by, weight, n - 1)[base.merge_between]
    ends_before, inside_before = (np.concatenate([[0.0], np.cumsum(x)]) for x in (ends, inside))
    of_ends: NDArray[np.float64] = ends_before[stops] - ends_before[starts]
    of_inside: NDArray[np.float64] = inside_before[stops - 1] - inside_before[starts]
    return of_ends - 2.0 * of_inside


def doubtful(
    state: Corrected, confidence: NDArray[np.floating], count: int, below: float = 0.5
) -> NDArray[np.int64]:
    """Return the pictures to look at for the shelf: the least sure ones, least sure first.

    Pictures whose cluster a person chose, and those on the shelf, are left out.

    Examples
    --------
    >>> state = Corrected(np.zeros(3, np.int32), {}, np.array([True, False, False]), np.arange(3))
    >>> doubtful(state, np.array([0.1, 0.4, 0.9]), 10).tolist()
    [1]
    """
    is_open = ~state.by_hand & (state.labels != SHELF) & (confidence < below)
    samples = np.flatnonzero(is_open)
    return samples[np.argsort(confidence[samples], kind="stable")[:count]]


def near_duplicates(
    neighbors: Neighbors,
    labels: NDArray[np.integer],
    scores: NDArray[np.floating] | None = None,
    near: float = NEAR,
) -> list[list[int]]:
    """Return stacks of near-duplicates and bursts within clusters, the best of each on top.

    Two pictures of one cluster are near-duplicates if they are among each other's nearest
    neighbours, and far nearer than the last neighbours of either. In a stack, all pictures are
    near-duplicates of all others, so that a chain of small steps does not join strangers.

    Parameters
    ----------
    neighbors
        The nearest neighbours of the pictures before learning.
    labels
        (n,) clusters.
    scores
        (n,) how good each picture is, such as its sharpness. By default, the best picture of a
        stack is the one that is most like the others.
    near
        How near: a fraction of the squared distance to the last neighbour.

    Examples
    --------
    >>> from jule.forward import nearest_neighbors
    >>> line = np.array([[0.0], [0.1], [0.15], [5.0], [9.0], [9.1]])
    >>> near_duplicates(nearest_neighbors(line, 3), np.zeros(6, int))
    [[1, 2, 0], [4, 5]]
    """
    distances = _near_pairs(neighbors, labels, near)
    stacks: dict[int, list[int]] = {}
    stack_of: dict[int, int] = {}
    for pair in sorted(distances, key=lambda one: (distances[one], one)):
        one, other = (stack_of.setdefault(sample, sample) for sample in pair)
        first, second = stacks.setdefault(one, [one]), stacks.setdefault(other, [other])
        if one != other and all((min(a, b), max(a, b)) in distances for a in first for b in second):
            first.extend(second)
            stack_of.update(dict.fromkeys(second, one))
            del stacks[other]

    def rank(stack: list[int]) -> list[int]:
        if scores is not None:
            return sorted(stack, key=lambda one: (-float(scores[one]), one))
        away = {
            one: sum(distances[min(one, b), max(one, b)] for b in stack if b != one)
            for one in stack
        }
        return sorted(stack, key=lambda one: (away[one], one))

    return [rank(stacks[first]) for first in sorted(stacks) if len(stacks[first]) > 1]


def _near_pairs(
    neighbors: Neighbors, labels: NDArray[np.integer], near: float
) -> dict[tuple[int, int], float]:
    """Return the squared distances of pairs that may be in one stack."""
    limit = near * neighbors.distances[:, -1]
    wide = min(MOST_PER_PICTURE, neighbors.indices.shape[1])
    targets, lengths = neighbors.indices[:, :wide], neighbors.distances[:, :wide]
    source, column = np.nonzero(lengths <= limit[:, None])
    target, length = targets[source, column], lengths[source, column]
    kept = labels[source] == labels[target]
    listed = zip(source[kept].tolist(), target[kept].tolist(), length[kept].tolist(), strict=True)
    one_way = {(a, b): length for a, b, length in listed}
    return {(a, b): length for (a, b), length in one_way.items() if a < b and (b, a) in one_way}
