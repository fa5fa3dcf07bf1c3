"""Methods that a user would choose today, with the interface of the baselines."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import AgglomerativeClustering

from jule.baselines._base import BaseClusterer
from jule.baselines._clustpy import DCN, DEC, IDEC
from jule.baselines._density import HDBSCAN
from jule.baselines._umap import UMAPHDBSCAN, UMAPKMeans
from jule.forward.prepare import fit_range
from jule.memory import check_memory


class Ward(BaseClusterer):
    """Ward's method: merge the two clusters whose union adds least to the variance within.

    Parameters
    ----------
    n_clusters
        Number of clusters, K.

    Attributes
    ----------
    labels_
        (n,) cluster of every sample, 0 .. n_clusters_ - 1.
    n_clusters_
        Number of clusters. Exact copies share a cluster, so it is at most the number of different
        samples.

    Notes
    -----
    This is scikit-learn's `AgglomerativeClustering`, which needs 8 n^2 bytes: scipy computes the
    distances between all pairs and works on a copy. That is 0.8 GB for 10,000 samples, and 39 GB
    for 70,000.

    References
    ----------
    J. H. Ward, "Hierarchical grouping to optimize an objective function", Journal of the American
    Statistical Association, 1963.

    Examples
    --------
    >>> Ward(n_clusters=2).fit_predict([[0.0], [0.1], [5.0], [5.1]]).tolist()
    [0, 0, 1, 1]
    """

    def __init__(self, n_clusters: int = 8) -> None:
        self.n_clusters = n_clusters

    def _cluster(self, samples: NDArray[np.floating], k: int) -> NDArray[np.integer]:
        n = len(samples)
        check_memory(
            8 * n * n,
            f"Ward's method on {n:,} samples, which GraphDegreeLinkage does without,",
        )
        found = AgglomerativeClustering(k, linkage="ward").fit_predict(fit_range(samples)[0])
        return np.asarray(found, np.int32)


# Keyed by the names of the tables' rows.
MODERN: dict[str, type[BaseClusterer]] = {
    "HDBSCAN": HDBSCAN,
    "Ward": Ward,
    "UMAP + HDBSCAN": UMAPHDBSCAN,
    "UMAP + K-means": UMAPKMeans,
    "DEC": DEC,
    "IDEC": IDEC,
    "DCN": DCN,
}

__all__ = ["DCN", "DEC", "HDBSCAN", "IDEC", "MODERN", "UMAPHDBSCAN", "UMAPKMeans", "Ward"]
