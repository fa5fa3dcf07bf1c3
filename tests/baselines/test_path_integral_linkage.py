"""AC-PIC: scikit-learn's checks, the definition, edges, and real digits."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import make_blobs
from sklearn.utils.estimator_checks import parametrize_with_checks

from jule import load_dataset
from jule.baselines.path_integral_linkage import PathIntegralLinkage
from jule.evaluation import ari, nmi
from jule.forward import merge_clusters, nearest_neighbor_components, nearest_neighbors, prepare
from jule.forward.affinity import transition_graph
from tests.oracles import integrals


@parametrize_with_checks([PathIntegralLinkage()])
def test_scikit_learn_checks(estimator, check):
    with warnings.catch_warnings():
        # The checks use fewer samples than neighbours, which is worth a warning and no more.
        warnings.filterwarnings("ignore", message="n_neighbors=20", category=UserWarning)
        check(estimator)


def blobs(n=200, seed=0):
    return make_blobs(n, 3, centers=4, cluster_std=0.5, random_state=seed)


def digits(n):
    data = load_dataset("digits")
    return prepare(data.images[:n]), data.labels[:n]


# The definition


@given(seed=st.integers(0, 10**6), k=st.integers(2, 6))
@settings(max_examples=20, deadline=None, derandomize=True)
def test_affinities_are_the_first_term_of_the_definition(seed, k):
    # Two clusters have one merge; its affinity is the gain divided by z^2, but for O(z).
    rng = np.random.default_rng(seed)
    found = nearest_neighbors(rng.normal(size=(12, 2)), k)
    initial = np.concatenate([[0, 1], rng.integers(2, size=10)])
    _, affinities = merge_clusters(transition_graph(found, 1.0), initial, n_near=1)
    p = integrals.transition_matrix(found.indices.tolist(), found.distances.tolist(), 1.0)
    members = [np.flatnonzero(initial == c).tolist() for c in (0, 1)]
    gain = integrals.gain(integrals.path_integral, p, *members, z=1e-3) / 1e-6
    value = affinities[0] if len(affinities) else 0.0
    assert gain == pytest.approx(value, rel=2e-2, abs=2e-3)


@pytest.mark.parametrize("n_clusters", [3, 6, 10])
def test_same_clusters_as_by_dense_inverses(n_clusters):
    samples, _ = digits(100)
    model = PathIntegralLinkage(n_clusters, n_neighbors=8, min_cluster_size=1).fit(samples)
    found = nearest_neighbors(samples, 8)
    p = integrals.transition_matrix(found.indices.tolist(), found.distances.tolist(), 1.0)
    initial = nearest_neighbor_components(found).tolist()
    clusters = integrals.cluster(integrals.path_integral, p, initial, n_clusters)
    expected = np.empty(100, int)
    for number, members in enumerate(clusters):
        expected[members] = number
    assert ari(expected, model.labels_) == 1.0


# Ordinary use


def test_finds_blobs_in_any_order():
    samples, labels = blobs()
    order = np.random.default_rng(1).permutation(len(samples))
    assert ari(labels, PathIntegralLinkage(4).fit_predict(samples)) == 1.0
    assert ari(labels[order], PathIntegralLinkage(4).fit_predict(samples[order])) == 1.0


def test_real_digits():
    samples, labels = digits(1797)
    assert nmi(labels, PathIntegralLinkage(10).fit_predict(samples)) > 0.85


def test_labels_and_tree_belong_together():
    samples, _ = blobs()
    model = PathIntegralLinkage(4, min_cluster_size=1).fit(samples)
    assert len(model.tree_.merges) == len(samples) - 1
    np.testing.assert_array_equal(model.labels_, model.tree_.cut(4))
    default = PathIntegralLinkage(4).fit(samples)
    np.testing.assert_array_equal(default.tree_.merges, model.tree_.merges)
    np.testing.assert_array_equal(default.labels_, model.tree_.cut(4, 3))


@pytest.mark.parametrize("scale", [1e150, 1e-150])
def test_scaled_samples_have_the_same_clusters(scale):
    samples, _ = blobs()
    expected = PathIntegralLinkage(4).fit_predict(samples)
    np.testing.assert_array_equal(PathIntegralLinkage(4).fit_predict(samples * scale), expected)


# Edges


@pytest.mark.parametrize("n_clusters", [1, 2, 29, 30])
def test_any_number_of_clusters(n_clusters):
    samples, _ = blobs(n=30)
    assert len(np.unique(PathIntegralLinkage(n_clusters).fit_predict(samples))) == n_clusters


def test_two_samples():
    with pytest.warns(UserWarning, match="using 1"):
        model = PathIntegralLinkage(2).fit([[0.0], [1.0]])
    assert model.labels_.tolist() == [0, 1]
    assert model.tree_.merges.tolist() == [[0, 1]]


def test_groups_without_an_edge_between_them():
    # Five groups have no affinity; the two nearest are joined.
    rng = np.random.default_rng(0)
    centres = np.array([0.0, 100.0, 300.0, 600.0, 610.0])
    samples = rng.normal(size=(150, 2)) + np.repeat(centres, 30)[:, None]
    labels = PathIntegralLinkage(4, n_neighbors=5).fit_predict(samples)
    np.testing.assert_array_equal(labels, np.repeat([0, 1, 2, 3, 3], 30))


def test_copies_share_a_cluster():
    different = np.random.default_rng(0).normal(size=(40, 3))
    which = np.concatenate([np.arange(40), np.random.default_rng(1).integers(40, size=60)])
    for k in (3, 39, 40):
        model = PathIntegralLinkage(k, min_cluster_size=1).fit(different[which])
        assert model.n_clusters_ == k
        np.testing.assert_array_equal(model.labels_, model.labels_[:40][which])
    assert model.tree_.n_copies == 60


def test_groups_of_duplicates():
    samples = np.repeat([[0.0, 0.0], [5.0, 0.0], [0.0, 7.0]], 25, axis=0)
    labels = PathIntegralLinkage(3).fit_predict(samples)
    np.testing.assert_array_equal(labels, np.repeat([0, 1, 2], 25))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_clusters": 0}, "of 1 or more, got 0"),
        ({"n_clusters": 31}, "cannot be made of n_samples=30"),
        ({"n_neighbors": 0}, "n_neighbors must be an integer of 1 or more"),
        ({"a": 0.0}, "a must be positive"),
        ({"min_cluster_size": 0}, "min_cluster_size must be an integer of 1 or more"),
        ({"method": "fast"}, "'exact' or 'approximate'"),
    ],
)
def test_bad_parameters(options, message):
    with pytest.raises(ValueError, match=message):
        PathIntegralLinkage(**{"n_clusters": 2, **options}).fit(np.arange(30.0)[:, None])


def test_identical_samples():
    with pytest.raises(ValueError, match="all 30 samples are identical"):
        PathIntegralLinkage(2).fit(np.ones((30, 2)))
