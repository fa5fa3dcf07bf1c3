"""PNG files whose rows are not all there, which Pillow decodes without a word."""

import numpy as np
import pytest

from jule.images import BadPictureError, ImageSpec
from jule.images.decoding import png
from jule.images.decoding.decode import decode
from jule.images.decoding.png import unpacked_size
from tests.images.pictures import file_of, pixels, png_of_rows, png_that_promises

SPEC = ImageSpec(8, 8, 3)
CUT_OFF = "it is cut off: not all of its rows are there"
# Colour type, depth, and bytes of a row of 20 pixels.
KINDS = [(0, 1, 3), (0, 2, 5), (0, 8, 20), (0, 16, 40), (2, 8, 60), (2, 16, 120), (3, 1, 3),
         (3, 8, 20), (4, 8, 40), (4, 16, 80), (6, 8, 80), (6, 16, 160)]  # fmt: skip


def reason(content):
    with pytest.raises(BadPictureError) as caught:
        decode(content, SPEC)
    return str(caught.value)


@pytest.mark.parametrize(("kind", "depth", "size"), KINDS)
@pytest.mark.parametrize("value", [0, 1, 255])
def test_every_row_must_be_there(kind, depth, size, value):
    row = b"\0" + bytes([value if kind != 3 else min(value, 1)]) * size
    whole = png_of_rows(20, 10, row * 10, kind=kind, depth=depth)
    assert unpacked_size(whole) == 10 * len(row)
    decode(whole, SPEC)
    for there in (1, 5, 9):
        assert reason(png_of_rows(20, 10, row * there, kind=kind, depth=depth)) == CUT_OFF
    half = png_of_rows(20, 10, (row * 10)[:-1], kind=kind, depth=depth)
    assert "truncated" in reason(half)  # Pillow finds these


@pytest.mark.parametrize(("width", "height"), [(20, 10), (1, 1), (3, 5), (8, 8), (1, 9), (9, 1)])
def test_interlaced_rows_are_counted_pass_by_pass(width, height):
    # The number of pixels of each pass, counted pixel by pixel.
    passes = np.full((height, width), 7)
    for number, (left, top, right, down) in reversed(list(enumerate(png.PASSES, start=1))):
        passes[top::down, left::right] = np.minimum(passes[top::down, left::right], number)
    size = 0
    for number in range(1, 8):
        inside = passes == number
        rows = int(inside.any(axis=1).sum())
        size += rows + 3 * int(inside.sum())
    whole = png_of_rows(width, height, bytes(size), interlaced=True)
    assert unpacked_size(whole) == size
    decode(whole, SPEC)
    reasons = {
        reason(png_of_rows(width, height, bytes(there), interlaced=True)) for there in range(size)
    }
    assert CUT_OFF in reasons or height == 1


def test_more_than_is_needed_is_fine():
    decode(png_of_rows(20, 10, bytes(10 * 61 + 5)), SPEC)


def test_what_cannot_be_there_is_not_looked_for():
    for width, height in ((1, 89_000_000), (89_000_000, 1), (9000, 9000)):
        assert reason(png_that_promises(width, height)) == CUT_OFF


def test_good_pictures_are_unpacked_once(monkeypatch):
    monkeypatch.setattr(png, "_unpack", None)
    decode(file_of(pixels()), SPEC)
