"""Base class of the baselines: input checks and scikit-learn's interface."""

from __future__ import annotations

from numbers import Integral
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils.validation import validate_data

from jule.forward.prepare import check_not_masked
from jule.joint.result import warn_of_fewer_clusters


class BaseClusterer(ClusterMixin, BaseEstimator):  # type: ignore[misc]
    """Base class of the baselines: a subclass implements `_cluster` and `__init__`.

    Attributes
    ----------
    labels_
        (n,) cluster of every sample, 0 .. n_clusters_ - 1.
    n_clusters_
        Number of clusters. Exact copies share a cluster, so it is at most the number of different
        samples.
    """

    n_clusters: int
    labels_: NDArray[np.int32]
    n_clusters_: int

    def fit(self, X: ArrayLike, y: Any = None) -> Self:
        """Cluster the samples.

        Parameters
        ----------
        X
            (n, d) samples.
        y
            Ignored.
        """
        del y  # part of scikit-learn's interface
        check_not_masked(X)
        samples: NDArray[np.floating] = validate_data(
            self, X, dtype=[np.float64, np.float32], ensure_min_samples=2
        )
        k = _check_n_clusters(self.n_clusters, len(samples))
        self.labels_ = self._cluster(samples, k)
        self.n_clusters_ = int(self.labels_.max()) + 1
        warn_of_fewer_clusters(self.n_clusters_, k)
        return self

    def _cluster(self, samples: NDArray[np.floating], k: int) -> NDArray[np.int32]:
        """Return the cluster of every sample, 0 .. k-1, or fewer if there are many copies."""
        raise NotImplementedError


def _check_n_clusters(n_clusters: int, n_samples: int) -> int:
    if not isinstance(n_clusters, Integral) or n_clusters < 1:
        raise ValueError(f"n_clusters must be an integer of 1 or more, got {n_clusters!r}")
    if n_clusters > n_samples:
        raise ValueError(
            f"n_clusters={n_clusters} clusters cannot be made of n_samples={n_samples} samples"
        )
    return int(n_clusters)
