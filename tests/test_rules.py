"""Rules for the confidence that `benchmarks.rules` compares with the one in use."""

import numpy as np
import pytest
from benchmarks.rules import branch_shares, colour_shares, fitted_here, thin

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


def test_images_of_one_colour_are_neighbours_by_colour():
    images = np.zeros((60, 2, 2, 3), np.uint8)
    images[30:, ..., 2] = 255
    images[:, 0, 0, 0] = np.tile(np.arange(30), 2)  # all different, of the same coarse colour
    labels = np.repeat([0, 1], 30)
    np.testing.assert_allclose(colour_shares(images, labels), 1.0)
    assert colour_shares(images, np.tile([0, 1], 30)).mean() == pytest.approx(0.5, abs=0.2)


def test_a_rule_fitted_with_labels_finds_what_a_part_knows():
    rng = np.random.default_rng(0)
    is_right = rng.random(200) < 0.5
    part, noise = is_right + 0.3 * rng.normal(size=200), rng.random(200)
    found = fitted_here([part, noise], rng.integers(0, 4, 200), is_right)
    assert found[is_right].mean() > 0.8 > 0.2 > found[~is_right].mean()
