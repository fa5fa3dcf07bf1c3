"""Remembered neighbour searches: the same neighbours as a search of one's own, found once."""

import numpy as np
import pytest

from jule.forward import nearest_neighbors
from jule.forward.remembered import MAX_SEARCHES, RememberedSearches, remember_searches


@pytest.fixture
def samples():
    # Values on a grid, so that many distances are the same and their order is by index.
    return np.random.default_rng(0).integers(0, 4, (200, 3)).astype(np.float32)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_remembered_neighbours_are_those_of_a_search(samples, dtype):
    samples = samples.astype(dtype)
    searches = RememberedSearches()
    for k in (7, 20, 1, 45, 29):
        expected = nearest_neighbors(samples, k)
        with remember_searches(searches):
            found = nearest_neighbors(samples, k)
        np.testing.assert_array_equal(found.indices, expected.indices)
        np.testing.assert_array_equal(found.distances, expected.distances)


def test_only_a_larger_k_and_other_samples_are_searched(samples):
    searches = RememberedSearches()
    calls = []

    def search(vectors, k):
        calls.append((vectors[0, 0].item(), k))
        return nearest_neighbors(vectors, k)

    for scale, k in ((1, 7), (1, 20), (1, 40), (1, 20), (2, 7), (1, 7)):
        searches.search(samples * scale, k, search)
    first = samples[0, 0].item()
    assert calls == [(first, 30), (first, 40), (2 * first, 30)]
    assert searches.seconds_saved > 0


def test_few_samples_have_all_others_as_neighbours():
    with remember_searches(RememberedSearches()):
        assert nearest_neighbors([[0.0], [1.0], [3.0]], 1).indices.tolist() == [[1], [0], [1]]


def test_the_oldest_search_is_forgotten(samples):
    searches = RememberedSearches()
    with remember_searches(searches):
        for scale in range(1, MAX_SEARCHES + 2):
            nearest_neighbors(samples * scale, 7)
        assert searches.seconds_saved == 0
        nearest_neighbors(samples, 7)
        assert searches.seconds_saved == 0
        nearest_neighbors(samples * (MAX_SEARCHES + 1), 7)
        assert searches.seconds_saved > 0


def test_nothing_is_remembered_outside_of_the_context(samples):
    searches = RememberedSearches()
    with remember_searches(searches):
        nearest_neighbors(samples, 7)
    nearest_neighbors(samples, 7)
    assert searches.seconds_saved == 0
