"""Scores of labels without true classes, against plain definitions."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import silhouette_score

from jule.forward import affinity_graph, nearest_neighbors
from jule.forward.assign import modularity
from jule.joint.quality import MOST_SAMPLES, Space, silhouette


def silhouette_by_hand(vectors, labels):
    """The mean of (b - a) / max(a, b), from the squared distance of every pair."""
    n = len(vectors)
    apart = [[((vectors[i] - vectors[j]) ** 2).sum() for j in range(n)] for i in range(n)]
    found = []
    for i in range(n):
        means = {}
        for cluster in set(labels.tolist()):
            others = [apart[i][j] for j in range(n) if labels[j] == cluster and j != i]
            means[cluster] = sum(others) / len(others) if others else None
        a = means.pop(labels[i])
        b = min(means.values())
        found.append(0.0 if a is None or max(a, b) == 0 else (b - a) / max(a, b))
    return sum(found) / n


@given(seed=st.integers(0, 10_000), n=st.integers(4, 25), k=st.integers(2, 4))
@settings(max_examples=40, deadline=None, derandomize=True)
def test_the_silhouette_is_that_of_all_pairs(seed, n, k):
    rng = np.random.default_rng(seed)
    vectors = rng.normal(100.0, 1.0, (n, 3)).round(int(rng.integers(0, 3)))  # with equal ones
    labels = np.concatenate([np.arange(k), rng.integers(0, k, n - k)])
    expected = silhouette_by_hand(vectors, labels)
    assert silhouette(vectors, labels) == pytest.approx(expected, abs=1e-9)


def test_unit_vectors_have_the_silhouette_of_their_cosines():
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(60, 5))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    labels = rng.integers(0, 4, 60)
    expected = silhouette_score(vectors, labels, metric="cosine")
    assert silhouette(vectors, labels) == pytest.approx(expected)


def test_edges_of_the_silhouette():
    assert silhouette(np.eye(3), np.zeros(3, int)) == 0.0  # one cluster
    assert silhouette(np.eye(3), np.arange(3)) == 0.0  # every sample alone
    assert silhouette(np.zeros((4, 2)), np.array([0, 0, 1, 1])) == 0.0  # no distances
    assert silhouette(np.eye(4)[[0, 0, 1, 1]], np.array([0, 0, 5, 5])) == 1.0  # numbers with a gap


def test_large_sets_are_sampled_always_in_the_same_way():
    vectors = np.random.default_rng(0).normal(size=(MOST_SAMPLES + 500, 2)).astype(np.float32)
    graph = affinity_graph(nearest_neighbors(vectors, 3))
    one, two = (Space.of(vectors, graph) for _ in range(2))
    assert len(one.rows) == len(one.vectors) == MOST_SAMPLES
    np.testing.assert_array_equal(one.rows, two.rows)
    labels = (vectors[:, 0] > 0).astype(np.int32)
    separation, inside = one.measure(labels)
    assert inside == pytest.approx(modularity(graph, labels))
    assert separation == pytest.approx(silhouette(vectors, labels), abs=0.02)


@given(seed=st.integers(0, 10_000), n=st.integers(4, 40))
@settings(max_examples=40, deadline=None, derandomize=True)
def test_several_clusterings_are_scored_like_each_alone(seed, n):
    rng = np.random.default_rng(seed)
    vectors = rng.normal(size=(n, 3))
    graph = affinity_graph(nearest_neighbors(vectors, 3))
    cuts = [rng.integers(0, k, n).astype(np.int32) for k in (1, 2, 5, n)]  # nested or not
    found = Space.of(vectors, graph).measure_all(cuts)
    for labels, (separation, inside) in zip(cuts, found, strict=True):
        alone = silhouette_by_hand(vectors, labels) if len(set(labels.tolist())) > 1 else 0.0
        assert separation == pytest.approx(alone, abs=1e-9)
        assert inside == pytest.approx(modularity(graph, labels), abs=1e-12)
