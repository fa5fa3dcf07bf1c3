"""A look at some of the pictures before all are read: sizes, colours, and the look they suggest."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Literal

import numpy as np
from PIL import Image

from jule.images.batch import Picture
from jule.images.decode import (
    SIDEWAYS,
    Aspect,
    BadPictureError,
    Look,
    decode,
    open_picture,
    turn_of,
)
from jule.images.source import ImageSource

Colour = Literal["auto", "grey", "rgb"]

LOOKED_AT = 256  # pictures, evenly spread
LARGEST_SIDE = 64  # pixels: what is enough to tell things apart, and keeps a million in 12 GB
VISIBLE = 12.0  # mean difference of the channels from which on a picture has colour, of 255
FEW = 0.05  # share of coloured pictures below which a set is grey


@dataclass(frozen=True)
class Seen:
    """What a survey saw.

    Attributes
    ----------
    sizes
        (width, height) of each picture, upright.
    formats
        How many there are of each.
    coloured
        The share of pictures with visible colour.
    bad
        Name and reason of those that cannot be read.
    """

    sizes: list[tuple[int, int]]
    formats: Counter[str]
    coloured: float
    bad: list[tuple[str, str]]


def survey(source: ImageSource, most: int = LOOKED_AT) -> Seen:
    """Look at some of the pictures, evenly spread; if all of those are bad, at the others too.

    Examples
    --------
    >>> from jule.images.arrays import ArraySource
    >>> survey(ArraySource(np.zeros((3, 8, 6), np.uint8))).sizes
    [(6, 8), (6, 8), (6, 8)]
    """
    n = len(source)
    spread = sorted({int(number) for number in np.linspace(0, n - 1, min(n, most))}) if n else []
    seen = _look_at(source, spread)
    if not seen.sizes and len(spread) < n:
        others = iter(sorted(set(range(n)) - set(spread)))
        while not seen.sizes and (block := list(islice(others, most))):
            seen = _look_at(source, block)
    return seen


def _look_at(source: ImageSource, numbers: list[int]) -> Seen:
    sizes, coloured, bad = [], [], []
    formats: Counter[str] = Counter()
    for number in numbers:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Pillow's words on odd files; reasons say what matters
            found = _one(source.picture_or_reason(number))
        if isinstance(found, str):
            bad.append((source.names[number], found))
            continue
        size, kind, has_colour = found
        sizes.append(size)
        formats[kind] += 1
        coloured.append(has_colour)
    return Seen(sizes, formats, float(np.mean(coloured)) if coloured else 0.0, bad)


def _one(picture: Picture | str) -> str | tuple[tuple[int, int], str, bool]:
    """Give size, format and whether there is colour, or the reason why nobody can tell."""
    if isinstance(picture, str):
        return picture
    try:
        small, _ = decode(picture, Look(32, 32, 3, "stretch"))
        image = open_picture(picture)
    except BadPictureError as error:
        return str(error)
    size = image.size[::-1] if turn_of(image) in SIDEWAYS else image.size
    spread = small.max(axis=2).astype(np.int16) - small.min(axis=2)
    return size, kind_of(image), bool(spread.mean() > VISIBLE)


def kind_of(image: Image.Image) -> str:
    """Name the format of a picture.

    Examples
    --------
    >>> kind_of(Image.new("L", (1, 1)))
    'array'
    """
    return image.format or "array"


def choose_look(
    seen: Seen,
    *,
    size: tuple[int, int] | int | None = None,
    aspect: Aspect = "crop",
    colour: Colour = "auto",
) -> Look:
    """Choose the look that all pictures are brought to.

    Parameters
    ----------
    seen
        What the survey saw.
    size
        (width, height), or the larger side alone; by default the larger side is 64, or what the
        pictures have if that is less. The shape is that of the middle (median) width and height.
    aspect
        What happens to pictures of another shape.
    colour
        ``"auto"`` takes colour if one picture in twenty has visible colour.

    Examples
    --------
    >>> choose_look(Seen([(400, 300)] * 5, Counter(JPEG=5), 0.8, []))
    Look(height=48, width=64, channels=3, aspect='crop')
    """
    if not isinstance(size, tuple):
        width, height = (float(side) for side in np.median(np.array(seen.sizes), axis=0))
        largest = max(width, height)
        scale = size / largest if size else min(1.0, LARGEST_SIDE / largest)
        size = max(1, round(width * scale)), max(1, round(height * scale))
    if colour not in ("auto", "grey", "rgb"):
        raise ValueError(f"unknown colour {colour!r}: choose one of auto, grey, rgb")
    has_colour = colour == "rgb" or (colour == "auto" and seen.coloured >= FEW)
    return Look(size[1], size[0], 3 if has_colour else 1, aspect)


def sides(text: str) -> Iterator[int]:
    """Read a size as people write it: 64 or 64x48 (width x height).

    Examples
    --------
    >>> list(sides("64x48")), list(sides("64"))
    ([64, 48], [64])
    """
    parts = text.lower().replace("×", "x").split("x")
    if len(parts) > 2 or not all(part.strip().isdecimal() and int(part) > 0 for part in parts):
        raise ValueError(f"a size is written as 64, or 64x48 for width x height, got {text!r}")
    return (int(part) for part in parts)
