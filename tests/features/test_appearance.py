import math

import numpy as np
import pytest

from jule.features import appearance
from jule.features.appearance import can_be_described, describe_appearance


def some_images(n=6, height=17, width=23, seed=0):
    rng = np.random.default_rng(seed)
    coarse = rng.integers(0, 256, (n, 5, 5, 3))
    rows, columns = np.arange(height) * 5 // height, np.arange(width) * 5 // width
    noise = rng.integers(-20, 21, (n, height, width, 3))
    return np.clip(coarse[:, rows][:, :, columns] + noise, 0, 255).astype(np.uint8)


def slow_histograms(image):
    """Count colours, edges and textures of one image pixel by pixel."""
    height, width, _ = image.shape
    light = [[float(pixel @ np.array([0.299, 0.587, 0.114])) for pixel in row] for row in image]
    colours, edges, textures = (np.zeros((16, codes)) for codes in (64, 8, 59))
    plain = [p for p in range(256) if changes(p) <= 2]
    for y in range(height):
        for x in range(width):
            cell = 4 * (4 * y // height) + 4 * x // width
            red, green, blue = (int(value) // 64 for value in image[y, x])
            colours[cell, 16 * red + 4 * green + blue] += 1
            above, below = max(y - 1, 0), min(y + 1, height - 1)
            left, right = max(x - 1, 0), min(x + 1, width - 1)
            down = (light[below][x] - light[above][x]) / (below - above)
            across = (light[y][right] - light[y][left]) / (right - left)
            turn = math.atan2(down, across) / (2 * math.pi) + 0.5
            edges[cell, int(8 * turn) % 8] += math.hypot(down, across)
            ring = [(above, left), (above, x), (above, right), (y, right)]
            ring += [(below, right), (below, x), (below, left), (y, left)]
            pattern = sum(2**i for i, (v, u) in enumerate(ring) if light[v][u] >= light[y][x])
            textures[cell, plain.index(pattern) if pattern in plain else 58] += 1
    return [np.sqrt(each / each.sum()).ravel() for each in (colours, edges, textures)]


def changes(pattern):
    bits = [pattern >> i & 1 for i in range(8)]
    return sum(bits[i] != bits[i - 1] for i in range(8))


def test_histograms_are_those_of_a_slow_count():
    images = some_images(n=3)
    for found, image in zip(describe_appearance(images), images, strict=True):
        np.testing.assert_allclose(found, np.concatenate(slow_histograms(image)), atol=2e-3)


def test_every_kind_has_norm_1_also_without_edges():
    images = np.concatenate([some_images(), np.full((2, 17, 23, 3), 7, np.uint8)])
    parts = np.split(np.square(describe_appearance(images)), [1024, 1024 + 128], axis=1)
    for part in parts:
        np.testing.assert_allclose(part.sum(axis=1), 1.0, atol=1e-5)


def test_batches_do_not_matter(monkeypatch):
    images, seen = some_images(), []
    whole = describe_appearance(images)
    monkeypatch.setattr(appearance, "BATCH_VALUES", 2 * images[0].size)
    np.testing.assert_array_equal(describe_appearance(images, seen.append), whole)
    assert seen == [pytest.approx(share) for share in (1 / 3, 2 / 3, 1.0)]


def test_other_types_are_scaled():
    images = some_images()
    images[0, 0, 0], images[0, 0, 1] = 0, 255
    scaled, found = describe_appearance(images / 255.0 - 0.5), describe_appearance(images)
    between = np.square(scaled[:, None] - found).sum(axis=-1)
    assert np.diag(between).max() < 0.03  # values that are just equal need not be after scaling
    assert between[~np.eye(len(images), dtype=bool)].min() > 1.0


def test_a_hot_pixel_does_not_darken_all_other_pictures():
    images = some_images(height=64, width=64) / 255.0
    hot = images.copy()
    hot[0, 0, 0] = 50.0
    np.testing.assert_array_equal(describe_appearance(hot)[1:], describe_appearance(images)[1:])


@pytest.mark.parametrize("scale", [1e-310, 1e-30, 1e30])
def test_values_of_any_size_are_described(scale):
    found = describe_appearance(some_images() * scale)
    np.testing.assert_allclose(np.square(found).sum(axis=1), 3.0, atol=1e-4)


def test_equal_values_of_another_type_are_one_colour():
    found = describe_appearance(np.full((2, 16, 16, 3), 0.3))
    assert np.isfinite(found).all()
    np.testing.assert_array_equal(found[0], found[1])


def test_a_shifted_image_is_nearer_than_another_one():
    images = some_images(n=20, height=64, width=64)
    found = describe_appearance(np.concatenate([images, np.roll(images, 2, axis=2)]))
    nearest = (found[:20] @ found[20:].T).argmax(axis=1)
    np.testing.assert_array_equal(nearest, np.arange(20))


@pytest.mark.parametrize("shape", [(5, 30), (5, 28, 28), (5, 28, 28, 1), (5, 15, 64, 3)])
def test_only_pictures_in_colour_can_be_described(shape):
    assert not can_be_described(np.zeros(shape))
