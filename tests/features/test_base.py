"""What encoders share: scaling of pictures, and of vectors."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from jule.features import Preprocessing, power_normalize
from jule.features.base import check_pictures

HALF = {"mean": (0.5, 0.25, 0.0), "std": (0.5, 0.25, 1.0)}


def test_pictures_are_scaled_per_channel():
    image = np.array([[[[255, 0, 51]]]], np.uint8)
    x = Preprocessing(1, 1, **HALF).apply(image)
    assert x.shape == (1, 3, 1, 1)
    np.testing.assert_allclose(x.flatten().numpy(), [1.0, -1.0, 0.2], atol=1e-6)


def test_grey_pictures_are_colour_pictures_without_colour():
    grey = np.random.default_rng(0).integers(0, 256, (3, 9, 7), dtype=np.uint8)
    colour = np.repeat(grey[..., None], 3, axis=3)
    scaling = Preprocessing(5, 4)
    assert torch.equal(scaling.apply(grey), scaling.apply(colour))


def test_a_picture_of_the_right_size_is_not_resampled():
    image = np.random.default_rng(0).integers(0, 256, (2, 6, 6, 3), dtype=np.uint8)
    x = Preprocessing(6, 6, mean=(0.0,) * 3, std=(1.0,) * 3).apply(image)
    np.testing.assert_allclose(x.permute(0, 2, 3, 1).numpy() * 255, image, atol=1e-4)


def test_shrinking_averages():
    checkered = np.indices((1, 64, 64)).sum(axis=0) % 2 * 255
    x = Preprocessing(8, 8, mean=(0.0,) * 3, std=(1.0,) * 3).apply(checkered.astype(np.uint8))
    np.testing.assert_allclose(x.numpy(), 0.5, atol=0.02)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"height": 0}, "1 to 4096 pixels, got 0"),
        ({"width": 10**6}, "1 to 4096 pixels"),
        ({"height": 8.0}, "1 to 4096 pixels, got 8.0"),
        ({"mean": (0.5, 0.5)}, "mean must be three numbers"),
        ({"mean": 0.5}, "mean must be three numbers, got 0.5"),
        ({"std": (0.5, float("nan"), 1.0)}, "std must be three numbers"),
        ({"std": (0.5, 0.0, 1.0)}, "std must be positive"),
        ({"mean": (124, 116, 104)}, "mean must be from 0 to 1, .* by 255"),
        ({"mean": (-0.1, 0.5, 0.5)}, "mean must be from 0 to 1"),
    ],
)
def test_impossible_scalings_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        Preprocessing(**({"height": 8, "width": 8} | changes))


def test_numbers_of_numpy_are_numbers():
    scaling = Preprocessing(np.int64(8), 8, mean=np.zeros(3), std=[1, 1, 1])
    assert scaling == Preprocessing(8, 8, mean=(0.0,) * 3, std=(1.0,) * 3)


@pytest.mark.parametrize(
    "images",
    [
        np.zeros((2, 8)),
        np.zeros((2, 8, 8)),
        np.zeros((2, 8, 8, 4), np.uint8),
        np.zeros((2, 8), "u1"),
    ],
)
def test_what_is_not_a_picture_is_refused(images):
    with pytest.raises(ValueError, match=r"needs pictures, uint8 .* or use pixels as features"):
        check_pictures(images)


@given(arrays(np.float32, (4, 5), elements=st.floats(-1e6, 1e6, width=32)))
def test_power_normalisation_is_its_definition(vectors):
    found = power_normalize(vectors)
    assert found.dtype == np.float32
    for row, result in zip(vectors.astype(np.float64), found, strict=True):
        roots = [np.sign(value) * abs(value) ** 0.5 for value in row]
        rms = (sum(root**2 for root in roots) / len(roots)) ** 0.5
        expected = [root / rms if rms else 0.0 for root in roots]
        np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-6)


def test_power_normalisation_in_blocks(monkeypatch):
    vectors = np.random.default_rng(0).normal(size=(20, 6))
    expected = power_normalize(vectors)
    monkeypatch.setattr("jule.features.base.BLOCK_VALUES", 20)
    np.testing.assert_array_equal(power_normalize(vectors), expected)
