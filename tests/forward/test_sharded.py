"""Neighbours found by several processes, against those of one."""

import numpy as np
import pytest

from jule.forward import nearest_neighbors
from jule.forward.exact import block_pairs
from jule.forward.sharded import even_counts, is_worth_sharing, search_together, shares_of_pairs
from tests.made_ranks import together


def data(kind, n):
    rng = np.random.default_rng(0)
    if kind == "plain":
        return rng.normal(size=(n, 12)).astype(np.float32)
    if kind == "float64":
        return rng.normal(size=(n, 3)) + 1e6
    if kind == "ties":
        return rng.integers(0, 3, (n, 4)).astype(np.float32)
    return np.repeat(rng.normal(size=(n // 100, 5)), 100, axis=0)[:n]  # many copies


@pytest.mark.parametrize("kind", ["plain", "float64", "ties", "copies"])
@pytest.mark.parametrize("size", [2, 3])
def test_neighbours_are_those_of_a_single_process(kind, size):
    vectors = data(kind, 2600)
    wanted = nearest_neighbors(vectors, k=20)
    found, *others = together(size, lambda ranks: search_together(vectors, 20, ranks))
    np.testing.assert_array_equal(found.indices, wanted.indices)
    np.testing.assert_array_equal(found.distances, wanted.distances)
    assert others == [None] * (size - 1)


@pytest.mark.parametrize("n", [1, 1024, 1025, 9298, 70_000])
@pytest.mark.parametrize("size", [1, 2, 5, 64])
def test_each_pair_of_blocks_has_one_owner_and_loads_are_even(n, size):
    pairs, shares = block_pairs(n), shares_of_pairs(n, size)
    assert sorted(pair for share in shares for pair in share) == sorted(pairs)
    loads = [sum(pairs[pair] for pair in share) for share in shares]
    assert max(loads) - min(loads) <= max(pairs.values())


@pytest.mark.parametrize("n", [1, 7, 1000, 1797])
@pytest.mark.parametrize("multiple", [1, 500])
def test_every_row_has_one_owner(n, multiple):
    for size in (1, 2, 3):
        counts = even_counts(n, size, multiple)
        assert sum(counts) == n
        assert all(count % multiple == 0 for count in counts[:-1])


def test_a_few_samples_are_not_worth_sharing():
    assert not is_worth_sharing(1024, 20, 2)
    assert not is_worth_sharing(10**6, 20, 1)
    assert is_worth_sharing(1025, 20, 2)
