"""Combine thumbnails into sheets, so that a page loads a few files instead of thousands."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

INLINE_MOST = 2000  # with more images, the sheets are files beside the page
LARGE_SIDE, SMALL_SIDE = 96, 56  # of a thumbnail, on a page with few or with many of them
SHEET_SIDE = 1024  # of a sheet, about
TINY = 48  # up to this side, grey images are stored losslessly and shown with crisp pixels
BLOCK = 8  # JPEG works on blocks of this side: none may hold parts of two thumbnails
QUALITY = 82


@dataclass(frozen=True, eq=False)
class Sheets:
    """Thumbnails arranged on sheets.

    Attributes
    ----------
    height, width
        The size of a thumbnail.
    cell_height, cell_width
        The size of its cell on a sheet. The margin repeats the edge of the thumbnail, so that
        scaling does not show its neighbours.
    columns, rows
        Number of columns and rows of a full sheet; the last sheet may have fewer rows.
    kind
        ``"png"`` or ``"jpeg"``.
    places
        (n,) int32: the cell of each thumbnail, numbered over all sheets.
    content
        The encoded sheets.
    """

    height: int
    width: int
    cell_height: int
    cell_width: int
    columns: int
    rows: int
    kind: str
    places: NDArray[np.int32] = field(repr=False)
    content: Sequence[bytes] = field(repr=False)

    @property
    def inline(self) -> bool:
        """Whether the sheets are stored in the page itself."""
        return len(self.places) <= INLINE_MOST


def make_sheets(images: NDArray, order: NDArray[np.integer] | None = None) -> Sheets:
    """Arrange a thumbnail of every image on sheets.

    Parameters
    ----------
    images
        (n, h, w) or (n, h, w, c), uint8 or float.
    order
        The order of the samples on the sheets; similar ones should follow each other, so that a
        cluster needs few sheets.

    Examples
    --------
    >>> make_sheets(np.zeros((5, 8, 8), np.uint8)).kind
    'png'
    """
    n = len(images)
    order = np.arange(n) if order is None else order
    places = np.empty(n, np.int32)
    places[order] = np.arange(n)
    scale = brightness(images)
    height, width = _thumbnail_size(images, n)
    grey = images.ndim == 3 or images.shape[3] < 3
    kind = "png" if grey and max(height, width) <= TINY else "jpeg"
    cell_height, cell_width = _cell(height, kind), _cell(width, kind)
    columns = max(1, SHEET_SIDE // cell_width)
    rows = max(1, SHEET_SIDE // cell_height)
    content = []
    for start in range(0, n, columns * rows):
        some = order[start : start + columns * rows]
        thumbs = (thumbnail(images[i], scale, (height, width)) for i in some)
        sheet = _sheet(thumbs, len(some), (cell_height, cell_width), columns, grey)
        content.append(encode(sheet, kind))
    return Sheets(
        height, width, cell_height, cell_width, columns, rows, kind, places, content
    )  # fmt: skip


def sheet_like(sheets: Sheets, thumbs: Sequence[NDArray[np.uint8]]) -> bytes:
    """Arrange some more thumbnails on one sheet, in cells and rows like those of others."""
    cell = sheets.cell_height, sheets.cell_width
    grey = all(thumb.ndim == 2 for thumb in thumbs)
    coloured = (thumb if grey else _coloured(thumb) for thumb in thumbs)
    return encode(_sheet(coloured, len(thumbs), cell, sheets.columns, grey), sheets.kind)


def _coloured(thumb: NDArray[np.uint8]) -> NDArray[np.uint8]:
    return thumb if thumb.ndim == 3 else np.repeat(thumb[:, :, None], 3, axis=2)


def brightness(images: NDArray) -> tuple[float, float]:
    """Return the values that are shown as black and white.

    These are 0 and 255 for uint8 and for floats in that range, 0 and 1 for floats between 0 and 1,
    and otherwise the minimum and the maximum.

    Examples
    --------
    >>> brightness(np.array([[[0.2, 0.9]]])), brightness(np.array([[[-1.0, 1.0]]]))
    ((0.0, 1.0), (-1.0, 1.0))
    """
    if images.dtype == np.uint8:
        return 0.0, 255.0
    least, largest = float(images.min()), float(images.max())
    if least >= 0 and largest <= 1:
        return 0.0, 1.0
    if least >= 0 and largest <= 255:
        # A small maximum, as in digits with 16 levels of grey, is white.
        return 0.0, 255.0 if largest > 127 else largest
    return least, largest


def thumbnail(
    image: NDArray, scale: tuple[float, float], size: tuple[int, int]
) -> NDArray[np.uint8]:
    """Return one image as uint8, (h, w) grey or (h, w, 3), scaled to a size.

    Examples
    --------
    >>> thumbnail(np.array([[0.0, 1.0]]), (0.0, 1.0), (1, 2)).tolist()
    [[0, 255]]
    """
    pixels = _three_or_one(image)
    if pixels.dtype != np.uint8 or scale != (0.0, 255.0):
        black, white = scale
        span = white - black if white > black else 1.0
        light = (pixels.astype(np.float32) - black) * (255.0 / span)
        pixels = np.clip(np.round(light), 0, 255).astype(np.uint8)
    if pixels.shape[:2] != size:
        from PIL import Image  # not needed for a page whose sheets are there

        height, width = size
        small = Image.fromarray(pixels).resize((width, height), Image.Resampling.LANCZOS)
        pixels = np.asarray(small)
    return pixels


def _three_or_one(image: NDArray) -> NDArray:
    if image.ndim == 2:
        return image
    return image[:, :, :3] if image.shape[2] >= 3 else image[:, :, 0]


def _thumbnail_size(images: NDArray, n: int) -> tuple[int, int]:
    """Return the size of thumbnails; small images are never enlarged."""
    height, width = images.shape[1:3]
    side = LARGE_SIDE if n <= INLINE_MOST else SMALL_SIDE
    share = min(1.0, side / max(height, width))
    return max(1, round(height * share)), max(1, round(width * share))


def _cell(side: int, kind: str) -> int:
    with_margin = side + 2
    return with_margin if kind == "png" else -(-with_margin // BLOCK) * BLOCK


def _sheet(
    thumbs: Iterator[NDArray[np.uint8]],
    count: int,
    cell: tuple[int, int],
    columns: int,
    grey: bool,
) -> NDArray[np.uint8]:
    rows = -(-count // columns)
    shape = (rows * cell[0], columns * cell[1])
    sheet = np.zeros(shape if grey else (*shape, 3), np.uint8)
    for place, thumb in enumerate(thumbs):
        height, width = thumb.shape[:2]
        margin = [(1, cell[0] - height - 1), (1, cell[1] - width - 1), (0, 0)]
        top, left = place // columns * cell[0], place % columns * cell[1]
        padded = np.pad(thumb, margin[: thumb.ndim], mode="edge")
        sheet[top : top + cell[0], left : left + cell[1]] = padded
    return sheet


def encode(pixels: NDArray[np.uint8], kind: str) -> bytes:
    """Encode pixels as PNG or JPEG.

    Examples
    --------
    >>> encode(np.zeros((2, 2), np.uint8), "png")[1:4]
    b'PNG'
    """
    from PIL import Image

    file = io.BytesIO()
    if kind == "png":
        Image.fromarray(pixels).save(file, "PNG")
    else:
        Image.fromarray(pixels).save(file, "JPEG", quality=QUALITY, subsampling=0, optimize=True)
    return file.getvalue()
