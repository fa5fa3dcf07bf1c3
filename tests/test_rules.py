"""Rules for the confidence that `benchmarks.rules` compares with the one in use."""

import numpy as np
import pytest
from benchmarks.rules import branch_shares, thin

from jule.forward import affinity_graph, agglomerate, nearest_neighbors


@pytest.mark.parametrize("seed", range(5))
def test_branch_shares_are_minima_over_all_branches_of_a_sample(seed):
    n, k = 40, 4
    samples = np.random.default_rng(seed).normal(size=(n, 2))
    graph = affinity_graph(nearest_neighbors(samples, 5))
    tree = agglomerate(samples, n_neighbors=5)
    labels = tree.cut(k)
    w = np.zeros((n, n))
    for i in range(n):
        w[i, graph.indices[i]] = graph.weights[i]
    both = w + w.T
    branches = [{i} for i in range(n)]
    for left, right in tree.merges[: n - k]:
        branches.append(branches[left] | branches[right])
    expected = np.ones(n)
    for branch in map(sorted, branches):
        own = labels == labels[branch[0]]
        share = both[branch][:, own].sum() / both[branch].sum()
        expected[branch] = np.minimum(expected[branch], share)
    np.testing.assert_allclose(branch_shares(tree, graph, labels), expected)


def test_thinning_keeps_a_quarter_of_the_neighbours_nearest_first():
    samples = np.random.default_rng(0).normal(size=(50, 3))
    neighbors = nearest_neighbors(samples, 20)
    thinned = thin(neighbors, np.random.default_rng(1))
    assert thinned.k == 5
    assert (np.diff(thinned.distances, axis=1) >= 0).all()
    for some, every in zip(thinned.indices, neighbors.indices, strict=True):
        assert set(some) < set(every)
