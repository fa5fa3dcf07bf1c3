"""Codes of patches against plain loops."""

import numpy as np
import pytest

from jule.paper import codes as module
from jule.paper.codes import encode, learn_codes, principal_directions
from jule.paper.patches import SIDE, normalize_contrast


def slow_features(image, describe, codebook):
    """The features of one image, patch by patch and code by code."""
    height, width = (side - SIDE + 1 for side in image.shape[:2])
    quadrants = np.zeros((2, 2, len(codebook)))
    for y in range(height):
        for x in range(width):
            patch = image[y : y + SIDE, x : x + SIDE].astype(np.float32).reshape(1, -1)
            (vectors,) = describe(normalize_contrast(patch))
            distances = np.linalg.norm(codebook.astype(np.float64) - vectors, axis=1)
            half_y, half_x = int(y > (height - 1) / 2), int(x > (width - 1) / 2)
            quadrants[half_y, half_x] += np.maximum(distances.mean() - distances, 0)
    return quadrants.ravel()


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.mark.parametrize("shape", [(7, 10, 10, 3), (2, 12, 9), (1, 6, 6)])
def test_features_as_by_plain_loops(rng, shape):
    images = rng.integers(0, 256, shape).astype(np.uint8)
    codebook = rng.normal(size=(5, SIDE * SIDE * (3 if len(shape) == 4 else 1))).astype(np.float32)
    features = encode(images, lambda patches: [2 * patches], [codebook])
    expected = [slow_features(image, lambda patches: [2 * patches], codebook) for image in images]
    np.testing.assert_allclose(features, expected, rtol=1e-4, atol=1e-4)


def test_codebooks_follow_each_other(rng):
    images = rng.integers(0, 256, (5, 8, 8)).astype(np.uint8)
    first, second = (rng.normal(size=(k, 36)).astype(np.float32) for k in (4, 3))
    both = encode(images, lambda patches: [patches, -patches], [first, second])
    np.testing.assert_array_equal(both[:, :16], encode(images, lambda p: [p], [first]))
    np.testing.assert_array_equal(both[:, 16:], encode(images, lambda p: [-p], [second]))


def test_features_do_not_depend_on_blocks_and_threads(rng, monkeypatch):
    images = rng.integers(0, 256, (9, 8, 8)).astype(np.uint8)
    codebook = rng.normal(size=(4, 36)).astype(np.float32)
    whole = encode(images, lambda patches: [patches], [codebook])
    monkeypatch.setattr(module, "IMAGES_AT_ONCE", 2)
    monkeypatch.setattr(module, "get_num_threads", lambda: 3)
    shares = []
    parts = encode(images, lambda patches: [patches], [codebook], progress=shares.append)
    np.testing.assert_allclose(parts, whole, rtol=1e-5)
    assert shares == [0.2, 0.4, 0.6, 0.8, 1.0]


def test_an_error_in_a_thread_is_raised(rng):
    images = rng.integers(0, 256, (9, 8, 8)).astype(np.uint8)
    with pytest.raises(ZeroDivisionError):
        encode(images, lambda patches: 1 / 0, [np.eye(2, 36, dtype=np.float32)])


def test_codes_are_centroids(rng):
    centres = np.array([[0, 0], [9, 0], [0, 9]], np.float32)
    vectors = (centres[np.arange(300) % 3] + rng.normal(0, 0.1, (300, 2))).astype(np.float32)
    codes = learn_codes(vectors, 3, seed=0)
    assert codes.dtype == np.float32
    means = np.array([vectors[number::3].mean(axis=0) for number in range(3)])
    order = np.lexsort(codes.T.round()), np.lexsort(means.T.round())
    np.testing.assert_allclose(codes[order[0]], means[order[1]], atol=1e-4)


def test_principal_directions_hold_the_share(rng):
    vectors = (rng.normal(size=(500, 8)) * np.arange(1, 9)).astype(np.float32)
    centred = vectors - vectors.mean(axis=0)
    total = np.square(centred).sum()
    for share in (0.5, 0.9, 0.999):
        kept = principal_directions(vectors, share)
        np.testing.assert_allclose(kept.T @ kept, np.eye(kept.shape[1]), atol=1e-5)
        assert np.square(centred @ kept).sum() / total >= share
        assert np.square(centred @ kept[:, :-1]).sum() / total < share
