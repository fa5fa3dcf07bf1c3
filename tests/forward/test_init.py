"""Initial clusters: nearest-neighbour components and K-means."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jule.evaluation import purity
from jule.forward import kmeans_clusters, nearest_neighbor_components, nearest_neighbors
from jule.forward.init import cluster_means, components, number_by_first_sample
from tests.oracles import neighbors as oracle


@given(seed=st.integers(0, 10**6), n=st.integers(1, 60))
@settings(max_examples=40, deadline=None)
def test_components_of_any_pointing(seed, n):
    nearest = np.random.default_rng(seed).integers(n, size=n).astype(np.int32)
    assert components(nearest).tolist() == oracle.components(nearest.tolist())


def test_components_hold_two_samples_at_least():
    found = nearest_neighbors(np.random.default_rng(0).random((500, 4)), 3)
    labels = nearest_neighbor_components(found)
    assert np.bincount(labels).min() >= 2
    assert (labels == labels[found.indices[:, 0]]).all()


def test_kmeans_finds_groups():
    rng = np.random.default_rng(0)
    group = rng.integers(5, size=400)
    samples = rng.standard_normal((5, 6))[group] * 5 + rng.standard_normal((400, 6)) * 0.1
    assert purity(group, kmeans_clusters(samples, 40)) > 0.95


def test_kmeans_drops_empty_clusters_and_leaves_no_gap():
    samples = np.repeat([[0.0], [5.0]], 10, axis=0)
    labels = kmeans_clusters(samples, 7)
    np.testing.assert_array_equal(labels, np.repeat([0, 1], 10))


def test_kmeans_with_one_cluster_per_sample():
    samples = np.arange(6.0)[:, None]
    assert kmeans_clusters(samples, 6).tolist() == [0, 1, 2, 3, 4, 5]


def test_kmeans_repeats_itself():
    samples = np.random.default_rng(1).random((300, 3))
    np.testing.assert_array_equal(kmeans_clusters(samples, 50, 7), kmeans_clusters(samples, 50, 7))


@pytest.mark.parametrize("n_clusters", [0, 7])
def test_kmeans_checks_n_clusters(n_clusters):
    with pytest.raises(ValueError, match="between 1 and n_samples = 6"):
        kmeans_clusters(np.arange(6.0)[:, None], n_clusters)


def test_means_by_cluster():
    rng = np.random.default_rng(0)
    labels = np.concatenate([np.arange(7), rng.integers(7, size=50)])
    samples = rng.random((57, 3))
    expected = [samples[labels == c].mean(axis=0) for c in range(7)]
    np.testing.assert_allclose(cluster_means(samples, labels), expected)


def test_numbering_keeps_the_partition():
    labels = np.random.default_rng(0).integers(100, size=500)
    numbered = number_by_first_sample(labels)
    firsts = [int(np.flatnonzero(numbered == c)[0]) for c in range(numbered.max() + 1)]
    assert firsts == sorted(firsts)
    assert len({(a, b) for a, b in zip(labels, numbered, strict=True)}) == len(firsts)
