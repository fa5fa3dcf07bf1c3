"""Constraints on clusters: samples that stay together, and samples that are kept apart."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jule.forward.init import find_root, number_by_first_sample
from jule.jit import njit

FEW = 1500  # clusters of which all pairs are compared when they are joined by distance


class ContradictionError(ValueError):
    """Constraints cannot all be obeyed; the message names two samples.

    Attributes
    ----------
    pair
        Two samples that a chain of must-links joins and a cannot-link separates.
    """

    def __init__(self, pair: tuple[int, int]) -> None:
        super().__init__(
            f"samples {pair[0]} and {pair[1]} have a cannot-link, but must-links join them"
        )
        self.pair = pair


@dataclass(frozen=True, eq=False)
class Constraints:
    """What every clustering of n samples must obey.

    Attributes
    ----------
    units
        (n,) the first sample of each sample's unit; a unit is never divided.
    apart
        (m, 2) pairs of samples, in different units, that must not share a cluster.

    Examples
    --------
    >>> constraints = Constraints.of(4, must_link=[(0, 2)], cannot_link=[(2, 3)])
    >>> constraints.units.tolist(), constraints.apart.tolist()
    ([0, 1, 0, 3], [[2, 3]])
    """

    units: NDArray[np.int64]
    apart: NDArray[np.int64]

    @classmethod
    def of(
        cls,
        n_samples: int,
        must_link: ArrayLike = (),
        cannot_link: ArrayLike = (),
    ) -> Constraints:
        """Build constraints from pairs of samples.

        Raises
        ------
        ContradictionError
            If must-links join two samples that have a cannot-link.
        ValueError
            If a pair is not one of two samples.
        """
        must, cannot = (
            _pairs(given, name, n_samples)
            for given, name in ((must_link, "must_link"), (cannot_link, "cannot_link"))
        )
        units = _units(n_samples, must)
        wrong = np.flatnonzero(units[cannot[:, 0]] == units[cannot[:, 1]])
        if len(wrong):
            raise ContradictionError((int(cannot[wrong[0], 0]), int(cannot[wrong[0], 1])))
        return cls(units, cannot)

    def __len__(self) -> int:
        return len(self.units)

    def initial(self, clusters: NDArray[np.int32]) -> NDArray[np.int32]:
        """Return initial clusters that obey the constraints.

        A unit of samples from several clusters leaves them for one of its own: whoever links two
        samples says nothing of their neighbours, which may be wrong. A cluster with samples that
        are kept apart is divided into its units. The linkage decides how all of these merge.

        Examples
        --------
        >>> constraints = Constraints.of(5, must_link=[(0, 2)], cannot_link=[(3, 4)])
        >>> constraints.initial(np.array([0, 0, 1, 2, 2], np.int32)).tolist()
        [0, 1, 0, 2, 3]
        """
        own = len(clusters) + self.units  # numbers that no cluster has
        leaves = np.isin(self.units, self.units[clusters != clusters[self.units]])
        divided = np.where(leaves, own, clusters)
        one, other = divided[self.apart].T
        divided = np.where(np.isin(divided, one[one == other]), own, divided)
        return number_by_first_sample(divided)

    def broken_by(self, labels: NDArray[np.integer]) -> NDArray[np.bool_]:
        """Return which samples have another label than their unit, or that of one kept apart.

        Examples
        --------
        >>> constraints = Constraints.of(3, cannot_link=[(0, 1)])
        >>> constraints.broken_by(np.array([0, 0, 1])).tolist()
        [True, True, False]
        """
        broken: NDArray[np.bool_] = labels != labels[self.units]
        broken[self.apart[labels[self.apart[:, 0]] == labels[self.apart[:, 1]]]] = True
        return broken


def check_pairs(pairs: NDArray, n_samples: int, name: str = "apart") -> None:
    """Raise unless an array holds pairs of samples.

    Examples
    --------
    >>> check_pairs(np.array([[0, 9]]), 5)
    Traceback (most recent call last):
    ...
    ValueError: apart names sample 9, but there are 5
    """
    if pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.dtype.kind not in "iu":
        raise ValueError(f"{name} must be pairs of samples, of shape (m, 2), got {pairs.shape}")
    wrong = pairs[(pairs < 0) | (pairs >= n_samples)]
    if len(wrong):
        raise ValueError(f"{name} names sample {wrong[0]}, but there are {n_samples}")


def _pairs(given: ArrayLike, name: str, n: int) -> NDArray[np.int64]:
    pairs = np.asarray(given)
    if pairs.size == 0:
        return np.empty((0, 2), np.int64)
    check_pairs(pairs, n, name)
    return pairs.astype(np.int64)


@njit(cache=True)
def _units(n, pairs):
    """Return the first sample of the component of each sample."""
    parents = np.arange(n)
    for p in range(pairs.shape[0]):
        a, b = find_root(parents, pairs[p, 0]), find_root(parents, pairs[p, 1])
        parents[max(a, b)] = min(a, b)
    units = np.empty(n, np.int64)
    for sample in range(n):
        units[sample] = find_root(parents, sample)
    return units


def allowed_joins(
    means: NDArray[np.float64],
    edges: NDArray[np.int64],
    apart: NDArray[np.int64],
) -> tuple[list[tuple[int, int]], int]:
    """Join all clusters along short distances between their means, those kept apart last.

    Parameters
    ----------
    means
        (r, d) means of the clusters.
    edges
        (r - 1, 2) edges of a spanning tree of the means, shortest first.
    apart
        (m, 2) pairs of clusters that are kept apart.

    Returns
    -------
    joins
        Pairs of clusters, each standing for what it has been joined with before.
    n_forced
        How many of them, at the end, join clusters that are kept apart.

    Examples
    --------
    >>> means, edges = np.array([[0.0], [1.0], [3.0]]), np.array([[0, 1], [1, 2]])
    >>> allowed_joins(means, edges, np.array([[0, 1]]))
    ([(1, 2), (0, 1)], 1)
    """
    r = len(means)
    candidates = edges
    if r <= FEW:
        rows, columns = np.triu_indices(r, 1)
        lengths = ((means[rows] - means[columns]) ** 2).sum(axis=1)
        order = np.argsort(lengths, kind="stable")
        candidates = np.column_stack((rows[order], columns[order]))
    parents = list(range(r))
    enemies: list[set[int]] = [set() for _ in range(r)]
    for a, b in apart.tolist():
        enemies[a].add(b)
        enemies[b].add(a)

    def root(node: int) -> int:
        while parents[node] != node:
            parents[node] = parents[parents[node]]
            node = parents[node]
        return node

    joins: list[tuple[int, int]] = []

    def join(pairs: NDArray[np.int64], *, force: bool) -> None:
        for a, b in pairs.tolist():
            x, y = root(a), root(b)
            if x == y or (not force and y in enemies[x]):
                continue
            joins.append((a, b))
            parents[y] = x
            for enemy in () if force else enemies[y]:
                enemies[enemy].discard(y)
                enemies[enemy].add(x)
            enemies[x] |= enemies[y]

    join(candidates, force=False)
    n_allowed = len(joins)
    join(edges, force=True)
    return joins, len(joins) - n_allowed
