"""HDBSCAN, and the base class of methods that find the number of clusters."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import HDBSCAN as SklearnHDBSCAN

from jule.baselines._base import BaseClusterer
from jule.baselines._checks import check_count
from jule.baselines._spectral import MAX_DENSE
from jule.forward import default_min_cluster_size
from jule.forward.prepare import fit_range
from jule.memory import check_memory

MAX_TREE_FEATURES = 60
DEFAULT_SIZE = 5  # scikit-learn's smallest cluster; smaller ones are splinters


class NoisyClusterer(BaseClusterer):
    """Base class of methods that find the number of clusters and leave out noise, label -1."""

    _has_noise = True

    def _is_always_needed(self) -> bool:
        return True


class HDBSCAN(NoisyClusterer):
    """HDBSCAN: density-based clustering that keeps the most persistent clusters and marks noise.

    Parameters
    ----------
    n_clusters
        Only sets the default of `min_cluster_size`: HDBSCAN finds the number of clusters.
    min_cluster_size
        Size of the smallest cluster. None means n / (20 n_clusters), but at least 5.
    min_samples
        Number of neighbours, the sample itself included, from which its density is estimated.
        None means `min_cluster_size`.

    Attributes
    ----------
    labels_
        (n,) cluster of every sample, 0 .. n_clusters_ - 1, or -1 for noise.
    n_clusters_
        Number of clusters, 0 if all samples are noise.

    Notes
    -----
    This is scikit-learn's `HDBSCAN`. It compares all pairs of samples; their distances are stored
    (24 n^2 bytes) for up to 12,000 samples of more than 60 features. Otherwise it uses little
    memory, but is slow in many dimensions.

    References
    ----------
    R. Campello, D. Moulavi, J. Sander, "Density-based clustering based on hierarchical density
    estimates", PAKDD, 2013.

    Examples
    --------
    >>> samples = [[0.0], [0.1], [0.2], [5.0], [5.1], [5.2], [99.0]]
    >>> HDBSCAN(n_clusters=2, min_cluster_size=3, min_samples=2).fit_predict(samples).tolist()
    [0, 0, 0, 1, 1, 1, -1]
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        min_cluster_size: int | None = None,
        min_samples: int | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.min_cluster_size = min_cluster_size
        self.min_samples = min_samples

    def _cluster(self, samples: NDArray[np.floating], k: int) -> NDArray[np.integer]:
        return run_hdbscan(fit_range(samples)[0], k, self.min_cluster_size, self.min_samples)


def run_hdbscan(
    vectors: NDArray[np.floating], k: int, min_cluster_size: int | None, min_samples: int | None
) -> NDArray[np.int32]:
    """Run HDBSCAN, with the parameters of the class `HDBSCAN`; return -1 for noise.

    Examples
    --------
    >>> run_hdbscan(np.array([[0.0], [0.1], [5.0], [5.1]]), 2, 2, None).tolist()
    [0, 0, 1, 1]
    """
    n = len(vectors)
    size = min_cluster_size
    if size is None:
        size = max(DEFAULT_SIZE, default_min_cluster_size(n, k))
    if check_count(size, "min_cluster_size") < 2:
        raise ValueError("min_cluster_size must be 2 or more, got 1")
    density = size if min_samples is None else check_count(min_samples, "min_samples")
    # In many dimensions, a search tree is slower than a table of all distances.
    is_dense = vectors.shape[1] > MAX_TREE_FEATURES and n <= MAX_DENSE
    if is_dense:
        check_memory(24 * n * n, f"HDBSCAN's tables of distances between {n:,} samples")
    model = SklearnHDBSCAN(
        min_cluster_size=size,
        min_samples=min(density, n),
        algorithm="brute" if is_dense else "auto",
        copy=True,
    )
    return np.asarray(model.fit_predict(vectors), np.int32)
