"""Exact neighbours against a comparison of all pairs."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.neighbors import NearestNeighbors

from jule.forward import exact as module
from jule.forward import nearest_neighbors
from tests.oracles import neighbors as oracle


def small_blocks(monkeypatch, block):
    monkeypatch.setattr(module, "BLOCK", block)
    monkeypatch.setattr(module, "WIDTH", 2 * block)


def agrees(samples, k):
    found = nearest_neighbors(samples, k)
    expected = oracle.nearest_neighbors(np.asarray(samples).tolist(), k)
    assert found.indices.tolist() == [[j for _, j in row] for row in expected]
    np.testing.assert_allclose(found.distances, [[d for d, _ in row] for row in expected], 1e-12)


@given(
    seed=st.integers(0, 10**6),
    n=st.integers(2, 60),
    d=st.integers(1, 9),
    k=st.integers(1, 25),
    levels=st.integers(1, 50),
)
@settings(max_examples=50, deadline=None)
def test_whole_numbers_with_many_ties(seed, n, d, k, levels):
    samples = np.random.default_rng(seed).integers(levels, size=(n, d))
    agrees(samples, min(k, n - 1))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_several_blocks_and_a_rest(dtype, monkeypatch):
    small_blocks(monkeypatch, 64)
    samples = np.random.default_rng(0).standard_normal((333, 7)).astype(dtype)
    agrees(samples, 10)


def test_a_mean_far_from_the_origin_does_not_blur_distances():
    samples = 1e6 + np.random.default_rng(0).standard_normal((300, 5))
    agrees(samples, 5)


def test_more_duplicates_than_neighbors():
    samples = np.repeat(np.random.default_rng(0).standard_normal((4, 3)), 50, axis=0)
    agrees(samples, 20)


def test_distances_are_symmetric_to_the_last_bit():
    samples = np.random.default_rng(0).standard_normal((200, 33)).astype(np.float32)
    found = nearest_neighbors(samples, 199)
    table = np.zeros((200, 200))
    np.put_along_axis(table, found.indices, found.distances, axis=1)
    np.testing.assert_array_equal(table, table.T)


def test_the_same_as_scikit_learn_on_real_digits():
    from jule import load_dataset

    samples = load_dataset("digits").images.reshape(-1, 64).astype(np.float64)
    found = nearest_neighbors(samples, 20)
    theirs, _ = NearestNeighbors(n_neighbors=20, algorithm="brute").fit(samples).kneighbors()
    np.testing.assert_allclose(np.sqrt(found.distances), theirs, rtol=1e-9)


def test_twice_the_same():
    samples = np.random.default_rng(0).standard_normal((5000, 16)).astype(np.float32)
    first, second = nearest_neighbors(samples, 20), nearest_neighbors(samples, 20)
    np.testing.assert_array_equal(first.indices, second.indices)
    np.testing.assert_array_equal(first.distances, second.distances)


def test_a_result_does_not_depend_on_the_blocks(monkeypatch):
    samples = np.random.default_rng(0).integers(4, size=(700, 12)).astype(np.float32)
    whole = nearest_neighbors(samples, 20)
    small_blocks(monkeypatch, 100)
    cut = nearest_neighbors(samples, 20)
    np.testing.assert_array_equal(whole.indices, cut.indices)


def test_progress_rises_to_the_end(monkeypatch):
    small_blocks(monkeypatch, 64)
    shares = []
    nearest_neighbors(np.random.default_rng(0).random((300, 3)), 2, progress=shares.append)
    assert shares == sorted(shares)
    assert shares[-1] == 1.0


def test_two_samples():
    found = nearest_neighbors([[0.0], [3.0]], 1)
    assert found.indices.tolist() == [[1], [0]]
    assert found.distances.tolist() == [[9.0], [9.0]]
    assert (len(found), found.k) == (2, 1)


@pytest.mark.parametrize("k", [0, -1, 3, 10])
def test_impossible_numbers_of_neighbors(k):
    with pytest.raises(ValueError, match="between 1 and n_samples - 1 = 2"):
        nearest_neighbors([[0.0], [1.0], [2.0]], k)


def test_unknown_method():
    with pytest.raises(ValueError, match="'exact' or 'approximate'"):
        nearest_neighbors([[0.0], [1.0]], 1, method="guess")


@pytest.mark.parametrize("n", [6, 60])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_values_too_large_for_float32_products(n, dtype):
    samples = (np.random.default_rng(0).standard_normal((n, 2)) * 1e20).astype(dtype)
    agrees(samples, 2)
