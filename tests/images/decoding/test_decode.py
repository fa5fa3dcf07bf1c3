"""Decoding of one picture: formats, colour modes, orientation, aspect ratio, and bad files."""

import io
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageOps

from jule.images import BadPictureError, ImageSpec
from jule.images.decoding import decode as decoding
from jule.images.decoding.decode import _center_box, _fitted_size, decode, open_picture
from tests.images.pictures import file_of, pixels, png_that_promises

RGB, GREY = ImageSpec(24, 32, 3), ImageSpec(24, 32, 1)


def seen(content, spec=RGB):
    return decode(content, spec)[0]


def reason(content, spec=RGB):
    with pytest.raises(BadPictureError) as error:
        decode(content, spec)
    return str(error.value)


# -- formats -------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["PNG", "BMP", "DIB", "TIFF", "PPM"])
@pytest.mark.parametrize("channels", [1, 3])
def test_lossless_formats_give_every_pixel(kind, channels):
    image = pixels(channels=channels)
    spec = RGB if channels == 3 else GREY
    found = seen(file_of(image, kind), spec)
    assert found.dtype == np.uint8
    np.testing.assert_array_equal(found, image)


@pytest.mark.parametrize("kind", ["JPEG", "WEBP", "AVIF", "HEIF", "MPO"])
def test_lossy_formats_give_about_the_pixels(kind):
    if kind == "HEIF":
        pytest.importorskip("pillow_heif").register_heif_opener()
    image = pixels(height=48, width=64)
    found = seen(file_of(image, kind, quality=95), ImageSpec(48, 64, 3))
    assert np.abs(found.astype(int) - image).mean() < 10


def test_webp_without_loss_gives_every_pixel():
    np.testing.assert_array_equal(seen(file_of(pixels(), "WEBP", lossless=True)), pixels())


def test_a_film_gives_its_first_frame():
    frames = [Image.new("RGB", (32, 24), colour) for colour in ("red", "lime", "blue")]
    for kind in ("GIF", "WEBP", "PNG", "TIFF"):
        more = {"save_all": True, "append_images": frames[1:]}
        if kind == "WEBP":
            more["lossless"] = True
        np.testing.assert_array_equal(seen(file_of(frames[0], kind, **more))[12, 16], (255, 0, 0))


def test_a_heif_photograph_is_upright():
    pytest.importorskip("pillow_heif").register_heif_opener()
    content = file_of(pixels(height=64, width=96), "HEIF", quality=95, exif=_exif(6))
    upright = ImageOps.exif_transpose(Image.open(io.BytesIO(content)))
    size = upright.size
    found = seen(content, ImageSpec(size[1], size[0], 3))
    assert np.abs(found.astype(int) - np.asarray(upright.convert("RGB"))).mean() < 2


def test_without_its_library_a_heif_photograph_says_what_to_install(monkeypatch):
    monkeypatch.setattr(decoding, "known_formats", lambda: ("JPEG", "PNG"))
    head = b"\0\0\0\x18ftypheic\0\0\0\0mif1heic"
    assert reason(head) == 'it is a HEIF photograph: pip install "jule[heif]"'


@pytest.mark.parametrize("kind", ["EPS", "PDF", "ICO", "TGA", "JPEG2000", "SGI", "PCX"])
def test_formats_that_are_not_for_photographs_are_refused(kind):
    assert reason(file_of(pixels(height=32), kind)) == "it is not an image"


# -- kinds of pixel ------------------------------------------------------------------------------


def test_a_palette_gives_its_colours():
    image = Image.fromarray(pixels()).quantize(16)
    for kind in ("PNG", "GIF", "BMP", "TIFF"):
        np.testing.assert_array_equal(seen(file_of(image, kind)), np.asarray(image.convert("RGB")))


def test_a_transparent_colour_of_a_palette_becomes_white():
    image = Image.new("P", (32, 24), 0)
    image.putpalette([200, 0, 0, 0, 0, 200])
    image.paste(1, (0, 0, 16, 24))
    for kind in ("PNG", "GIF"):
        found = seen(file_of(image, kind, transparency=0))
        np.testing.assert_array_equal(found[:, :16], np.broadcast_to((0, 0, 200), (24, 16, 3)))
        assert (found[:, 16:] == 255).all(), kind


def test_transparency_of_each_colour_of_a_palette_is_mixed_with_white():
    image = Image.new("P", (32, 24), 0)
    image.putpalette([0, 0, 0, 0, 0, 0])
    found = seen(file_of(image, "PNG", transparency=bytes([128, 255])))
    np.testing.assert_allclose(found, 127, atol=1)


@pytest.mark.parametrize("kind", ["PNG", "TIFF", "WEBP"])
def test_alpha_lies_over_white(kind):
    image = Image.new("RGBA", (32, 24), (0, 0, 0, 0))
    image.paste((255, 0, 0, 128), (0, 0, 16, 24))
    found = seen(file_of(image, kind, **({"lossless": True} if kind == "WEBP" else {})))
    np.testing.assert_allclose(found[12, 4], (255, 127, 127), atol=1)
    np.testing.assert_array_equal(found[12, 28], (255, 255, 255))


def test_grey_with_alpha_lies_over_white():
    image = Image.new("LA", (32, 24), (0, 0))
    image.paste((100, 255), (0, 0, 16, 24))
    for spec in (GREY, RGB):
        found = seen(file_of(image), spec)
        assert (found[:, :16] == 100).all()
        assert (found[:, 16:] == 255).all()


def test_a_transparent_colour_without_a_palette_becomes_white():
    for mode, colour in (("L", 7), ("RGB", (7, 8, 9))):
        found = seen(file_of(Image.new(mode, (32, 24), colour), transparency=colour))
        assert (found == 255).all(), mode


@pytest.mark.parametrize("kind", ["JPEG", "TIFF"])
def test_cmyk_becomes_what_pillow_shows(kind):
    image = Image.fromarray(pixels()).convert("CMYK")
    content = file_of(image, kind)
    shown = Image.open(io.BytesIO(content)).convert("RGB")
    for spec in (RGB, GREY):
        np.testing.assert_array_equal(seen(content, spec), np.asarray(shown.convert(spec.mode)))


def test_one_bit_is_black_and_white():
    image = Image.fromarray(pixels(channels=1)).convert("1")
    for kind in ("PNG", "TIFF", "BMP", "PPM"):
        found = seen(file_of(image, kind), GREY)
        np.testing.assert_array_equal(found, np.asarray(image).astype(np.uint8) * 255)


@pytest.mark.parametrize("kind", ["PNG", "TIFF", "PPM"])
def test_sixteen_bits_become_eight(kind):
    image = pixels(channels=1)
    content = file_of(Image.fromarray(image.astype(np.uint16) * 257), kind)
    np.testing.assert_array_equal(seen(content, GREY), image)
    np.testing.assert_array_equal(seen(content, RGB), np.stack([image] * 3, axis=-1))


def test_sixteen_bits_with_the_large_byte_first():
    image = pixels(channels=1)
    wide = Image.frombytes("I;16B", (32, 24), (image.astype(">u2") * 257).tobytes())
    np.testing.assert_array_equal(seen(file_of(wide, "TIFF"), GREY), image)


@pytest.mark.parametrize("scale", [1 / 255, 1.0])
def test_floats_up_to_1_or_to_255_become_eight_bits(scale):
    image = pixels(channels=1)
    found = seen(file_of(Image.fromarray(image.astype(np.float32) * scale), "TIFF"), GREY)
    np.testing.assert_array_equal(found, image)


def test_floats_that_are_not_finite_are_refused():
    image = np.full((24, 32), np.nan, np.float32)
    assert "NaN" in reason(file_of(Image.fromarray(image), "TIFF"))
    assert "NaN" in reason(image)


def test_other_kinds_of_colour():
    image = Image.fromarray(pixels()).convert("YCbCr")
    found = seen(file_of(image, "TIFF"))
    np.testing.assert_allclose(found, pixels(), atol=3)


@pytest.mark.parametrize(
    "array",
    [np.float32(pixels()) / 255, pixels().astype(np.int64), pixels().astype(np.uint16)],
)
def test_arrays_of_other_numbers_become_eight_bits(array):
    np.testing.assert_array_equal(seen(array), pixels())


def test_arrays_of_truth_values_are_black_and_white():
    assert np.unique(seen(pixels(channels=1) > 100, GREY)).tolist() == [0, 255]


@pytest.mark.parametrize("shape", [(5,), (4, 4, 2), (2, 3, 4, 3), ()])
def test_arrays_of_another_shape_are_no_pictures(shape):
    assert "is not a picture" in reason(np.zeros(shape, np.uint8))


def test_arrays_of_text_are_no_pictures():
    assert "is not a picture" in reason(np.full((4, 4), "a"))


# -- orientation ---------------------------------------------------------------------------------


def _exif(turn):
    exif = Image.Exif()
    exif[0x0112] = turn
    return exif.tobytes()


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "TIFF", "AVIF"])
@pytest.mark.parametrize("turn", range(1, 9))
def test_orientation_is_followed(kind, turn):
    content = file_of(pixels(), kind, exif=_exif(turn))
    upright = ImageOps.exif_transpose(Image.open(io.BytesIO(content)))
    assert (upright.size == (24, 32)) == (turn >= 5)
    spec = ImageSpec(upright.height, upright.width, 3)
    np.testing.assert_array_equal(seen(content, spec), np.asarray(upright.convert("RGB")))


@pytest.mark.parametrize("turn", range(1, 9))
@pytest.mark.parametrize("aspect", ["crop", "fit", "stretch"])
def test_a_turned_picture_is_cut_and_scaled_as_an_upright_one(turn, aspect):
    content = file_of(pixels(height=60, width=96), "PNG", exif=_exif(turn))
    upright = ImageOps.exif_transpose(Image.open(io.BytesIO(content)))
    spec = ImageSpec(20, 16, 3, aspect)
    expected = seen(file_of(upright), spec).astype(int)
    assert np.abs(seen(content, spec) - expected).max() <= 2


@pytest.mark.parametrize("turn", [0, 9, 65535])
def test_an_orientation_that_means_nothing_is_upright(turn):
    content = file_of(pixels(), "PNG", exif=_exif(turn))
    np.testing.assert_array_equal(seen(content), pixels())


def test_damaged_exif_does_not_cost_the_picture():
    content = file_of(pixels(), "JPEG", quality=95, exif=b"Exif\0\0MM\0*rubbish that is no IFD")
    np.testing.assert_allclose(seen(content).astype(int), pixels(), atol=40)


# -- shape ---------------------------------------------------------------------------------------


def _thirds():
    """Red, lime and blue, 20 columns each."""
    colours = np.eye(3, dtype=np.uint8) * 255
    return np.repeat(np.broadcast_to(colours, (20, 3, 3)), 20, axis=1)


def test_crop_keeps_the_middle():
    found = seen(file_of(_thirds()), ImageSpec(10, 10, 3, "crop"))
    assert (found[:, 1:-1] == (0, 255, 0)).all()  # the outermost pixels blend with what was cut


def test_fit_keeps_everything_with_black_around():
    found = seen(file_of(_thirds()), ImageSpec(30, 30, 3, "fit"))
    assert (found[:10] == 0).all()
    assert (found[20:] == 0).all()
    np.testing.assert_array_equal(found[15, [2, 15, 27]], np.eye(3) * 255)


def test_stretch_keeps_everything():
    found = seen(file_of(_thirds()), ImageSpec(60, 30, 3, "stretch"))
    for row in (0, 30, 59):
        np.testing.assert_array_equal(found[row, [2, 15, 27]], np.eye(3) * 255)


@pytest.mark.parametrize("aspect", ["crop", "fit", "stretch"])
@pytest.mark.parametrize("size", [(1, 1), (3000, 1), (1, 3000), (2, 2), (500, 7)])
@pytest.mark.parametrize("spec", [(64, 64), (1, 1), (1, 64), (64, 1)])
def test_odd_sizes_are_brought_to_the_spec(aspect, size, spec):
    for kind in ("PNG", "JPEG"):
        found = seen(file_of(Image.new("RGB", size, "white"), kind), ImageSpec(*spec, 3, aspect))
        assert found.shape == (*spec, 3)
        assert found.max() == 255  # the picture is in it, not black alone


def test_scaling_a_jpeg_while_decoding_looks_like_scaling_it_after():
    image = pixels(height=800, width=1000)
    content = file_of(image, "JPEG", quality=95)
    for spec in (ImageSpec(48, 64, 3), ImageSpec(48, 64, 1)):
        whole = Image.open(io.BytesIO(content))
        whole.load()  # too late for the decoder to scale
        difference = np.abs(seen(content, spec).astype(int) - seen(whole, spec))
        assert difference.mean() < 3


sizes = st.tuples(st.integers(1, 5000), st.integers(1, 5000))


@settings(max_examples=40)
@given(sizes, sizes)
def test_the_middle_is_the_largest_box_of_the_right_shape(image, size):
    left, top, right, bottom = _center_box(image, size)
    assert 0 <= left < right <= image[0]
    assert 0 <= top < bottom <= image[1]
    assert math.isclose((right - left) * size[1], (bottom - top) * size[0], rel_tol=1e-6)
    assert math.isclose(left, image[0] - right, abs_tol=1e-6)
    assert math.isclose(top, image[1] - bottom, abs_tol=1e-6)
    whole = (right - left) / image[0], (bottom - top) / image[1]
    assert math.isclose(max(whole), 1, rel_tol=1e-6)


@settings(max_examples=40)
@given(sizes, sizes)
def test_what_fits_within_touches_two_sides_and_keeps_its_shape(image, size):
    width, height = _fitted_size(image, size)
    assert 1 <= width <= size[0]
    assert 1 <= height <= size[1]
    assert width == size[0] or height == size[1]
    assert abs(width * image[1] - height * image[0]) <= max(image)  # within a pixel


# -- what is refused -----------------------------------------------------------------------------


def test_a_small_file_that_promises_a_huge_picture_is_refused():
    assert "too large to be decoded safely" in reason(png_that_promises(60_000, 60_000))


@pytest.mark.parametrize(
    "content", [b"hello", b"\0" * 5000, b"<html></html>", b"\x89PNG\r\n\x1a\n"]
)
def test_what_is_no_image_is_refused(content):
    assert reason(content) in ("it is not an image", "it is damaged (Truncated File Read)")


def test_an_empty_file_is_refused():
    assert reason(b"") == "it is empty"


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "GIF", "TIFF", "BMP"])
def test_a_file_cut_in_the_middle_is_refused(kind):
    content = file_of(pixels(height=120, width=160), kind)
    assert reason(content[: len(content) // 2])


def test_an_open_picture_whose_file_is_cut_off_is_refused():
    content = file_of(pixels(height=120, width=160), "PNG")
    image = Image.open(io.BytesIO(content[: len(content) // 2]))
    assert "damaged" in reason(image)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ((0, 4, 1), "at least 1 x 1"),
        ((4, 4, 2), "got 2"),
        ((4, 4, 3, "squeeze"), "crop, fit, stretch"),
    ],
)
def test_a_spec_must_make_sense(values, message):
    with pytest.raises(ValueError, match=message):
        ImageSpec(*values)


# -- digests -------------------------------------------------------------------------------------


def test_equal_contents_have_equal_digests_and_others_have_not():
    one, other = file_of(pixels()), file_of(pixels(1))
    digests = [decode(x, RGB)[1] for x in (one, one, other, pixels(), Image.fromarray(pixels()))]
    assert digests[0] == digests[1]
    assert len(set(digests)) == 4
    assert {len(digest) for digest in digests} == {16}


def test_opening_a_picture_does_not_decode_it():
    content = file_of(pixels(height=120, width=160), "PNG")
    assert open_picture(content[: len(content) // 2]).size == (160, 120)


@pytest.mark.parametrize("size", [(32, 24), (24, 32)])
def test_a_rotated_tiff_of_the_target_size_is_turned_first(size):
    exif = Image.Exif()
    exif[0x0112] = 6
    upright = pixels(height=24, width=32)
    turned = Image.fromarray(upright).transpose(Image.Transpose.ROTATE_90)
    content = file_of(turned, "TIFF", exif=exif.tobytes())
    spec = ImageSpec(size[1], size[0], 3, "stretch")
    expected = Image.fromarray(upright).resize(size, Image.Resampling.BILINEAR, reducing_gap=2.0)
    np.testing.assert_array_equal(decode(content, spec)[0], np.asarray(expected))
