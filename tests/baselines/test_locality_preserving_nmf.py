"""NMF-LP: update rules against loops, the objective, edges, and scikit-learn's checks."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from sklearn.utils import check_random_state
from sklearn.utils.estimator_checks import parametrize_with_checks

from jule import load_dataset
from jule.baselines._factors import divide_by_mean_length, row_blocks, solve_gram, solve_shifted
from jule.baselines.locality_preserving_nmf import (
    LocalityPreservingNMF,
    Problem,
    inverse_similarities,
    neighbor_laplacian,
    start,
)
from jule.evaluation import ari, nmi


@parametrize_with_checks(
    [
        LocalityPreservingNMF(n_init=2, max_iter=20),
        LocalityPreservingNMF(preset="jule-paper", n_init=2, max_iter=20),
    ],
    expected_failed_checks=lambda _: {"check_clustering": "its samples have negative values"},
)
@pytest.mark.filterwarnings("ignore:.*found no more:UserWarning")
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def groups(seed=0, k=3, n=90, d=8):
    """Return k groups of samples, each of which has large values in features of its own."""
    rng = np.random.default_rng(seed)
    labels = np.arange(n) % k
    samples = rng.uniform(0, 1, (n, d))
    samples[np.arange(n), labels] += 4
    samples[np.arange(n), labels + k] += 3
    return samples, labels


def problem(seed=0, n=12, d=5, p=3, lam=0.0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    samples = rng.uniform(0, 1, (n, d)).astype(dtype)
    samples[rng.uniform(size=(n, d)) < 0.2] = 0
    weights = rng.uniform(0.5, 2, n).astype(dtype)
    laplacian = neighbor_laplacian(samples, 2) if lam > 0 else None
    factors = rng.uniform(0.1, 1, (n, p)).astype(dtype)
    parts = rng.uniform(0.1, 1, (d, p)).astype(dtype)
    return Problem(samples, weights, lam, laplacian), factors, parts


# The update rules


def naive_iteration(task, factors, parts):
    """Do one iteration by the formulas, an entry at a time."""
    n, d = task.samples.shape
    p = factors.shape[1]

    def ratio(factors, i, j):
        return task.samples[i, j] / max(1e-10, sum(factors[i, f] * parts[j, f] for f in range(p)))

    updated = np.zeros_like(factors)
    for f in range(p):
        column = sum(parts[j, f] for j in range(d))
        gain = np.array(
            [sum(ratio(factors, i, j) * parts[j, f] for j in range(d)) for i in range(n)]
        )
        if task.lam == 0:
            updated[:, f] = factors[:, f] * gain / column
        else:
            matrix = task.lam * task.laplacian.toarray() + np.diag(task.weights) * column
            updated[:, f] = np.linalg.inv(matrix) @ (task.weights * factors[:, f] * gain)
    new_parts = np.zeros_like(parts)
    for j in range(d):
        for f in range(p):
            above = sum(task.weights[i] * ratio(updated, i, j) * updated[i, f] for i in range(n))
            below = sum(task.weights[i] * updated[i, f] for i in range(n))
            new_parts[j, f] = parts[j, f] * above / below
    return updated, new_parts


@pytest.mark.parametrize("lam", [0.0, 0.3, 100.0])
@pytest.mark.parametrize("seed", range(3))
def test_an_iteration_follows_the_formulas(lam, seed):
    task, factors, parts = problem(seed, lam=lam)
    expected = naive_iteration(task, factors, parts)
    task.improve(factors, parts)
    np.testing.assert_allclose(factors, expected[0], rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(parts, expected[1], rtol=1e-3, atol=1e-5)


def test_blocks_make_no_difference():
    task, factors, parts = problem(n=100, d=4000)  # 3 blocks and a shorter one
    assert len(list(row_blocks(task.samples))) == 4
    ratios = task.samples / (factors @ parts.T)
    expected = factors * (ratios @ parts) / parts.sum(axis=0)
    ratios = task.samples / (expected @ parts.T)
    weighted = expected * task.weights[:, None]
    expected_parts = parts * (ratios.T @ weighted) / weighted.sum(axis=0)
    task.improve(factors, parts)
    np.testing.assert_allclose(factors, expected)
    np.testing.assert_allclose(parts, expected_parts)


def naive_objective(task, factors, parts):
    total = 0.0
    for i, row in enumerate(task.samples):
        for j, value in enumerate(row):
            approximation = factors[i] @ parts[j]
            total += task.weights[i] * (approximation - value)
            total += task.weights[i] * value * np.log(value / approximation) if value else 0
    if task.lam:
        graph = -task.laplacian.toarray()
        for i in range(len(factors)):
            for j in range(len(factors)):
                if i != j and graph[i, j]:
                    a, b = factors[i], factors[j]
                    both = (a * np.log(a / b) - a + b) + (b * np.log(b / a) - b + a)
                    total += task.lam / 2 * graph[i, j] * both.sum()
    return total


@pytest.mark.parametrize("lam", [0.0, 2.0])
def test_the_objective_differs_from_the_definition_by_a_constant(lam):
    task, factors, parts = problem(lam=lam)
    other = factors[::-1] * 1.3
    expected = naive_objective(task, other, parts) - naive_objective(task, factors, parts)
    assert task.objective(other, parts) - task.objective(factors, parts) == pytest.approx(expected)


@given(seed=st.integers(0, 2**32 - 1), p=st.integers(1, 9), d=st.integers(1, 7))
@settings(max_examples=30, deadline=None, derandomize=True)
def test_the_divergence_never_rises(seed, p, d):
    task, factors, parts = problem(seed, d=d, p=p)
    values = [task.objective(factors, parts)]
    for _ in range(20):
        task.improve(factors, parts)
        values.append(task.objective(factors, parts))
    assert (np.diff(values) <= 1e-9 * np.abs(values[0])).all()


def test_the_divergence_never_rises_in_float32():
    task, factors, parts = problem(n=200, d=30, p=6, dtype=np.float32)
    values = []
    for _ in range(30):
        task.improve(factors, parts)
        values.append(task.objective(factors, parts))
    assert factors.dtype == parts.dtype == np.float32
    assert (np.diff(values) <= 1e-6 * np.abs(values[0])).all()


@pytest.mark.parametrize("lam", [0.1, 10.0])
def test_the_penalised_objective_falls(lam):
    # The factors solve an approximation of the problem, so only the total fall is certain enough.
    task, factors, parts = problem(lam=lam, n=40)
    before = task.objective(factors, parts)
    for _ in range(30):
        task.improve(factors, parts)
    assert task.objective(factors, parts) < before


def test_a_large_penalty_makes_the_factors_of_a_component_equal():
    samples = np.array([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.1, 0.9]])
    task = Problem(samples, np.ones(4), 1e4, neighbor_laplacian(samples, 1))
    factors, parts = np.random.default_rng(0).uniform(0.1, 1, (2, 4, 2)).copy()
    parts = parts[:2]
    task.improve(factors, parts)
    np.testing.assert_allclose(factors[0], factors[1], rtol=1e-3)
    np.testing.assert_allclose(factors[2], factors[3], rtol=1e-3)
    assert not np.allclose(factors[0], factors[2], rtol=1e-2)


def test_the_graph_joins_neighbours_of_either_direction():
    samples = np.random.default_rng(0).uniform(size=(15, 3))
    expected = np.zeros((15, 15))
    for i in range(15):
        distances = ((samples - samples[i]) ** 2).sum(axis=1)
        for j in np.argsort(distances)[1:5]:
            expected[i, j] = expected[j, i] = 1
    expected = np.diag(expected.sum(axis=1)) - expected
    np.testing.assert_array_equal(neighbor_laplacian(samples, 4).toarray(), expected)


def test_weights_are_inverse_inner_products():
    samples = np.random.default_rng(0).uniform(size=(6, 4))
    expected = np.array([1 / sum(row @ other for other in samples) for row in samples])
    np.testing.assert_allclose(inverse_similarities(samples), expected / expected.mean())


# Parts


@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 12), p=st.integers(1, 12))
@settings(max_examples=50, deadline=None, derandomize=True)
def test_solve_gram_is_least_squares(seed, n, p):
    rng = np.random.default_rng(seed)
    factor, target = rng.normal(size=(n, p)), rng.normal(size=(n, 3))
    found = factor @ solve_gram(factor.T @ factor, factor.T @ target)
    expected = factor @ np.linalg.pinv(factor) @ target
    np.testing.assert_allclose(found, expected, atol=1e-3)


@pytest.mark.parametrize("factor", [np.zeros((4, 3)), np.ones((4, 3)), np.eye(4, 3) * 1e-12])
def test_solve_gram_of_dependent_columns_is_the_pseudo_inverse(factor):
    target = np.ones((4, 2))
    expected = np.linalg.pinv(factor) @ target
    found = solve_gram(factor.T @ factor, factor.T @ target)
    np.testing.assert_allclose(found, expected, rtol=1e-6)


@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 30), lam=st.floats(0, 1e4))
@settings(max_examples=50, deadline=None, derandomize=True)
def test_solve_shifted_is_the_dense_solution(seed, n, lam):
    rng = np.random.default_rng(seed)
    graph = np.triu(rng.uniform(size=(n, n)) < 0.2, 1).astype(float)
    graph += graph.T
    matrix = lam * (np.diag(graph.sum(axis=1)) - graph)
    shifts, right = rng.uniform(0.1, 2, (n, 4)), rng.uniform(0, 1, (n, 4))
    right[:, 0] = 0
    found = solve_shifted(csr_array(matrix), shifts, right, rng.uniform(size=(n, 4)))
    for f in range(4):
        expected = np.linalg.inv(matrix + np.diag(shifts[:, f])) @ right[:, f]
        residual = (matrix + np.diag(shifts[:, f])) @ (found[:, f] - expected)
        assert np.linalg.norm(residual) <= 1.01e-5 * np.linalg.norm(right[:, f]) + 1e-9


def test_start_is_centres_and_least_squares():
    samples, labels = groups()
    factors, parts = start(samples, samples, 3, check_random_state(0))
    centres = np.array([samples[labels == label].mean(axis=0) for label in range(3)])
    order = [int(np.argmin(((parts.T - centre) ** 2).sum(axis=1))) for centre in centres]
    np.testing.assert_allclose(parts.T[order], centres)
    expected = np.maximum(0, samples @ np.linalg.pinv(parts).T)
    np.testing.assert_allclose(factors, expected, atol=1e-9)


def test_mean_length_is_one_for_any_unit():
    samples = np.random.default_rng(0).uniform(size=(5, 3))
    scaled = divide_by_mean_length(samples * 1e250)
    assert np.linalg.norm(scaled, axis=1).mean() == pytest.approx(1)
    np.testing.assert_allclose(scaled, divide_by_mean_length(samples * 1e-250))


# The estimator


@pytest.mark.parametrize("preset", ["original", "jule-paper"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_finds_groups(preset, dtype):
    samples, labels = groups()
    model = LocalityPreservingNMF(3, preset=preset).fit(samples.astype(dtype))
    assert ari(labels, model.labels_) == 1.0


def test_real_digits():
    data = load_dataset("digits")
    samples = data.images.reshape(len(data), -1)
    plain = LocalityPreservingNMF(10, preset="jule-paper", n_init=3).fit_predict(samples)
    smooth = LocalityPreservingNMF(10, n_init=2, max_iter=30).fit_predict(samples)
    assert nmi(data.labels, plain) > 0.6
    assert nmi(data.labels, smooth) > 0.7


@pytest.mark.parametrize("scale", [1e-150, 1e-3, 1e150])
@pytest.mark.parametrize("lam", [0.0, 100.0])
def test_the_unit_makes_no_difference(scale, lam):
    samples, _ = groups(k=4)
    model = LocalityPreservingNMF(4, lam=lam, n_init=2, max_iter=20)
    np.testing.assert_array_equal(model.fit_predict(samples), model.fit_predict(samples * scale))


def test_the_same_seed_gives_the_same_clusters():
    samples = np.random.default_rng(0).uniform(size=(80, 6))
    first, second = (
        LocalityPreservingNMF(5, max_iter=20, random_state=3).fit(samples) for _ in range(2)
    )
    np.testing.assert_array_equal(first.labels_, second.labels_)


def test_the_order_of_the_samples_makes_no_difference():
    samples, labels = groups()
    order = np.random.default_rng(1).permutation(len(samples))
    assert (
        ari(labels[order], LocalityPreservingNMF(3, max_iter=50).fit_predict(samples[order])) == 1.0
    )


@pytest.mark.parametrize("preset", ["original", "jule-paper"])
def test_zero_samples_and_zero_features(preset):
    samples, labels = groups()
    samples[labels == 2] = 0
    samples[:, 7] = 0
    found = LocalityPreservingNMF(3, preset=preset, n_factors=2, max_iter=50).fit_predict(samples)
    assert len(set(found[labels == 2])) == 1
    assert nmi(labels, found) > 0.8


@pytest.mark.parametrize("lam", [0.0, 100.0])
@pytest.mark.parametrize(("n", "d", "n_factors"), [(6, 3, 20), (40, 2, 9), (5, 60, 4), (30, 1, 3)])
def test_more_factors_than_samples_or_features(lam, n, d, n_factors):
    samples = np.random.default_rng(0).uniform(size=(n, d))
    model = LocalityPreservingNMF(
        3, lam=lam, n_factors=n_factors, n_neighbors=2, n_init=2, max_iter=20
    ).fit(samples)
    assert model.n_clusters_ == 3


@pytest.mark.parametrize("k", [1, 2, 19, 20])
@pytest.mark.filterwarnings("ignore:.*found no more:UserWarning")
def test_any_number_of_clusters(k):
    samples = np.random.default_rng(0).uniform(size=(20, 4))
    model = LocalityPreservingNMF(k, n_init=2, max_iter=20).fit(samples)
    assert 1 <= model.n_clusters_ <= k
    assert k not in (1, 2, 20) or model.n_clusters_ == k


def test_two_samples():
    assert LocalityPreservingNMF(2).fit_predict([[0.0], [1.0]]).tolist() == [0, 1]


def test_disconnected_neighbours():
    samples = np.concatenate([np.eye(2)[[0]] + 0.01 * np.eye(2)[[i % 2]] * i for i in range(8)])
    samples = np.concatenate([samples, samples[:, ::-1]])
    assert (
        LocalityPreservingNMF(2, n_neighbors=3).fit_predict(samples).tolist() == [0] * 8 + [1] * 8
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"lam": -1}, "lam must be a number of 0 or more, got -1"),
        ({"lam": np.nan}, "lam must be"),
        ({"lam": "1"}, "lam must be"),
        ({"n_factors": 0}, "n_factors must be an integer of 1 or more, got 0"),
        ({"n_neighbors": 0}, "n_neighbors must be"),
        ({"n_init": 0}, "n_init must be"),
        ({"max_iter": 2.5}, "max_iter must be an integer"),
        ({"preset": "paper"}, "'original', 'jule-paper'"),
    ],
)
def test_bad_parameters(options, message):
    with pytest.raises(ValueError, match=message):
        LocalityPreservingNMF(2, **options).fit(np.eye(4))


def test_bad_samples():
    with pytest.raises(ValueError, match="Negative values"):
        LocalityPreservingNMF(2).fit(np.eye(4) - 0.5)
    with pytest.raises(ValueError, match="identical"):
        LocalityPreservingNMF(2).fit(np.ones((4, 2)))
