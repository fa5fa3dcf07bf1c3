"""UMAP followed by HDBSCAN or K-means."""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray

from jule.baselines._base import BaseClusterer
from jule.baselines._checks import check_count
from jule.baselines._density import NoisyClusterer, run_hdbscan
from jule.baselines._rounding import round_by_kmeans
from jule.baselines._spectral import find_neighbors
from jule.forward.prepare import fit_range

FEWEST_FOR_SPECTRAL = 20  # samples; with fewer, UMAP starts from random positions


class UMAPHDBSCAN(NoisyClusterer):
    """UMAP followed by HDBSCAN on the layout.

    Parameters
    ----------
    n_clusters
        Only sets the default of `min_cluster_size`: HDBSCAN finds the number of clusters.
    n_neighbors
        Number of neighbours in UMAP's graph, the sample itself included.
    n_components
        Number of dimensions of the layout.
    min_cluster_size
        Size of the smallest cluster. None means n / (20 n_clusters), but at least 5.
    min_samples
        Number of neighbours, the sample itself included, from which its density is estimated.
        None means `min_cluster_size`.
    random_state
        Random seed.

    Attributes
    ----------
    labels_
        (n,) cluster of every sample, 0 .. n_clusters_ - 1, or -1 for noise.
    n_clusters_
        Number of clusters, 0 if all samples are noise.

    Notes
    -----
    Needs umap-learn: ``pip install "jule[umap]"``. The settings are those that UMAP's documentation
    recommends for clustering: 30 neighbours, a minimum distance of 0, two dimensions, and 10
    samples for the density.

    References
    ----------
    L. McInnes, J. Healy, J. Melville, "UMAP: uniform manifold approximation and projection for
    dimension reduction", arXiv:1802.03426, 2018.

    Examples
    --------
    >>> model = UMAPHDBSCAN(n_clusters=10)
    >>> model.min_samples
    10
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        n_neighbors: int = 30,
        n_components: int = 2,
        min_cluster_size: int | None = None,
        min_samples: int | None = 10,
        random_state: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.n_neighbors = n_neighbors
        self.n_components = n_components
        self.min_cluster_size = min_cluster_size
        self.min_samples = min_samples
        self.random_state = random_state

    def _cluster(self, samples: NDArray[np.floating], k: int) -> NDArray[np.integer]:
        layout = _layout(samples, self.n_neighbors, self.n_components, self.random_state)
        return run_hdbscan(layout, k, self.min_cluster_size, self.min_samples)


class UMAPKMeans(BaseClusterer):
    """UMAP followed by K-means on the layout.

    Parameters
    ----------
    n_clusters
        Number of clusters, K.
    n_neighbors
        Number of neighbours in UMAP's graph, the sample itself included.
    n_components
        Number of dimensions of the layout.
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
    Needs umap-learn: ``pip install "jule[umap]"``. The settings of UMAP are those of
    `UMAPHDBSCAN`.

    References
    ----------
    L. McInnes, J. Healy, J. Melville, "UMAP: uniform manifold approximation and projection for
    dimension reduction", arXiv:1802.03426, 2018.

    Examples
    --------
    >>> model = UMAPKMeans(n_clusters=10)
    >>> model.n_neighbors
    30
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        n_neighbors: int = 30,
        n_components: int = 2,
        random_state: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.n_neighbors = n_neighbors
        self.n_components = n_components
        self.random_state = random_state

    def _cluster(self, samples: NDArray[np.floating], k: int) -> NDArray[np.integer]:
        layout = _layout(samples, self.n_neighbors, self.n_components, self.random_state)
        return round_by_kmeans(layout, k, random_state=self.random_state)


def _layout(
    samples: NDArray[np.floating], n_neighbors: int, n_components: int, random_state: int
) -> NDArray[np.float32]:
    """Return UMAP's layout of the samples, with the settings for clustering."""
    check_count(n_components, "n_components")
    try:
        from umap import UMAP
    except ImportError as error:
        raise ImportError('UMAP needs umap-learn: pip install "jule[umap]"') from error
    n = len(samples)
    vectors = fit_range(samples)[0]
    # UMAP counts a sample as its own first neighbour, and its own search is approximate.
    found = find_neighbors(vectors, max(1, check_count(n_neighbors, "n_neighbors") - 1))
    indices = np.column_stack((np.arange(n), found.indices))
    distances = np.column_stack((np.zeros(n), np.sqrt(found.distances))).astype(np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about threads, and about transforming new samples
        layout = UMAP(
            n_neighbors=found.k + 1,
            n_components=n_components,
            min_dist=0.0,
            init="spectral" if n >= FEWEST_FOR_SPECTRAL else "random",
            precomputed_knn=(indices, distances, None),
            random_state=random_state,
            n_jobs=1,
        ).fit_transform(vectors)
    return np.asarray(layout, np.float32)
