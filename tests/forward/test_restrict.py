"""Trees that pass through given labels: against sets, and what every cut of them keeps."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jule.forward import MergeTree, affinity_graph, merge_clusters, nearest_neighbors, restrict
from jule.forward.branches import branch_numbers
from jule.forward.restrict import join_copies_first, range_maxima, tree_through_labels
from jule.forward.tree import clusters_as_nodes
from tests.forward.test_tree import random_tree, same_partition
from tests.oracles import restrict as oracle


def numbered(values):
    """The same clusters as 0, 1, ... in the order of their values."""
    return np.unique(values, return_inverse=True)[1].reshape(-1).astype(np.int32)


@st.composite
def cases(draw, with_copies=True):
    """A tree, labels that have nothing to do with it, copies that share a label, a graph."""
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    n = draw(st.integers(2, 25))
    tree = random_tree(int(rng.integers(10**6)), n, draw(st.sampled_from([0.0, 0.5, 1.0])))
    labels = rng.integers(0, draw(st.integers(1, n)), n)
    copies = np.arange(n)
    if with_copies:
        for sample in rng.permutation(n)[: draw(st.integers(0, n - 1))].tolist():
            if sample > 0 and (copies == sample).sum() == 1:  # nobody's original
                copies[sample] = copies[rng.integers(sample)]
    labels = numbered(labels[copies])
    vectors = rng.normal(size=(n, 2))
    graph = affinity_graph(nearest_neighbors(vectors, min(3, n - 1)))
    return tree, labels, copies, graph, vectors


def through(tree, labels, copies, graph, vectors):
    return tree_through_labels(tree, labels, graph, vectors, first_copies=copies)


@given(case=cases())
@settings(max_examples=100, deadline=None)
def test_merges_inside_the_clusters_are_those_of_the_tree(case):
    tree, labels, copies, *_ = case
    n, k = tree.n_samples, labels.max() + 1
    found = through(*case)
    expected = oracle.merges_below(n, tree.merges.tolist(), labels.tolist(), copies.tolist())
    assert oracle.node_samples(n, found.merges.tolist())[n : 2 * n - k] == [
        samples for samples, _ in expected
    ]
    np.testing.assert_array_equal(
        found.affinities[: n - k],
        [np.nan if merge is None else tree.affinities[merge] for _, merge in expected],
    )


@given(case=cases())
@settings(max_examples=50, deadline=None)
def test_merges_of_the_clusters_are_those_of_linkage(case):
    _, labels, _, graph, _ = case
    n, k = len(labels), labels.max() + 1
    found = through(*case)
    merges, affinities = merge_clusters(graph, labels)
    whole = [set(np.flatnonzero(labels == cluster).tolist()) for cluster in range(k)]
    for a, b in merges.tolist():
        whole.append(whole[a] | whole[b])
    samples = oracle.node_samples(n, found.merges.tolist())
    assert samples[2 * n - k :][: len(merges)] == whole[k:]
    np.testing.assert_allclose(found.affinities[n - k :][: len(merges)], affinities, rtol=1e-12)
    assert not found.affinities[n - k + len(merges) :].any()  # joined without affinity


@given(case=cases())
@settings(max_examples=100, deadline=None)
def test_the_cut_at_k_is_the_labels_finer_cuts_refine_them_and_coarser_ones_join_them(case):
    labels = case[1]
    k = labels.max() + 1
    tree = through(*case)
    assert tree.n_clusters == 1
    assert same_partition(tree.cut(k), labels)
    for other in range(1, tree.n_samples + 1):
        pairs = set(zip(tree.cut(other).tolist(), labels.tolist(), strict=True))
        assert len(pairs) == max(k, other)  # of two cuts of one tree, the finer one


@given(case=cases())
@settings(max_examples=100, deadline=None)
def test_copies_stay_together_while_there_are_enough_distinct_samples(case):
    copies = case[2]
    tree = through(*case)
    for k in range(1, len(np.unique(copies)) + 1):
        labels = tree.cut(k)
        np.testing.assert_array_equal(labels, labels[copies])


@given(case=cases(with_copies=False), data=st.data())
@settings(max_examples=50, deadline=None)
def test_a_plain_cut_of_the_tree_leaves_finer_cuts_as_they_were(case, data):
    tree, _, copies, graph, vectors = case
    n = tree.n_samples
    k = data.draw(st.integers(1, n))
    found = through(tree, tree.cut(k), copies, graph, vectors)
    for finer in range(k, n + 1):
        np.testing.assert_array_equal(found.cut(finer), tree.cut(finer))


@pytest.mark.parametrize("k", [1, 2, 6])
def test_ends(k):
    vectors = np.random.default_rng(0).normal(size=(6, 2))
    graph = affinity_graph(nearest_neighbors(vectors, 2))
    labels = (np.arange(6) % k).astype(np.int32)
    tree = tree_through_labels(random_tree(0, 6), labels, graph, vectors)
    np.testing.assert_array_equal(tree.cut(k), labels)


def test_a_tree_that_is_not_whole_and_copies_with_two_labels_are_refused():
    vectors = np.arange(4.0)[:, None]
    graph = affinity_graph(nearest_neighbors(vectors, 2))
    labels = np.array([0, 0, 1, 1])
    with pytest.raises(ValueError, match="must be complete, but it stops at 2"):
        tree_through_labels(random_tree(0, 4, n_clusters=2), labels, graph, vectors)
    with pytest.raises(ValueError, match="exact copies must have the same label"):
        tree_through_labels(
            random_tree(0, 4), labels, graph, vectors, first_copies=np.array([0, 1, 0, 3])
        )


# Numbers of branches


@given(case=cases())
@settings(max_examples=100, deadline=None)
def test_branch_numbers_against_sets(case):
    labels, tree = case[1], through(*case)
    found = branch_numbers(tree, labels)
    expected = oracle.branch_numbers(tree.n_samples, tree.merges.tolist(), labels.tolist())
    assert found.tolist() == expected


@given(case=cases())
@settings(max_examples=100, deadline=None)
def test_every_split_adds_one_number_and_keeps_the_others(case):
    labels, tree = case[1], through(*case)
    k_of_labels = labels.max() + 1
    numbers = branch_numbers(tree, labels)
    before = set()
    for k in range(1, tree.n_samples + 1):
        found = numbers[clusters_as_nodes(tree, k)].tolist()
        assert len(set(found)) == k
        assert before < set(found)
        if k >= k_of_labels:  # splitting k clusters creates number k
            assert set(found) == set(range(k))
        before = set(found)


def test_a_cluster_keeps_its_number_with_its_larger_part():
    # {0, 1} and {2, 3, 4}; the second is made of 2 and {3, 4}.
    tree = MergeTree(5, np.array([[0, 1], [3, 4], [2, 6], [5, 7]]), np.zeros(4))
    found = branch_numbers(tree, np.array([1, 1, 0, 0, 0]))
    assert found.tolist() == [1, 4, 2, 0, 3, 1, 0, 0, 0]


@given(case=cases(), size=st.integers(1, 6))
@settings(max_examples=100, deadline=None)
def test_clusters_as_nodes_agree_with_the_cut(case, size):
    tree = through(*case)
    samples = oracle.node_samples(tree.n_samples, tree.merges.tolist())
    for k in range(1, tree.n_samples + 1):
        labels, nodes = tree.cut(k, size), clusters_as_nodes(tree, k, size)
        assert len(nodes) == labels.max() + 1
        for cluster, node in enumerate(nodes.tolist()):
            inside = set(np.flatnonzero(labels == cluster).tolist())
            assert samples[node] <= inside  # the rest was absorbed
            if size == 1:
                assert samples[node] == inside


# Copies first


@given(case=cases())
@settings(max_examples=100, deadline=None)
def test_copies_are_joined_first_and_other_merges_keep_their_order(case):
    tree, _, copies, *_ = case
    n, different = tree.n_samples, len(np.unique(copies))
    found = join_copies_first(tree, copies)
    assert (found.n_different, found.n_clusters) == (different, 1)
    together = np.zeros(n, int).tolist()
    expected = oracle.merges_below(n, tree.merges.tolist(), together, copies.tolist())
    assert oracle.node_samples(n, found.merges.tolist())[n:] == [samples for samples, _ in expected]
    for k in range(1, different + 1):
        labels = found.cut(k)
        np.testing.assert_array_equal(labels, labels[copies])
        assert labels.max() == k - 1


@given(seed=st.integers(0, 10**6), n=st.integers(1, 70), dtype=st.sampled_from(["i4", "i8"]))
@settings(max_examples=100, deadline=None)
def test_maxima_of_ranges(seed, n, dtype):
    rng = np.random.default_rng(seed)
    values = rng.integers(1000, size=n).astype(dtype)
    starts = rng.integers(n, size=30)
    stops = rng.integers(starts, n) + 1
    expected = [max(values[start:stop].tolist()) for start, stop in zip(starts, stops, strict=True)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(restrict, "BLOCK", 7)
        found = range_maxima(values, starts, stops)
    assert found.tolist() == expected
    assert found.dtype == values.dtype
    assert len(range_maxima(values, starts[:0], stops[:0])) == 0
