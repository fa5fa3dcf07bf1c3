"""HOG and LBP: the values of scikit-image, arranged by cell."""

import sys

import numpy as np
import pytest

from jule.images import load_dataset
from jule.paper.descriptors import cell_side, grey, hog, lbp

IMAGES = np.random.default_rng(0).integers(0, 256, (3, 20, 17), dtype=np.uint8)


def test_colours_become_luminance():
    colours = np.zeros((1, 1, 3, 3), np.uint8)
    colours[0, 0] = np.diag([200, 200, 200])
    assert grey(colours).tolist() == [[[60, 117, 23]]]
    assert grey(IMAGES) is IMAGES


def test_hog_has_one_histogram_per_cell_and_block():
    feature = pytest.importorskip("skimage.feature")
    found = hog(IMAGES)
    assert cell_side(20, 17) == 5
    assert found.shape == (3, 3 * 2 * 4 * 9)
    blocks = feature.hog(
        IMAGES[1] / 255, pixels_per_cell=(5, 5), cells_per_block=(2, 2), feature_vector=False
    )
    np.testing.assert_allclose(found[1].reshape(blocks.shape), blocks, atol=1e-5)
    assert hog(np.zeros((1, 20, 20), np.uint8), cells=2).shape == (1, 4 * 9), "one block"


def test_lbp_counts_the_patterns_of_every_cell():
    feature = pytest.importorskip("skimage.feature")
    found = lbp(IMAGES).reshape(3, 4, 3, 59)
    codes = feature.local_binary_pattern(IMAGES[2], 8, 1, "nri_uniform")
    for row in range(4):
        for column in range(3):
            cell = codes[5 * row : 5 * row + 5, 5 * column : 5 * column + 5]
            for code in range(59):
                assert found[2, row, column, code] == pytest.approx((cell == code).mean())


def test_one_cell_is_the_whole_image():
    feature = pytest.importorskip("skimage.feature")
    (found, *_) = lbp(IMAGES, cells=1)
    codes = feature.local_binary_pattern(IMAGES[0], 8, 1, "nri_uniform")
    np.testing.assert_allclose(found, [(codes == code).mean() for code in range(59)], atol=1e-6)


@pytest.mark.parametrize("describe", [hog, lbp])
def test_images_of_a_class_are_closer_than_others(describe):
    pytest.importorskip("skimage")
    digits = load_dataset("digits")
    vectors = describe(digits.images[:200])
    distances = ((vectors[:, None] - vectors) ** 2).sum(axis=2)
    np.fill_diagonal(distances, np.inf)
    right = digits.labels[:200] == digits.labels[:200][distances.argmin(axis=1)]
    assert right.mean() > 0.8


def test_progress_ends_with_all_images():
    pytest.importorskip("skimage")
    seen = []
    lbp(IMAGES, progress=lambda *each: seen.append(each))
    assert seen == [("LBP", 1.0)]


@pytest.mark.parametrize("describe", [hog, lbp])
def test_a_missing_scikit_image_is_one_clear_line(describe, monkeypatch):
    monkeypatch.setitem(sys.modules, "skimage", None)
    with pytest.raises(ImportError, match=r'need scikit-image: pip install "jule\[descriptors\]"'):
        describe(IMAGES)
