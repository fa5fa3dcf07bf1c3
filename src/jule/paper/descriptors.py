"""Hand-crafted descriptors of images: HOG and LBP, with scikit-image."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from jule.progress import Progress

CELLS = 4  # along the larger side, as at the finest level of a spatial pyramid
HOG_ORIENTATIONS, HOG_BLOCK = 9, 2
LBP_POINTS, LBP_RADIUS, LBP_CODES = 8, 1, 59  # uniform patterns, and one code for all others
LUMINANCE = (0.299, 0.587, 0.114)
MISSING = 'HOG and LBP need scikit-image: pip install "jule[descriptors]"'


def grey(images: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return images (n, h, w) or (n, h, w, 3) in grey.

    Examples
    --------
    >>> grey(np.full((1, 2, 2, 3), 7, np.uint8)).tolist()
    [[[7, 7], [7, 7]]]
    """
    if images.ndim == 3:
        return images
    values = np.empty(images.shape[:3], np.uint8)
    for number, image in enumerate(images):  # one at a time: products of all would be large
        values[number] = np.rint(image @ np.array(LUMINANCE, np.float32))
    return values


def cell_side(height: int, width: int, cells: int = CELLS) -> int:
    """Return the side of a cell in pixels, so that some cells cover the larger side of an image.

    Examples
    --------
    >>> cell_side(128, 128), cell_side(28, 28), cell_side(112, 92)
    (32, 7, 28)
    """
    return max(2, -(-max(height, width) // cells))


def hog(
    images: NDArray[np.uint8], cells: int = CELLS, progress: Progress | None = None
) -> NDArray[np.float32]:
    """Return histograms of oriented gradients, with blocks of 2 x 2 cells of 9 orientations.

    Parameters
    ----------
    images
        (n, h, w) grey images.
    cells
        Number of cells along the larger side; 2 for one block.
    progress
        Called with the name of the stage and the fraction of it that is done.

    Examples
    --------
    >>> hog(np.zeros((2, 32, 32), np.uint8)).shape  # 3 x 3 blocks
    (2, 324)
    """
    try:
        from skimage import feature
    except ImportError as error:
        raise ImportError(MISSING) from error
    height, width = images.shape[1:]
    side = cell_side(height, width, cells)
    options: dict[str, Any] = {
        "orientations": HOG_ORIENTATIONS,
        "pixels_per_cell": (side, side),
        "cells_per_block": (HOG_BLOCK, HOG_BLOCK),
        "block_norm": "L2-Hys",
    }
    rows, columns = (length // side - HOG_BLOCK + 1 for length in (height, width))
    size = rows * columns * HOG_BLOCK**2 * HOG_ORIENTATIONS
    found = np.empty((len(images), size), np.float32)
    for number, image in enumerate(images):
        found[number] = feature.hog(image / np.float32(255), **options)
        _report(progress, "HOG", number, len(images))
    return found


def lbp(
    images: NDArray[np.uint8], cells: int = CELLS, progress: Progress | None = None
) -> NDArray[np.float32]:
    """Return histograms of uniform local binary patterns (8 points, radius 1), one per cell.

    Parameters
    ----------
    images
        (n, h, w) grey images.
    cells
        Number of cells along the larger side; 1 for one histogram of the whole image.
    progress
        Called with the name of the stage and the fraction of it that is done.

    Examples
    --------
    >>> found = lbp(np.zeros((2, 32, 32), np.uint8))
    >>> found.shape, found.sum(axis=1).tolist()  # shares in 4 x 4 cells
    ((2, 944), [16.0, 16.0])
    """
    try:
        from skimage import feature
    except ImportError as error:
        raise ImportError(MISSING) from error
    height, width = images.shape[1:]
    side = cell_side(height, width, cells)
    rows, columns = max(1, height // side), max(1, width // side)
    # Pixels beyond the last whole cell are left out.
    down = np.arange(min(rows * side, height)) // side
    across = np.arange(min(columns * side, width)) // side
    cell_of = down[:, None] * columns + across
    size = rows * columns * LBP_CODES
    found = np.empty((len(images), size), np.float32)
    patterns: Any = feature.local_binary_pattern  # which has no types
    for number, image in enumerate(images):
        codes = patterns(image, LBP_POINTS, LBP_RADIUS, "nri_uniform")
        codes = codes[: len(down), : len(across)].astype(np.intp)
        counts = np.bincount((cell_of * LBP_CODES + codes).ravel(), minlength=size)
        found[number] = counts * (rows * columns / cell_of.size)
        _report(progress, "LBP", number, len(images))
    return found


def _report(progress: Progress | None, stage: str, number: int, total: int) -> None:
    if progress is not None and (number % 100 == 99 or number + 1 == total):
        progress(stage, (number + 1) / total)
