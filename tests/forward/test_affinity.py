"""The digraph W against Eq. 4, and its other weights against their equations."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jule.forward import Neighbors, affinity_graph, nearest_neighbors
from jule.forward.affinity import KERNELS, local_affinity_graph, transition_graph
from tests.oracles import neighbors as oracle


@given(seed=st.integers(0, 10**6), a=st.floats(0.1, 10.0))
@settings(max_examples=25, deadline=None)
def test_equation_4(seed, a):
    found = nearest_neighbors(np.random.default_rng(seed).standard_normal((20, 3)), 4)
    graph = affinity_graph(found, a)
    weights, sigma2 = oracle.weights(found.distances.tolist(), a)
    assert graph.sigma2 == pytest.approx(sigma2)
    np.testing.assert_allclose(graph.weights, weights)
    np.testing.assert_array_equal(graph.indices, found.indices)
    assert len(graph) == 20


def test_distances_of_zero_weigh_one():
    found = Neighbors(np.array([[1], [0]], np.int32), np.zeros((2, 1)))
    graph = affinity_graph(found)
    assert graph.sigma2 == 0.0
    assert graph.weights.tolist() == [[1.0], [1.0]]


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("a", [0.0, -1.0, float("nan")])
def test_a_must_be_positive(kernel, a):
    with pytest.raises(ValueError, match="a must be positive"):
        KERNELS[kernel](nearest_neighbors([[0.0], [1.0]], 1), a)


# A bandwidth per sample


@given(seed=st.integers(0, 10**6), k=st.integers(1, 7), a=st.floats(0.1, 10.0))
@settings(max_examples=25, deadline=None)
def test_local_weights(seed, k, a):
    found = nearest_neighbors(np.random.default_rng(seed).standard_normal((20, 3)), k)
    graph = local_affinity_graph(found, a)
    expected = np.array(oracle.local_weights(found.distances.tolist(), a))
    shared = np.sqrt(found.distances[:, max(k // 2, 1) - 1].min())
    np.testing.assert_allclose(graph.weights, shared * expected, rtol=1e-9)
    assert graph.weights.max() <= 1.0
    assert np.isnan(graph.sigma2)


@pytest.mark.parametrize("scale", [2.0**-500, 2.0**500])
def test_local_weights_do_not_depend_on_the_scale(scale):
    found = nearest_neighbors(np.random.default_rng(0).standard_normal((20, 3)), 4)
    scaled = Neighbors(found.indices, found.distances * scale)
    np.testing.assert_array_equal(
        local_affinity_graph(scaled).weights, local_affinity_graph(found).weights
    )


def test_local_weights_of_copies():
    # The first four are copies of one sample: their bandwidth would be 0.
    samples = np.array([[0.0], [0.0], [0.0], [0.0], [1.0], [1.5], [2.5]])
    weights = local_affinity_graph(nearest_neighbors(samples, 4)).weights
    assert np.isfinite(weights).all()
    assert weights[:4, :3].tolist() == [[1.0] * 3] * 4  # to the other copies
    assert weights[:4, 3].tolist() == [0.0] * 4
    assert (weights[4:] > 0).all()


def test_local_weights_where_all_neighbours_are_copies():
    found = Neighbors(np.array([[1], [0]], np.int32), np.zeros((2, 1)))
    assert local_affinity_graph(found).weights.tolist() == [[1.0], [1.0]]


# A random walk


@given(seed=st.integers(0, 10**6), a=st.floats(0.1, 10.0))
@settings(max_examples=25, deadline=None)
def test_transitions(seed, a):
    found = nearest_neighbors(np.random.default_rng(seed).standard_normal((20, 3)), 4)
    graph = transition_graph(found, a)
    expected, sigma2 = oracle.transitions(found.distances.tolist(), a)
    assert graph.sigma2 == pytest.approx(sigma2)
    np.testing.assert_allclose(graph.weights, expected)
    assert (graph.weights.sum(axis=1) < 1).all()  # the rest is the loop


def test_a_far_sample_widens_the_bandwidth():
    samples = np.concatenate([np.random.default_rng(0).normal(size=(1000, 2)), [[1e4, 0.0]]])
    found = nearest_neighbors(samples, 5)
    narrow, wide = affinity_graph(found), transition_graph(found)
    assert narrow.weights[-1, 0] < 1e-5
    doublings = np.log2(wide.sigma2 / narrow.sigma2)
    assert doublings > 0
    assert doublings == round(doublings)
    nearest = np.exp(-found.distances[-1, 0] / wide.sigma2)
    assert 1e-5 <= nearest < np.sqrt(1e-5)  # once less was not enough


def test_transitions_of_copies_are_uniform():
    found = Neighbors(np.array([[1, 2], [0, 2], [0, 1]], np.int32), np.zeros((3, 2)))
    graph = transition_graph(found)
    assert graph.sigma2 == 0.0
    np.testing.assert_allclose(graph.weights, 1 / 3)
