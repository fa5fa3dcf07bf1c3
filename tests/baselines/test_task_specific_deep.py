"""TSC-D: scikit-learn's own checks, each equation by plain loops, edges, and real digits."""

import math
import warnings

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.datasets import make_blobs
from sklearn.utils.estimator_checks import parametrize_with_checks

from jule import load_dataset
from jule.baselines._unrolled import (
    Network,
    encode,
    entropy_loss,
    entropy_of_mean,
    ista_step,
    laplacian,
    margin_loss,
    neighbor_weights,
    sparse_codes,
    unroll,
)
from jule.baselines.task_specific_deep import TaskSpecificDeepClustering
from jule.evaluation import ari, nmi
from jule.forward import prepare

SMALL = {"n_atoms": 8, "n_epochs": 2, "batch_size": 32}
seeds = st.integers(0, 2**32 - 1)


@parametrize_with_checks([TaskSpecificDeepClustering(**SMALL)])
def test_scikit_learn_checks(estimator, check):
    with warnings.catch_warnings():
        # Few samples, fewer clusters than asked for: worth a warning and no more.
        warnings.filterwarnings("ignore", message=".*found no more", category=UserWarning)
        check(estimator)


def blobs(n=200):
    return make_blobs(n, 3, centers=4, cluster_std=0.5, random_state=0)


# Equations


def soft_threshold(value, threshold):
    if value > threshold:
        return value - threshold
    if value < -threshold:
        return value + threshold
    return 0.0


def plain_step(samples, atoms, codes, weights, lam, alpha, n):
    """One step of ISTA, in the codes' own units: A - gradient / N, then the soft threshold."""
    n_samples, n_atoms = codes.shape
    out = np.zeros_like(codes)
    for i in range(n_samples):
        rest = [
            samples[i, f] - sum(codes[i, p] * atoms[p, f] for p in range(n_atoms))
            for f in range(samples.shape[1])
        ]
        for p in range(n_atoms):
            gradient = -sum(atoms[p, f] * rest[f] for f in range(samples.shape[1]))
            for j in range(n_samples):  # of alpha / 4 sum_ij w_ij |a_i - a_j|^2
                gradient += alpha * weights[i, j] * (codes[i, p] - codes[j, p])
            out[i, p] = soft_threshold(codes[i, p] - gradient / n, lam / n)
    return out


def random_problem(seed, n=6, d=4, p=5):
    rng = np.random.default_rng(seed)
    atoms = rng.normal(size=(p, d))
    atoms /= np.linalg.norm(atoms, axis=1, keepdims=True)
    weights = np.triu(rng.random((n, n)) * (rng.random((n, n)) < 0.5), 1)
    return rng.normal(size=(n, d)), atoms, sparse.csr_array(weights + weights.T)


@settings(max_examples=20, deadline=None, derandomize=True)
@given(seeds)
def test_the_untrained_network_takes_steps_of_ista(seed):
    samples, atoms, weights = random_problem(seed)
    lam, alpha = 0.1, 5.0
    network = unroll(atoms, weights, lam, alpha)
    n = alpha / network.smoothing
    plain = [np.zeros((6, 5))]
    for _ in range(3):
        plain.append(plain_step(samples, atoms, plain[-1], weights.toarray(), lam, alpha, n))
    found = encode(samples, laplacian(weights), network)
    assert len(found) == 3
    for codes, expected in zip(found, plain[1:], strict=True):
        np.testing.assert_allclose(codes / n, expected, atol=1e-6)


def plain_objective(samples, atoms, codes, weights, lam, alpha):
    total = 0.0
    for i in range(len(samples)):
        total += ((samples[i] - codes[i] @ atoms) ** 2).sum() / 2 + lam * np.abs(codes[i]).sum()
        for j in range(len(samples)):
            total += alpha / 4 * weights[i, j] * ((codes[i] - codes[j]) ** 2).sum()
    return total


@settings(max_examples=5, deadline=None, derandomize=True)
@given(seeds)
def test_sparse_codes_minimise_the_objective(seed):
    samples, atoms, weights = random_problem(seed)
    network = unroll(atoms, weights, 0.1, 5.0)
    codes = sparse_codes(samples, weights, network) * network.smoothing / 5.0
    problem = (samples, atoms, codes, weights.toarray(), 0.1, 5.0)
    least = plain_objective(*problem)
    rng = np.random.default_rng(seed)
    for size in (1e-1, 1e-2):
        moved = codes + size * rng.normal(size=codes.shape)
        assert plain_objective(samples, atoms, moved, *problem[3:]) > least - 1e-5
    for _ in range(200):  # plain ISTA gets no lower
        codes = encode_once(samples, codes, weights, network)
    assert plain_objective(samples, atoms, codes, *problem[3:]) > least - 1e-3 * (1 + least)


def encode_once(samples, codes, weights, network):
    n = 5.0 / network.smoothing
    smooth = network.smoothing * (laplacian(weights) @ (codes * n))
    drive = samples @ network.filters.T
    return ista_step(drive, codes * n, smooth, network.feedback, network.thresholds) / n


def test_arrays_and_tensors_have_the_same_codes():
    samples, atoms, weights = random_problem(0)
    network = unroll(atoms, weights, 0.1, 5.0)
    tensors = Network(
        *(torch.tensor(array) for array in network[:3]), None, None, network.smoothing
    )
    dense = torch.tensor(laplacian(weights).toarray())
    found = encode(torch.tensor(samples), dense, tensors)
    for tensor, array in zip(found, encode(samples, laplacian(weights), network), strict=True):
        np.testing.assert_allclose(tensor.numpy(), array, atol=1e-6)


@settings(max_examples=20, deadline=None, derandomize=True)
@given(seeds)
def test_losses_by_hand(seed):
    scores = np.random.default_rng(seed).normal(0, 3, size=(7, 4))
    entropies, hinges, mean = [], [], [0.0] * 4
    for row in scores:
        total = sum(math.exp(score) for score in row)
        shares = [math.exp(score) / total for score in row]
        entropies.append(-sum(share * math.log(share) for share in shares))
        mean = [a + share / 7 for a, share in zip(mean, shares, strict=True)]
        winner = max(range(4), key=lambda j: row[j])
        hinges.append(max(0.0, 1 + max(row[j] for j in range(4) if j != winner) - row[winner]))
    tensor = torch.tensor(scores)
    assert entropy_loss(tensor).item() == pytest.approx(np.mean(entropies))
    assert margin_loss(tensor).item() == pytest.approx(np.mean(hinges))
    expected = -sum(share * math.log(share) for share in mean)
    assert entropy_of_mean(tensor).item() == pytest.approx(expected)


def test_losses_of_certain_scores_have_finite_gradients():
    scores = torch.tensor([[1e4, 0.0], [1e4, 0.0]], requires_grad=True)
    (entropy_loss(scores) - entropy_of_mean(scores) + margin_loss(scores)).backward()
    assert torch.isfinite(scores.grad).all()


def test_laplacian_of_a_batch_is_that_of_its_part_of_the_graph():
    samples, _ = blobs(30)
    weights = neighbor_weights(samples, 5)
    rows = np.random.default_rng(0).permutation(30)[:12]
    found = laplacian(weights[rows][:, rows]).toarray()
    dense = weights.toarray()
    for a, i in enumerate(rows):
        for b, j in enumerate(rows):
            expected = -dense[i, j] if i != j else sum(dense[i, other] for other in rows)
            assert found[a, b] == pytest.approx(expected, abs=1e-6)


def test_graph_by_hand():
    samples = np.random.default_rng(0).normal(size=(15, 2))
    squared = ((samples[:, None] - samples[None]) ** 2).sum(axis=2)
    near = [[j for j in np.argsort(squared[i]) if j != i][:3] for i in range(15)]
    sigma2 = np.mean([squared[i, j] for i in range(15) for j in near[i]])
    weights = np.zeros((15, 15))
    for i in range(15):
        for j in near[i]:
            weights[i, j] = weights[j, i] = math.exp(-squared[i, j] / sigma2)
    degrees = weights.sum(axis=1)
    expected = weights / np.sqrt(degrees[:, None] * degrees[None])
    np.testing.assert_allclose(neighbor_weights(samples, 3).toarray(), expected, atol=1e-6)


# Clusters


@pytest.mark.parametrize("loss", ["entropy", "margin"])
@pytest.mark.parametrize("auxiliary", [0.0, 1.0])
def test_finds_blobs(loss, auxiliary):
    samples, labels = blobs()
    model = TaskSpecificDeepClustering(4, loss=loss, auxiliary=auxiliary, **SMALL)
    assert ari(labels, model.fit_predict(samples)) == 1.0


def test_real_digits():
    data = load_dataset("digits")
    samples, labels = prepare(data.images[:600], "l2"), data.labels[:600]
    model = TaskSpecificDeepClustering(10, n_atoms=32, n_epochs=2)
    assert nmi(labels, model.fit_predict(samples)) > 0.75
    assert model.n_clusters_ == 10


def test_training_changes_every_parameter():
    samples, _ = blobs()
    model = TaskSpecificDeepClustering(4, **SMALL)
    vectors = samples.astype(np.float32)
    weights = neighbor_weights(vectors, 5)
    rng = np.random.default_rng(0)
    start = unroll(rng.normal(size=(8, 3)).astype(np.float32), weights, 0.1, 5.0)._replace(
        scores=rng.normal(size=(4, 8)).astype(np.float32),
        coarse_scores=rng.normal(size=(2, 8)).astype(np.float32),
    )
    trained = model._train(start, vectors, weights, np.random.RandomState(0))
    for before, after in zip(start.trainable(), trained.trainable(), strict=True):
        assert before.shape == after.shape
        assert not np.array_equal(before, after)
    assert (trained.thresholds >= 0).all()
    assert trained.smoothing == start.smoothing


def train_on_alike_scores(balance):
    """Return how many clusters are left of samples whose scores favour one of them a little."""
    rng = np.random.default_rng(0)
    vectors = (rng.normal(size=(64, 3)) + 1).astype(np.float32)
    weights = neighbor_weights(vectors, 5)
    start = unroll(np.eye(3, dtype=np.float32), weights, 0.01, 0.0)._replace(
        scores=np.array([[0.5, 0.5, 0.5], [0, 0, 0]], np.float32),
        coarse_scores=np.zeros((2, 3), np.float32),
    )
    model = TaskSpecificDeepClustering(
        2, balance=balance, auxiliary=0.0, n_epochs=100, learning_rate=0.1, batch_size=64
    )
    trained = model._train(start, vectors, weights, np.random.RandomState(0))
    scores = encode(vectors, laplacian(weights), trained)[-1] @ trained.scores.T
    return np.bincount(scores.argmax(axis=1), minlength=2).min()


def test_balance_keeps_clusters_that_entropy_alone_empties():
    assert train_on_alike_scores(balance=2.0) > train_on_alike_scores(balance=0.0)


def test_twice_the_same_and_the_global_seeds_do_not_matter():
    samples, _ = make_blobs(100, 3, centers=4, cluster_std=3.0, random_state=0)
    first = TaskSpecificDeepClustering(4, random_state=5, **SMALL).fit_predict(samples)
    torch.manual_seed(1)
    state = torch.random.get_rng_state()
    second = TaskSpecificDeepClustering(4, random_state=5, **SMALL).fit_predict(samples)
    np.testing.assert_array_equal(first, second)
    assert torch.equal(state, torch.random.get_rng_state())


@pytest.mark.parametrize("scale", [1e-150, 1e150])
def test_scaled_samples_have_the_same_clusters(scale):
    samples, labels = blobs()
    model = TaskSpecificDeepClustering(4, **SMALL)
    assert ari(labels, model.fit_predict(samples * scale)) == 1.0


def test_float32():
    samples, labels = blobs()
    model = TaskSpecificDeepClustering(4, **SMALL)
    assert ari(labels, model.fit_predict(samples.astype(np.float32))) == 1.0


def test_more_features_than_samples():
    centres = np.random.default_rng(0).normal(size=(3, 200))
    labels = np.arange(60) % 3
    samples = centres[labels] + 0.1 * np.random.default_rng(1).normal(size=(60, 200))
    model = TaskSpecificDeepClustering(3, **SMALL)
    assert ari(labels, model.fit_predict(samples)) == 1.0


def test_separate_parts_of_the_graph():
    samples = np.concatenate([blobs(60)[0], blobs(60)[0] + 1000.0])
    labels = TaskSpecificDeepClustering(2, n_neighbors=3, **SMALL).fit_predict(samples)
    np.testing.assert_array_equal(labels, np.repeat([0, 1], 60))


@pytest.mark.filterwarnings("ignore:.*found no more")
@pytest.mark.parametrize("n_clusters", [1, 2, 29, 30])
def test_any_number_of_clusters(n_clusters):
    samples, _ = blobs(30)
    model = TaskSpecificDeepClustering(n_clusters, **SMALL).fit(samples)
    assert 1 <= model.n_clusters_ <= n_clusters
    if n_clusters in (1, 2, 30):
        assert model.n_clusters_ == n_clusters


def test_two_samples():
    model = TaskSpecificDeepClustering(2).fit([[0.0], [1.0]])
    assert model.labels_.tolist() == [0, 1]


def test_copies_share_a_cluster():
    samples, _ = blobs(40)
    labels = TaskSpecificDeepClustering(4, **SMALL).fit_predict(np.tile(samples, (2, 1)))
    np.testing.assert_array_equal(labels[:40], labels[40:])


def test_codes_that_are_all_zero_make_one_cluster():
    with pytest.warns(UserWarning, match="1 clusters instead of 4"):
        model = TaskSpecificDeepClustering(4, lam=100.0, **SMALL).fit(blobs()[0])
    assert model.n_clusters_ == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_atoms": 0}, "n_atoms must be an integer of 1 or more"),
        ({"batch_size": 0}, "batch_size must be an integer of 1 or more"),
        ({"n_neighbors": 0}, "n_neighbors must be an integer of 1 or more"),
        ({"n_epochs": -1}, "n_epochs must be an integer of 0 or more"),
        ({"lam": 0.0}, "lam must be positive"),
        ({"learning_rate": -1.0}, "learning_rate must be positive"),
        ({"alpha": -1.0}, "alpha must be a number of 0 or more"),
        ({"balance": math.nan}, "balance must be a number of 0 or more"),
        ({"auxiliary": -0.5}, "auxiliary must be a number of 0 or more"),
        ({"loss": "hinge"}, "unknown loss 'hinge': choose one of 'entropy', 'margin'"),
    ],
)
def test_bad_parameters(options, message):
    with pytest.raises(ValueError, match=message):
        TaskSpecificDeepClustering(4, **options).fit(blobs()[0])


def test_identical_samples():
    with pytest.raises(ValueError, match="identical"):
        TaskSpecificDeepClustering(2).fit(np.ones((30, 3)))
