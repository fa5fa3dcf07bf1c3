"""Merging a few clusters with numpy: as the kernels do it, apart from rounding."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jule.forward import Digraph, affinity_graph, merge_clusters, nearest_neighbors
from jule.forward.agglomerate import _minimum_spanning_tree
from jule.forward.branches import _by_level, _by_node, _levels
from jule.forward.few import few_spanning_tree, merge_few
from tests.forward.test_tree import random_tree


@st.composite
def cases(draw):
    """A graph, some of whose edges may have no weight, clusters, and pairs to keep apart."""
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    n = draw(st.integers(2, 80))
    vectors = rng.normal(size=(n, draw(st.integers(1, 4))))
    graph = affinity_graph(nearest_neighbors(vectors, draw(st.integers(1, min(7, n - 1)))))
    gone = rng.random(graph.weights.shape) < draw(st.sampled_from([0.0, 0.4, 1.0]))
    graph = Digraph(graph.indices, np.where(gone, 0.0, graph.weights), graph.sigma2)
    labels = np.unique(rng.integers(0, draw(st.integers(1, n)), n), return_inverse=True)[1]
    pairs = rng.integers(0, n, (draw(st.integers(0, 10)), 2))
    return graph, labels, pairs[labels[pairs[:, 0]] != labels[pairs[:, 1]]]


@given(cases(), st.integers(1, 6), st.sampled_from([0.0, 0.5, 1.0]))
@settings(max_examples=150, deadline=None)
def test_the_merges_are_those_of_the_kernels(case, n_near, lam):
    graph, labels, apart = case
    options = {"n_near": n_near, "lam": lam, "apart": apart}
    merges, affinities = merge_few(graph, labels, **options)
    expected, expected_affinities = merge_clusters(graph, labels, **options)
    np.testing.assert_array_equal(merges, expected)
    np.testing.assert_allclose(affinities, expected_affinities, rtol=1e-10)


@pytest.mark.parametrize("n", [1, 2])
def test_one_cluster_and_no_edges(n):
    graph = Digraph(np.zeros((n, 0), np.int32), np.zeros((n, 0)), 1.0)
    merges, affinities = merge_few(graph, np.arange(n))
    assert (merges.shape, affinities.shape) == ((0, 2), (0,))


@given(st.integers(0, 10**6), st.integers(1, 30))
@settings(max_examples=50, deadline=None)
def test_the_spanning_tree_is_that_of_the_kernel(seed, n):
    points = np.random.default_rng(seed).normal(size=(n, 3))
    for found, expected in zip(
        few_spanning_tree(points), _minimum_spanning_tree(points), strict=True
    ):
        np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("chain", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("n_clusters", [1, 3])
def test_the_leaves_of_deep_and_flat_trees_are_arranged_alike(chain, n_clusters):
    for seed in range(20):
        tree = random_tree(seed, 40, chain, n_clusters)
        levels = _levels(tree)
        assert levels is not None
        for one, other in zip(_by_node(tree), _by_level(tree, levels), strict=True):
            np.testing.assert_array_equal(one, other)


def test_a_very_deep_tree_has_no_levels():
    assert _levels(random_tree(0, 1500, 1.0)) is None
