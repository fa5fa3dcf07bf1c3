"""Graph degree linkage of a few clusters with numpy alone.

The clusters that a person sees are few, and most edges stay inside them. To merge them takes less
time than to load the compiled kernels of `jule.forward.linkage`, which merge the many clusters that
a run begins with. Rules and results are the same, apart from rounding.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from jule.forward.affinity import Digraph
from jule.forward.linkage_state import LEAST_WEIGHT

FEW = 300  # clusters: with more, the kernels are faster although they take a second to load


def merge_few(
    graph: Digraph,
    initial: NDArray[np.integer],
    *,
    n_near: int = 5,
    lam: float = 1.0,
    apart: NDArray[np.integer] | None = None,
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Merge clusters by graph degree linkage until no two of them have affinity.

    For parameters and results see `jule.forward.linkage.merge_clusters`.

    Examples
    --------
    >>> from jule.forward import affinity_graph, nearest_neighbors
    >>> graph = affinity_graph(nearest_neighbors([[0.0], [1.0], [8.0], [9.0]], k=1))
    >>> merge_few(graph, np.arange(4))[0].tolist()
    [[0, 1], [2, 3]]
    """
    merging = _Merging(graph, initial, n_near, lam, apart)
    merging.merge_isolated()
    while merging.merge_best():
        pass
    nodes = np.array(merging.nodes, np.int64).reshape(-1, 2)
    return nodes, np.array(merging.affinities, np.float64)


class _Merging:
    """The tables of Eq. 12 to 14, dense between clusters and sparse between samples and clusters.

    ``sums[j, i]`` is S(j -> i). ``around[i]`` lists the samples outside of cluster i that have
    edges with it, the weight of the edges from i to each of them, and of those back.
    """

    def __init__(
        self,
        graph: Digraph,
        initial: NDArray[np.integer],
        n_near: int,
        lam: float,
        apart: NDArray[np.integer] | None,
    ) -> None:
        self.n_near, self.lam = n_near, lam
        self.owner = initial.astype(np.int64)  # the initial cluster of every sample
        self.sizes = np.bincount(initial).astype(np.float64)
        self.number = np.arange(len(self.sizes))  # a smaller one is older
        self.heir = np.arange(len(self.sizes))  # what has the samples of every initial cluster now
        self.nodes: list[tuple[int, int]] = []
        self.affinities: list[float] = []
        self.place = np.full(len(initial), -1)  # of samples in a list, while two are joined
        self._fill_tables(graph)
        k = len(self.sizes)
        self.apart = np.zeros((k, k), bool)
        if apart is not None and len(apart):
            one, other = initial[apart].T
            self.apart[one, other] = self.apart[other, one] = True
        self.near = np.zeros((k, k))
        for cluster in range(k):
            self._update_near(cluster)
        self.scores = np.full(k, -np.inf)
        self._update_scores(np.arange(k))

    def _fill_tables(self, graph: Digraph) -> None:
        k = len(self.sizes)
        leaves = self.owner.take(graph.indices) != self.owner[:, None]
        edges = np.flatnonzero(leaves & (graph.weights >= LEAST_WEIGHT))
        source = edges // max(1, graph.indices.shape[1])
        target = graph.indices.ravel()[edges].astype(np.int64)
        weight = graph.weights.ravel()[edges].astype(np.float64)
        to = self.owner[target]
        between = self.owner[source] * k + to
        self.outward = _sums(between, weight, k * k).reshape(k, k)
        # By cluster, then by sample: the edges from and to each sample.
        n = len(self.owner)
        outgoing = to * n + source
        incoming = self.owner[source] * n + target
        keys, at = np.unique(np.concatenate([outgoing, incoming]), return_inverse=True)
        out = _sums(at[: len(weight)], weight, len(keys))
        into = _sums(at[len(weight) :], weight, len(keys))
        cluster, sample = np.divmod(keys, n)
        products = into * out
        between = self.owner[sample] * k + cluster
        self.sums = _sums(between, products, k * k).reshape(k, k)
        ends = np.searchsorted(cluster, np.arange(1, k))
        parts = (np.split(values, ends) for values in (sample, into, out))
        self.around = list(zip(*parts, strict=True))

    def _update_near(self, cluster: int) -> None:
        """Compute the affinities (Eq. 12) of a cluster; those of clusters kept apart are 0."""
        squares = np.maximum(self.sizes, 1.0) ** 2
        found = self.sums[cluster] / squares + self.sums[:, cluster] / squares[cluster]
        found[self.apart[cluster]] = 0.0
        self.near[cluster] = self.near[:, cluster] = found

    def _update_scores(self, clusters: NDArray[np.int64]) -> None:
        """Compute the criterion (Eq. 7) of some clusters; -inf for those without affinity."""
        rows = self.near[clusters]
        if self.n_near < rows.shape[1]:
            rows = np.partition(rows, -self.n_near, axis=1)[:, -self.n_near :]
        nearest = np.sort(rows, axis=1)[:, ::-1]
        best, others = nearest[:, 0], np.zeros(len(clusters))
        for column in range(1, nearest.shape[1]):
            others += nearest[:, column]
        scores = best.copy()
        if self.n_near > 1:
            scores += self.lam / (self.n_near - 1) * ((self.n_near - 1) * best - others)
        self.scores[clusters] = np.where(best > 0, scores, -np.inf)

    def merge_isolated(self) -> None:
        """Merge initial clusters without affinity with the targets of most of their weight."""
        for cluster in range(len(self.sizes)):
            if self.number[cluster] != cluster or self.sizes[cluster] == 0:
                continue  # it was merged
            if self.near[cluster].any():
                continue
            weights = np.where(self.apart[cluster], 0.0, self.outward[cluster])
            if weights.any():
                self._merge(cluster, self._oldest_best(weights), 0.0)

    def merge_best(self) -> bool:
        """Merge the cluster with the best criterion with its nearest; return False at the end."""
        one = self._oldest_best(self.scores)
        if self.scores[one] == -np.inf:
            return False
        other = self._oldest_best(self.near[one])
        self._merge(one, other, float(self.near[one, other]))
        return True

    def _oldest_best(self, values: NDArray[np.float64]) -> int:
        best = np.flatnonzero(values == values.max())
        return int(best[np.argmin(self.number[best])])

    def _merge(self, one: int, other: int, affinity: float) -> None:
        first, second = sorted((int(self.number[one]), int(self.number[other])))
        self.nodes.append((first, second))
        self.affinities.append(affinity)
        kept, gone = (one, other) if self.sizes[one] >= self.sizes[other] else (other, one)
        changed = (self.near[kept] > 0) | (self.near[gone] > 0)
        self.heir[self.heir == gone] = kept
        self.sums[:, gone] += self._join_around(kept, gone)  # the cross terms of Eq. 14
        for table in (self.sums, self.outward):
            table[kept] += table[gone]
            table[:, kept] += table[:, gone]
            table[gone] = table[:, gone] = table[kept, kept] = 0.0
        self.apart[kept] |= self.apart[gone]
        self.apart[:, kept] |= self.apart[:, gone]
        self.sizes[kept] += self.sizes[gone]
        self.sizes[gone] = 0.0
        self.number[kept] = len(self.sizes) + len(self.nodes) - 1
        self._update_near(kept)
        self.near[gone] = self.near[:, gone] = 0.0
        changed |= self.near[kept] > 0
        changed[[kept, gone]] = True
        self._update_scores(np.flatnonzero(changed))

    def _join_around(self, kept: int, gone: int) -> NDArray[np.float64]:
        """Join the samples around two clusters; return the sums of cross terms by cluster."""
        samples, into, out = self.around[kept]
        more, more_into, more_out = self.around[gone]
        self.place[samples] = np.arange(len(samples))
        at = self.place[more]
        self.place[samples] = -1
        both = at >= 0
        at, new = at[both], ~both
        cross = into[at] * more_out[both] + more_into[both] * out[at]
        sums = _sums(self.heir[self.owner[more[both]]], cross, len(self.sizes))
        into[at] += more_into[both]
        out[at] += more_out[both]
        samples = np.concatenate([samples, more[new]])
        outside = self.heir[self.owner[samples]] != kept
        self.around[kept] = (
            samples[outside],
            np.concatenate([into, more_into[new]])[outside],
            np.concatenate([out, more_out[new]])[outside],
        )
        self.around[gone] = (samples[:0], into[:0], out[:0])
        return sums


def _sums(
    keys: NDArray[np.int64], weights: NDArray[np.float64], length: int
) -> NDArray[np.float64]:
    """Return the sum of the weights of each key 0, 1, ..."""
    # Without any key, numpy would count in whole numbers.
    return np.bincount(keys, weights, length).astype(np.float64, copy=False)


def few_spanning_tree(
    points: NDArray[np.float64],
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the edges of a minimum spanning tree, and their squared lengths (Prim's algorithm).

    Examples
    --------
    >>> few_spanning_tree(np.array([[0.0], [5.0], [1.0]]))[0].tolist()
    [[0, 2], [2, 1]]
    """
    n = len(points)
    ends, lengths = np.empty((n - 1, 2), np.int64), np.empty(n - 1)
    distance, nearest = np.full(n, np.inf), np.zeros(n, np.int64)
    newest = 0
    for step in range(n - 1):
        found = ((points - points[newest]) ** 2).sum(axis=1)
        nearer = found < distance
        distance[nearer], nearest[nearer] = found[nearer], newest
        distance[newest] = -np.inf  # it is in the tree
        best = int(np.where(distance < 0, np.inf, distance).argmin())
        ends[step], lengths[step] = (nearest[best], best), distance[best]
        newest = best
    return ends, lengths
