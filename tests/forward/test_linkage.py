"""The sparse kernels against the dense equations: the same merges in the same order."""

import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from torture.graphs import GraphCampaign, random_case

from jule.forward import affinity_graph, nearest_neighbors
from jule.forward.affinity import Digraph
from jule.forward.linkage import merge_clusters
from jule.forward.linkage_state import CLUSTER, SAMPLE
from tests.oracles import linkage as oracle

CRITERIA = [(1, 0.0), (5, 1.0), (2, 0.5), (3, 4.0)]


def random_graph(seed, n, k, dyadic, groups=1):
    """A digraph in which every sample points to k others, most of them of its own group.

    Dyadic weights make every sum exact, whatever its order, so that ties are true ties.
    """
    rng = np.random.default_rng(seed)
    group = rng.integers(groups, size=n)
    indices = np.empty((n, k), np.int32)
    for i in range(n):
        others = np.delete(np.arange(n), i)
        odds = np.where(group[others] == group[i], 1.0, 0.05)
        indices[i] = rng.choice(others, k, replace=False, p=odds / odds.sum())
    weights = rng.integers(1, 9, (n, k)) / 8 if dyadic else rng.random((n, k))
    return Digraph(indices, weights, 1.0)


def random_initial(seed, n, n_initial):
    rng = np.random.default_rng(seed)
    labels = np.concatenate([np.arange(n_initial), rng.integers(n_initial, size=n - n_initial)])
    rng.shuffle(labels)
    return labels


def both_ways(graph, initial, n_near, lam, **options):
    nodes, affinities = merge_clusters(graph, initial, n_near=n_near, lam=lam, **options)
    found = [(a, b) for a, b in nodes.tolist()]
    merges = oracle.merge_clusters(
        graph.indices, graph.weights, initial.tolist(), n_near, lam, **options
    )
    expected = [(a, b) for a, b, _ in merges]
    return found, affinities, expected, [value for _, _, value in merges]


@pytest.mark.parametrize(("n_near", "lam"), CRITERIA)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(3, 40),
    k=st.integers(1, 6),
    share=st.floats(0.1, 1.0),
    groups=st.integers(1, 5),
)
@settings(max_examples=60, deadline=None)
def test_exact_merges_with_ties(n_near, lam, seed, n, k, share, groups):
    graph = random_graph(seed, n, min(k, n - 1), dyadic=True, groups=groups)
    initial = random_initial(seed, n, max(1, int(share * n)))
    found, affinities, expected, values = both_ways(graph, initial, n_near, lam)
    assert found == expected
    np.testing.assert_array_equal(affinities, values)


@pytest.mark.parametrize(("n_near", "lam"), CRITERIA)
@pytest.mark.parametrize(
    ("update", "alpha"), [("exact", 0.0), ("ratio", 0.0), ("alpha", 0.0), ("alpha", 0.3)]
)
@given(
    seed=st.integers(0, 10**6), n=st.integers(3, 40), k=st.integers(1, 6), groups=st.integers(1, 5)
)
@settings(max_examples=15, deadline=None)
def test_every_update_without_ties(n_near, lam, update, alpha, seed, n, k, groups):
    graph = random_graph(seed, n, min(k, n - 1), dyadic=False, groups=groups)
    initial = random_initial(seed, n, max(2, n // 2))
    found, affinities, expected, values = both_ways(
        graph, initial, n_near, lam, update=update, alpha=alpha
    )
    assert found == expected
    np.testing.assert_allclose(affinities, values, rtol=1e-9)


@given(
    seed=st.integers(0, 10**6),
    n_clusters=st.integers(1, 30),
    max_merges=st.one_of(st.none(), st.integers(0, 30)),
)
@settings(max_examples=25, deadline=None)
def test_the_three_ends(seed, n_clusters, max_merges):
    graph = random_graph(seed, 30, 4, dyadic=True, groups=3)
    initial = random_initial(seed, 30, 20)
    found, _, expected, _ = both_ways(
        graph, initial, 5, 1.0, n_clusters=n_clusters, max_merges=max_merges
    )
    assert found == expected


def test_stopping_early_makes_the_same_first_merges():
    graph = random_graph(1, 200, 8, dyadic=False)
    initial = random_initial(1, 200, 120)
    whole, _ = merge_clusters(graph, initial)
    part, _ = merge_clusters(graph, initial, max_merges=37)
    np.testing.assert_array_equal(part, whole[:37])


def test_the_kernels_also_run_uncompiled():
    chosen = "three_ends or hub or without_ties and alpha-0.3-5 or additive_random"
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", chosen, __file__],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout
    assert "4 passed" in done.stdout


@pytest.mark.parametrize(("n_near", "lam"), CRITERIA)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(3, 40),
    k=st.integers(1, 6),
    share=st.floats(0.1, 1.0),
    groups=st.integers(1, 5),
)
@settings(max_examples=30, deadline=None)
def test_additive_merges_with_ties(n_near, lam, seed, n, k, share, groups):
    graph = random_graph(seed, n, min(k, n - 1), dyadic=True, groups=groups)
    initial = random_initial(seed, n, max(1, int(share * n)))
    found, affinities, expected, values = both_ways(graph, initial, n_near, lam, linkage="additive")
    assert found == expected
    np.testing.assert_array_equal(affinities, values)


@given(seed=st.integers(0, 10**6), n=st.integers(3, 40), k=st.integers(1, 6))
@settings(max_examples=30, deadline=None)
def test_additive_merges_of_any_weights(seed, n, k):
    graph = random_graph(seed, n, min(k, n - 1), dyadic=False)
    initial = random_initial(seed, n, max(2, n // 2))
    found, affinities, expected, values = both_ways(graph, initial, 1, 0.0, linkage="additive")
    assert found == expected
    np.testing.assert_allclose(affinities, values, rtol=1e-9)


def test_additive_random_graphs():
    # Weights of 0, isolated samples, groups apart, weights on either side of the least.
    for number in range(150):
        case = random_case([7, number])
        options = {name: case.settings[name] for name in case.settings if name[:2] in ("n_", "ma")}
        n_near = options.pop("n_near")
        found, affinities, expected, values = both_ways(
            case.graph, case.initial, n_near, case.settings["lam"], linkage="additive", **options
        )
        assert found == expected
        np.testing.assert_allclose(affinities, values, rtol=1e-9)


def test_edges_in_one_direction_are_no_additive_affinity():
    # 0 and 1 point to each other; 2 points to 0, which has no edge back.
    graph = Digraph(np.array([[1], [0], [0]], np.int32), np.full((3, 1), 0.5), 1.0)
    nodes, affinities = merge_clusters(graph, np.arange(3), n_near=1, linkage="additive")
    assert nodes.tolist() == [[0, 2], [1, 3]]  # 2 is isolated: it goes where it points to
    assert affinities.tolist() == [0.0, 0.25 / 2 + 0.25]


def test_offsets_do_not_overflow_where_edges_outnumber_int32():
    for records in (SAMPLE, CLUSTER):
        assert records["start"] == np.int64
    assert SAMPLE["in_start"] == SAMPLE["in_stop"] == np.int64


def test_affinities_can_rise():
    # Eq. 13 is a sum: 2 has affinity 2 with 0 and with 1, but 3 with both of them together.
    graph = Digraph(np.array([[1, 2], [0, 2], [0, 1]], np.int32), np.ones((3, 2)), 1.0)
    nodes, affinities = merge_clusters(graph, np.arange(3), n_near=1)
    assert nodes.tolist() == [[0, 1], [2, 3]]
    assert affinities.tolist() == [2.0, 3.0]


def test_a_merge_can_create_affinity():
    # The edges 0 -> 2 -> 1: no affinity of 2 with 0 or with 1, but with both of them together.
    indices = np.array([[1, 2], [0, 3], [1, 3], [2, 0]], np.int32)
    weights = np.array([[1.0, 1.0], [1.0, 0.0], [1.0, 0.125], [0.125, 0.0]])
    w = oracle.dense_graph(indices, weights)
    for other in (0, 1):
        assert oracle.flow(w, [2], [other]) == oracle.flow(w, [other], [2]) == 0
    nodes, affinities = merge_clusters(Digraph(indices, weights, 1.0), np.arange(4), n_near=1)
    assert nodes[:2].tolist() == [[0, 1], [2, 4]]
    assert affinities[:2].tolist() == [2.0, 0.25]


def test_progress_reaches_the_end():
    graph = random_graph(1, 100, 8, dyadic=False)
    shares = []
    merge_clusters(graph, np.arange(100), progress=shares.append)
    assert shares[-1] == 1.0


def test_a_hub_that_all_samples_point_to():
    # Rows of the tables differ in length by orders of magnitude, and grow as clusters merge.
    rng = np.random.default_rng(0)
    n = 120
    indices = np.array([rng.choice(np.delete(np.arange(n), i), 3, False) for i in range(n)])
    indices[1:, 0] = np.where((indices[1:] == 0).any(axis=1), indices[1:, 0], 0)
    weights = rng.integers(1, 5, indices.shape) / 4
    graph = Digraph(indices.astype(np.int32), weights, 1.0)
    found, _, expected, _ = both_ways(graph, np.arange(n), 5, 1.0)
    assert found == expected


def test_weights_of_zero_are_no_affinity():
    graph = random_graph(3, 20, 3, dyadic=True)
    graph.weights[:] = 0.0
    nodes, affinities = merge_clusters(graph, np.arange(20))
    assert (affinities == 0).all()
    assert len(np.unique(nodes)) == nodes.size


def test_an_edge_of_weight_0_is_no_edge():
    # 0 and 1 point to each other; 2 points to 0, and nothing points to 2.
    indices = np.array([[1], [0], [0]], np.int32)
    for weight, n_merges in ((0.0, 1), (2.0**-501, 1), (2.0**-500, 2)):
        weights = np.array([[0.5], [0.5], [weight]])
        nodes, _ = merge_clusters(Digraph(indices, weights, 1.0), np.arange(3))
        assert nodes.tolist() == ([[0, 2], [1, 3]] if n_merges == 2 else [[0, 1]])


def test_isolated_clusters_whose_weights_have_vanished_stay_apart():
    # One sample so far away that exp(-d / sigma^2) is exactly 0 on all its edges.
    rng = np.random.default_rng(0)
    samples = np.concatenate([rng.normal(size=(1000, 2)), [[1e6, 0.0]]])
    graph = affinity_graph(nearest_neighbors(samples, 1))
    assert (graph.weights[-1] == 0).all()
    some = np.concatenate([np.arange(20), [1000]])
    graph = affinity_graph(nearest_neighbors(samples[some], 1))
    graph.weights[-1] = 0.0
    initial = np.arange(len(graph))
    found, affinities, expected, values = both_ways(graph, initial, 5, 1.0)
    assert found == expected
    np.testing.assert_allclose(affinities, values, rtol=1e-9)


@pytest.mark.parametrize("seed", [0, 1])
def test_random_graphs(seed):
    outcome = GraphCampaign().run(150, seed, lambda done, total: None)
    assert outcome.failures == []
    assert outcome.cases == 150
    assert outcome.counts["with weights of 0"] > 50


def test_more_near_clusters_than_there_are():
    graph, initial = random_graph(0, 12, 3, dyadic=True), np.arange(12)
    found, _, expected, _ = both_ways(graph, initial, 10**6, 1.0)
    assert found == expected


@pytest.mark.parametrize(
    ("indices", "weights", "message"),
    [
        ([[1], [2]], [[1.0], [1.0]], "samples from 0 to 1"),
        ([[1], [-1]], [[1.0], [1.0]], "samples from 0 to 1"),
        ([[1], [1]], [[1.0], [1.0]], "its own neighbour"),
        ([[1], [0]], [[1.0], [np.nan]], "finite and 0 or more"),
        ([[1], [0]], [[1.0], [np.inf]], "finite and 0 or more"),
        ([[1], [0]], [[1.0], [-0.5]], "finite and 0 or more"),
        ([[1], [0]], [[1.0]], "the shape of indices"),
        ([1, 0], [1.0, 1.0], r"of shape \(n, k\)"),
        ([[1.0], [0.0]], [[1.0], [1.0]], "must be int32"),
    ],
)
def test_bad_graphs(indices, weights, message):
    dtype = np.int32 if np.array(indices).dtype.kind == "i" else np.float64
    graph = Digraph(np.array(indices, dtype), np.array(weights), 1.0)
    with pytest.raises(ValueError, match=message):
        merge_clusters(graph, np.arange(2))


def test_closed_groups_stay_apart():
    # Two pairs that point to each other only: nothing joins the pairs.
    graph = Digraph(np.array([[1], [0], [3], [2]], np.int32), np.ones((4, 1)), 1.0)
    nodes, affinities = merge_clusters(graph, np.arange(4))
    assert nodes.tolist() == [[0, 1], [2, 3]]
    assert affinities.tolist() == [2.0, 2.0]


def test_one_initial_cluster_needs_no_merge():
    graph = Digraph(np.array([[1], [0]], np.int32), np.ones((2, 1)), 1.0)
    nodes, affinities = merge_clusters(graph, np.zeros(2, int))
    assert nodes.shape == (0, 2)
    assert affinities.shape == (0,)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_clusters": 0}, "n_clusters must be 1 or more, got 0"),
        ({"max_merges": -1}, "max_merges must be 0 or more"),
        ({"n_near": 0}, "K_c"),
        ({"lam": -1.0}, "lambda"),
        ({"lam": float("nan")}, "lambda"),
        ({"update": "fast"}, "choose one of exact, ratio, alpha"),
        ({"update": "alpha", "alpha": -1.0}, "alpha must be above -1"),
        ({"linkage": "average"}, "unknown linkage 'average': choose one of degree, additive"),
        ({"linkage": "additive", "update": "ratio"}, "additive linkage needs update='exact'"),
    ],
)
def test_bad_options(options, message):
    graph = random_graph(0, 10, 2, dyadic=True)
    with pytest.raises(ValueError, match=message):
        merge_clusters(graph, np.arange(10), **options)


@pytest.mark.parametrize(
    ("initial", "message"),
    [
        (np.arange(9), "one label for each of 10 samples"),
        (np.array([0, 0, 0, 0, 0, 2, 2, 2, 2, 2]), "without a gap"),
        (np.array([-1, 0, 0, 0, 0, 1, 1, 1, 1, 1]), "without a gap"),
    ],
)
def test_bad_initial_clusters(initial, message):
    with pytest.raises(ValueError, match=message):
        merge_clusters(random_graph(0, 10, 2, dyadic=True), initial)
