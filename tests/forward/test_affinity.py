"""The digraph W against Eq. 4."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jule.forward import Neighbors, affinity_graph, nearest_neighbors
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


@pytest.mark.parametrize("a", [0.0, -1.0, float("nan")])
def test_a_must_be_positive(a):
    with pytest.raises(ValueError, match="a must be positive"):
        affinity_graph(nearest_neighbors([[0.0], [1.0]], 1), a)
