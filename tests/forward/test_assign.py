"""Affinity to clusters, confidence and modularity, against sums over every pair."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jule.forward import Digraph, affinity_graph, nearest_neighbors
from jule.forward.assign import (
    _relative_to_size,
    borne_out,
    cluster_affinities,
    cluster_fractions,
    graph_weights,
    label_confidence,
    modularity,
    own_fractions,
)


def random_case(seed, n=30, k=4):
    rng = np.random.default_rng(seed)
    samples = rng.normal(size=(n, 3))
    labels = np.concatenate([np.arange(k), rng.integers(0, k, n - k)])
    return samples, labels


def shares_by_hand(x, samples, labels, sigma2, n_neighbors):
    distances = [sum((a - b) ** 2 for a, b in zip(x, y, strict=True)) for y in samples]
    nearest = sorted(range(len(samples)), key=distances.__getitem__)[:n_neighbors]
    mass = [0.0] * (max(labels) + 1)
    for sample in nearest:
        mass[labels[sample]] += math.exp(-distances[sample] / sigma2)
    return [part / sum(mass) for part in mass]


@given(seed=st.integers(0, 10_000), n_neighbors=st.integers(1, 40))
@settings(max_examples=30, deadline=None, derandomize=True)
def test_shares_are_those_of_all_pairs(seed, n_neighbors):
    samples, labels = random_case(seed)
    new = np.random.default_rng(seed + 1).normal(size=(5, 3))
    found = cluster_affinities(new, samples, labels, sigma2=0.7, n_neighbors=n_neighbors)
    for x, row in zip(new, found, strict=True):
        expected = shares_by_hand(x, samples, labels.tolist(), 0.7, n_neighbors)
        np.testing.assert_allclose(row, expected, atol=1e-9)


def test_far_from_everything_the_nearest_still_decides():
    samples, labels = np.array([[0.0], [1.0]]), np.array([0, 1])
    found = cluster_affinities(np.array([[1e4]]), samples, labels, sigma2=1e-3)
    np.testing.assert_allclose(found, [[0.0, 1.0]])


def test_copies_without_any_spread_share_alike():
    samples, labels = np.zeros((4, 2)), np.array([0, 0, 0, 1])
    found = cluster_affinities(np.zeros((1, 2)), samples, labels, sigma2=0.0)
    np.testing.assert_allclose(found, [[0.75, 0.25]])


def test_many_new_samples_are_cut_into_blocks(monkeypatch):
    samples, labels = random_case(0)
    new = np.random.default_rng(1).normal(size=(50, 3))
    whole = cluster_affinities(new, samples, labels, sigma2=1.0)
    monkeypatch.setattr("jule.forward.assign.BLOCK_CELLS", 90)
    np.testing.assert_allclose(cluster_affinities(new, samples, labels, sigma2=1.0), whole)


@given(seed=st.integers(0, 10_000))
@settings(max_examples=20, deadline=None, derandomize=True)
def test_confidence_and_modularity_are_sums_over_edges(seed):
    samples, labels = random_case(seed)
    graph = affinity_graph(nearest_neighbors(samples, 5))
    n = len(samples)
    w = np.zeros((n, n))
    for i in range(n):
        for j, weight in zip(graph.indices[i], graph.weights[i], strict=True):
            w[i, j] = weight
    near = w.copy()
    for i in range(n):  # only the nearest count, a third as many as the cluster has samples
        far = graph.indices[i][max(1, (labels == labels[i]).sum() // 3) :]
        near[i, far] = 0.0
    both = near + near.T
    fractions = [
        [both[i, labels == cluster].sum() / both[i].sum() for cluster in range(4)] for i in range(n)
    ]
    some = np.array([3, 0, 17])
    np.testing.assert_allclose(cluster_fractions([graph], labels, some), np.array(fractions)[some])
    expected = [fractions[i][labels[i]] for i in range(n)]
    np.testing.assert_allclose(label_confidence([graph], labels), expected)
    total = w.sum()
    expected = sum(
        w[i, j] / total - w[i].sum() * w[:, j].sum() / total**2
        for i in range(n)
        for j in range(n)
        if labels[i] == labels[j]
    )
    assert modularity(graph, labels) == pytest.approx(expected)


def test_one_cluster_has_no_modularity_and_full_confidence():
    samples, _ = random_case(0)
    graph = affinity_graph(nearest_neighbors(samples, 5))
    together = np.zeros(len(samples), np.int32)
    assert modularity(graph, together) == pytest.approx(0.0)
    np.testing.assert_allclose(label_confidence([graph], together), 1.0)


def two_graphs(share: float = 0.5) -> tuple[list[Digraph], np.ndarray]:
    samples, _ = random_case(0)
    blurred = samples + 0.5 * np.random.default_rng(1).normal(size=samples.shape)
    labels = (samples[:, 0] > np.quantile(samples[:, 0], share)).astype(np.int32)
    return [affinity_graph(nearest_neighbors(each, 5)) for each in (samples, blurred)], labels


def test_own_fractions_are_weighted_over_graphs():
    graphs, labels = two_graphs()
    weights = graph_weights(graphs, borne_out(graphs, labels))
    apart = [own_fractions([graph], labels) for graph in graphs]
    np.testing.assert_allclose(own_fractions(graphs, labels), np.dot(weights, apart))
    assert sum(weights) == pytest.approx(1.0)
    assert 0.0 < weights[0] < 1.0


def test_confidence_counts_sizes_by_as_much_as_the_inputs_do_not_show_the_clusters():
    graphs, labels = two_graphs(0.8)
    sizes = [(labels == cluster).sum() for cluster in labels]
    assert set(sizes) == {24, 6}
    q = modularity(graphs[1], labels) / modularity(graphs[0], labels)
    assert 0.1 < q < 0.9
    own = own_fractions(graphs, labels)
    large, small = (15 / 24) ** (1.0 - q), (15 / 6) ** (1.0 - q)
    expected = [
        f * large if size == 24 else small * f / (small * f + 1.0 - f)
        for f, size in zip(own, sizes, strict=True)
    ]
    np.testing.assert_allclose(label_confidence(graphs, labels), expected)


def test_equal_clusters_have_their_fractions_as_confidence():
    graphs, labels = two_graphs()
    np.testing.assert_allclose(label_confidence(graphs, labels), own_fractions(graphs, labels))


def test_sizes_are_believed_if_the_inputs_show_the_clusters_or_are_not_known():
    graphs, labels = two_graphs(0.8)
    for some in (graphs[:1], [graphs[0], graphs[0]]):
        np.testing.assert_allclose(label_confidence(some, labels), own_fractions(some, labels))


def test_clusters_of_one_sample_change_no_other_confidence_much():
    graphs, labels = two_graphs()
    assert borne_out(graphs, labels) < 0.9
    alone = labels.copy()
    alone[0] = 2
    before, after = label_confidence(graphs, labels), label_confidence(graphs, alone)
    near = (graphs[0].indices == 0).any(axis=1) | (graphs[1].indices == 0).any(axis=1)
    far = ~near & ~np.isin(np.arange(30), [*graphs[0].indices[0], *graphs[1].indices[0], 0])
    assert far.sum() > 5
    np.testing.assert_allclose(after[far], before[far], atol=0.05)
    assert after[0] == 0.0, "nobody is with it"


@given(
    st.lists(st.integers(0, 4), min_size=2, max_size=40),
    st.floats(0.0, 1.0),
    st.integers(0, 2**32 - 1),
)
def test_sizes_keep_confidences_between_0_and_1_and_their_order_in_a_cluster(labels, q, seed):
    labels = np.array(labels)
    fractions = np.sort(np.random.default_rng(seed).random(len(labels)))
    fractions[0], fractions[-1] = 0.0, 1.0
    found = _relative_to_size(fractions, labels, q)
    assert (found >= 0.0).all()
    assert (found <= 1.0).all()
    assert found[0] == 0.0
    for cluster in np.unique(labels):
        assert (np.diff(found[labels == cluster]) >= -1e-12).all()
    np.testing.assert_allclose(_relative_to_size(fractions, labels, 1.0), fractions)


def test_numbers_without_samples_are_no_clusters():
    graphs, labels = two_graphs(0.8)
    np.testing.assert_allclose(
        label_confidence(graphs, 3 * labels + 1), label_confidence(graphs, labels)
    )


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        ([0, 0], 1.0),  # the inputs show the clusters as well
        ([0, 1], 0.0),  # not at all
        ([1, 0], 0.0),  # the learned graph does not show them itself
    ],
)
def test_a_learned_graph_counts_as_far_as_the_inputs_bear_it_out(order, expected):
    clear = affinity_graph(nearest_neighbors(np.array([[0.0], [1.0], [8.0], [9.0]]), 1))
    mixed = affinity_graph(nearest_neighbors(np.array([[0.0], [8.0], [1.0], [9.0]]), 1))
    graphs = [(clear, mixed)[place] for place in order]
    q = borne_out(graphs, np.array([0, 0, 1, 1]))
    assert q == expected
    assert graph_weights(graphs, q) == (expected, 1.0 - expected)


def test_votes_count_a_third():
    (first, labels), (second, _) = random_case(0), random_case(1)
    graphs = [affinity_graph(nearest_neighbors(samples, 5)) for samples in (first, second)]
    votes = np.random.default_rng(2).integers(-1, 4, (3, len(labels)))
    some = np.array([3, 0, 17])
    found = cluster_fractions(graphs, labels, some, votes)
    shares = [[(votes[:, i] == cluster).mean() for cluster in range(4)] for i in some]
    expected = (2 * cluster_fractions(graphs, labels, some) + shares) / 3
    np.testing.assert_allclose(found, expected)
    own = own_fractions(graphs, labels, votes)[some]
    np.testing.assert_allclose(own, expected[np.arange(3), labels[some]])
    agreed = (2 * label_confidence(graphs, labels) + (votes == labels).mean(axis=0)) / 3
    np.testing.assert_allclose(label_confidence(graphs, labels, votes), agreed)
    every = np.arange(len(labels))
    fractions = cluster_fractions(graphs, labels, every)
    np.testing.assert_allclose(fractions.sum(axis=1), 1.0)
    np.testing.assert_allclose(fractions[every, labels], own_fractions(graphs, labels))


def test_without_affinity_all_neighbours_count_alike():
    indices = np.array([[1, 2], [0, 2], [0, 1]], np.int32)
    graph = Digraph(indices, np.zeros((3, 2)), 1.0)
    labels = np.array([0, 0, 1])
    assert label_confidence([graph], labels).tolist() == [0.5, 0.5, 0.0]
    assert cluster_fractions([graph], labels, np.arange(3)).tolist() == [[0.5, 0.5]] * 2 + [[1, 0]]


def test_no_samples_have_no_fractions():
    samples, labels = random_case(0)
    graph = affinity_graph(nearest_neighbors(samples, 5))
    assert cluster_fractions([graph], labels, np.empty(0, np.int64)).shape == (0, 4)
