"""Spatial pyramids: against slow loops over pixels and patches, and what must not change them."""

import math

import numpy as np
import pytest

from jule.paper import pyramid
from jule.paper.pyramid import Grid, describe, spatial_pyramid


@pytest.fixture
def images():
    return np.random.default_rng(0).random((6, 13, 11))


def slow_gradient(image, y, x):
    """Return the derivative (across, down) of a smoothed image at one pixel."""
    height, width = image.shape
    bell = {k: math.exp(-(k**2) / 2) for k in range(-2, 3)}
    total = sum(bell.values())
    slope = {k: k * bell[k] for k in bell}
    scale = 2 / sum(abs(value) for value in slope.values())
    across = down = 0.0
    for dy in bell:
        for dx in bell:
            value = image[min(max(y + dy, 0), height - 1), min(max(x + dx, 0), width - 1)]
            across += value * bell[dy] / total * slope[dx] * scale
            down += value * bell[dx] / total * slope[dy] * scale
    return across, down


def slow_descriptor(image, grid, top, left):
    """Return the descriptor of one patch, pixel by pixel."""
    found = np.zeros((4, 4, 8))
    side = grid.patch / 4
    for y in range(image.shape[0]):
        for x in range(image.shape[1]):
            across, down = slow_gradient(image, y, x)
            norm, angle = math.hypot(across, down), math.atan2(down, across)
            for i in range(4):
                for j in range(4):
                    far = abs(y - (top + (i + 0.5) * side - 0.5)) / side
                    wide = abs(x - (left + (j + 0.5) * side - 0.5)) / side
                    for o in range(8):
                        turned = max(math.cos(angle - o * math.pi / 4), 0) ** 9
                        found[i, j, o] += norm * turned * max(1 - far, 0) * max(1 - wide, 0)
    found = found.ravel() * (16 / grid.patch) ** 2
    length = np.linalg.norm(found)
    if length < 1:
        return found
    found = np.minimum(found / length, 0.2)
    return found / np.linalg.norm(found)


@pytest.mark.parametrize("contrast", [1.0, 0.02])
def test_descriptors_are_those_of_slow_loops(images, contrast):
    grid = Grid.fit(13, 11)
    assert (grid.patch, grid.spacing, grid.shape) == (4, 1, (10, 8))
    found = describe(contrast * images[:1], grid)
    assert found.shape == (1, 80, 128)
    for row, column in ((0, 0), (4, 3), (9, 7)):
        slow = slow_descriptor(contrast * images[0], grid, row, column)
        assert (np.linalg.norm(slow) > 0.999) == (contrast == 1.0), "both cases are tested"
        np.testing.assert_allclose(found[0, row * 8 + column], slow, atol=1e-5)


def test_patches_of_even_images_have_the_same_descriptor_and_no_contrast():
    found = describe(np.full((1, 16, 16), 0.7), Grid.fit(16, 16))
    np.testing.assert_allclose(found, 0, atol=1e-6)


def test_brightness_and_contrast_do_not_matter(images):
    grid = Grid.fit(13, 11)
    found = describe(images, grid)
    np.testing.assert_allclose(describe(0.6 * images + 0.3, grid), found, atol=1e-4)


@pytest.mark.parametrize(
    "weights", [(1.0,), (0.5, 0.5), (0.25, 0.25, 0.5), (0.125, 0.125, 0.25, 0.5)]
)
def test_histograms_count_the_words_of_every_cell(weights):
    rng = np.random.default_rng(1)
    finest = 2 ** (len(weights) - 1)
    words, cells = rng.integers(0, 3, (2, 20)), rng.integers(0, finest**2, 20)
    found = pyramid._histograms(words, cells, 3, len(weights))
    expected = [[] for _ in words]
    for level, weight in enumerate(weights):
        side = 2**level
        shares = np.zeros((2, side, side, 3))
        for image in range(2):
            for word, cell in zip(words[image], cells, strict=True):
                row, column = divmod(int(cell), finest)
                shares[image, row * side // finest, column * side // finest, word] += weight / 20
            expected[image] += shares[image].ravel().tolist()
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_every_patch_lies_in_the_cell_of_its_centre():
    grid = Grid.fit(28, 28)
    assert grid.shape == (11, 11)
    cells = grid.cells(4).reshape(11, 11)
    assert cells[0, 0] == 0
    assert cells[-1, -1] == 15
    # Patches start at 0, 2, ..., 20; the centre of the fourth, at pixel 10, is in the second cell.
    assert cells[0].tolist() == [0, 0, 1, 1, 1, 2, 2, 2, 2, 3, 3]


def test_patches_of_large_images_lie_in_all_cells():
    assert np.unique(Grid.fit(128, 128).cells(8)).tolist() == list(range(64))


def test_pyramids_have_at_least_one_level(images):
    assert spatial_pyramid(images, n_levels=1, n_words=7).shape == (6, 7)
    with pytest.raises(ValueError, match="n_levels must be at least 1, got 0"):
        spatial_pyramid(images, n_levels=0)


def test_pyramids_depend_on_neither_batches_nor_other_images(images, monkeypatch):
    found = spatial_pyramid(images, n_words=7, seed=3)
    assert found.shape == (6, 21 * 7)
    assert found.dtype == np.float32
    seen = []
    monkeypatch.setattr(pyramid, "BATCH_VALUES", 1)
    again = spatial_pyramid(images, n_words=7, seed=3, progress=lambda *each: seen.append(each))
    np.testing.assert_allclose(again, found, atol=1e-6)
    assert seen[-1] == ("spatial pyramid", 1.0)
    assert len(seen) == 6


def test_the_seed_chooses_the_vocabulary(images, monkeypatch):
    monkeypatch.setattr(pyramid, "MAX_DESCRIPTORS", 60)
    first, again, other = (spatial_pyramid(images, n_words=7, seed=seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_there_are_no_more_words_than_different_patches():
    found = spatial_pyramid(np.zeros((3, 16, 16)), n_words=50)
    np.testing.assert_allclose(found.sum(axis=1), 1)
    assert found.shape == (3, 21)


def test_images_that_are_too_small_are_refused():
    with pytest.raises(ValueError, match=r"at least 8 x 8 pixels, got 7 x 20"):
        spatial_pyramid(np.zeros((3, 7, 20)))
