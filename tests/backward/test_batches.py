"""Batches: each sample once per epoch, and together with others of its cluster."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jule.backward.batches import Pairs, cluster_batches, random_batches, with_pairs


def take_epoch(batches, n):
    """Take batches until they hold n samples."""
    taken = []
    while sum(map(len, taken)) < n:
        taken.append(next(batches))
    return taken


def assert_each_sample_once(batches, n):
    assert sorted(np.concatenate(batches).tolist()) == list(range(n))


any_clusters = {
    "labels": st.lists(st.integers(0, 9), min_size=1, max_size=60).map(np.array),
    "per_cluster": st.integers(2, 6),
    "seed": st.integers(0, 10**6),
}
batch_sizes = st.integers(1, 30)


# Batches of clusters


@given(**any_clusters, batch_size=batch_sizes)
@settings(max_examples=40, deadline=None, derandomize=True)
def test_each_sample_comes_once_per_epoch(labels, per_cluster, seed, batch_size):
    batches = cluster_batches(labels, batch_size, per_cluster, np.random.default_rng(seed))
    for _ in range(3):
        assert_each_sample_once(take_epoch(batches, len(labels)), len(labels))


@given(**any_clusters)
@settings(max_examples=40, deadline=None, derandomize=True)
def test_groups_are_of_one_cluster_and_of_the_right_size(labels, per_cluster, seed):
    # The smallest batches hold one group each.
    batches = cluster_batches(labels, 1, per_cluster, np.random.default_rng(seed))
    sizes = {cluster: [] for cluster in labels.tolist()}
    for group in take_epoch(batches, len(labels)):
        (cluster,) = set(labels[group].tolist())
        sizes[cluster].append(len(group))
    for cluster, found in sizes.items():
        whole, rest = divmod(int((labels == cluster).sum()), per_cluster)
        if whole and rest == 1:
            expected = [per_cluster] * (whole - 1) + [per_cluster + 1]
        else:
            expected = [per_cluster] * whole + [rest] * (rest > 0)
        assert sorted(found) == sorted(expected)


@given(**any_clusters, batch_size=batch_sizes)
@settings(max_examples=40, deadline=None, derandomize=True)
def test_no_sample_is_alone_whose_cluster_has_others(labels, per_cluster, seed, batch_size):
    batches = cluster_batches(labels, batch_size, per_cluster, np.random.default_rng(seed))
    in_all = np.bincount(labels)
    for batch in take_epoch(batches, len(labels)):
        in_batch = np.bincount(labels[batch], minlength=len(in_all))
        assert (in_all[in_batch == 1] == 1).all()


@given(**any_clusters, batch_size=batch_sizes)
@settings(max_examples=40, deadline=None, derandomize=True)
def test_batches_are_full_but_for_the_last(labels, per_cluster, seed, batch_size):
    batches = cluster_batches(labels, batch_size, per_cluster, np.random.default_rng(seed))
    sizes = [len(batch) for batch in take_epoch(batches, len(labels))]
    assert all(batch_size <= size <= batch_size + per_cluster for size in sizes[:-1])
    assert 1 <= sizes[-1] <= batch_size + per_cluster


def test_batches_hold_many_clusters_of_equal_share():
    labels = np.repeat(np.arange(100), 4)
    batches = cluster_batches(labels, 100, 4, np.random.default_rng(0))
    for batch in take_epoch(batches, 400):
        assert np.unique(labels[batch], return_counts=True)[1].tolist() == [4] * 25


def test_the_groups_change_from_epoch_to_epoch():
    batches = cluster_batches(np.zeros(40, np.int64), 1, 4, np.random.default_rng(0))
    one, two = ({frozenset(group.tolist()) for group in take_epoch(batches, 40)} for _ in range(2))
    assert len(one & two) < 3


@pytest.mark.parametrize("dtype", [np.uint8, np.int32, np.int64])
def test_the_seed_decides(dtype):
    labels = (np.arange(60) % 7).astype(dtype)
    one, two, other = (
        np.concatenate(
            take_epoch(cluster_batches(labels, 10, 4, np.random.default_rng(seed)), 60)
        ).tolist()
        for seed in (1, 1, 2)
    )
    assert one == two
    assert one != other


# Random batches


@given(n=st.integers(1, 60), batch_size=batch_sizes, seed=st.integers(0, 10**6))
@settings(max_examples=25, deadline=None, derandomize=True)
def test_random_batches_hold_each_sample_once_per_epoch(n, batch_size, seed):
    batches = random_batches(n, batch_size, np.random.default_rng(seed))
    for _ in range(3):
        epoch = take_epoch(batches, n)
        assert_each_sample_once(epoch, n)
        assert [len(batch) for batch in epoch[:-1]] == [batch_size] * (len(epoch) - 1)


def test_the_seed_decides_random_batches():
    one, two, other = (
        next(random_batches(50, 20, np.random.default_rng(seed))).tolist() for seed in (1, 1, 2)
    )
    assert one == two
    assert one != other


# Pairs


def test_pairs_are_added_with_a_mate_for_each_that_is_kept_apart():
    labels = np.repeat(np.arange(5), 4)
    pairs = Pairs(np.array([[4, 7]]), np.array([[8, 12]]))
    batches = with_pairs(iter([np.arange(16, 20)] * 20), labels, pairs, np.random.default_rng(0))
    drawn = set()
    for batch in batches:
        assert len(set(batch.tolist())) == len(batch)
        more = set(batch.tolist()) - set(range(16, 20))
        if {4, 7} <= more:
            assert more == {4, 7}
            drawn.add("together")
        else:
            assert {8, 12} <= more
            assert set(labels[list(more)].tolist()) == {2, 3}
            drawn.add("apart")
    assert drawn == {"together", "apart"}


@given(st.permutations(range(9)), st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12))))
@settings(max_examples=40, deadline=None, derandomize=True)
def test_which_pairs_of_a_batch_are_kept_apart(order, apart):
    batch = np.array(order[:6])
    pairs = Pairs(np.empty((0, 2), int), np.array(apart, int).reshape(-1, 2))
    expected = [[(i, j) in apart or (j, i) in apart for j in batch] for i in batch]
    np.testing.assert_array_equal(pairs.apart_in(batch), expected)
