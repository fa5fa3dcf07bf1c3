"""The loss of a map against the oracle, and what must not change it."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from jule.backward.map_loss import map_distances, neighbor_loss
from tests.oracles import loss as oracle


def some_positions(seed, n, dimensions=2):
    return torch.from_numpy(np.random.default_rng(seed).normal(0, 3, (n, dimensions)))


@given(seed=st.integers(0, 10**6), half=st.integers(1, 6), distinct=st.integers(4, 20))
@settings(max_examples=40, deadline=None, derandomize=True)
def test_neighbours_are_told_apart_as_by_the_oracle(seed, half, distinct):
    rng = np.random.default_rng(seed)
    first = rng.permutation(distinct)[:half]
    samples = np.concatenate([first, (first + 1) % distinct])  # some occur twice
    positions = some_positions(seed, distinct)[samples]
    found = neighbor_loss(map_distances(positions), torch.from_numpy(samples))
    assert found.item() == pytest.approx(oracle.neighbor_loss(positions.tolist(), samples.tolist()))


@pytest.mark.parametrize(("dimensions", "freedom"), [(1, 1), (2, 1), (3, 2), (10, 9)])
def test_distances_are_logarithms_of_the_kernel_of_tsne(dimensions, freedom):
    positions = some_positions(0, 5, dimensions)
    squared = np.array([[oracle.squared_distance(a, b) for b in positions] for a in positions])
    kernel = (1 + squared / freedom) ** (-(freedom + 1) / 2)
    np.testing.assert_allclose(map_distances(positions), -np.log(kernel), atol=1e-12)


def test_only_distances_matter():
    positions, samples = some_positions(1, 8), torch.arange(8)
    loss = neighbor_loss(map_distances(positions), samples).item()
    turn = torch.tensor([[0.6, -0.8], [0.8, 0.6]], dtype=torch.float64)
    turned = neighbor_loss(map_distances(positions @ turn + 5.0), samples).item()
    assert turned == pytest.approx(loss)


def test_neighbours_attract_and_others_repel():
    # Two pairs on a line: 0 with 2, 1 with 3.
    positions = torch.tensor([[0.0], [1.0], [0.5], [1.5]], requires_grad=True)
    neighbor_loss(map_distances(positions), torch.arange(4)).backward()
    # Downhill, the left pair moves to the left as a whole, and the right pair to the right.
    downhill = -positions.grad.ravel()
    assert downhill[[0, 2]].sum() < 0 < downhill[[1, 3]].sum()


def test_coinciding_positions_have_finite_gradients():
    positions = torch.zeros(6, 2, requires_grad=True)
    neighbor_loss(map_distances(positions), torch.arange(6)).backward()
    assert torch.isfinite(positions.grad).all()
