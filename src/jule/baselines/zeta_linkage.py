"""AC-Zell: agglomerative clustering by the zeta function of a graph."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from jule.baselines._linkage import BaseLinkage
from jule.forward import MergeTree, agglomerate
from jule.forward.search import Method


class ZetaLinkage(BaseLinkage):
    """Agglomerative clustering that merges clusters with many short cycles between them.

    Parameters
    ----------
    n_clusters
        Number of clusters, K.
    n_neighbors
        Number of neighbours of each sample in the graph.
    a
        Factor of the bandwidth sigma^2, which is `a` times the mean squared distance to the
        neighbours.
    min_cluster_size
        Smaller clusters do not count towards K and are absorbed. None means n / (20 K); 1 counts
        all clusters, as in the original.
    method
        Neighbour search: ``"exact"`` or ``"approximate"``.
    random_state
        Random seed of the approximate search.

    Attributes
    ----------
    labels_
        (n,) cluster of every sample, 0 .. n_clusters_ - 1.
    tree_
        The `MergeTree` of all merges, which can be cut at any number of clusters. Exact copies are
        joined first.
    n_clusters_
        Number of clusters. Exact copies share a cluster, so it is at most the number of different
        samples.

    Notes
    -----
    1. Weigh the edges from every sample to its neighbours by the transition probabilities P of a
       random walk (see `jule.forward.affinity.transition_graph`).
    2. Start from the connected components of the nearest-neighbour graph.
    3. Merge the pair of clusters with the largest affinity, until one is left; cut the tree.

    The affinity of the original is how much the cycles through each cluster gain from the other,

        A(i, j) = S(i | i+j) - S(i) + S(j | i+j) - S(j),
        S(i | C) = mean over x in i of log [(I - z P_C)^-1](x, x),    S(i) = S(i | i),

    with z = 0.01 and P_C the rows and columns of P that belong to C. Expanded in z, the logarithm
    is z P(x, x) + z^2 ([P_C^2](x, x) - P(x, x)^2 / 2) + O(z^3). The loops P(x, x) are the same
    within i and within i+j and cancel, which leaves the cycles x -> y -> x with y in j:

        A(i, j) = z^2 (1 / |i| + 1 / |j|) * (sum over x in i, y in j of P(x, y) P(y, x)) + O(z^3).

    This estimator uses the term of order 2, without its constant z^2. The sum is additive when
    clusters merge, so no matrix has to be inverted, and n samples take memory in proportion to n.
    Higher orders are smaller by a factor of about z and only decide near ties. Initial
    clusters without affinity to any other are merged first, each with the cluster that receives
    most of its edges; later, clusters without affinity are joined by the distance of their means.

    References
    ----------
    D. Zhao and X. Tang, "Cyclizing clusters via zeta function of a graph", NIPS 2008.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> samples = np.concatenate([rng.normal(c, 0.1, (30, 2)) for c in (0, 3)])
    >>> model = ZetaLinkage(n_clusters=2).fit(samples)
    >>> model.n_clusters_, model.tree_.cut(3).max().item()
    (2, 2)
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        n_neighbors: int = 20,
        a: float = 0.95,
        min_cluster_size: int | None = None,
        method: Method = "exact",
        random_state: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.n_neighbors = n_neighbors
        self.a = a
        self.min_cluster_size = min_cluster_size
        self.method = method
        self.random_state = random_state

    def _merge(self, samples: NDArray[np.floating]) -> MergeTree:
        return agglomerate(
            samples,
            n_neighbors=self.n_neighbors,
            a=self.a,
            kernel="transition",
            n_near=1,
            linkage="additive",
            method=self.method,
            seed=self.random_state,
        )
