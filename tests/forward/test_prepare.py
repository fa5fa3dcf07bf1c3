"""Scaling of samples, and every kind of input that is rejected."""

import tracemalloc
from importlib import import_module

import numpy as np
import pytest

from jule.forward import prepare
from jule.forward.prepare import as_vectors, check_not_identical

module = import_module("jule.forward.prepare")


def test_l2_gives_unit_length():
    vectors = prepare(np.random.default_rng(0).random((50, 9)), "l2")
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0)


def test_center_l2_subtracts_the_mean_first():
    samples = np.random.default_rng(0).random((50, 9))
    centred = samples - samples.mean(axis=0)
    expected = centred / np.linalg.norm(centred, axis=1, keepdims=True)
    np.testing.assert_allclose(prepare(samples, "center-l2"), expected)


def test_none_leaves_values_alone():
    samples = np.random.default_rng(0).random((5, 3))
    np.testing.assert_array_equal(prepare(samples, "none"), samples)


def test_a_black_image_stays_black():
    images = np.zeros((3, 4, 4), np.uint8)
    images[1:] = 7
    vectors = prepare(images, "l2")
    assert (vectors[0] == 0).all()
    assert np.isfinite(vectors).all()


def test_the_input_is_not_changed():
    samples = np.random.default_rng(0).random((5, 3))
    before = samples.copy()
    prepare(samples, "center-l2")
    np.testing.assert_array_equal(samples, before)


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [
        (np.uint8, np.float32),
        (np.int64, np.float32),
        (bool, np.float32),
        (np.float16, np.float32),
        (np.float32, np.float32),
        (np.float64, np.float64),
    ],
)
def test_types(dtype, expected):
    assert as_vectors(np.eye(4).astype(dtype)).dtype == expected


@pytest.mark.parametrize("shape", [(6, 4, 5), (6, 4, 5, 3)])
def test_images_are_flattened(shape):
    assert as_vectors(np.zeros(shape, np.uint8)).shape == (6, np.prod(shape[1:]))


@pytest.mark.parametrize(
    ("samples", "message"),
    [
        (np.empty((0, 4)), "at least 2 samples, got n_samples=0"),
        (np.ones((1, 4)), "at least 2 samples, got n_samples=1"),
        (np.empty((4, 0)), "0 feature"),
        (np.arange(5.0), "Expected 2D array"),
        (np.float64(3.0), "Expected 2D array"),
        (np.array([[0.0, 1.0], [np.nan, 0.0]]), "NaN: sample 1 is the first of 1"),
        (np.array([[np.inf, 1.0], [0.0, 0.0]]), "infinity: sample 0"),
        (np.array([[1j, 0], [0, 0]]), "real numbers, got dtype complex128"),
        (np.array([["a"], ["b"]]), "real numbers, got dtype"),
        (np.array([[object()], [object()]]), "real numbers in rows"),
        (np.array([["2020-01-01"]] * 2, "datetime64[D]"), "real numbers, got dtype datetime64"),
    ],
)
def test_bad_samples(samples, message):
    with pytest.raises(ValueError, match=message):
        as_vectors(samples)


@pytest.mark.parametrize("as_list", [False, True])
def test_masked_values_are_refused_not_used(as_list):
    masked = np.ma.array(np.eye(3), mask=np.eye(3) == 1)
    with pytest.raises(ValueError, match=r"masked values: remove those samples, or .*filled"):
        as_vectors(list(masked) if as_list else masked)


def test_a_masked_array_without_masked_values_is_an_array():
    np.testing.assert_array_equal(as_vectors(np.ma.array(np.eye(3))), np.eye(3))


def test_large_values_are_not_taken_for_infinity():
    samples = np.full((2, 3), np.finfo(np.float64).max)
    assert as_vectors(samples).shape == (2, 3)


def test_more_samples_than_can_be_numbered():
    # Without memory behind it: only the shape is looked at.
    samples = np.broadcast_to(np.float32(0), (2**31, 1))
    with pytest.raises(
        ValueError, match="at most 2147483647 samples are supported, got n_samples=2147483648"
    ):
        as_vectors(samples)


def test_unknown_preparation():
    with pytest.raises(ValueError, match="choose one of l2, center-l2, none"):
        prepare(np.eye(3), "whiten")


@pytest.mark.parametrize("shape", [(5,), (5, 2), (5, 3, 4, 3)])
@pytest.mark.parametrize("block", [1, 7, 2**20])
def test_identical_samples_are_rejected(shape, block, monkeypatch):
    monkeypatch.setattr(module, "BLOCK_VALUES", block)
    samples = np.ones(shape)
    with pytest.raises(ValueError, match="all 5 samples are identical"):
        check_not_identical(samples)
    samples.reshape(-1)[-1] = 2.0
    check_not_identical(samples)


def test_comparing_samples_takes_little_memory():
    samples = np.zeros((1000, 100, 100), np.uint8)
    tracemalloc.start()
    with pytest.raises(ValueError, match="identical"):
        check_not_identical(samples)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < samples.size / 2
