"""AC-GDL: agglomerative clustering by graph degree linkage."""

from __future__ import annotations

from numbers import Real

import numpy as np
from numpy.typing import NDArray

from jule.baselines._checks import check_count, check_not_negative
from jule.baselines._linkage import BaseLinkage
from jule.forward import MergeTree, agglomerate, prepare
from jule.forward.affinity import Kernel
from jule.forward.agglomerate import Init
from jule.forward.linkage import Update
from jule.forward.prepare import Preparation
from jule.forward.search import Method


class GraphDegreeLinkage(BaseLinkage):
    """Graph degree linkage: agglomerative clustering on a directed graph of nearest neighbours.

    Equations are those of the JULE paper.

    Parameters
    ----------
    n_clusters
        Number of clusters, K.
    n_neighbors
        Number of neighbours of each sample in the graph, K_s.
    a
        Factor of the bandwidth sigma^2 (Eq. 4), which is `a` times the mean squared distance to the
        neighbours.
    kernel
        Weights of the graph: ``"global"`` has one bandwidth for all samples (Eq. 4); ``"local"``
        has one per sample (see `jule.forward.affinity.local_affinity_graph`).
    preparation
        Scaling of the samples: ``"none"``, ``"l2"`` (recommended for images) or ``"center-l2"``.
    init
        Initial clusters: ``"nearest"`` or ``"kmeans"``.
    n_near
        K_c of the merging criterion (Eq. 7). AC-GDL uses 1, the largest affinity alone; JULE
        uses 5.
    lam
        lambda of Eq. 7; it has no effect with ``n_near=1``.
    update
        ``"exact"``, or an approximation of the paper's appendix: ``"ratio"`` or ``"alpha"``.
    alpha
        Constant of ``update="alpha"``.
    min_cluster_size
        Smaller clusters do not count towards K and are absorbed. None means n / (20 K); 1 counts
        all clusters, as in the original.
    method
        Neighbour search: ``"exact"`` or ``"approximate"``.
    random_state
        Random seed of K-means and of the approximate search.

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

    References
    ----------
    W. Zhang, X. Wang, D. Zhao, X. Tang, "Graph degree linkage: agglomerative clustering on a
    directed graph", ECCV 2012.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> samples = np.concatenate([rng.normal(c, 0.1, (30, 2)) for c in (0, 3)])
    >>> model = GraphDegreeLinkage(n_clusters=2).fit(samples)
    >>> model.n_clusters_, model.tree_.cut(3).max().item()
    (2, 2)
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        n_neighbors: int = 20,
        a: float = 1.0,
        kernel: Kernel = "global",
        preparation: Preparation = "none",
        init: Init = "nearest",
        n_near: int = 1,
        lam: float = 1.0,
        update: Update = "exact",
        alpha: float = 0.0,
        min_cluster_size: int | None = None,
        method: Method = "exact",
        random_state: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.n_neighbors = n_neighbors
        self.a = a
        self.kernel = kernel
        self.preparation = preparation
        self.init = init
        self.n_near = n_near
        self.lam = lam
        self.update = update
        self.alpha = alpha
        self.min_cluster_size = min_cluster_size
        self.method = method
        self.random_state = random_state

    def _check_parameters(self, k: int) -> None:
        super()._check_parameters(k)
        check_count(self.n_near, "n_near")
        check_not_negative(self.lam, "lam")
        if not isinstance(self.alpha, Real):
            raise ValueError(f"alpha must be a number, got {self.alpha!r}")

    def _is_random(self) -> bool:
        return super()._is_random() or self.init == "kmeans"

    def _merge(self, samples: NDArray[np.floating]) -> MergeTree:
        return agglomerate(
            prepare(samples, self.preparation),
            n_neighbors=self.n_neighbors,
            a=self.a,
            kernel=self.kernel,
            init=self.init,
            n_near=self.n_near,
            lam=self.lam,
            update=self.update,
            alpha=self.alpha,
            method=self.method,
            seed=self.random_state,
        )
