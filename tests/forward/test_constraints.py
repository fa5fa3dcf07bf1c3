"""Clusters that are kept apart: the kernels against plain loops, and cuts that obey."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from jule.forward import affinity_graph, merge_clusters, nearest_neighbors
from jule.forward.agglomerate import grow_tree
from jule.forward.constraints import Constraints, ContradictionError, allowed_joins
from jule.forward.restrict import join_copies_first, tree_through_labels
from jule.forward.tree import MergeTree, clusters_as_nodes
from tests.forward.test_linkage import CRITERIA, both_ways, random_graph, random_initial


def random_pairs(seed, initial, count):
    """Pairs of samples of different initial clusters."""
    rng = np.random.default_rng(seed)
    pairs = rng.integers(len(initial), size=(count, 2))
    return pairs[initial[pairs[:, 0]] != initial[pairs[:, 1]]]


case = {
    "seed": st.integers(0, 10**6),
    "n": st.integers(3, 40),
    "k": st.integers(1, 6),
    "share": st.floats(0.1, 1.0),
    "groups": st.integers(1, 5),
    "count": st.integers(1, 30),
}


@pytest.mark.parametrize("linkage", ["degree", "additive"])
@pytest.mark.parametrize(("n_near", "lam"), CRITERIA)
@given(**case)
@settings(max_examples=30, deadline=None)
def test_merges_are_those_of_plain_loops(n_near, lam, linkage, seed, n, k, share, groups, count):
    graph = random_graph(seed, n, min(k, n - 1), dyadic=True, groups=groups)
    initial = random_initial(seed, n, max(1, int(share * n)))
    apart = random_pairs(seed, initial, count)
    found, affinities, expected, values = both_ways(
        graph, initial, n_near, lam, linkage=linkage, apart=apart
    )
    assert found == expected
    np.testing.assert_array_equal(affinities, values)


def constrained_tree(seed, n, count, n_must=0):
    """Samples, constraints that can be obeyed, and the tree of merging under them."""
    rng = np.random.default_rng(seed)
    samples = rng.normal(size=(n, 2))
    neighbors = nearest_neighbors(samples, min(5, n - 1))
    graph = affinity_graph(neighbors)
    truth = rng.integers(4, size=n)  # constraints that follow a clustering never contradict it
    pairs = rng.integers(n, size=(count + n_must, 2))
    same = truth[pairs[:, 0]] == truth[pairs[:, 1]]
    constraints = Constraints.of(n, pairs[same][:n_must], pairs[~same][:count])
    initial = constraints.initial(np.arange(n, dtype=np.int32) // 3)
    merges, affinities = merge_clusters(graph, initial, apart=constraints.apart)
    n_joins = int(initial.max()) - len(merges)
    tree = grow_tree(samples, neighbors, initial, merges, affinities, n_joins, constraints.apart)
    tree = join_copies_first(tree, constraints.units)
    return samples, graph, constraints, tree


@given(
    st.integers(0, 10**6), st.integers(4, 60), st.integers(0, 25), st.integers(0, 15),
    st.integers(1, 12), st.integers(1, 9),
)  # fmt: skip
@example(329433, 11, 14, 15, 4, 2)  # where there are too few clusters of this size
@settings(max_examples=150, deadline=None)
def test_no_cut_breaks_a_constraint(seed, n, count, n_must, k, size):
    _, _, constraints, tree = constrained_tree(seed, n, count, n_must)
    assert not constraints.broken_by(tree.cut(tree.fewest)).any()
    k = min(k, tree.n_different)
    labels = tree.cut(k, size)
    assert not constraints.broken_by(labels).any()
    assert labels.max() + 1 == max(k, tree.fewest)
    assert len(clusters_as_nodes(tree, k, size)) == labels.max() + 1
    again = MergeTree.from_bytes(tree.to_bytes())
    np.testing.assert_array_equal(again.cut(k, size), labels)


@given(st.integers(0, 10**6), st.integers(8, 50), st.integers(1, 25), st.integers(1, 8))
@settings(max_examples=60, deadline=None)
def test_a_tree_through_labels_keeps_the_constraints(seed, n, count, k):
    samples, graph, constraints, tree = constrained_tree(seed, n, count)
    labels = tree.cut(max(k, tree.fewest))
    through = tree_through_labels(
        tree, labels, graph, samples, first_copies=constraints.units, apart=constraints.apart
    )
    np.testing.assert_array_equal(through.cut(int(labels.max()) + 1), labels)
    assert not constraints.broken_by(through.cut(1)).any()
    assert through.n_clusters == 1


def test_unconstrained_trees_are_as_before():
    _, _, _, tree = constrained_tree(3, 50, 0)
    assert tree.n_forced == 0
    assert tree.fewest == 1
    assert b"n_forced" not in tree.to_bytes()


def test_everything_kept_apart_is_never_merged():
    graph = affinity_graph(nearest_neighbors([[0.0], [1.0], [2.0]], k=2))
    apart = np.array([[0, 1], [1, 2], [2, 0]])
    merges, _ = merge_clusters(graph, np.arange(3), apart=apart)
    assert len(merges) == 0
    _, n_forced = allowed_joins(np.arange(3.0)[:, None], np.array([[0, 1], [1, 2]]), apart)
    assert n_forced == 2


def test_clusters_with_a_pair_inside_fall_into_their_units():
    constraints = Constraints.of(6, must_link=[(0, 1), (4, 5)], cannot_link=[(1, 2)])
    initial = constraints.initial(np.array([0, 0, 0, 0, 1, 2], np.int32))
    assert initial.tolist() == [0, 0, 1, 2, 3, 3]


def test_contradictions_and_nonsense_are_refused():
    with pytest.raises(ContradictionError, match="samples 0 and 2 have a cannot-link"):
        Constraints.of(3, must_link=[(0, 1), (1, 2)], cannot_link=[(0, 2)])
    with pytest.raises(ContradictionError):
        Constraints.of(3, cannot_link=[(1, 1)])
    with pytest.raises(ValueError, match="must_link names sample 7, but there are 3"):
        Constraints.of(3, must_link=[(0, 7)])
    with pytest.raises(ValueError, match="pairs of samples"):
        Constraints.of(3, cannot_link=[0, 1])
    graph = affinity_graph(nearest_neighbors([[0.0], [1.0], [2.0]], k=1))
    with pytest.raises(ValueError, match="an initial cluster has samples that are kept apart"):
        merge_clusters(graph, np.zeros(3, int), apart=np.array([[0, 1]]))
