"""Landmark spectral clustering: every step against plain loops, edges, and real digits."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.random import RandomState
from scipy.sparse import csr_array
from sklearn.datasets import make_blobs, make_circles
from sklearn.utils.estimator_checks import parametrize_with_checks

from jule import load_dataset
from jule.baselines import landmark_spectral
from jule.baselines._rounding import round_from_random_rows
from jule.baselines.landmark_spectral import (
    LandmarkSpectralClustering,
    choose_landmarks,
    landmark_weights,
    spectral_rows,
)
from jule.evaluation import ari, nmi
from jule.forward import prepare


@parametrize_with_checks([LandmarkSpectralClustering()])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def blobs(n=200):
    return make_blobs(n, 3, centers=4, cluster_std=0.5, random_state=0)


def weights_by_definition(vectors, landmarks, n_nearest):
    """Return the dense Z, one entry at a time."""
    squared = np.array([[((x - y) ** 2).sum() for y in landmarks] for x in vectors])
    sigma = squared.mean()
    weights = np.zeros(squared.shape)
    for i, row in enumerate(squared):
        for j in np.argsort(row)[:n_nearest]:
            weights[i, j] = np.exp(-row[j] / (2 * sigma**2))
        weights[i] /= weights[i].sum()
    return weights


def rows_by_definition(weights, k):
    """Return the left singular vectors 2 .. k + 1 of the scaled weights, with unit rows."""
    left, _, _ = np.linalg.svd(weights / np.sqrt(weights.sum(axis=0)), full_matrices=False)
    kept = left[:, 1 : k + 1]
    return kept / np.linalg.norm(kept, axis=1, keepdims=True)


# The weights


@pytest.mark.parametrize("n_nearest", [2, 5, 9])
@pytest.mark.parametrize("block_values", [1, 200, 2**22])
@pytest.mark.parametrize("shift", [0.0, 100.0])
def test_weights_by_definition(monkeypatch, n_nearest, block_values, shift):
    monkeypatch.setattr(landmark_spectral, "BLOCK_VALUES", block_values)
    rng = np.random.default_rng(0)
    vectors, landmarks = rng.normal(shift, 1, (40, 3)), rng.normal(shift, 1, (9, 3))
    found = landmark_weights(vectors, landmarks, n_nearest).toarray()
    np.testing.assert_allclose(found, weights_by_definition(vectors, landmarks, n_nearest))


def test_weights_in_float32():
    rng = np.random.default_rng(0)
    vectors, landmarks = (rng.normal(size=(n, 20)).astype(np.float32) for n in (60, 12))
    expected = weights_by_definition(vectors.astype(float), landmarks.astype(float), 4)
    np.testing.assert_allclose(
        landmark_weights(vectors, landmarks, 4).toarray(), expected, rtol=1e-5
    )


@settings(deadline=None, max_examples=50)
@given(st.integers(0, 10**6), st.integers(2, 8), st.integers(-40, 40))
def test_weights_have_rows_of_sum_one_and_know_the_scale(seed, n_nearest, exponent):
    rng = np.random.default_rng(seed)
    vectors, landmarks = rng.normal(size=(20, 2)), rng.normal(size=(6, 2))
    scaled = landmark_weights(vectors, landmarks, n_nearest, exponent)
    np.testing.assert_allclose(scaled.sum(axis=1), 1.0)
    assert (scaled.data >= 0).all()
    np.testing.assert_array_equal(np.diff(scaled.indptr), min(n_nearest, 6))
    direct = landmark_weights(np.ldexp(vectors, exponent), np.ldexp(landmarks, exponent), n_nearest)
    np.testing.assert_allclose(scaled.toarray(), direct.toarray(), rtol=1e-9, atol=1e-300)


# The singular vectors


@pytest.mark.parametrize("k", [1, 3, 7])
def test_rows_by_definition(k):
    rng = np.random.default_rng(k)
    weights = weights_by_definition(rng.normal(size=(50, 3)), rng.normal(size=(12, 3)), 5)
    found, expected = spectral_rows(csr_array(weights), k), rows_by_definition(weights, k)
    # The order is that of the eigenvalues, smallest first, and the signs are arbitrary.
    signs = np.sign((found[:, ::-1] * expected).sum(axis=0))
    np.testing.assert_allclose(found[:, ::-1] * signs, expected, atol=1e-8)


def test_rows_of_components_are_points():
    # Three components: the constant vector is removed, and two vectors tell them apart.
    weights = np.kron(np.eye(3), np.full((4, 2), 0.5))
    rows = spectral_rows(csr_array(weights), 2)
    for component in range(3):
        own = rows[4 * component : 4 * component + 4]
        np.testing.assert_allclose(own, own[:1].repeat(4, axis=0), atol=1e-9)
        np.testing.assert_allclose(np.linalg.norm(own, axis=1), 1.0)
    np.testing.assert_allclose(rows[::4] @ rows[::4].T, 1.5 * np.eye(3) - 0.5, atol=1e-9)


def test_vectors_beyond_the_rank_are_left_out():
    weights = np.kron(np.eye(3), np.full((4, 2), 0.5))
    assert spectral_rows(csr_array(weights), 5).shape == (12, 2)


def test_landmarks_that_nobody_is_near():
    weights = np.hstack([np.kron(np.eye(3), np.full((4, 2), 0.5)), np.zeros((12, 2))])
    assert np.isfinite(spectral_rows(csr_array(weights), 2)).all()


def test_too_many_landmarks_are_refused_before_the_work(monkeypatch):
    monkeypatch.setattr("jule.memory.available_memory", lambda: 1000)
    with pytest.raises(ValueError, match=r"matrix of 200 landmarks, which n_landmarks limits"):
        LandmarkSpectralClustering(4).fit(blobs()[0])


# The landmarks


def test_random_landmarks_are_different_samples():
    vectors = np.repeat(np.random.default_rng(0).normal(size=(30, 2)), [50] + [1] * 29, axis=0)
    landmarks = choose_landmarks(vectors, 20, "random", RandomState(0))
    assert len(np.unique(landmarks, axis=0)) == 20
    assert all((vectors == landmark).all(axis=1).any() for landmark in landmarks)


def test_kmeans_landmarks_are_nearer_than_random_ones():
    vectors = np.random.default_rng(0).normal(size=(500, 3))

    def error(how):
        landmarks = choose_landmarks(vectors, 40, how, RandomState(0))
        assert landmarks.shape == (40, 3)
        return ((vectors[:, None] - landmarks) ** 2).sum(axis=2).min(axis=1).mean()

    assert error("kmeans") < 0.8 * error("random")


@pytest.mark.parametrize("how", ["kmeans", "random"])
def test_all_different_samples_are_landmarks_if_there_are_few(how):
    vectors = np.array([[0.0], [2.0], [0.0], [1.0]])
    assert choose_landmarks(vectors, 3, how, RandomState(0)).ravel().tolist() == [0.0, 2.0, 1.0]


# Ordinary use


@pytest.mark.parametrize("how", ["kmeans", "random"])
@pytest.mark.parametrize("n_landmarks", [40, 1000])
def test_finds_blobs(how, n_landmarks):
    samples, labels = blobs()
    model = LandmarkSpectralClustering(4, landmarks=how, n_landmarks=n_landmarks)
    assert ari(labels, model.fit_predict(samples)) == 1.0


def test_finds_circles():
    samples, labels = make_circles(400, factor=0.3, noise=0.03, random_state=0)
    assert ari(labels, LandmarkSpectralClustering(2).fit_predict(samples)) == 1.0


@pytest.mark.parametrize(("how", "least"), [("kmeans", 0.78), ("random", 0.7)])
def test_real_digits(how, least):
    data = load_dataset("digits")
    model = LandmarkSpectralClustering(10, landmarks=how, n_landmarks=400)
    assert nmi(data.labels, model.fit_predict(prepare(data.images, "l2"))) > least


# The rounding


def test_random_starts_keep_the_run_with_the_smallest_sum_of_distances():
    rows = np.random.default_rng(0).standard_cauchy((60, 2))  # many local optima

    def total(labels, power):
        of_clusters = (rows[labels == label] for label in range(5))
        each = [np.linalg.norm(own - own.mean(axis=0), axis=1) for own in of_clusters]
        return (np.concatenate(each) ** power).sum()

    # The runs share one generator, so the first starts are the same for every n.
    found = [round_from_random_rows(rows, 5, n_init=n, random_state=0) for n in range(1, 31)]
    distances = [total(labels, 1) for labels in found]
    squares = [total(labels, 2) for labels in found]
    assert (np.diff(distances) <= 0).all()
    assert distances[-1] < distances[0]
    assert (np.diff(squares) > 0).any()


def test_rounding_from_random_samples_finds_blobs():
    samples, labels = blobs()
    model = LandmarkSpectralClustering(4, rounding="random")
    assert ari(labels, model.fit_predict(samples)) == 1.0


@pytest.mark.parametrize("rounding", ["k-means++", "random"])
def test_twice_the_same(rounding):
    samples = np.random.default_rng(0).normal(size=(300, 2))
    model = LandmarkSpectralClustering(15, n_landmarks=50, rounding=rounding, random_state=3)
    np.testing.assert_array_equal(model.fit_predict(samples), model.fit_predict(samples))


def test_order_of_samples_does_not_matter():
    samples, _ = blobs()
    order = np.random.default_rng(0).permutation(len(samples))
    labels = LandmarkSpectralClustering(4).fit_predict(samples)
    assert ari(labels[order], LandmarkSpectralClustering(4).fit_predict(samples[order])) == 1.0


# Edges


@pytest.mark.parametrize("n_clusters", [1, 2, 5, 29, 30])
def test_any_number_of_clusters(n_clusters):
    samples, _ = blobs(n=30)
    assert LandmarkSpectralClustering(n_clusters).fit(samples).n_clusters_ == n_clusters


def test_samples_that_all_landmarks_describe_alike_are_one_cluster():
    with pytest.warns(UserWarning, match="1 clusters? instead of 2"):
        labels = LandmarkSpectralClustering(2).fit_predict([[0.0], [1e6], [3e6], [4e6]])
    assert labels.tolist() == [0, 0, 0, 0]


def test_two_samples():
    assert LandmarkSpectralClustering(2).fit_predict([[0.0], [1.0]]).tolist() == [0, 1]


@pytest.mark.parametrize("scale", [1e298, 1e150, 1e-150, 1e-310])
def test_extreme_scales(scale):
    samples, labels = blobs()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = LandmarkSpectralClustering(4).fit_predict(samples * scale)
    # With values near 0 only the nearest landmark counts, here the sample itself: no graph is left.
    if scale > 1:
        assert ari(labels, found) == 1.0


def test_samples_far_from_zero():
    samples, labels = blobs()
    assert ari(labels, LandmarkSpectralClustering(4).fit_predict(samples + 1e9)) == 1.0


@pytest.mark.parametrize("how", ["kmeans", "random"])
def test_copies_share_a_cluster(how):
    samples, labels = blobs(n=40)
    model = LandmarkSpectralClustering(4, landmarks=how, n_landmarks=30)
    found = model.fit_predict(np.tile(samples, (3, 1)))
    np.testing.assert_array_equal(found, np.tile(found[:40], 3))
    assert ari(labels, found[:40]) == 1.0


@pytest.mark.parametrize(
    ("samples", "options", "message"),
    [
        (np.ones((30, 3)), {}, "all 30 samples are identical"),
        (np.arange(30.0)[:, None], {"n_clusters": 31}, "cannot be made of n_samples=30"),
        (np.arange(30.0)[:, None], {"landmarks": "grid"}, "choose one of 'kmeans', 'random'"),
        (np.arange(30.0)[:, None], {"rounding": "qr"}, "choose one of 'k-means\\+\\+', 'random'"),
        (np.arange(30.0)[:, None], {"n_landmarks": 2}, "greater than n_clusters=2, got 2"),
        (np.arange(30.0)[:, None], {"n_landmarks": 9.5}, "must be an integer .* got 9.5"),
        (np.arange(30.0)[:, None], {"n_nearest": 1}, "n_nearest must be .* of 2 or more, got 1"),
    ],
)
def test_bad_input(samples, options, message):
    with pytest.raises(ValueError, match=message):
        LandmarkSpectralClustering(**{"n_clusters": 2, **options}).fit(samples)
