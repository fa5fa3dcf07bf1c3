"""The networks of the experiment on embeddings, and the gradient of t-SNE."""

import numpy as np
import pytest
import torch

from jule.images import load_dataset
from jule.paper.neighborhoods import nearest_neighbor_error
from jule.paper.reducers import (
    Fitting,
    apply_network,
    build_image_mapper,
    joint_similarities,
    train_autoencoder,
    train_parametric_tsne,
    tsne_gradient,
)


@pytest.fixture(scope="module")
def digits():
    data = load_dataset("digits")
    few = data.labels < 4
    return data.images[few].reshape(few.sum(), -1).astype(np.float32) / 255, data.labels[few]


def error(network, digits):
    positions, labels = apply_network(network, digits[0]), digits[1]
    return nearest_neighbor_error(positions[:400], labels[:400], positions[400:], labels[400:])


@pytest.mark.parametrize("train", [train_autoencoder, train_parametric_tsne])
def test_digits_are_told_apart_in_few_dimensions(train, digits):
    fitting = Fitting(epochs=4, batch_size=120, learning_rate=3e-3)
    seen = []
    network = train(digits[0], 3, fitting=fitting, seed=0, progress=seen.append)
    assert seen[-1] == 1.0
    assert seen == sorted(seen)
    assert error(network, digits) < 0.25  # at random it is 0.75


def slow_similarities(x, perplexity, k):
    """Return t-SNE's similarities, sample by sample, from the k nearest neighbours of each."""
    n = len(x)
    shares = np.zeros((n, n))
    for i in range(n):
        squared = ((x - x[i]) ** 2).sum(axis=1)
        low, high = -5.0, 5.0  # logarithms of precisions
        for _ in range(60):
            middle = (low + high) / 2
            weights = np.exp(-squared * np.exp(middle))
            weights[np.argsort(squared)[k + 1 :]] = 0
            weights[i] = 0
            shares[i] = weights / weights.sum()
            entropy = -sum(p * np.log(p) for p in shares[i] if p > 0)
            low, high = (middle, high) if entropy > np.log(perplexity) else (low, middle)
    return (shares + shares.T) / (2 * n)


@pytest.mark.parametrize(("perplexity", "k"), [(13.0, 39), (5.0, 15)])
def test_similarities_are_those_of_slow_loops(perplexity, k):
    x = np.random.default_rng(0).normal(size=(40, 5))
    similar = joint_similarities(torch.from_numpy(x), perplexity)
    np.testing.assert_allclose(similar, slow_similarities(x, perplexity, k), atol=1e-9)
    assert similar.sum().item() == pytest.approx(1.0)


def test_samples_that_are_far_apart_have_no_similarity():
    x = torch.from_numpy(np.random.default_rng(0).normal(size=(40, 5)))
    near = joint_similarities(torch.cat([x[:20], x[20:] + 100]), 5.0)
    assert near[:20, 20:].sum() < 1e-6
    assert (near.diagonal() == 0).all()


def test_copies_have_similarities_too():
    similar = joint_similarities(torch.zeros(9, 3), 2.0)
    assert similar.sum().item() == pytest.approx(1.0)
    assert torch.isfinite(similar).all()


def slow_divergence(x, similar, freedom):
    """Return the Kullback-Leibler divergence of t-SNE, pair by pair, without its constant."""
    pairs = [(i, j) for i in range(len(x)) for j in range(len(x)) if i != j]
    kernel = {
        (i, j): (1 + ((x[i] - x[j]) ** 2).sum() / freedom) ** (-(freedom + 1) / 2) for i, j in pairs
    }
    total = sum(kernel.values())
    return -sum(similar[pair] * torch.log(kernel[pair] / total) for pair in pairs)


@pytest.mark.parametrize("freedom", [1, 2, 9])
def test_the_gradient_is_that_of_the_divergence(freedom):
    rng = np.random.default_rng(freedom)
    x = torch.from_numpy(rng.normal(size=(7, 3))).requires_grad_()
    similar = joint_similarities(torch.from_numpy(rng.normal(size=(7, 4))), 2.0)
    slow_divergence(x, similar, freedom).backward()
    found = tsne_gradient(x.detach(), similar, freedom)
    np.testing.assert_allclose(found, x.grad, atol=1e-9)


def test_the_gradient_is_zero_where_both_agree():
    x = torch.from_numpy(np.random.default_rng(0).normal(size=(12, 2)))
    kernel = (1 / (1 + torch.cdist(x, x).square())).fill_diagonal_(0.0)
    np.testing.assert_allclose(tsne_gradient(x, kernel / kernel.sum(), 1), 0, atol=1e-12)


@pytest.mark.parametrize(("spread", "offset"), [(1e4, 0.0), (20.0, 500.0)])
def test_the_gradient_is_accurate_for_positions_that_are_far_away(spread, offset):
    """In float32, powers of the kernel would be rounded to 0, and large values lose digits."""
    rng = np.random.default_rng(0)
    similar = joint_similarities(torch.from_numpy(rng.normal(size=(50, 4))), 5.0)
    x = torch.from_numpy(spread * rng.normal(size=(50, 30)) + offset)
    exact = tsne_gradient(x, similar, 29)
    found = tsne_gradient(x.float(), similar.float(), 29)
    np.testing.assert_allclose(found, exact, atol=1e-3 * exact.abs().max().item())


def test_an_image_mapper_adds_to_the_principal_components():
    images = load_dataset("digits").images[:200]
    mapper = build_image_mapper(images, 3, 16, spread=5.0)
    plain = build_image_mapper(images, 3, 16)
    vectors = images.reshape(200, -1).astype(np.float64)
    centred = vectors - vectors.mean(axis=0)
    axes = np.linalg.svd(centred, full_matrices=False)[2][:3]
    components = centred @ axes.T
    components *= 5.0 / np.sqrt(components.var(axis=0, ddof=1).sum())
    added = apply_network(mapper, images) - apply_network(plain, images)
    for found, expected in zip(added.T, components.T, strict=True):  # signs are arbitrary
        np.testing.assert_allclose(found * np.sign(found @ expected), expected, atol=1e-3)
    trained = {name for name, weight in mapper.named_parameters() if weight.requires_grad}
    assert trained == {name for name, _ in plain.named_parameters()}
