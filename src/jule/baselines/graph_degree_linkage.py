"""AC-GDL: agglomerative clustering by graph degree linkage, as a scikit-learn estimator."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils.validation import validate_data

from jule.forward import MergeTree, agglomerate, default_min_cluster_size, prepare
from jule.forward.agglomerate import First
from jule.forward.linkage import Update
from jule.forward.neighbors import Method
from jule.forward.prepare import Preparation


class GraphDegreeLinkage(ClusterMixin, BaseEstimator):  # type: ignore[misc]
    """Agglomerative clustering on a directed graph of nearest neighbours.

    Parameters
    ----------
    n_clusters
        K.
    n_neighbors
        K_s, the neighbours that every sample points to.
    a
        Scales sigma^2 of Eq. 4.
    preparation
        What is done to the samples first: ``"none"``, ``"l2"`` (recommended for images) or
        ``"center-l2"``.
    first
        The first clusters: ``"nearest"`` or ``"kmeans"``.
    n_near
        K_c of the merging criterion (Eq. 7). 1, the largest affinity alone, is AC-GDL; JULE uses 5.
    lam
        lambda of Eq. 7; of no effect with ``n_near=1``.
    update
        ``"exact"``, or the approximations ``"ratio"`` and ``"alpha"`` of the paper's appendix.
    alpha
        The constant of ``update="alpha"``.
    min_cluster_size
        Smaller clusters are absorbed and do not count towards K; None is n / (20 K), 1 is off.
    method
        Of the neighbour search: ``"exact"`` or ``"approximate"``.
    random_state
        Seed of K-means and of the approximate search; otherwise nothing is random.

    Attributes
    ----------
    labels_
        (n,) the cluster of every sample, 0 .. n_clusters_ - 1.
    tree_
        The `MergeTree` of all merges, to be cut at any other number of clusters.
    n_clusters_
        How many clusters there are.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> samples = np.concatenate([rng.normal(c, 0.1, (30, 2)) for c in (0, 3)])
    >>> model = GraphDegreeLinkage(n_clusters=2).fit(samples)
    >>> model.n_clusters_, model.tree_.cut(3).max().item()
    (2, 2)
    """

    labels_: NDArray[np.int32]
    tree_: MergeTree
    n_clusters_: int

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        n_neighbors: int = 20,
        a: float = 1.0,
        preparation: Preparation = "none",
        first: First = "nearest",
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
        self.preparation = preparation
        self.first = first
        self.n_near = n_near
        self.lam = lam
        self.update = update
        self.alpha = alpha
        self.min_cluster_size = min_cluster_size
        self.method = method
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: Any = None) -> GraphDegreeLinkage:
        """Cluster the samples; `y` is ignored.

        Examples
        --------
        >>> GraphDegreeLinkage(n_clusters=1).fit([[0.0], [1.0], [3.0]]).labels_.tolist()
        [0, 0, 0]
        """
        samples: NDArray[np.floating] = validate_data(
            self, X, dtype=[np.float64, np.float32], ensure_min_samples=2
        )
        k = self._checked_n_clusters(len(samples))
        self.tree_ = agglomerate(
            prepare(samples, self.preparation),
            n_neighbors=self.n_neighbors,
            a=self.a,
            first=self.first,
            n_near=self.n_near,
            lam=self.lam,
            update=self.update,
            alpha=self.alpha,
            method=self.method,
            seed=self.random_state,
        )
        size = self.min_cluster_size
        self.labels_ = self.tree_.cut(
            k, default_min_cluster_size(len(samples), k) if size is None else size
        )
        self.n_clusters_ = k
        return self

    def _checked_n_clusters(self, n_samples: int) -> int:
        if not isinstance(self.n_clusters, Integral) or self.n_clusters < 1:
            raise ValueError(
                f"n_clusters must be a whole number from 1 on, got {self.n_clusters!r}"
            )
        if self.n_clusters > n_samples:
            raise ValueError(
                f"n_clusters={self.n_clusters} clusters cannot be made of "
                f"n_samples={n_samples} samples"
            )
        return int(self.n_clusters)
