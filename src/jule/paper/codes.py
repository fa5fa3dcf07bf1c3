"""Codes of image patches, summed over the quadrants of an image (Coates, Ng and Lee, 2011)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from jule.jit import get_num_threads, njit
from jule.paper.patches import SIDE, Describe, Rows, cut_patches, normalize_contrast

QUADRANTS = 4
KMEANS_ITERATIONS = 50
IMAGES_AT_ONCE = 4  # per thread: 4 x 729 patches times 1,600 codes are 19 MB


def principal_directions(vectors: Rows, share: float) -> Rows:
    """Return the leading principal components (d, r) that hold a share of the variance.

    Examples
    --------
    >>> points = np.array([[0, 0, 0], [9, 0, 0], [0, 3, 0], [9, 3, 1]], np.float32)
    >>> principal_directions(points, 0.8).shape, principal_directions(points, 0.95).shape
    ((3, 1), (3, 2))
    """
    values, directions = np.linalg.eigh(np.cov(vectors, rowvar=False, dtype=np.float64))
    held = np.cumsum(values[::-1]) / values.sum()
    n_kept = int(np.searchsorted(held, share)) + 1
    return np.ascontiguousarray(directions[:, ::-1][:, :n_kept], dtype=np.float32)


def learn_codes(vectors: Rows, n_codes: int, seed: int) -> Rows:
    """Return codes for vectors: the centroids of K-means.

    Examples
    --------
    >>> learn_codes(np.array([[0.0], [1.0], [9.0], [9.0]], np.float32), 2, seed=0).ravel()
    array([9. , 0.5], dtype=float32)
    """
    from sklearn.cluster import KMeans

    # Random centroids to begin with: choosing 1,600 by k-means++ takes longer than all iterations.
    kmeans = KMeans(
        n_codes, init="random", n_init=1, max_iter=KMEANS_ITERATIONS, random_state=seed
    ).fit(vectors)
    return np.ascontiguousarray(kmeans.cluster_centers_, dtype=np.float32)


def encode(
    images: NDArray,
    describe: Describe,
    codebooks: Sequence[Rows],
    progress: Callable[[float], None] | None = None,
) -> Rows:
    """Return the features of images: activations of all codes, summed over each quadrant.

    The activation of a code is max(0, mean distance to all codes - distance to this code), which is
    the triangle activation of Coates, Ng and Lee.

    Parameters
    ----------
    images
        (n, h, w[, c]).
    describe
        Returns the representations of patches whose contrast is normalised, one per codebook.
    codebooks
        The codes (k, d) of each representation.
    progress
        Called with the fraction of the images that is done.

    Returns
    -------
    features
        (n, 4 * number of codes): codebook by codebook, and quadrant by quadrant within each.

    Examples
    --------
    >>> images = np.random.default_rng(0).integers(0, 255, (3, 8, 8), np.uint8)
    >>> encode(images, lambda patches: [patches], [np.eye(5, 36, dtype=np.float32)]).shape
    (3, 20)
    """
    shape = images.shape[1] - SIDE + 1, images.shape[2] - SIDE + 1
    widths = [QUADRANTS * len(codes) for codes in codebooks]
    features = np.empty((len(images), sum(widths)), np.float32)
    books = [(np.ascontiguousarray(codes.T), np.square(codes).sum(axis=1)) for codes in codebooks]

    def fill(start: int) -> None:
        block = slice(start, start + IMAGES_AT_ONCE)
        patches = normalize_contrast(cut_patches(images[block]))
        end = 0
        for vectors, (codes, norms), width in zip(describe(patches), books, widths, strict=True):
            pooled = np.zeros((len(features[block]), QUADRANTS, len(norms)), np.float32)
            lengths = np.einsum("ij,ij->i", vectors, vectors)
            _sum_triangles(vectors @ codes, lengths, norms, *shape, pooled)
            features[block, end : end + width] = pooled.reshape(-1, width)
            end += width

    starts = range(0, len(images), IMAGES_AT_ONCE)
    # Every thread works on images of its own: threads within a product would wait for each other.
    with threadpool_limits(1, "blas"), ThreadPoolExecutor(get_num_threads()) as pool:
        try:
            for done, _ in enumerate(pool.map(fill, starts), start=1):
                if progress is not None:
                    progress(done / len(starts))
        except BaseException:
            pool.shutdown(cancel_futures=True)  # Ctrl-C waits for the current images only
            raise
    return features


@njit(nogil=True, cache=True, fastmath=True)
def _sum_triangles(
    products: NDArray,
    vector_norms: NDArray,
    code_norms: NDArray,
    height: int,
    width: int,
    pooled: NDArray,
) -> None:
    """Turn inner products into activations, and add them to the quadrants (n, 4, k)."""
    n_codes = len(code_norms)
    zero, two = np.float32(0), np.float32(2)
    for patch in range(len(products)):
        distances = products[patch]
        total = zero
        for k in range(n_codes):
            squared = vector_norms[patch] + code_norms[k] - two * distances[k]
            distances[k] = np.sqrt(max(squared, zero))
            total += distances[k]
        mean = total / np.float32(n_codes)
        image, place = divmod(patch, height * width)
        y, x = divmod(place, width)
        # The middle row and column of an odd number belong to the first half, as in the original.
        out = pooled[image, 2 * int(y >= (height + 1) // 2) + int(x >= (width + 1) // 2)]
        for k in range(n_codes):
            out[k] += max(mean - distances[k], zero)
