"""Sheets of thumbnails: every sample finds its own picture again."""

import io

import numpy as np
import pytest
from PIL import Image

from jule.report.pictures import brightness, make_sheets, thumbnail


def picture_of(sheets, sample):
    place = int(sheets.places[sample])
    sheet, within = divmod(place, sheets.columns * sheets.rows)
    pixels = np.asarray(Image.open(io.BytesIO(sheets.content[sheet])))
    top = within // sheets.columns * sheets.cell_height + 1
    left = within % sheets.columns * sheets.cell_width + 1
    return pixels[top : top + sheets.height, left : left + sheets.width]


def test_small_grey_images_are_kept_exactly():
    images = np.random.default_rng(0).integers(0, 256, (1500, 12, 9), np.uint8)
    order = np.random.default_rng(1).permutation(1500)
    sheets = make_sheets(images, order)
    assert sheets.kind == "png"
    assert sheets.inline
    for sample in (0, 1, 700, 1499):
        np.testing.assert_array_equal(picture_of(sheets, sample), images[sample])


def test_many_images_take_several_sheets_beside_the_page():
    images = np.random.default_rng(0).integers(0, 256, (6000, 16, 16), np.uint8)
    sheets = make_sheets(images)
    assert len(sheets.content) > 1
    assert not sheets.inline
    for sample in (0, 3135, 3136, 5999):
        np.testing.assert_array_equal(picture_of(sheets, sample), images[sample])


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
def test_channels(channels):
    images = np.full((5, 20, 30, channels), 200, np.uint8)
    images[..., 0] = 40
    sheets = make_sheets(images)
    shown = picture_of(sheets, 4)
    assert shown.shape == ((20, 30) if channels < 3 else (20, 30, 3))
    expected = 40 if channels < 3 else np.array([40, 200, 200])
    assert np.abs(shown.astype(int) - expected).max() <= 4


def test_large_images_shrink_and_keep_their_shape():
    images = np.zeros((3, 200, 100, 3), np.uint8)
    images[:, :100] = 255
    sheets = make_sheets(images)
    assert (sheets.height, sheets.width) == (96, 48)
    assert sheets.kind == "jpeg"
    shown = picture_of(sheets, 2)
    assert shown[:40].min() > 240
    assert shown[56:].max() < 15


def test_floats_are_scaled_to_black_and_white():
    assert brightness(np.array([[[0.0, 0.5]]])) == (0.0, 1.0)
    assert brightness(np.array([[[0.0, 200.0]]])) == (0.0, 255.0)
    assert brightness(np.array([[[0.0, 16.0]]])) == (0.0, 16.0)
    assert brightness(np.array([[[-2.0, 6.0]]])) == (-2.0, 6.0)
    image = np.array([[-2.0, 2.0, 6.0]])
    assert thumbnail(image, (-2.0, 6.0), (1, 3)).tolist() == [[0, 128, 255]]
    flat = np.full((2, 3, 3), 7.0, np.float32)
    assert make_sheets(flat).kind == "png"  # nothing is divided by zero
