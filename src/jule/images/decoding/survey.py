"""Survey some pictures of a source, and choose the size and colour mode for all of them.

Sizes come from the headers of the files. Pixels are decoded only until it is known whether the
set has colour.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from itertools import islice
from typing import Literal, get_args

import numpy as np

from jule.images.decoding.pipeline import count_cores, make_chunks
from jule.images.decoding.pool import Crew
from jule.images.decoding.spec import Aspect, ImageSpec, check_aspect
from jule.images.decoding.worker import limits_for
from jule.images.sources.base import ImageSource

Colour = Literal["auto", "grey", "rgb"]

SURVEYED = 256  # pictures, evenly spaced
LARGEST_SIDE = 64  # pixels: enough to tell things apart, and a million images take 12 GB
MIN_COLOURED = 0.05  # share of pictures with colour from which a set has colour


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

    @property
    def shows_photographs(self) -> bool:
        """Whether the pictures are probably photographs: in colour, and larger than thumbnails.

        Digits, letters, scans and aligned faces are usually grey, or small.
        """
        if not self.sizes or not self.has_colour:
            return False
        return float(np.median([min(size) for size in self.sizes])) > LARGEST_SIDE


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
    enough = math.ceil(MIN_COLOURED * len(indices)) if colour else 0
    with Crew(limits_for(count_cores())).borrow() as worker:
        for chunk in make_chunks(source, indices):
            for index, one in worker.examine(chunk, enough - found.n_coloured).items():
                if isinstance(one, str):
                    found.bad.append((source.names[index], one))
                    continue
                found.sizes.append((one.width, one.height))
                found.formats[one.kind] += 1
                found.n_coloured += one.has_colour
    return found


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
