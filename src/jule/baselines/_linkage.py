"""Base class of the agglomerative baselines: merge tree, exact copies and tiny clusters."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from jule.baselines._base import BaseClusterer
from jule.baselines._checks import check_count, check_positive
from jule.forward import MergeTree, default_min_cluster_size
from jule.forward.restrict import join_copies_first
from jule.forward.search import Method
from jule.images.copies import find_copies


class BaseLinkage(BaseClusterer):
    """Base class of the agglomerative baselines: a subclass implements `_merge` and `__init__`.

    Attributes
    ----------
    tree_
        The `MergeTree` of all merges, which can be cut at any number of clusters. Exact copies are
        joined first.
    """

    n_neighbors: int
    a: float
    min_cluster_size: int | None
    method: Method
    tree_: MergeTree

    def _merge(self, samples: NDArray[np.floating]) -> MergeTree:
        """Return the tree of all merges."""
        raise NotImplementedError

    def _check_parameters(self, k: int) -> None:
        super()._check_parameters(k)
        check_count(self.n_neighbors, "n_neighbors")
        check_positive(self.a, "a")
        if self.min_cluster_size is not None:
            check_count(self.min_cluster_size, "min_cluster_size")

    def _is_always_needed(self) -> bool:
        return True  # for the tree

    def _is_random(self) -> bool:
        return self.method == "approximate"

    def _cluster(self, samples: NDArray[np.floating], k: int) -> NDArray[np.int32]:
        self.tree_ = self._merge(samples)
        first_copies = find_copies(samples)
        if (first_copies != np.arange(len(samples))).any():
            self.tree_ = join_copies_first(self.tree_, first_copies)
        k = min(k, self.tree_.n_different)
        size = self.min_cluster_size
        if size is None:
            size = default_min_cluster_size(len(samples), k)
        return self.tree_.cut(k, size)
