"""Very large, very small and shifted values: the same clusters, or a clear refusal."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jule.forward import affinity_graph, agglomerate, kmeans_clusters, nearest_neighbors, prepare
from jule.forward.prepare import FAR, LARGEST, LEAST, fit_range


def groups(seed=0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    samples = np.concatenate([rng.normal(centre, 0.4, (30, 4)) for centre in (1, 4, 7)])
    samples[5] = samples[40]  # an exact copy
    return samples.astype(dtype)


def assert_same_tree(one, other):
    np.testing.assert_array_equal(one.merges, other.merges)
    np.testing.assert_array_equal(one.affinities, other.affinities)


@pytest.mark.parametrize("how", ["none", "l2", "center-l2"])
@pytest.mark.parametrize("init", ["nearest", "kmeans"])
@pytest.mark.parametrize("exponent", [1019, 980, 500, 40, -40, -500, -900])
def test_the_tree_of_scaled_samples_is_the_same_to_the_last_bit(how, init, exponent):
    samples = groups()
    scaled = np.ldexp(samples, exponent)
    before = scaled.copy()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = agglomerate(prepare(scaled, how), init=init)
    assert_same_tree(found, agglomerate(prepare(samples, how), init=init))
    np.testing.assert_array_equal(scaled, before)


@pytest.mark.parametrize("scale", [1e298, 1e-310])
@pytest.mark.parametrize("how", ["none", "l2", "center-l2"])
def test_factors_that_are_no_powers_of_two_give_the_same_clusters(scale, how):
    expected = agglomerate(prepare(groups(), how)).cut(3)
    np.testing.assert_array_equal(agglomerate(prepare(groups() * scale, how)).cut(3), expected)


@pytest.mark.parametrize("exponent", [120, -100])
@pytest.mark.parametrize("how", ["none", "l2", "center-l2"])
def test_float32_as_well(exponent, how):
    samples = groups(dtype=np.float32)
    found = agglomerate(prepare(np.ldexp(samples, exponent), how))
    assert_same_tree(found, agglomerate(prepare(samples, how)))


@pytest.mark.parametrize("init", ["nearest", "kmeans"])
@pytest.mark.parametrize("offset", [2.0**27, 1e8, 1e12])
def test_a_large_offset_does_not_hide_the_clusters(init, offset):
    shifted = groups() + offset
    expected = agglomerate(shifted - shifted.min(axis=0), init=init).cut(3)
    np.testing.assert_array_equal(agglomerate(shifted, init=init).cut(3), expected)


def test_kmeans_of_shifted_samples():
    shifted = groups() + 1e10
    expected = kmeans_clusters(shifted - shifted.min(axis=0), 3)
    np.testing.assert_array_equal(kmeans_clusters(shifted, 3), expected)


def test_a_constant_feature_beside_tiny_ones():
    samples = groups()
    beside = np.column_stack([np.full(len(samples), 1e300), samples * 2.0**-700])
    np.testing.assert_array_equal(agglomerate(beside).cut(3), agglomerate(samples).cut(3))


def test_values_that_no_float_carries_together():
    samples = np.array([[1e-300], [2e-300], [3e-300], [1e300], [1.1e300], [1.05e300]])
    assert agglomerate(samples, n_neighbors=2).cut(2).tolist() == [0, 0, 0, 1, 1, 1]


def test_the_largest_floats_of_both_signs():
    samples = np.array([[1.7e308], [-1.7e308], [1.6e308], [-1.6e308]])
    assert agglomerate(samples, n_neighbors=1).cut(2).tolist() == [0, 1, 0, 1]


# Distances have a unit


@pytest.mark.parametrize("exponent", [400, -400, 31, -35])
def test_distances_are_those_of_the_samples_as_given(exponent):
    found, expected = (
        nearest_neighbors(np.ldexp(groups(), exponent), 5),
        nearest_neighbors(groups(), 5),
    )
    np.testing.assert_array_equal(found.indices, expected.indices)
    np.testing.assert_array_equal(found.distances, np.ldexp(expected.distances, 2 * exponent))


@pytest.mark.parametrize(("scale", "power"), [(1e298, "-99"), (1e-310, "102")])
def test_distances_that_no_float_holds_are_refused(scale, power):
    with pytest.raises(ValueError, match=rf"beyond the range of float64.*ldexp\(samples, {power}"):
        nearest_neighbors(groups() * scale, 5)


@pytest.mark.parametrize("a", [1e300, 1e-320])
def test_a_sigma_that_no_float_holds_is_refused(a):
    neighbors = nearest_neighbors(groups() * (1e10 if a > 1 else 1e-10), 5)
    with pytest.raises(ValueError, match=r"sigma\^2 of Eq. 4 would be"):
        affinity_graph(neighbors, a)


# The change of unit itself


@given(
    seed=st.integers(0, 10**6),
    exponent=st.integers(-900, 900),
    offset=st.sampled_from([0.0, 3.0, 1e3, 1e9]),
    dtype=st.sampled_from([np.float32, np.float64]),
)
@settings(max_examples=100, deadline=None)
def test_differences_are_exact(seed, exponent, offset, dtype):
    exponent = exponent // 9 if dtype == np.float32 else exponent
    rng = np.random.default_rng(seed)
    samples = np.ldexp((rng.normal(size=(12, 3)) + offset).astype(dtype), exponent)
    if (samples == samples[0]).all():
        return
    found, power = fit_range(samples)
    assert found.dtype == dtype
    gaps, expected = found[1:] - found[:-1], samples[1:] - samples[:-1]
    np.testing.assert_array_equal(np.ldexp(gaps, power), expected)
    spread = (found.max(axis=0) - found.min(axis=0)).max() / 2
    assert LEAST <= spread <= LARGEST
    assert np.abs(found).max() <= 2 * FAR * 2 * spread


def test_ordinary_samples_are_left_alone():
    for samples in (groups(), np.eye(3), np.random.default_rng(0).random((9, 2)) * 255):
        assert fit_range(samples)[0] is samples
