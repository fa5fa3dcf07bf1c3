"""K-means: scikit-learn's own checks, Lloyd's algorithm by hand, edges, and real digits."""

import numpy as np
import pytest
from sklearn.datasets import make_blobs
from sklearn.utils.estimator_checks import parametrize_with_checks

from jule import load_dataset
from jule.baselines.kmeans import KMeans
from jule.evaluation import ari, nmi
from jule.forward import prepare


@parametrize_with_checks([KMeans()])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def blobs(n=200):
    return make_blobs(n, 3, centers=4, cluster_std=0.5, random_state=0)


def test_finds_blobs():
    samples, labels = blobs()
    assert ari(labels, KMeans(4).fit_predict(samples)) == 1.0


def test_real_digits():
    data = load_dataset("digits")
    assert nmi(data.labels, KMeans(10).fit_predict(prepare(data.images, "l2"))) > 0.7


@pytest.mark.parametrize("seed", range(5))
def test_result_is_a_fixed_point_of_lloyds_algorithm(seed):
    # The tolerance of scikit-learn ends most runs a little earlier on larger sets.
    samples = np.random.default_rng(seed).normal(size=(60, 2))
    labels = KMeans(5, random_state=seed).fit_predict(samples)
    means = np.array([samples[labels == one].mean(axis=0) for one in range(5)])
    for sample, label in zip(samples, labels, strict=True):
        assert ((sample - means) ** 2).sum(axis=1).argmin() == label


def test_more_runs_are_never_worse():
    samples = np.random.default_rng(0).normal(size=(200, 2))

    def scatter(n_init):
        labels = KMeans(12, n_init=n_init).fit_predict(samples)
        clusters = [samples[labels == one] for one in range(12)]
        return sum(((cluster - cluster.mean(axis=0)) ** 2).sum() for cluster in clusters)

    assert scatter(20) < scatter(1)


def test_twice_the_same_and_seeds_differ():
    samples = np.random.default_rng(0).normal(size=(300, 2))
    one, again, other = (
        KMeans(15, n_init=1, random_state=seed).fit_predict(samples) for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(one, again)
    assert ari(one, other) < 1


@pytest.mark.parametrize("scale", [1e298, 1e-310, 3.0])
def test_scaled_samples_have_the_same_clusters(scale):
    samples, _ = blobs()
    expected = KMeans(4).fit_predict(samples)
    np.testing.assert_array_equal(KMeans(4).fit_predict(samples * scale), expected)


def test_samples_far_from_zero():
    samples, labels = blobs()
    assert ari(labels, KMeans(4).fit_predict(samples + 1e9)) == 1.0


@pytest.mark.parametrize("n_clusters", [1, 2, 5, 29, 30])
def test_any_number_of_clusters(n_clusters):
    samples, _ = blobs(n=30)
    assert len(np.unique(KMeans(n_clusters).fit(samples).labels_)) == n_clusters


def test_two_samples():
    assert KMeans(2).fit_predict([[0.0], [1.0]]).tolist() == [0, 1]


def test_copies_share_a_cluster():
    samples, _ = blobs(n=40)
    labels = KMeans(12).fit_predict(np.tile(samples, (3, 1)))
    np.testing.assert_array_equal(labels, np.tile(labels[:40], 3))


@pytest.mark.parametrize(
    ("samples", "options", "message"),
    [
        (np.ones((30, 3)), {}, "all 30 samples are identical"),
        (np.arange(30.0)[:, None], {"n_clusters": 31}, "cannot be made of n_samples=30"),
        (np.arange(30.0)[:, None], {"n_init": 0}, "n_init must be an integer of 1 or more, got 0"),
        (np.arange(30.0)[:, None], {"n_init": 0.5}, "an integer of 1 or more, got 0.5"),
        (np.arange(30.0)[:, None], {"random_state": "a"}, "'random_state' parameter"),
    ],
)
def test_bad_input(samples, options, message):
    with pytest.raises(ValueError, match=message):
        KMeans(**{"n_clusters": 2, **options}).fit(samples)
