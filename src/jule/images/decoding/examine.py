"""Examine pictures: their size, format and colour, mostly from their headers."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from PIL import Image, ImageChops, ImageStat

from jule.images.decoding.decode import (
    SIDEWAYS,
    Item,
    bad_picture_errors,
    exif_orientation,
    open_encoded,
    open_picture,
    to_spec,
)
from jule.images.decoding.spec import ImageSpec
from jule.images.sources.content import BadPictureError, RawImage, open_file, reason_of

VISIBLE = 12.0  # mean difference of the channels, of 255, from which a picture has colour
THUMBNAIL = ImageSpec(32, 32, 3, "stretch")  # what colour is measured on
GREY_MODES = ("1", "L", "LA", "La", "I", "F")


class Examined(NamedTuple):
    """What is known of one picture.

    Attributes
    ----------
    width, height
        After rotation.
    kind
        The name of its format, or "array" or "image".
    has_colour
        Whether it has visible colour; False if that was not looked for.
    """

    width: int
    height: int
    kind: str
    has_colour: bool


def examine_chunk(
    chunk: Mapping[int, Item], colour: int, memory: int | None = None
) -> dict[int, Examined | str]:
    """Examine pictures, given by their index in a source; return a reason for each bad one.

    Parameters
    ----------
    chunk
        The pictures.
    colour
        Look for colour, which decodes pictures, until this many have it.
    memory
        The bytes that a decoder may use, if they are limited.

    Examples
    --------
    >>> examine_chunk({5: b"P5 3 2 255 123456", 6: "it is gone"}, 1)
    {5: Examined(width=3, height=2, kind='PPM', has_colour=False), 6: 'it is gone'}
    """
    found: dict[int, Examined | str] = {}
    for index, item in chunk.items():
        try:
            one = _examine(item, colour > 0, memory)
            colour -= one.has_colour
            found[index] = one
        except BadPictureError as error:
            found[index] = str(error)
    return found


def _examine(item: Item, colour: bool, memory: int | None) -> Examined:
    if isinstance(item, str):
        raise BadPictureError(item)
    if not isinstance(item, Path):
        with bad_picture_errors(memory):
            return _examine_raw(item, colour, memory)
    try:
        with open_file(item) as file, bad_picture_errors(memory):
            n_bytes = os.fstat(file.fileno()).st_size
            return _examine_image(open_encoded(file, n_bytes, memory), colour)
    except OSError as error:
        raise BadPictureError(reason_of(error)) from error
    except BadPictureError:
        raise
    except ValueError as error:  # a name that no file can have
        raise BadPictureError(str(error)) from error


def _examine_raw(raw: RawImage, colour: bool, memory: int | None) -> Examined:
    if isinstance(raw, bytes):
        return _examine_image(open_picture(raw, memory), colour)
    if isinstance(raw, Image.Image):
        # Loaded first: `to_spec` would otherwise leave the caller's image at a reduced size.
        raw.load()
        return _examine_image(raw, colour)
    step = [max(1, side // THUMBNAIL.height) for side in raw.shape[:2]]
    small = open_picture(raw[:: step[0], :: step[1]] if raw.ndim > 1 else raw)
    has_colour = colour and _is_coloured(small.convert("RGB"))
    return Examined(raw.shape[1], raw.shape[0], "array", has_colour)


def _examine_image(image: Image.Image, colour: bool) -> Examined:
    width, height = _upright_size(image)
    kind = image.format or "image"
    has_colour = colour and not _is_grey(image) and _is_coloured(to_spec(image, THUMBNAIL))
    return Examined(width, height, kind, has_colour)


def _upright_size(image: Image.Image) -> tuple[int, int]:
    # Asking a PNG file for metadata that is not in its header would decode all of it.
    if image.format == "PNG" and "exif" not in image.info:
        return image.size
    return image.size[::-1] if exif_orientation(image) in SIDEWAYS else image.size


def _is_grey(image: Image.Image) -> bool:
    return image.mode in GREY_MODES or image.mode.startswith("I;16")


def _is_coloured(image: Image.Image) -> bool:
    """Return whether the channels of an RGB image differ visibly."""
    red, green, blue = image.split()
    most = ImageChops.lighter(ImageChops.lighter(red, green), blue)
    least = ImageChops.darker(ImageChops.darker(red, green), blue)
    return ImageStat.Stat(ImageChops.subtract(most, least)).mean[0] > VISIBLE
