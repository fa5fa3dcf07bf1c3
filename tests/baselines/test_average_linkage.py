"""Average linkage: the definition in plain loops, scipy's result, edges, and real digits."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.cluster.hierarchy import cophenet, is_valid_linkage, linkage
from scipy.spatial.distance import pdist
from sklearn.datasets import make_blobs
from sklearn.utils.estimator_checks import parametrize_with_checks

from jule import load_dataset
from jule.baselines.average_linkage import AverageLinkage, average_linkage
from jule.evaluation import ari, nmi
from jule.forward import prepare


@parametrize_with_checks([AverageLinkage()])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def blobs(n=200):
    return make_blobs(n, 3, centers=4, cluster_std=0.5, random_state=0)


def merge_by_definition(samples, k):
    """Merge the two clusters with the least mean distance until k are left; return the heights."""
    clusters = [[index] for index in range(len(samples))]
    heights = []

    def mean_distance(pair):
        distances = [
            np.sqrt(((samples[i] - samples[j]) ** 2).sum()) for i in pair[0] for j in pair[1]
        ]
        return sum(distances) / len(distances)

    while len(clusters) > k:
        a, b = min(combinations(clusters, 2), key=mean_distance)
        heights.append(mean_distance((a, b)))
        clusters.remove(a)
        clusters.remove(b)
        clusters.append(a + b)
    labels = np.empty(len(samples), int)
    for label, cluster in enumerate(clusters):
        labels[cluster] = label
    return labels, heights


# The definition


@pytest.mark.parametrize("k", [2, 5, 17])
def test_clusters_and_heights_by_definition(k):
    samples = np.random.default_rng(k).normal(size=(18, 3))
    model = AverageLinkage(k).fit(samples)
    labels, heights = merge_by_definition(samples, k)
    assert ari(labels, model.labels_) == 1.0
    np.testing.assert_allclose(model.linkage_[: 18 - k, 2], heights)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n", [2, 3, 63, 64, 65, 129, 300])
def test_the_tree_of_scipy(n, dtype):
    samples = np.random.default_rng(n).normal(size=(n, 5)).astype(dtype)
    ours, scipys = average_linkage(samples), linkage(samples, "average")
    np.testing.assert_array_equal(ours[:, [0, 1, 3]], scipys[:, [0, 1, 3]])
    np.testing.assert_allclose(
        ours[:, 2], scipys[:, 2], rtol=1e-12 if dtype == np.float64 else 1e-5
    )


@settings(deadline=None, max_examples=60)
@given(
    arrays(
        np.float64, st.tuples(st.integers(2, 12), st.integers(1, 3)), elements=st.integers(-3, 3)
    )
)
def test_any_tree_is_valid_even_with_ties(samples):
    tree = average_linkage(samples)
    assert is_valid_linkage(tree)
    assert (np.diff(tree[:, 2]) >= 0).all()
    # The pairs that a merge joins have its height as mean distance.
    distances, joined = pdist(samples), cophenet(tree)
    for height in np.unique(joined):
        np.testing.assert_allclose(distances[joined == height].mean(), height, atol=1e-12)


# Ordinary use


def test_finds_blobs():
    samples, labels = blobs()
    assert ari(labels, AverageLinkage(4).fit_predict(samples)) == 1.0


def test_real_digits():
    data = load_dataset("digits")
    assert nmi(data.labels, AverageLinkage(10).fit_predict(prepare(data.images, "l2"))) > 0.7


@pytest.mark.parametrize("n_clusters", [1, 2, 5, 29, 30])
def test_any_number_of_clusters(n_clusters):
    samples, _ = blobs(n=30)
    model = AverageLinkage(n_clusters).fit(samples)
    assert len(np.unique(model.labels_)) == n_clusters
    assert model.linkage_.shape == (29, 4)


@pytest.mark.parametrize("n_clusters", [2, 3, 5])
def test_equal_distances_make_as_many_clusters_as_asked_for(n_clusters):
    assert AverageLinkage(n_clusters).fit(np.eye(6)).n_clusters_ == n_clusters


def test_order_of_samples_does_not_matter():
    samples, _ = blobs()
    order = np.random.default_rng(0).permutation(len(samples))
    labels = AverageLinkage(9).fit_predict(samples)
    assert ari(labels[order], AverageLinkage(9).fit_predict(samples[order])) == 1.0


@pytest.mark.parametrize("scale", [2.0**990, 2.0**-1000, 2.0**5])
def test_scaled_samples_have_a_scaled_tree(scale):
    samples, _ = blobs()
    expected = average_linkage(samples)
    expected[:, 2] *= scale
    np.testing.assert_allclose(average_linkage(samples * scale), expected, rtol=1e-9)


# Edges


def test_two_samples():
    assert AverageLinkage(2).fit_predict([[0.0], [1.0]]).tolist() == [0, 1]


@pytest.mark.parametrize("k", [3, 12, 39, 40])
def test_copies_share_a_cluster(k):
    samples, _ = blobs(n=40)
    labels = AverageLinkage(k).fit_predict(np.tile(samples, (3, 1)))
    assert len(np.unique(labels)) == k
    np.testing.assert_array_equal(labels, np.tile(labels[:40], 3))


def test_too_many_samples_are_refused_before_the_work(monkeypatch):
    monkeypatch.setattr("jule.memory.available_memory", lambda: 10_000)
    samples, _ = blobs()
    with pytest.raises(ValueError, match="between 200 samples, which GraphDegreeLinkage does with"):
        AverageLinkage(4).fit(samples)
    # Half as much is enough for this type.
    monkeypatch.setattr("jule.memory.available_memory", lambda: 100_000)
    AverageLinkage(4).fit(samples.astype(np.float32))


@pytest.mark.parametrize(
    ("samples", "n_clusters", "message"),
    [
        (np.ones((30, 3)), 2, "all 30 samples are identical"),
        (np.arange(30.0)[:, None], 31, "cannot be made of n_samples=30"),
        (np.arange(30.0)[:, None], 0, "of 1 or more, got 0"),
        (np.array([[0.0], [np.nan]]), 2, "NaN"),
    ],
)
def test_bad_input(samples, n_clusters, message):
    with pytest.raises(ValueError, match=message):
        AverageLinkage(n_clusters).fit(samples)
