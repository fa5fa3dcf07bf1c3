"""K-means, started by k-means++."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from jule.baselines._base import BaseClusterer
from jule.baselines._checks import check_count
from jule.baselines._rounding import round_by_kmeans
from jule.forward.prepare import fit_range


class KMeans(BaseClusterer):
    """K-means: the best of several runs of Lloyd's algorithm, started by k-means++.

    Parameters
    ----------
    n_clusters
        Number of clusters, K.
    n_init
        Number of runs; the one with the smallest sum of squared distances is kept.
    random_state
        Random seed.

    Attributes
    ----------
    labels_
        (n,) cluster of every sample, 0 .. n_clusters_ - 1.
    n_clusters_
        Number of clusters. Exact copies share a cluster, so it is at most the number of different
        samples.

    Notes
    -----
    This is scikit-learn's `KMeans` with ten runs of at most max(100, n / 100) iterations, as in the
    comparison of the JULE paper. There, runs start from K random samples; k-means++ misses fewer
    clusters. In addition, samples of any scale are accepted, and exact copies share a cluster.

    References
    ----------
    S. Lloyd, "Least squares quantization in PCM", IEEE Transactions on Information Theory, 1982.

    D. Arthur, S. Vassilvitskii, "k-means++: the advantages of careful seeding", SODA, 2007.

    Examples
    --------
    >>> KMeans(n_clusters=2).fit_predict([[0.0], [0.1], [5.0], [5.1]]).tolist()
    [0, 0, 1, 1]
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        n_init: int = 10,
        random_state: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.n_init = n_init
        self.random_state = random_state

    def _check_parameters(self, k: int) -> None:
        super()._check_parameters(k)
        check_count(self.n_init, "n_init")

    def _cluster(self, samples: NDArray[np.floating], k: int) -> NDArray[np.int32]:
        return round_by_kmeans(
            fit_range(samples)[0],
            k,
            n_init=self.n_init,
            max_iter=max(100, len(samples) // 100),
            random_state=self.random_state,
        )
