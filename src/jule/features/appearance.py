"""What pictures look like without a network: histograms of their colours, edges and textures."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from jule.scratch import scratch_array

GRID = 4  # cells per side; every histogram is that of a cell
SHADES = 4  # per channel, so 64 colours
DIRECTIONS = 8  # of edges
PATTERNS = 59  # of textures: 58 whose ring has at most two changes, and one for all others
RING = ((0, 0), (0, 1), (0, 2), (1, 2), (2, 2), (2, 1), (2, 0), (1, 0))  # around (1, 1)
LUMINANCE = np.array([0.299, 0.587, 0.114], np.float32)
OUTLIERS = 0.001  # the share of values at either end that do not count for the range of others
SOME_VALUES = 2**20  # from which the range is found
BATCH_VALUES = 2**20  # of pictures that are described at once
DIMENSIONS = GRID**2 * (SHADES**3 + DIRECTIONS + PATTERNS)


def can_be_described(samples: NDArray) -> bool:
    """Return whether samples are pictures in colour, with at least four pixels per cell and side.

    Examples
    --------
    >>> can_be_described(np.zeros((9, 32, 32, 3))), can_be_described(np.zeros((9, 28, 28)))
    (True, False)
    """
    return samples.ndim == 4 and samples.shape[3] == 3 and min(samples.shape[1:3]) >= 4 * GRID


def describe_appearance(
    images: NDArray, progress: Callable[[float], None] | None = None
) -> NDArray[np.float32]:
    """Return histograms of colours, edges and textures in the cells of a grid.

    Colours are counted in 64 bins. Edges are gradients of the luminance, by direction, weighted by
    their length. Textures are local binary patterns: which of its eight neighbours are at least as
    bright as a pixel, where patterns with more than two changes around the ring count as one. Of
    every histogram the square root is taken, so that distances are those of Hellinger, and each
    kind has norm 1.

    Parameters
    ----------
    images
        (n, h, w, 3) pictures in colour, for which `can_be_described` is true. Values of other types
        than uint8 are scaled to 0 .. 255.
    progress
        Called from time to time with the fraction that is done.

    Returns
    -------
    NDArray
        (n, 2096) vectors of norm sqrt(3).

    Examples
    --------
    >>> images = np.random.default_rng(0).integers(0, 256, (5, 16, 16, 3), np.uint8)
    >>> found = describe_appearance(images)
    >>> found.shape, np.square(found).sum(axis=1).round(3).tolist()
    ((5, 2096), [3.0, 3.0, 3.0, 3.0, 3.0])
    """
    found: NDArray[np.float32] = scratch_array((len(images), DIMENSIONS), np.float32)
    lowest, scale = _range_of(images)
    size = max(1, BATCH_VALUES // images[0].size)
    for start in range(0, len(images), size):
        batch = images[start : start + size].astype(np.float32)
        batch -= lowest
        batch *= scale
        np.clip(batch, 0, 255, out=batch)
        grey: NDArray[np.float32] = batch @ LUMINANCE
        parts = [_colours(batch), _edges(grey), _textures(grey)]
        found[start : start + size] = np.concatenate([_unit_roots(part) for part in parts], axis=1)
        if progress is not None:
            progress(min(1.0, (start + size) / len(images)))
    return found


def _range_of(images: NDArray) -> tuple[float, float]:
    """Return the value that becomes 0, and the factor that then makes the largest one 255.

    A few values far from all others, such as hot pixels, do not count.
    """
    if images.dtype == np.uint8:
        return 0.0, 1.0
    some = images.ravel()[:: max(1, images.size // SOME_VALUES)].astype(np.float64)
    lowest, largest = np.quantile(some, (OUTLIERS, 1.0 - OUTLIERS))
    range_ = largest - lowest
    return float(lowest), 255.0 / range_ if range_ > np.finfo(np.float32).tiny else 0.0


def _colours(images: NDArray[np.float32]) -> NDArray[np.float64]:
    shades = np.minimum(images * (SHADES / 256), SHADES - 1).astype(np.int64)
    return _count(shades @ np.array([SHADES**2, SHADES, 1]), SHADES**3)


def _edges(grey: NDArray[np.float32]) -> NDArray[np.float64]:
    down, across = np.gradient(grey, axis=(1, 2))
    turn = np.arctan2(down, across) / (2 * np.pi) + 0.5
    return _count(
        (turn * DIRECTIONS).astype(np.int64) % DIRECTIONS, DIRECTIONS, np.hypot(down, across)
    )


def _textures(grey: NDArray[np.float32]) -> NDArray[np.float64]:
    height, width = grey.shape[1:]
    around = np.pad(grey, ((0, 0), (1, 1), (1, 1)), mode="edge")
    rings = np.zeros(grey.shape, np.uint8)
    for bit, (y, x) in enumerate(RING):
        rings |= (around[:, y : y + height, x : x + width] >= grey).astype(np.uint8) << bit
    return _count(_patterns()[rings], PATTERNS)


def _patterns() -> NDArray[np.int64]:
    """Return the pattern of each of the 256 rings of bits."""
    bits = (np.arange(256)[:, None] >> np.arange(8)) & 1
    is_plain = (bits != np.roll(bits, 1, axis=1)).sum(axis=1) <= 2
    patterns = np.full(256, PATTERNS - 1)
    patterns[is_plain] = np.arange(PATTERNS - 1)
    return patterns


def _count(
    codes: NDArray[np.int64], n_codes: int, weights: NDArray[np.float32] | None = None
) -> NDArray[np.float64]:
    """Return the histograms (n, cells * codes) of the codes (n, h, w) of all pixels."""
    n, height, width = codes.shape
    rows, columns = (np.arange(side) * GRID // side for side in (height, width))
    cells = np.arange(n)[:, None, None] * GRID**2 + (rows[:, None] * GRID + columns)
    places = (cells * n_codes + codes).ravel()
    flat = None if weights is None else weights.ravel()
    return np.bincount(places, flat, n * GRID**2 * n_codes).reshape(n, -1).astype(np.float64)


def _unit_roots(histograms: NDArray[np.float64]) -> NDArray[np.float32]:
    """Return the square roots of shares; without any edge, all directions have equal shares."""
    sums = histograms.sum(axis=1, keepdims=True)
    shares = np.where(sums > 0, histograms / np.maximum(sums, 1e-12), 1 / histograms.shape[1])
    roots: NDArray[np.float32] = np.sqrt(shares).astype(np.float32)
    return roots
