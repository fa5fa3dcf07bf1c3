"""Base class of the baselines: input checks, presets, exact copies and scikit-learn's interface."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from numbers import Integral
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils import Tags
from sklearn.utils.validation import validate_data

from jule.forward.prepare import check_not_identical, check_not_masked
from jule.images.copies import find_copies
from jule.joint.result import warn_of_fewer_clusters

Preset = Literal["original", "jule-paper"]


class BaseClusterer(ClusterMixin, BaseEstimator):  # type: ignore[misc]
    """Base class of the baselines: a subclass implements `_cluster` and `__init__`.

    Attributes
    ----------
    labels_
        (n,) cluster of every sample, 0 .. n_clusters_ - 1, in the order of their first samples.
    n_clusters_
        Number of clusters. Exact copies share a cluster, so it is at most the number of different
        samples.
    """

    n_clusters: int
    labels_: NDArray[np.int32]
    n_clusters_: int

    # Per preset, the values that replace parameters left at None.
    _presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {"original": {}}
    # Whether the method chooses the number of clusters itself and labels noise -1.
    _has_noise: ClassVar[bool] = False
    # Whether only distances matter, not the single features.
    _is_rotation_invariant: ClassVar[bool] = True
    # Whether negative values raise an error.
    _non_negative: ClassVar[bool] = False

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
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)  # of an earlier fit, which this one may not set
        check_not_masked(X)
        samples: NDArray[np.floating] = validate_data(
            self,
            X,
            dtype=[np.float64, np.float32],
            order="C",  # one layout, so that kernels are compiled once
            ensure_min_samples=2,
            ensure_non_negative=self._non_negative,
        )
        k = _check_n_clusters(self.n_clusters, len(samples))
        self._check_parameters(k)
        check_not_identical(samples)
        first_copies = find_copies(samples)
        n_different = len(np.unique(first_copies))
        if 1 < k < n_different or self._is_always_needed():
            labels = self._cluster(samples, min(k, n_different))
        else:
            labels = np.zeros(len(samples), np.int32) if k == 1 else first_copies
        labels = labels[first_copies]
        is_noise = labels < 0
        self.labels_ = np.where(is_noise, labels, -1).astype(np.int32)
        self.labels_[~is_noise] = number_by_first(labels[~is_noise])
        self.n_clusters_ = int(self.labels_.max()) + 1
        if self._has_noise:
            return self
        warn_of_fewer_clusters(min(n_different, k), k)
        if self.n_clusters_ < min(n_different, k):
            warnings.warn(
                f"{self.n_clusters_} clusters instead of {k}: {type(self).__name__} found no more",
                UserWarning,
                stacklevel=2,
            )
        return self

    def _cluster(self, samples: NDArray[np.floating], k: int) -> NDArray[np.integer]:
        """Return the cluster of every sample, 0 or more: at most k clusters unless `_has_noise`."""
        raise NotImplementedError

    def _check_parameters(self, k: int) -> None:
        """Raise an error for bad parameters, before anything is computed, for any number k."""
        del k  # most parameters do not depend on it
        self._settings()  # raises for an unknown preset

    def _is_always_needed(self) -> bool:
        """Return whether `_cluster` must run even if there is only one way to make k clusters."""
        return False

    def _is_random(self) -> bool:
        """Return whether the result depends on `random_state`."""
        return hasattr(self, "random_state")

    def _settings(self) -> dict[str, Any]:
        """Return the parameters, with the preset's values for those that are None."""
        given: dict[str, Any] = self.get_params(deep=False)
        preset = given.pop("preset", "original")
        if preset not in self._presets:
            known = ", ".join(map(repr, self._presets))
            raise ValueError(f"unknown preset {preset!r}: choose one of {known}")
        values = self._presets[preset]
        return {name: values.get(name) if value is None else value for name, value in given.items()}

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = self._non_negative
        return tags


def number_by_first(labels: NDArray[np.integer]) -> NDArray[np.int32]:
    """Renumber clusters 0, 1, ... in the order of their first samples.

    Examples
    --------
    >>> number_by_first(np.array([7, 2, 7, 5])).tolist()
    [0, 1, 0, 2]
    """
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first)).astype(np.int32)[inverse]


def _check_n_clusters(n_clusters: int, n_samples: int) -> int:
    if not isinstance(n_clusters, Integral) or n_clusters < 1:
        raise ValueError(f"n_clusters must be an integer of 1 or more, got {n_clusters!r}")
    if n_clusters > n_samples:
        raise ValueError(
            f"n_clusters={n_clusters} clusters cannot be made of n_samples={n_samples} samples"
        )
    return int(n_clusters)
