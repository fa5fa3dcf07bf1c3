"""Approximate neighbours: their recall against an exact search, and what cells look like."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jule.forward import cells, nearest_neighbors
from jule.forward.sharded import search_cells_together
from jule.joint import Config
from jule.joint.clustering import represent
from tests.made_ranks import together


@pytest.fixture(autouse=True)
def _small_cells(monkeypatch):
    """Cells of 64 samples, so that a few thousand samples have many."""
    monkeypatch.setattr(cells, "CELL", 64)
    monkeypatch.setattr(cells, "LARGEST", 128)
    monkeypatch.setattr(cells, "QUERIES", 256)


def groups(n, d=8, dtype=np.float32, seed=0):
    """Samples of many groups of different sizes, far from the origin."""
    rng = np.random.default_rng(seed)
    centres = 4 * rng.standard_normal((40, d)) + 100
    return (centres[rng.integers(40, size=n)] + rng.standard_normal((n, d))).astype(dtype)


def share_found(found, exact):
    return (found.indices[:, :, None] == exact.indices[:, None, :]).any(axis=2).mean()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_almost_all_neighbours_are_found_and_the_recall_is_true(dtype):
    samples = groups(4000, dtype=dtype)
    exact = nearest_neighbors(samples, 10)
    found = nearest_neighbors(samples, 10, method="approximate", seed=1)
    share = share_found(found, exact)
    assert 0.97 < share < 1
    assert found.recall == pytest.approx(share, abs=0.02)
    assert exact.recall == 1.0
    assert (found.indices != np.arange(4000)[:, None]).all()
    assert (np.diff(found.distances, axis=1) >= 0).all()
    same = found.indices == exact.indices
    np.testing.assert_array_equal(found.distances[same], exact.distances[same])


def test_only_some_of_the_cells_are_searched():
    samples = groups(4000)
    divided = cells.divide(samples, 10, seed=0)
    assert 1 < divided.n_searched < len(divided.centres) / 4


@settings(max_examples=20, deadline=None)
@given(st.integers(1025, 3000), st.integers(1, 4), st.integers(0, 3), st.integers(0, 5))
def test_cells_are_a_partition_and_small(n, d, decimals, seed):
    """Rounded samples have many exact copies, which K-means cannot divide."""
    samples = np.random.default_rng(seed).standard_normal((n, d)).round(decimals)
    divided = cells.divide(samples, 5, seed)
    if divided is None:  # comparing all is as fast
        return
    assert sorted(divided.order.tolist()) == list(range(n))
    sizes = np.diff(divided.bounds)
    assert sizes.min() >= 1
    assert sizes.max() <= cells.LARGEST
    assert divided.bounds[0] == 0
    assert divided.bounds[-1] == n
    means = [samples[divided.order[a:b]].mean(0) for a, b in pairwise(divided.bounds)]
    np.testing.assert_allclose(divided.centres, np.array(means) - samples.mean(0), atol=1e-5)


def test_copies_of_a_few_samples():
    copies = np.repeat(np.random.default_rng(0).random((40, 3)), 60, axis=0)
    found = nearest_neighbors(copies, 20, method="approximate")
    assert (found.indices != np.arange(2400)[:, None]).all()
    assert (found.distances == 0).all()
    assert found.recall == 1.0


def test_outliers_have_as_many_different_neighbours_as_others():
    rng = np.random.default_rng(0)
    tight = groups(3000) - 100
    far = 1000 * rng.standard_normal((30, 8)).astype(np.float32)  # cells of their own, and small
    samples = rng.permutation(np.concatenate([tight, far]))
    divided = cells.divide(samples, 20, seed=0)
    assert np.sort(np.diff(divided.bounds))[divided.n_searched] < 20  # such cells are not enough
    found = nearest_neighbors(samples, 20, method="approximate")
    assert all(len(set(row)) == 20 for row in found.indices.tolist())
    assert (found.indices != np.arange(len(samples))[:, None]).all()
    assert share_found(found, nearest_neighbors(samples, 20)) > 0.97


def test_identical_samples():
    found = nearest_neighbors(np.ones((2000, 3)), 20, method="approximate")
    assert (found.distances == 0).all()


@pytest.mark.parametrize("samples", [groups(900), np.random.default_rng(0).random((1500, 60))])
def test_few_samples_or_scattered_neighbours_are_searched_exactly(samples):
    exact = nearest_neighbors(samples, 10)
    found = nearest_neighbors(samples, 10, method="approximate")
    np.testing.assert_array_equal(found.indices, exact.indices)
    np.testing.assert_array_equal(found.distances, exact.distances)
    assert found.recall == 1.0


def test_values_too_large_for_float32_products():
    samples = groups(2000, dtype=np.float64) * 1e30
    exact = nearest_neighbors(samples, 5)
    assert share_found(nearest_neighbors(samples, 5, method="approximate"), exact) > 0.97


def test_same_seed_same_neighbours():
    samples = groups(3000)
    first, again = (nearest_neighbors(samples, 5, method="approximate", seed=3) for _ in "ab")
    np.testing.assert_array_equal(first.indices, again.indices)


def test_progress_ends_at_one():
    shares = []
    nearest_neighbors(groups(3000), 5, method="approximate", progress=shares.append)
    assert shares == sorted(shares)
    assert len(shares) > 3
    assert shares[-1] == 1.0


def test_joint_learning_keeps_the_recall():
    samples = groups(3000)
    found = represent(samples, Config(n_neighbors=10, neighbors="approximate", seed=1))
    assert 0.97 < found.neighbors.recall < 1


@pytest.mark.parametrize("size", [2, 3])
def test_several_processes_find_the_neighbours_of_one(size):
    samples = groups(3000)
    wanted = nearest_neighbors(samples, 10, method="approximate", seed=1)
    divided = cells.divide(samples, 10, seed=1)
    found, *others = together(
        size, lambda ranks: search_cells_together(samples, divided, 10, ranks)
    )
    np.testing.assert_array_equal(found.indices, wanted.indices)
    np.testing.assert_array_equal(found.distances, wanted.distances)
    assert found.recall == wanted.recall
    assert others == [None] * (size - 1)
