"""The networks of the experiment on embeddings, and the loss of t-SNE."""

import numpy as np
import pytest
import torch

from jule.images import load_dataset
from jule.paper.neighborhoods import nearest_neighbor_error
from jule.paper.reducers import (
    Fitting,
    apply_network,
    joint_similarities,
    train_autoencoder,
    train_parametric_tsne,
    tsne_loss,
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


def test_similarities_have_the_perplexity_that_was_asked_for():
    x = torch.from_numpy(np.random.default_rng(0).normal(size=(40, 5))).double()
    similar = joint_similarities(x, 10.0)
    assert similar.sum().item() == pytest.approx(1.0)
    np.testing.assert_allclose(similar, similar.T)
    assert (similar.diagonal() == 0).all()
    # Undo the averaging for two groups far apart: then all similarities are within groups.
    near = joint_similarities(torch.cat([x[:20], x[20:] + 100]), 5.0)
    assert near[:20, 20:].sum() < 1e-6


def test_the_divergence_is_least_where_both_agree():
    x = torch.from_numpy(np.random.default_rng(0).normal(size=(12, 2)))
    norms = torch.cdist(x, x).square()
    kernel = (1 / (1 + norms)).fill_diagonal_(0.0)
    similar = kernel / kernel.sum()
    entropy = -(similar * similar.clamp_min(1e-300).log()).sum()
    assert tsne_loss(x, similar, 1).item() == pytest.approx(entropy.item())
    for scale in (0.5, 2.0):
        assert tsne_loss(scale * x, similar, 1) > entropy


@pytest.mark.parametrize("freedom", [1, 9])
def test_the_kernel_has_its_degrees_of_freedom(freedom):
    x = torch.tensor([[0.0], [1.0], [3.0]], dtype=torch.float64)
    similar = torch.full((3, 3), 1 / 6, dtype=torch.float64).fill_diagonal_(0.0)
    pairs = [(0, 1), (0, 2), (1, 2)]
    kernel = {
        pair: (1 + (x[pair[0]] - x[pair[1]]).item() ** 2 / freedom) ** (-(freedom + 1) / 2)
        for pair in pairs
    }
    total = 2 * sum(kernel.values())
    expected = -sum(2 / 6 * np.log(kernel[pair] / total) for pair in pairs)
    assert tsne_loss(x, similar, freedom).item() == pytest.approx(expected)
