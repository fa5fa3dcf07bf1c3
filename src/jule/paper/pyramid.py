"""Spatial pyramids: histograms of visual words over 1 x 1, 2 x 2, 4 x 4 ... cells of an image.

Every step is a product of matrices over a batch of images: the gradients and the pooling into bins
are linear and separable, and words are found from products of descriptors with the vocabulary.

S. Lazebnik, C. Schmid, J. Ponce: Beyond bags of features: spatial pyramid matching for recognizing
natural scene categories. CVPR 2006. The constants are those of their code.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans

from jule.progress import Progress

Floats = NDArray[np.float32]

ORIENTATIONS, BINS = 8, 4  # of a descriptor: 4 x 4 bins of 8 orientations
SIGMA, RADIUS = 1.0, 2  # of the derivatives of a Gaussian, in pixels
LEAST_NORM = 1.0  # descriptors of less contrast are not scaled up; for patches of 16 x 16 pixels
LARGEST_VALUE = 0.2  # of a descriptor of norm 1
MAX_DESCRIPTORS = 20_000  # that the vocabulary is made of
BATCH_VALUES = 2**22  # of oriented gradients held at once


@dataclass(frozen=True)
class Grid:
    """Patches on a regular grid, about 16 along the larger side of an image.

    Attributes
    ----------
    height, width
        Size of the image.
    patch
        Side of a patch, a multiple of 4.
    spacing
        Distance between patches.

    Examples
    --------
    >>> grid = Grid.fit(128, 128)
    >>> grid.patch, grid.spacing, grid.shape
    (16, 8, (15, 15))
    >>> Grid.fit(28, 28)
    Grid(height=28, width=28, patch=8, spacing=2)
    """

    height: int
    width: int
    patch: int
    spacing: int

    @classmethod
    def fit(cls, height: int, width: int) -> Grid:
        """Return the grid for images of a size: patches of 16 pixels every 8 for 128 x 128."""
        largest = min(height, width) // 2 // BINS * BINS  # half of the image
        if largest == 0:
            raise ValueError(
                f"spatial pyramids need images of at least {2 * BINS} x {2 * BINS} pixels, got "
                f"{height} x {width}"
            )
        spacing = max(1, round(max(height, width) / 16))
        patch = max(2 * BINS, BINS * round(2 * spacing / BINS))
        return cls(height, width, min(patch, largest), spacing)

    @property
    def shape(self) -> tuple[int, int]:
        """The number of patches per column and per row."""
        return len(self._starts(self.height)), len(self._starts(self.width))

    def _starts(self, side: int) -> NDArray[np.intp]:
        """Return the first pixels of the patches along one side, centred in the image."""
        free = side - self.patch
        return np.arange(free % self.spacing // 2, free + 1, self.spacing)

    def pooling(self, side: int) -> Floats:
        """Return the matrix (4 m, side) that pools pixels into the bins of m patches.

        The weight of a pixel falls linearly with its distance from the centre of a bin, to 0 at
        the centres of the bins beside it.
        """
        width = self.patch / BINS
        centres = self._starts(side)[:, None] + (np.arange(BINS) + 0.5) * width - 0.5
        distances = np.abs(np.arange(side) - centres.reshape(-1, 1)) / width
        return np.maximum(0.0, 1.0 - distances).astype(np.float32)

    def cells(self, finest: int) -> NDArray[np.intp]:
        """Return which of finest x finest cells every patch lies in, row by row."""
        rows, columns = (
            ((self._starts(side) + self.patch / 2) * finest / side).astype(np.intp)
            for side in (self.height, self.width)
        )
        return (rows[:, None] * finest + columns).ravel()


def spatial_pyramid(
    images: NDArray[np.floating],
    *,
    n_levels: int = 3,
    n_words: int = 200,
    seed: int = 0,
    progress: Progress | None = None,
) -> Floats:
    """Return the spatial pyramid of every image.

    Parameters
    ----------
    images
        (n, h, w) grey values from 0 to 1.
    n_levels
        Number of levels, at least 1; the finest has 2^(n_levels - 1) cells per side. In small
        images, outer cells may hold no patch.
    n_words
        Size of the vocabulary, which K-means finds among the descriptors of the images themselves.
    seed
        Random seed of the vocabulary.
    progress
        Called with the name of the stage and the fraction of it that is done.

    Returns
    -------
    (n, n_words (4^n_levels - 1) / 3) weighted shares of the words: in the whole image, in its 4
    quarters, in its 16 sixteenths, and so on.

    Examples
    --------
    >>> images = np.random.default_rng(0).random((30, 16, 16))
    >>> found = spatial_pyramid(images, n_words=10)
    >>> found.shape, found.sum(axis=1).round(3).min().item()
    ((30, 210), 1.0)
    """
    if n_levels < 1:
        raise ValueError(f"n_levels must be at least 1, got {n_levels}")
    grid = Grid.fit(*images.shape[1:])
    cells = grid.cells(2 ** (n_levels - 1))
    words = _vocabulary(images, grid, n_words, seed)
    half_norms = 0.5 * np.einsum("wd,wd->w", words, words)
    parts = []
    for start, batch in _batches(images):
        found = describe(batch, grid)
        nearest = np.argmax(found @ words.T - half_norms, axis=-1)
        parts.append(_histograms(nearest, cells, len(words), n_levels))
        if progress is not None:
            progress("spatial pyramid", (start + len(batch)) / len(images))
    return np.concatenate(parts)


def describe(images: NDArray[np.floating], grid: Grid) -> Floats:
    """Return the descriptors (n, patches, 128) of a batch of images, like those of SIFT.

    Examples
    --------
    >>> describe(np.zeros((2, 16, 16)), Grid.fit(16, 16)).shape
    (2, 81, 128)
    """
    down, across = _derivatives(images)
    norms = np.sqrt(down**2 + across**2)
    safe = np.maximum(norms, np.float32(1e-12))
    angles = 2 * np.pi * np.arange(ORIENTATIONS) / ORIENTATIONS
    cosines, sines = (f(angles).astype(np.float32)[:, None, None] for f in (np.cos, np.sin))
    similar = (across / safe)[:, None] * cosines + (down / safe)[:, None] * sines  # (n, 8, h, w)
    similar = np.maximum(similar, 0)
    cubes = similar * similar * similar
    oriented = cubes * cubes * cubes * norms[:, None]  # much faster than a power of 9
    pooled = grid.pooling(grid.height) @ oriented @ grid.pooling(grid.width).T
    rows, columns = grid.shape
    pooled = pooled.reshape(len(images), ORIENTATIONS, rows, BINS, columns, BINS)
    found = pooled.transpose(0, 2, 4, 3, 5, 1).reshape(len(images), rows * columns, -1)
    found /= np.float32(LEAST_NORM * (grid.patch / 16) ** 2)
    lengths = np.linalg.norm(found, axis=-1, keepdims=True)
    scaled = found / np.maximum(lengths, 1)
    clipped = np.minimum(scaled, LARGEST_VALUE)
    again = clipped / np.maximum(np.linalg.norm(clipped, axis=-1, keepdims=True), 1e-12)
    result: Floats = np.where(lengths >= 1, again, scaled).astype(np.float32, copy=False)
    return result


def _derivatives(
    images: NDArray[np.floating],
) -> tuple[NDArray[np.floating], NDArray[np.floating]]:
    """Return the derivatives down and across of smoothed images, whose borders are continued."""
    height, width = images.shape[1:]
    values: Floats = images.astype(np.float32, copy=False)
    offsets = np.arange(-RADIUS, RADIUS + 1)
    bell = np.exp(-(offsets**2) / (2 * SIGMA**2))
    slope = offsets * bell
    smooth_taps, slope_taps = bell / bell.sum(), 2 * slope / np.abs(slope).sum()
    down = _filter(height, slope_taps) @ values @ _filter(width, smooth_taps).T
    across = _filter(height, smooth_taps) @ values @ _filter(width, slope_taps).T
    return down, across


def _filter(side: int, taps: NDArray[np.floating]) -> Floats:
    """Return the matrix (side, side) of a filter along one side."""
    matrix = np.zeros((side, side), np.float32)
    places = np.arange(side)
    for offset, tap in enumerate(taps, start=-RADIUS):
        np.add.at(matrix, (places, np.clip(places + offset, 0, side - 1)), tap)
    return matrix


def _batches(images: NDArray[Any]) -> Iterator[tuple[int, NDArray[Any]]]:
    size = max(1, BATCH_VALUES // (ORIENTATIONS * images[0].size))
    for start in range(0, len(images), size):
        yield start, images[start : start + size]


def _vocabulary(images: NDArray[np.floating], grid: Grid, n_words: int, seed: int) -> Floats:
    """Return the words: centres of K-means among descriptors of randomly chosen patches."""
    rng = np.random.default_rng(seed)
    n_patches = grid.shape[0] * grid.shape[1]
    n_images = min(len(images), -(-MAX_DESCRIPTORS // n_patches) * 10)
    chosen = images[np.sort(rng.choice(len(images), n_images, replace=False))]
    share = min(1.0, MAX_DESCRIPTORS / (n_images * n_patches))
    per_image = max(1, round(share * n_patches))
    some = []
    for _, batch in _batches(chosen):
        # Patches differ from image to image, so that all places are seen.
        which = np.argsort(rng.random((len(batch), n_patches)), axis=1)[:, :per_image, None]
        some.append(np.take_along_axis(describe(batch, grid), which, axis=1))
    found = np.concatenate(some).reshape(-1, ORIENTATIONS * BINS**2)
    count = min(n_words, len(np.unique(found, axis=0)))
    centres: Floats = KMeans(count, n_init=1, random_state=seed).fit(found).cluster_centers_
    return centres


def _histograms(
    words: NDArray[np.integer], cells: NDArray[np.integer], n_words: int, n_levels: int
) -> Floats:
    """Return the weighted shares of the words in all cells of the pyramid.

    The finest level has the weight 1/2, the next one 1/4, and so on; the two coarsest ones have the
    same, so that all weights add up to 1.

    Parameters
    ----------
    words
        (n, patches) word of every patch.
    cells
        (patches,) finest cell of every patch.
    n_words
        Size of the vocabulary.
    n_levels
        Number of levels.
    """
    n, n_patches = words.shape
    finest = 2 ** (n_levels - 1)
    places = (np.arange(n)[:, None] * finest**2 + cells) * n_words + words
    counts = np.bincount(places.ravel(), minlength=n * finest**2 * n_words)
    counts = counts.reshape(n, finest, finest, n_words) / n_patches
    levels = []
    for level in range(n_levels):
        side, weight = 2**level, 2.0 ** (max(level, 1) - n_levels)
        step = finest // side
        blocks = counts.reshape(n, side, step, side, step, n_words).sum(axis=(2, 4))
        levels.append(weight * blocks.reshape(n, -1))
    return np.concatenate(levels, axis=1).astype(np.float32)
