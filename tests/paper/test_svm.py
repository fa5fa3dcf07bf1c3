"""The linear SVM against scikit-learn's, on the same objective."""

import numpy as np
import pytest
from sklearn.svm import LinearSVC

from jule import load_dataset
from jule.paper import svm as module
from jule.paper.svm import Moments, choose_c, train_svm


@pytest.fixture(scope="module")
def digits():
    data = load_dataset("digits")
    return data.images.reshape(len(data), -1).astype(np.float32), data.labels


def standardize(features):
    return (features - features.mean(axis=0)) / np.sqrt(features.var(axis=0) + 0.01)


def objective(features, labels, c, weights, bias):
    """The sum over the classes, as LinearSVC defines it: the bias is regularised, too."""
    total = 0.0
    for number, its in enumerate(np.unique(labels)):
        missing = 1 - np.where(labels == its, 1, -1) * (features @ weights[number] + bias[number])
        loss = np.mean(np.maximum(missing, 0) ** 2)
        total += 0.5 * (weights[number] @ weights[number] + bias[number] ** 2) + c * loss
    return total


@pytest.mark.parametrize("c", [1.0, 30.0, 300.0])
def test_the_objective_is_that_of_scikit_learn(digits, c):
    features, labels = digits
    scaled = standardize(features.astype(np.float64))
    peer = LinearSVC(C=c / len(labels), loss="squared_hinge", dual=False, tol=1e-6, max_iter=5000)
    peer.fit(scaled, labels)
    best = objective(scaled, labels, c, peer.coef_, peer.intercept_)
    ours = train_svm(features, labels, c)
    assert ours.objective == pytest.approx(best, rel=1e-3)
    assert (ours.predict(features) == peer.predict(scaled)).mean() > 0.995


def test_it_needs_few_iterations(digits):
    assert train_svm(*digits, 30.0).iterations < 30


def test_blocks_change_nothing(digits, monkeypatch):
    features, labels = digits[0][:301], digits[1][:301]
    whole = train_svm(features, labels, 10.0)
    monkeypatch.setattr(module, "ROWS_AT_ONCE", 50)
    parts = train_svm(features, labels, 10.0)
    assert parts.objective == pytest.approx(whole.objective, rel=1e-5)


def test_moments_of_similar_rows_lead_to_the_same_classifier(digits):
    features, labels = digits
    moments = Moments(features[0])
    moments.add(features)
    half = len(features) // 2
    known = train_svm(features[:half], labels[:half], 10.0, moments=moments)
    own = train_svm(features[:half], labels[:half], 10.0)
    assert known.objective == pytest.approx(own.objective, rel=1e-4)


@pytest.mark.parametrize("rows_at_once", [2000, 7])
def test_moments_add_up_and_can_be_cut(digits, rows_at_once, monkeypatch):
    monkeypatch.setattr(module, "ROWS_AT_ONCE", rows_at_once)
    features = digits[0] + 1000  # far from 0
    moments = Moments(features[0])
    moments.add(features[:700])
    moments.add(features[700:])
    expected = np.cov(features.astype(np.float64), rowvar=False, bias=True)
    np.testing.assert_allclose(moments.covariance(), expected, rtol=1e-3, atol=0.3)
    part = moments.of(slice(5, 20))
    np.testing.assert_array_equal(part.covariance(), moments.covariance()[5:20, 5:20])
    np.testing.assert_array_equal(moments.covariance(), moments.covariance().T)


def test_features_that_nearly_repeat_are_no_problem():
    """Float32 has too few digits for the Cholesky factor of such features."""
    rng = np.random.default_rng(0)
    base = rng.normal(size=(200, 3))
    repeated = (np.tile(base, 40) + 1e-4 * rng.normal(size=(200, 120))).astype(np.float32)
    labels = (base[:, 0] > 0).astype(int)
    assert train_svm(repeated, labels, 1e7).accuracy(repeated, labels) == 1.0


def test_more_features_than_rows_and_constant_features():
    rng = np.random.default_rng(0)
    features = np.hstack([rng.normal(size=(20, 50)), np.ones((20, 1))]).astype(np.float32)
    labels = np.arange(20) % 2
    assert train_svm(features, labels, 100.0).accuracy(features, labels) == 1.0


def test_c_is_chosen_on_rows_that_were_not_trained_on():
    rng = np.random.default_rng(0)
    labels = rng.integers(2, size=400)
    signal = (2 * labels - 1)[:, None] * 0.3
    features = (signal + rng.normal(size=(400, 60))).astype(np.float32)
    moments = Moments(features[0])
    moments.add(features)
    c, scores = choose_c(features, labels, (0.1, 1e4), moments=moments)
    assert list(scores) == [0.1, 1e4]
    assert scores[c] == max(scores.values())
    held = train_svm(features[:360], labels[:360], c, tolerance=1e-3)
    assert scores[c] == pytest.approx(held.accuracy(features[360:], labels[360:]), abs=0.03)
    assert scores[1e4] < 1.0, "the training rows alone can be separated"
