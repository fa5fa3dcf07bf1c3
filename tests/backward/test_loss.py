"""The weighted triplet loss against the oracle, its gradients against finite differences."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional as F

from jule.backward import weighted_triplet_loss
from tests.oracles import loss as oracle

NO_TRIPLETS = {
    "no pair": [0, 1, 2],
    "no negative": [4, 4, 4],
    "one sample": [0],
    "no sample": [],
}


def unit_vectors(seed, n, dimensions=3, distinct=None):
    """Random directions; with `distinct` there are only so many, so that samples repeat."""
    rng = np.random.default_rng(seed)
    vectors = rng.standard_normal((distinct or n, dimensions))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return torch.from_numpy(vectors[rng.integers(distinct, size=n)] if distinct else vectors)


def seeded(seed):
    return torch.Generator().manual_seed(seed)


batches = {
    "seed": st.integers(0, 10**6),
    "labels": st.lists(st.integers(0, 4), min_size=1, max_size=12),
    "distinct": st.sampled_from([None, 1, 3]),
    "gamma": st.floats(0.1, 3.0),
    "margin": st.floats(0.0, 2.0),
}


# Values


@given(**batches, n_negatives=st.integers(1, 12))
@settings(max_examples=50, deadline=None, derandomize=True)
def test_nearest_negatives_are_those_of_the_oracle(
    seed, labels, distinct, gamma, margin, n_negatives
):
    x = unit_vectors(seed, len(labels), distinct=distinct)
    found = weighted_triplet_loss(
        x,
        torch.tensor(labels),
        gamma=gamma,
        margin=margin,
        negatives="nearest",
        n_negatives=n_negatives,
    )
    expected = oracle.triplet_loss(x.tolist(), labels, gamma, margin, n_negatives)
    assert found.item() == pytest.approx(expected, rel=1e-12, abs=1e-12)


@given(**batches)
@settings(max_examples=50, deadline=None, derandomize=True)
def test_as_many_random_negatives_as_there_are_means_all(seed, labels, distinct, gamma, margin):
    x = unit_vectors(seed, len(labels), distinct=distinct)
    found = weighted_triplet_loss(
        x,
        torch.tensor(labels),
        gamma=gamma,
        margin=margin,
        negatives="random",
        n_negatives=len(labels),
        generator=seeded(seed),
    )
    expected = oracle.triplet_loss(x.tolist(), labels, gamma, margin)
    assert found.item() == pytest.approx(expected, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize(
    ("gamma", "margin", "expected"),
    [
        (1.0, 0.2, (0.2 + 0.0 + 2.2 + 0.2) / 4),
        (2.0, 0.2, (2.2 + 0.2 + 4.2 + 2.2) / 4),
        (1.0, 0.0, (0.0 + 0.0 + 2.0 + 0.0) / 4),
        (1.0, 3.0, (3.0 + 1.0 + 5.0 + 3.0) / 4),
    ],
)
def test_four_triplets_by_hand(gamma, margin, expected):
    # The pair is at 2; the negatives are at 2 and 4 from its first sample, 0 and 2 from the other.
    x = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0], [-1.0, 0.0]])
    labels = torch.tensor([0, 0, 1, 2])
    for negatives in ("random", "nearest"):
        found = weighted_triplet_loss(x, labels, gamma=gamma, margin=margin, negatives=negatives)
        assert found.item() == pytest.approx(expected)


def test_only_the_nearest_negatives_count():
    x = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]])
    labels = torch.tensor([0, 0, 1, 1])
    one, two = (
        weighted_triplet_loss(
            x, labels, gamma=0.0, margin=4.0, negatives="nearest", n_negatives=n
        ).item()
        for n in (1, 2)
    )
    # From either sample of 0 the negatives are at 2 and 4, from those of 1 at 2, 2 and 4, 4.
    assert one == pytest.approx((2 + 2 + 2 + 0) / 4)
    assert two == pytest.approx((2 + 0 + 2 + 0 + 2 + 2 + 0 + 0) / 8)


def test_names_of_clusters_do_not_matter():
    x = unit_vectors(0, 6)
    one = weighted_triplet_loss(x, torch.tensor([0, 0, 1, 1, 2, 2]))
    two = weighted_triplet_loss(x, torch.tensor([7, 7, -3, -3, 10**9, 10**9]))
    assert one.item() == pytest.approx(two.item())


# Random negatives


@pytest.mark.parametrize("n_negatives", [1, 3, 5, 8, 20])
@pytest.mark.parametrize("seed", range(5))
def test_random_negatives_are_of_other_clusters(seed, n_negatives):
    # All of other clusters are at 4, so that any sample of the own one would raise the loss.
    labels = torch.tensor([0] * 8 + [1] * 2)
    x = torch.where(labels[:, None] == 0, 1.0, -1.0) * torch.tensor([[0.6, 0.8]])
    loss = weighted_triplet_loss(
        x,
        labels,
        gamma=0.0,
        margin=4.0,
        negatives="random",
        n_negatives=n_negatives,
        generator=seeded(seed),
    )
    assert loss.item() == pytest.approx(0.0, abs=1e-5)


def test_random_negatives_follow_the_generator():
    x, labels = unit_vectors(0, 30), torch.arange(30) % 6
    values = [
        weighted_triplet_loss(
            x, labels, negatives="random", n_negatives=3, generator=seeded(seed)
        ).item()
        for seed in (1, 1, 2)
    ]
    assert values[0] == values[1] != values[2]


def test_random_negatives_take_all_on_average():
    labels = torch.arange(12) % 3
    x = unit_vectors(0, 12)
    values = [
        weighted_triplet_loss(
            x, labels, negatives="random", n_negatives=2, generator=seeded(seed)
        ).item()
        for seed in range(200)
    ]
    every = oracle.triplet_loss(x.tolist(), labels.tolist(), 1.0, 0.2)
    assert np.mean(values) == pytest.approx(every, abs=4 * np.std(values) / np.sqrt(200))


# Gradients


def numeric_gradient(value, x, step=1e-6):
    gradient = np.zeros_like(x)
    for place in np.ndindex(*x.shape):
        change = np.zeros_like(x)
        change[place] = step
        gradient[place] = (value(x + change) - value(x - change)) / (2 * step)
    return gradient


@pytest.mark.parametrize("n_negatives", [1, 3, 20])
@pytest.mark.parametrize("seed", range(3))
def test_gradients_are_those_of_the_oracle(seed, n_negatives):
    labels = [0, 0, 0, 1, 1, 2, 2, 3]
    raw = np.random.default_rng(seed).standard_normal((len(labels), 3))

    def value(x):
        unit = x / np.linalg.norm(x, axis=1, keepdims=True)
        return oracle.triplet_loss(unit.tolist(), labels, 1.5, 0.5, n_negatives)

    x = torch.from_numpy(raw).requires_grad_()
    weighted_triplet_loss(
        F.normalize(x),
        torch.tensor(labels),
        gamma=1.5,
        margin=0.5,
        negatives="nearest",
        n_negatives=n_negatives,
    ).backward()
    assert x.grad.abs().max() > 0.01
    np.testing.assert_allclose(x.grad.numpy(), numeric_gradient(value, raw), atol=1e-7)


@pytest.mark.parametrize("negatives", ["random", "nearest"])
@pytest.mark.parametrize("labels", NO_TRIPLETS.values(), ids=NO_TRIPLETS)
def test_without_triplets_loss_and_gradient_are_zero(labels, negatives):
    x = unit_vectors(0, max(1, len(labels)))[: len(labels)].requires_grad_()
    loss = weighted_triplet_loss(x, torch.tensor(labels, dtype=torch.int64), negatives=negatives)
    loss.backward()
    assert loss.item() == 0.0
    assert x.grad.tolist() == torch.zeros_like(x).tolist()


def test_no_negatives_asked_is_zero():
    assert weighted_triplet_loss(unit_vectors(0, 3), torch.tensor([0, 0, 1]), n_negatives=0) == 0


@pytest.mark.parametrize("negatives", ["random", "nearest"])
@pytest.mark.parametrize("vector", [[0.6, 0.8], [0.0, 0.0]])
def test_equal_samples_give_the_margin_and_finite_gradients(vector, negatives):
    x = torch.tensor([vector] * 6).requires_grad_()
    loss = weighted_triplet_loss(F.normalize(x), torch.arange(6) % 2, negatives=negatives)
    loss.backward()
    assert loss.item() == pytest.approx(0.2)
    assert x.grad.isfinite().all()


@given(seed=st.integers(0, 10**6), negatives=st.sampled_from(["random", "nearest"]))
@settings(max_examples=20, deadline=None, derandomize=True)
def test_duplicates_never_give_nan(seed, negatives):
    x = unit_vectors(seed, 12, distinct=3).float().requires_grad_()
    labels = torch.from_numpy(np.random.default_rng(seed).integers(3, size=12))
    loss = weighted_triplet_loss(
        x, labels, negatives=negatives, n_negatives=4, generator=seeded(seed)
    )
    loss.backward()
    assert loss.item() >= 0.0
    assert x.grad.isfinite().all()


def test_unknown_negatives_are_rejected():
    with pytest.raises(ValueError, match="unknown negatives 'hardest': choose one of random, near"):
        weighted_triplet_loss(unit_vectors(0, 3), torch.tensor([0, 0, 1]), negatives="hardest")


@pytest.mark.parametrize("negatives", ["nearest", "random"])
def test_samples_that_are_kept_apart_are_negatives_before_all_others(negatives):
    angles = torch.tensor([0.0, 0.1, 0.2, 0.3, 3.0])
    x = torch.stack([angles.cos(), angles.sin()], dim=1)
    labels = torch.tensor([0, 0, 1, 1, 2])
    apart = torch.zeros(5, 5, dtype=torch.bool)
    apart[0, 4] = apart[4, 0] = apart[0, 1] = True  # the last one is of one cluster: no negative
    found = weighted_triplet_loss(
        x, labels, margin=5.0, negatives=negatives, n_negatives=1, apart=apart,
        generator=torch.Generator().manual_seed(0),
    )  # fmt: skip
    distance = ((x[:, None] - x[None]) ** 2).sum(dim=2)
    terms = distance[0, 1] - distance[0, 4] + 5.0
    others = [(1, 0), (2, 3), (3, 2)]
    possible = [
        [distance[i, j] - distance[i, k] + 5.0 for k in range(5) if labels[k] != labels[i]]
        for i, j in others
    ]
    least = (terms + sum(min(one) for one in possible)) / 4
    most = (terms + sum(max(one) for one in possible)) / 4
    assert least - 1e-5 <= found <= most + 1e-5
