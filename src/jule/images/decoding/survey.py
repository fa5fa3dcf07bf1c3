"""Survey some pictures of a source, and choose the size and colour mode for all of them.

Sizes come from the headers of the files. Pixels are decoded only until it is known whether the
set has colour.
"""

from __future__ import annotations

import warnings
from collections import Counter
from dataclasses import dataclass, field
from itertools import islice
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from jule.images.decoding.decode import (
    SIDEWAYS,
    Aspect,
    ImageSpec,
    bad_picture_errors,
    check_aspect,
    exif_orientation,
    open_encoded,
    open_picture,
    to_spec,
    to_uint8,
)
from jule.images.sources.base import ImageSource
from jule.images.sources.content import BadPictureError, RawImage, open_file, reason_of

Colour = Literal["auto", "grey", "rgb"]

SURVEYED = 256  # pictures, evenly spaced
LARGEST_SIDE = 64  # pixels: enough to tell things apart, and a million images take 12 GB
VISIBLE = 12.0  # mean difference of the channels, of 255, from which a picture has colour
MIN_COLOURED = 0.05  # share of pictures with colour from which a set has colour
THUMBNAIL = ImageSpec(32, 32, 3, "stretch")  # what colour is measured on
GREY_MODES = ("1", "L", "LA", "La", "I", "F")


@dataclass
class Survey:
    """Sizes, formats and colour of some pictures of a source.

    Attributes
    ----------
    sizes
        (width, height) of each picture, after rotation.
    formats
        How many pictures have each format.
    n_coloured
        How many pictures have visible colour; counting stops when there are enough to call the set
        coloured.
    bad
        Name and reason of those that cannot be read.
    """

    sizes: list[tuple[int, int]] = field(default_factory=list)
    formats: Counter[str] = field(default_factory=Counter)
    n_coloured: int = 0
    bad: list[tuple[str, str]] = field(default_factory=list)

    @property
    def has_colour(self) -> bool:
        """Whether at least one picture in twenty has visible colour."""
        return self.n_coloured > 0 and self.n_coloured >= MIN_COLOURED * len(self.sizes)


def survey(source: ImageSource, n_pictures: int = SURVEYED, *, colour: bool = True) -> Survey:
    """Examine some evenly spaced pictures, or others if none of these can be read.

    Parameters
    ----------
    source
        The pictures.
    n_pictures
        How many to examine.
    colour
        Whether to look for colour, which decodes a few pictures.

    Examples
    --------
    >>> from jule.images.sources.arrays import ArraySource
    >>> survey(ArraySource(np.zeros((3, 8, 6), np.uint8))).sizes
    [(6, 8), (6, 8), (6, 8)]
    """
    n = len(source)
    spaced = sorted({int(i) for i in np.linspace(0, n - 1, min(n, n_pictures))}) if n else []
    found = _examine_all(source, spaced, colour)
    others = iter(sorted(set(range(n)) - set(spaced)) if not found.sizes else [])
    while not found.sizes and (block := list(islice(others, n_pictures))):
        found = _examine_all(source, block, colour)
    return found


def _examine_all(source: ImageSource, indices: list[int], colour: bool) -> Survey:
    found = Survey()
    enough = MIN_COLOURED * len(indices)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Pillow's warnings on odd files; errors become reasons
        for index in indices:
            try:
                look_for_colour = colour and found.n_coloured < enough
                size, kind, has_colour = _examine(source, index, look_for_colour)
            except BadPictureError as error:
                found.bad.append((source.names[index], str(error)))
                continue
            found.sizes.append(size)
            found.formats[kind] += 1
            found.n_coloured += has_colour
    return found


def _examine(
    source: ImageSource, index: int, look_for_colour: bool
) -> tuple[tuple[int, int], str, bool]:
    """Return size, format and whether there is visible colour."""
    path = source.path(index)
    if path is None:
        raw = source.picture_or_reason(index)
        if isinstance(raw, str):
            raise BadPictureError(raw)
        with bad_picture_errors():
            return _examine_raw(raw, look_for_colour)
    try:
        with open_file(path) as file, bad_picture_errors():
            return _examine_encoded(open_encoded(file), look_for_colour)
    except OSError as error:
        raise BadPictureError(reason_of(error)) from error
    except BadPictureError:
        raise
    except ValueError as error:  # a name that no file can have
        raise BadPictureError(str(error)) from error


def _examine_raw(raw: RawImage, look_for_colour: bool) -> tuple[tuple[int, int], str, bool]:
    if isinstance(raw, np.ndarray):
        pixels = _thumbnail_of_array(raw)
        return (raw.shape[1], raw.shape[0]), "array", look_for_colour and _is_coloured(pixels)
    if not isinstance(raw, Image.Image):
        return _examine_encoded(open_picture(raw), look_for_colour)
    size = _upright_size(raw)
    kind = raw.format or "array"
    if not look_for_colour or _is_grey(raw):
        return size, kind, False
    # Loaded first: `to_spec` would otherwise leave the caller's image at a reduced size.
    raw.load()
    return size, kind, _is_coloured(np.asarray(to_spec(raw, THUMBNAIL)))


def _examine_encoded(
    image: Image.Image, look_for_colour: bool
) -> tuple[tuple[int, int], str, bool]:
    size, kind = _upright_size(image), image.format or ""
    if not look_for_colour or _is_grey(image):
        return size, kind, False
    return size, kind, _is_coloured(np.asarray(to_spec(image, THUMBNAIL)))


def _upright_size(image: Image.Image) -> tuple[int, int]:
    # Asking a PNG file for metadata that is not in its header would decode all of it.
    if image.format == "PNG" and "exif" not in image.info:
        return image.size
    return image.size[::-1] if exif_orientation(image) in SIDEWAYS else image.size


def _is_grey(image: Image.Image) -> bool:
    return image.mode in GREY_MODES or image.mode.startswith("I;16")


def _thumbnail_of_array(pixels: NDArray) -> NDArray[np.uint8]:
    if pixels.ndim < 2:
        return to_uint8(pixels)  # raises the reason
    step = [max(1, side // THUMBNAIL.height) for side in pixels.shape[:2]]
    return to_uint8(pixels[:: step[0], :: step[1]])


def _is_coloured(pixels: NDArray[np.uint8]) -> bool:
    if pixels.ndim == 2:
        return False
    rgb = pixels[..., :3]
    return bool((rgb.max(axis=2).astype(np.int16) - rgb.min(axis=2)).mean() > VISIBLE)


def choose_spec(
    surveyed: Survey,
    *,
    size: tuple[int, int] | int | None = None,
    aspect: Aspect = "crop",
    colour: Colour = "auto",
) -> ImageSpec:
    """Choose the size and colour mode that all pictures are decoded to.

    Parameters
    ----------
    surveyed
        The result of `survey`.
    size
        (width, height), or the larger side alone. By default the larger side is 64, or that of the
        pictures if they are smaller. The aspect ratio is that of the median width and height.
    aspect
        How pictures with a different aspect ratio are treated; see `ImageSpec`.
    colour
        ``"auto"`` chooses RGB if at least one picture in twenty has visible colour.

    Examples
    --------
    >>> choose_spec(Survey([(400, 300)] * 5, n_coloured=4))
    ImageSpec(height=48, width=64, channels=3, aspect='crop')
    """
    check_colour(colour)
    check_aspect(aspect)
    if not isinstance(size, tuple):
        width, height = (float(side) for side in np.median(np.array(surveyed.sizes), axis=0))
        largest = max(width, height)
        scale = size / largest if size else min(1.0, LARGEST_SIDE / largest)
        size = max(1, round(width * scale)), max(1, round(height * scale))
    is_rgb = colour == "rgb" or (colour == "auto" and surveyed.has_colour)
    return ImageSpec(size[1], size[0], 3 if is_rgb else 1, aspect)


def check_colour(colour: str) -> None:
    """Raise unless the colour mode is auto, grey or rgb.

    Examples
    --------
    >>> check_colour("auto")
    """
    if colour not in get_args(Colour):
        raise ValueError(f"unknown colour {colour!r}: choose one of {', '.join(get_args(Colour))}")


def parse_size(text: str) -> int | tuple[int, int]:
    """Parse a size as users write it: 64, or 64x48 for width x height.

    Examples
    --------
    >>> parse_size("64x48"), parse_size("64")
    ((64, 48), 64)
    """
    parts = text.lower().replace("×", "x").split("x")
    if len(parts) > 2 or not all(part.strip().isdecimal() and int(part) > 0 for part in parts):
        raise ValueError(f"a size is written as 64, or 64x48 for width x height, got {text!r}")
    return int(parts[0]) if len(parts) == 1 else (int(parts[0]), int(parts[1]))
