"""NMF-D: update rules against loops, the error, edges, and scikit-learn's checks."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import make_blobs
from sklearn.utils import check_random_state
from sklearn.utils.estimator_checks import parametrize_with_checks

from jule import load_dataset
from jule.baselines._factors import rotate_to_fewer
from jule.baselines.deep_semi_nmf import (
    DeepSemiNMF,
    fine_tune,
    nndsvd,
    shifted_svd,
    squared_error,
    train_relu,
    update_factors,
    update_weights,
)
from jule.evaluation import ari, nmi


@parametrize_with_checks(
    [
        DeepSemiNMF(layers=(20, 10), max_iter=30),
        DeepSemiNMF(nonlinearity="relu", layers=(20, 10), max_iter=30),
    ]
)
@pytest.mark.filterwarnings("ignore:.*found no more:UserWarning")
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def blobs(seed=0, k=4, n=120, d=10):
    return make_blobs(n, d, centers=k, cluster_std=0.5, random_state=seed)


# The linear model


def random_layers(seed, n=15, sizes=(6, 4, 3)):
    """Return samples, weights Z_1 ... Z_m and factors H; `sizes` starts with the features."""
    rng = np.random.default_rng(seed)
    weights = [rng.normal(size=pair) for pair in pairwise(sizes)]
    return rng.normal(size=(n, sizes[0])), weights, rng.uniform(0.1, 1, (n, sizes[-1]))


@pytest.mark.parametrize("sizes", [(6, 3), (6, 4, 3), (8, 3, 3), (8, 3, 4, 5)])
def test_weights_are_the_pseudo_inverse_solutions_in_turn(sizes):
    samples, weights, factors = random_layers(0, sizes=sizes)
    expected = list(weights)
    for i in range(len(expected)):
        before = np.eye(sizes[0])
        for weight in expected[:i]:
            before = before @ weight
        after = factors.T
        for weight in expected[:i:-1]:
            after = weight @ after
        expected[i] = np.linalg.pinv(before) @ samples.T @ np.linalg.pinv(after)
    updated, product = update_weights(samples.T @ factors, factors.T @ factors, weights)
    for weight, reference in zip(updated, expected, strict=True):
        np.testing.assert_allclose(weight, reference, rtol=1e-3, atol=1e-5)
    reference = np.linalg.multi_dot([np.eye(sizes[0]), *expected])
    np.testing.assert_allclose(product, reference, rtol=1e-3, atol=1e-5)


def naive_factors(samples, weight, factors):
    """Apply the multiplicative rule an entry at a time."""
    updated = np.zeros_like(factors)
    gram = weight.T @ weight
    for i in range(len(factors)):
        for f in range(factors.shape[1]):
            value = samples[i] @ weight[:, f]
            above, below = max(value, 0), max(-value, 0)
            for g in range(factors.shape[1]):
                above += max(-gram[g, f], 0) * factors[i, g]
                below += max(gram[g, f], 0) * factors[i, g]
            updated[i, f] = factors[i, f] * np.sqrt(above / (below + 1e-10))
    return updated


@pytest.mark.parametrize("seed", range(3))
def test_factors_follow_the_rule(seed):
    samples, (weight,), factors = random_layers(seed, sizes=(6, 3))
    expected = naive_factors(samples, weight, factors)
    update_factors(factors, samples @ weight, weight.T @ weight)
    np.testing.assert_allclose(factors, expected)


@given(
    seed=st.integers(0, 2**32 - 1),
    sizes=st.lists(st.integers(1, 8), min_size=2, max_size=4),
    n=st.integers(2, 12),
)
@settings(max_examples=40, deadline=None, derandomize=True)
def test_the_error_never_rises(seed, sizes, n):
    samples, weights, factors = random_layers(seed, n, tuple(sizes))
    errors = []
    for _ in range(10):
        weights, product = update_weights(samples.T @ factors, factors.T @ factors, weights)
        errors.append(squared_error(samples, factors, product))
        update_factors(factors, samples @ product, product.T @ product)
        errors.append(squared_error(samples, factors, product))
    assert (factors >= 0).all()
    # The ridge of the least squares solutions costs a little where columns are dependent.
    assert (np.diff(errors) <= 1e-6 * (samples**2).sum()).all()


def test_the_error_is_the_sum_of_squares():
    samples, (weight,), factors = random_layers(0, n=50, sizes=(9000, 3))
    expected = ((samples - factors @ weight.T) ** 2).sum()
    assert squared_error(samples, factors, weight) == pytest.approx(expected)


def test_iterations_stop_once_the_error_hardly_falls():
    samples, _, factors = random_layers(0, sizes=(6, 3))
    assert fine_tune(samples, [], factors.copy(), 500, 1e-2)[1] < 100
    assert fine_tune(samples, [], factors.copy(), 33, 0.0)[1] == 33


def naive_nndsvd(samples, n_factors):
    left, values, right = np.linalg.svd(samples)
    factors = np.zeros((len(samples), n_factors))
    for f in range(n_factors):
        best = 0
        for sign in (1, -1):
            u, v = np.maximum(sign * left[:, f], 0), np.maximum(sign * right[f], 0)
            size = np.linalg.norm(u) * np.linalg.norm(v)
            if size > best:
                best = size
                factors[:, f] = np.sqrt(values[f] * size) * u / np.linalg.norm(u)
    factors[factors < 1e-10] = 0.1
    return factors


def test_the_start_is_nndsvd():
    samples = np.random.default_rng(0).uniform(size=(20, 12)) ** 3
    found = nndsvd(samples, 5, check_random_state(0))
    np.testing.assert_allclose(found, naive_nndsvd(samples, 5), atol=1e-6)


def test_factors_beyond_the_rank_start_different():
    found = nndsvd(np.random.default_rng(0).uniform(size=(20, 3)), 6, check_random_state(0))
    assert (found > 0).all()
    assert np.linalg.matrix_rank(found) == 6


def test_rotation_keeps_inner_products():
    samples = np.random.default_rng(0).normal(size=(5, 40))
    rotated = rotate_to_fewer(samples)
    assert rotated.shape == (5, 5)
    np.testing.assert_allclose(rotated @ rotated.T, samples @ samples.T)
    assert rotate_to_fewer(samples.T) is not None
    np.testing.assert_array_equal(rotate_to_fewer(samples.T), samples.T)


# The model with relu


@pytest.mark.parametrize(("n", "d", "p"), [(20, 12, 5), (20, 12, 2), (6, 30, 4)])
def test_the_shifted_svd_is_an_svd_with_factors_that_are_not_negative(n, d, p):
    samples = np.random.default_rng(0).normal(size=(n, d))
    factors, weights = shifted_svd(samples, p, check_random_state(0))
    left, values, right = np.linalg.svd(samples, full_matrices=False)
    expected = (left[:, : p - 1] * values[: p - 1]) @ right[: p - 1]
    assert factors.shape == (n, p)
    assert (factors >= 0).all()
    assert (factors.min(axis=1) == 0).all()
    np.testing.assert_allclose(factors @ weights.T, expected, atol=1e-6)


def test_training_follows_adam_on_the_squared_error():
    """Two steps of Adam, with the gradient from differences of the error."""
    samples = np.random.default_rng(0).normal(size=(5, 4))
    rng = check_random_state(0)
    inner, first = shifted_svd(samples, 4, rng)
    factors, second = shifted_svd(inner, 3, rng)
    values = np.concatenate([first.ravel(), second.ravel(), factors.ravel()])

    def error(values):
        first, second, factors = np.split(values, [16, 28])
        inner = np.maximum(factors.reshape(5, 3), 0) @ second.reshape(4, 3).T
        return ((samples - np.maximum(inner, 0) @ first.reshape(4, 4).T) ** 2).sum()

    mean, square = np.zeros_like(values), np.zeros_like(values)
    for step in (1, 2):
        tiny = 1e-7 * np.eye(len(values))
        gradient = np.array([(error(values + t) - error(values - t)) / 2e-7 for t in tiny])
        mean, square = 0.9 * mean + 0.1 * gradient, 0.999 * square + 0.001 * gradient**2
        slope = (mean / (1 - 0.9**step)) / (np.sqrt(square / (1 - 0.999**step)) + 1e-8)
        values = values - 1e-3 * slope
    found = train_relu(samples, (4, 3), 2, check_random_state(0))
    np.testing.assert_allclose(found, np.maximum(values[28:], 0).reshape(5, 3), atol=1e-5)


# The estimator


@pytest.mark.parametrize("nonlinearity", ["linear", "relu"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_finds_blobs(nonlinearity, dtype):
    samples, labels = blobs()
    model = DeepSemiNMF(4, nonlinearity=nonlinearity, layers=(8, 5), max_iter=200)
    assert nmi(labels, model.fit_predict(samples.astype(dtype))) > 0.9


def test_more_factors_than_needed_do_no_harm():
    samples, labels = blobs()
    model = DeepSemiNMF(4, max_iter=30).fit(samples)
    assert nmi(labels, model.labels_) > 0.9


@pytest.mark.parametrize("nonlinearity", ["linear", "relu"])
def test_real_digits(nonlinearity):
    data = load_dataset("digits")
    samples = data.images.reshape(len(data), -1)
    model = DeepSemiNMF(10, nonlinearity=nonlinearity, layers=(60, 10), max_iter=50)
    assert nmi(data.labels, model.fit_predict(samples)) > 0.4


@pytest.mark.parametrize("nonlinearity", ["linear", "relu"])
@pytest.mark.parametrize("scale", [2.0**-500, 0.5, 2.0**500])
def test_the_unit_makes_no_difference(nonlinearity, scale):
    samples, _ = blobs()
    model = DeepSemiNMF(4, layers=(8, 5), nonlinearity=nonlinearity, max_iter=20)
    expected = model.fit_predict(samples)
    assert ari(expected, model.fit_predict(samples * scale)) == 1.0


@pytest.mark.parametrize("nonlinearity", ["linear", "relu"])
def test_the_same_seed_gives_the_same_clusters(nonlinearity):
    samples = np.random.default_rng(0).normal(size=(60, 8))
    model = DeepSemiNMF(5, layers=(6, 4), nonlinearity=nonlinearity, max_iter=20, random_state=2)
    np.testing.assert_array_equal(model.fit_predict(samples), model.fit_predict(samples))


@pytest.mark.parametrize("nonlinearity", ["linear", "relu"])
@pytest.mark.parametrize(
    ("n", "d", "layers"), [(6, 3, (20, 9)), (40, 2, (9,)), (5, 60, (4, 8)), (30, 1, (3, 3, 2))]
)
@pytest.mark.filterwarnings("ignore:.*found no more:UserWarning")
def test_more_factors_than_samples_or_features(nonlinearity, n, d, layers):
    samples = np.random.default_rng(0).normal(size=(n, d))
    model = DeepSemiNMF(3, layers=layers, nonlinearity=nonlinearity, max_iter=20).fit(samples)
    assert 2 <= model.n_clusters_ <= 3


@pytest.mark.parametrize("nonlinearity", ["linear", "relu"])
def test_zero_samples_and_zero_features(nonlinearity):
    samples, labels = blobs()
    samples[labels == 2] = 0
    samples[:, 7] = 0
    model = DeepSemiNMF(4, layers=(8, 5), nonlinearity=nonlinearity, max_iter=50)
    assert len(set(model.fit_predict(samples)[labels == 2])) == 1


@pytest.mark.parametrize("k", [1, 2, 19, 20])
def test_any_number_of_clusters(k):
    samples = np.random.default_rng(0).normal(size=(20, 4))
    model = DeepSemiNMF(k, layers=(4, 3), nonlinearity="linear", max_iter=20).fit(samples)
    assert model.n_clusters_ == k


def test_two_samples():
    assert DeepSemiNMF(2).fit_predict([[0.0], [1.0]]).tolist() == [0, 1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"layers": ()}, "layers must be a sequence"),
        ({"layers": 5}, "layers must be a sequence"),
        ({"layers": (5, 1)}, "every number in layers must be an integer of 2 or more, got 1"),
        ({"layers": (5, 2.5)}, "every number in layers must be an integer"),
        ({"max_iter": 0}, "max_iter must be an integer of 1 or more, got 0"),
        ({"tol": -1.0}, "tol must be a number of 0 or more"),
        ({"nonlinearity": "tanh"}, "unknown nonlinearity 'tanh': choose one of 'linear', 'relu'"),
    ],
)
def test_bad_parameters(options, message):
    with pytest.raises(ValueError, match=message):
        DeepSemiNMF(2, **options).fit(np.eye(4))


def test_identical_samples():
    with pytest.raises(ValueError, match="identical"):
        DeepSemiNMF(2).fit(np.ones((4, 2)))
