"""The whole forward pass: trees that are whole whatever the samples, and where they stop."""

import warnings

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from jule.evaluation import ari
from jule.forward import (
    agglomerate,
    kmeans_clusters,
    nearest_neighbor_components,
    nearest_neighbors,
)
from jule.forward.agglomerate import grow_tree

KINDS = ["generic", "far groups", "duplicates", "grid"]


def make_samples(kind, seed, n):
    rng = np.random.default_rng(seed)
    if kind == "generic":
        return rng.normal(size=(n, 3))
    if kind == "far groups":
        return rng.normal(size=(n, 2)) + 1000.0 * rng.integers(5, size=(n, 1))
    if kind == "duplicates":
        return rng.normal(size=(max(2, n // 4), 2))[rng.integers(max(2, n // 4), size=n)]
    return rng.integers(4, size=(n, 2)).astype(float)


def blobs(seed=0, n=30, centres=(0.0, 3.0, 6.0), spread=0.1):
    rng = np.random.default_rng(seed)
    samples = np.concatenate([rng.normal(centre, spread, (n, 2)) for centre in centres])
    return samples, np.repeat(np.arange(len(centres)), n)


def assert_whole(tree, n):
    assert tree.n_samples == n
    assert len(tree.merges) == len(tree.affinities) == n - 1
    assert sorted(tree.merges.ravel().tolist()) == list(range(2 * n - 2))


samples_of_all_kinds = {
    "kind": st.sampled_from(KINDS),
    "seed": st.integers(0, 10**6),
    "n": st.integers(2, 60),
    "n_neighbors": st.integers(1, 8),
}


# Whole trees


@pytest.mark.parametrize("init", ["nearest", "kmeans"])
@given(**samples_of_all_kinds)
@settings(max_examples=60, deadline=None)
def test_the_tree_is_whole_whatever_the_samples(init, kind, seed, n, n_neighbors):
    samples = make_samples(kind, seed, n)
    assume(len(np.unique(samples, axis=0)) > 1)
    k = min(n_neighbors, n - 1)
    tree = agglomerate(samples, n_neighbors=k, init=init)
    assert_whole(tree, n)
    if init == "nearest":
        labels = nearest_neighbor_components(nearest_neighbors(samples, k))
    else:
        labels = kmeans_clusters(samples, -(-n // 4))
    n_initial = labels.max() + 1
    # Initial clusters come first, then merges by affinity, then joins of what has none.
    assert np.isnan(tree.affinities[: n - n_initial]).all()
    assert (tree.affinities[n - n_initial :] >= 0).all()
    assert tree.n_initial == n_initial
    np.testing.assert_array_equal(tree.cut(n_initial), labels)


@pytest.mark.parametrize("linkage", ["degree", "additive"])
@pytest.mark.parametrize("kernel", ["local", "transition"])
@given(**samples_of_all_kinds)
@settings(max_examples=30, deadline=None)
def test_every_kernel_and_linkage_gives_a_whole_tree(linkage, kernel, kind, seed, n, n_neighbors):
    samples = make_samples(kind, seed, n)
    assume(len(np.unique(samples, axis=0)) > 1)
    tree = agglomerate(samples, n_neighbors=min(n_neighbors, n - 1), kernel=kernel, linkage=linkage)
    assert_whole(tree, n)
    assert (tree.affinities[n - tree.n_initial :] >= 0).all()


def test_blobs_are_found():
    samples, true = blobs()
    np.testing.assert_array_equal(agglomerate(samples).cut(3), true)


@pytest.mark.parametrize("init", ["nearest", "kmeans"])
@pytest.mark.parametrize(
    "options",
    [
        {"n_near": 1},
        {"update": "ratio"},
        {"update": "alpha"},
        {"lam": 0.1, "a": 2.0},
        {"kernel": "local"},
        {"kernel": "transition", "linkage": "additive"},
    ],
)
def test_blobs_are_found_with_every_criterion(init, options):
    samples, true = blobs()
    np.testing.assert_array_equal(agglomerate(samples, init=init, **options).cut(3), true)


def test_two_samples():
    tree = agglomerate([[0.0], [1.0]], n_neighbors=1)
    assert tree.merges.tolist() == [[0, 1]]
    assert tree.n_initial == 1


def test_the_same_samples_give_the_same_tree():
    samples = make_samples("generic", 0, 60)
    for init in ("nearest", "kmeans"):
        one, two = (agglomerate(samples, n_neighbors=5, init=init, seed=3) for _ in range(2))
        np.testing.assert_array_equal(one.merges, two.merges)
        np.testing.assert_array_equal(one.affinities, two.affinities)


@given(seed=st.integers(0, 10**6), n=st.integers(20, 60))
@settings(max_examples=25, deadline=None)
def test_the_order_of_the_samples_does_not_matter(seed, n):
    # Without ties, and with so many neighbours that no initial cluster is without affinity.
    samples = make_samples("generic", seed, n)
    order = np.random.default_rng(seed).permutation(n)
    tree = agglomerate(samples, n_neighbors=10)
    mixed = agglomerate(samples[order], n_neighbors=10)
    assert mixed.n_initial == tree.n_initial
    for k in range(1, n + 1):
        assert ari(tree.cut(k)[order], mixed.cut(k)) == 1.0


# Inside the initial clusters


def test_nearest_pairs_of_an_initial_cluster_come_first():
    # 10 and 10.5 are nearest, then 0 and 1, then 3 joins its nearest neighbour, 1.
    tree = agglomerate([[0.0], [1.0], [3.0], [10.0], [10.5]], n_neighbors=1)
    assert tree.merges.tolist() == [[3, 4], [0, 1], [2, 6], [5, 7]]
    assert tree.n_initial == 2


@given(seed=st.integers(0, 10**6), n=st.integers(3, 40))
@settings(max_examples=25, deadline=None)
def test_initial_clusters_grow_along_nearest_neighbours_by_distance(seed, n):
    samples = make_samples("generic", seed, n)
    tree = agglomerate(samples, n_neighbors=2)
    distances = np.linalg.norm(samples[:, None] - samples, axis=2)
    np.fill_diagonal(distances, np.inf)
    groups = {sample: {sample} for sample in range(n)}
    k = n
    for sample in np.argsort(distances.min(axis=1), kind="stable").tolist():
        other = int(distances[sample].argmin())
        if other not in groups[sample]:
            both = groups[sample] | groups[other]
            groups.update(dict.fromkeys(both, both))
            k -= 1
            labels = tree.cut(k)
            assert {frozenset(np.flatnonzero(labels == c).tolist()) for c in range(k)} == {
                frozenset(group) for group in groups.values()
            }
    assert k == tree.n_initial


def test_an_initial_cluster_whose_samples_are_not_neighbours_is_still_one():
    # Every nearest neighbour lies in the other cluster.
    line = np.array([[0.0], [1.0], [5.0], [6.0]])
    labels = np.array([0, 1, 0, 1])
    neighbors = nearest_neighbors(line, 1)
    tree = grow_tree(line, neighbors, labels, np.array([[0, 1]]), np.array([0.5]), 0)
    assert tree.merges.tolist() == [[0, 2], [1, 3], [4, 5]]
    np.testing.assert_array_equal(tree.affinities, [np.nan, np.nan, 0.5])


# Joins of clusters without affinity


def test_clusters_without_affinity_are_joined_nearest_first():
    pairs = [[40.0], [41.0], [0.0], [1.0], [10.0], [11.0]]
    tree = agglomerate(pairs, n_neighbors=1)
    assert tree.n_initial == 3
    assert tree.merges.tolist() == [[0, 1], [2, 3], [4, 5], [7, 8], [6, 9]]
    assert tree.affinities[3:].tolist() == [0.0, 0.0]
    assert tree.cut(2).tolist() == [0, 0, 1, 1, 1, 1]


def test_joins_are_measured_between_means():
    # From 0 the single pair at 10 is nearer than the nearest sample of the wide pair, at 12.
    pairs = np.array([[0.0], [1.0], [10.0], [10.5], [-12.0], [-14.0]])
    labels = np.array([0, 0, 1, 1, 2, 2])
    no_merges = np.empty((0, 2), np.int64)
    tree = grow_tree(pairs, nearest_neighbors(pairs, 1), labels, no_merges, np.empty(0), 2)
    assert tree.cut(2).tolist() == [0, 0, 0, 0, 1, 1]


def test_fewer_joins_than_could_be_made():
    pairs = np.array([[0.0], [1.0], [10.0], [11.0], [40.0], [41.0]])
    labels = np.array([0, 0, 1, 1, 2, 2])
    no_merges = np.empty((0, 2), np.int64)
    tree = grow_tree(pairs, nearest_neighbors(pairs, 1), labels, no_merges, np.empty(0), 1)
    assert tree.n_clusters == 2
    assert tree.cut(2).tolist() == [0, 0, 0, 0, 1, 1]


def test_joins_go_on_from_what_was_merged():
    # {0, 1} and {2, 3} were merged into cluster 3, whose mean is nearest to {4, 5}.
    pairs = np.array([[0.0], [1.0], [10.0], [11.0], [20.0], [21.0], [90.0], [91.0]])
    labels = np.array([0, 0, 1, 1, 2, 2, 3, 3])
    neighbors = nearest_neighbors(pairs, 1)
    tree = grow_tree(pairs, neighbors, labels, np.array([[0, 1]]), np.array([0.5]), 2)
    assert tree.merges[4:].tolist() == [[8, 9], [10, 12], [11, 13]]
    assert tree.affinities[4:].tolist() == [0.5, 0.0, 0.0]


# Where merging stops


@given(n_clusters=st.integers(1, 60), **samples_of_all_kinds)
@settings(max_examples=50, deadline=None)
def test_merging_stops_at_n_clusters_or_at_the_initial_clusters(
    kind, seed, n, n_neighbors, n_clusters
):
    samples = make_samples(kind, seed, n)
    assume(len(np.unique(samples, axis=0)) > 1)
    assume(n_clusters <= n)
    k = min(n_neighbors, n - 1)
    whole = agglomerate(samples, n_neighbors=k)
    tree = agglomerate(samples, n_neighbors=k, n_clusters=n_clusters)
    assert tree.n_clusters == min(n_clusters, whole.n_initial)
    np.testing.assert_array_equal(tree.merges, whole.merges[: len(tree.merges)])
    np.testing.assert_array_equal(tree.affinities, whole.affinities[: len(tree.merges)])
    assert tree.cut(n_clusters).max() == n_clusters - 1


@pytest.mark.parametrize("max_merges", [0, 1, 5])
def test_max_merges_counts_merges_of_initial_clusters(max_merges):
    samples = make_samples("generic", 0, 60)
    whole = agglomerate(samples, n_neighbors=5)
    tree = agglomerate(samples, n_neighbors=5, max_merges=max_merges)
    assert tree.n_clusters == whole.n_initial - max_merges
    np.testing.assert_array_equal(tree.merges, whole.merges[: len(tree.merges)])


def test_max_merges_joins_nothing_that_has_no_affinity():
    pairs = [[0.0], [1.0], [10.0], [11.0], [40.0], [41.0]]
    assert agglomerate(pairs, n_neighbors=1, max_merges=100).n_clusters == 3


# What samples may be


def test_images_are_vectors():
    images = np.random.default_rng(0).normal(size=(40, 4, 3))
    np.testing.assert_array_equal(
        agglomerate(images, n_neighbors=5).merges,
        agglomerate(images.reshape(40, 12), n_neighbors=5).merges,
    )


def test_bytes_do_not_overflow():
    bytes_ = np.random.default_rng(0).integers(256, size=(40, 5)).astype(np.uint8)
    np.testing.assert_array_equal(
        agglomerate(bytes_, n_neighbors=5).merges,
        agglomerate(bytes_.astype(np.float64), n_neighbors=5).merges,
    )


def test_samples_are_left_as_they_are():
    samples = make_samples("generic", 0, 30)
    before = samples.copy()
    agglomerate(samples, n_neighbors=5)
    np.testing.assert_array_equal(samples, before)


def test_too_many_neighbours_shrink_with_a_warning():
    samples = make_samples("generic", 0, 10)
    with pytest.warns(UserWarning, match="n_neighbors=20.*less than n_samples=10: using 9"):
        tree = agglomerate(samples)
    np.testing.assert_array_equal(tree.merges, agglomerate(samples, n_neighbors=9).merges)


def test_just_enough_samples_for_the_neighbours_give_no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert_whole(agglomerate(make_samples("generic", 0, 21)), 21)


@pytest.mark.parametrize(
    ("samples", "message"),
    [
        (np.ones((30, 4)), "all 30 samples are identical"),
        (np.zeros((1, 4)), "at least 2 samples, got n_samples=1"),
        (np.zeros((0, 4)), "at least 2 samples, got n_samples=0"),
        ([], "Expected 2D array"),
        (np.zeros((5, 0)), r"0 feature\(s\)"),
        ([[0.0], [1.0], [np.nan]], "contains NaN: sample 2"),
        ([[0.0], [np.inf], [1.0]], "contains infinity: sample 1"),
        ([["a"], ["b"]], "real numbers"),
    ],
)
def test_samples_that_cannot_be_clustered(samples, message):
    with pytest.raises(ValueError, match=message):
        agglomerate(samples, n_neighbors=1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_clusters": 31}, "n_clusters=31 clusters cannot be made of n_samples=30 samples"),
        ({"n_clusters": 0}, "n_clusters must be 1 or more, got 0"),
        ({"n_neighbors": 0}, "between 1 and n_samples - 1 = 29, got 0"),
        ({"max_merges": -1}, "max_merges must be 0 or more, got -1"),
        ({"init": "random"}, "unknown init 'random': choose one of nearest, kmeans"),
        ({"method": "guess"}, "unknown method 'guess': choose 'exact' or 'approximate'"),
        ({"update": "fast"}, "unknown update 'fast'"),
        ({"kernel": "flat"}, "unknown kernel 'flat': choose one of global, local, transition"),
        ({"linkage": "single"}, "unknown linkage 'single': choose one of degree, additive"),
        ({"a": 0.0}, "a must be positive, got 0"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(ValueError, match=message):
        agglomerate(make_samples("generic", 0, 30), **({"n_neighbors": 5} | options))


# Progress


def test_progress_goes_through_both_stages_to_their_end():
    calls = []
    agglomerate(
        make_samples("generic", 0, 60),
        n_neighbors=8,
        progress=lambda stage, share: calls.append((stage, share)),
    )
    assert list(dict.fromkeys(stage for stage, _ in calls)) == ["neighbours", "merging"]
    for stage in ("neighbours", "merging"):
        shares = [share for name, share in calls if name == stage]
        assert shares == sorted(shares)
        assert shares[0] >= 0
        assert shares[-1] == 1.0


def test_progress_ends_at_one_when_merging_ends_early():
    rng = np.random.default_rng(0)
    samples = np.concatenate([rng.standard_normal((40, 2)) + c for c in (0, 30)])
    seen = {}
    agglomerate(samples, n_neighbors=5, progress=lambda stage, share: seen.update({stage: share}))
    assert seen == {"neighbours": 1.0, "merging": 1.0}
