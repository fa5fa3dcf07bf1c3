"""Check and scale samples before they are clustered."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from jule.scratch import scratch_array

Preparation = Literal["l2", "center-l2", "none"]
PREPARATIONS: tuple[Preparation, ...] = ("l2", "center-l2", "none")

# Sample indices are stored as int32.
MAX_SAMPLES = 2**31 - 1
BLOCK_VALUES = 2**20  # compared at once

# Squares and products of such numbers are far from the limits of float32 and float64.
LEAST, LARGEST = 2.0**-30, 2.0**30
FAR = 16  # times the spread; differences of values that far from 0 are exact


def as_vectors(samples: ArrayLike) -> NDArray[np.floating]:
    """Return the samples as rows of a checked, C-ordered float32 or float64 array.

    Images (n, h, w) or (n, h, w, c) are flattened. float64 is kept; other types become float32.

    Raises
    ------
    ValueError
        If there are fewer than two samples, no features, masked values, NaN or infinity, or if the
        shape or dtype is not that of a table of real numbers.

    Examples
    --------
    >>> as_vectors([[0, 3], [4, 0]]).dtype
    dtype('float32')
    """
    check_not_masked(samples)
    array = np.asarray(samples)
    if array.ndim < 2:
        raise ValueError(
            f"Expected 2D array: samples must have shape (n_samples, n_features) or be images, "
            f"got shape {array.shape}. Reshape your data either using array.reshape(-1, 1) if it "
            f"has a single feature or array.reshape(1, -1) if it is a single sample."
        )
    n = array.shape[0]
    if n > MAX_SAMPLES:
        raise ValueError(f"at most {MAX_SAMPLES} samples are supported, got n_samples={n}")
    if n < 2:
        raise ValueError(f"clustering needs at least 2 samples, got n_samples={n}")
    if array.size == 0:
        raise ValueError(
            f"0 feature(s) (shape={array.shape}) while a minimum of 1 is required: "
            "there is nothing to compare the samples by"
        )
    if array.dtype == object:
        array = _objects_to_float64(array)
    if array.dtype.kind not in "fiub":
        raise ValueError(f"samples must be real numbers, got dtype {array.dtype}")
    flat = array.reshape(n, -1)
    if array.dtype in (np.float32, np.float64):
        vectors = np.ascontiguousarray(flat)
    else:
        vectors = scratch_array(flat.shape, np.float32)
        vectors[:] = flat
    _check_finite(vectors)
    return vectors


def check_not_masked(samples: ArrayLike) -> None:
    """Raise an error for masked values, which numpy would use as if they were not masked.

    Examples
    --------
    >>> check_not_masked(np.ma.array([[1.0], [2.0]]))  # nothing is masked
    """
    parts = samples if isinstance(samples, list | tuple) else [samples]
    if any(isinstance(part, np.ma.MaskedArray) and np.ma.is_masked(part) for part in parts):
        raise ValueError(
            "samples contain masked values: remove those samples, or replace the values with "
            "samples.filled(...)"
        )


def _objects_to_float64(array: NDArray) -> NDArray[np.float64]:
    try:
        return array.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"samples must be real numbers in rows of one length: {error}") from None


def _check_finite(vectors: NDArray[np.floating]) -> None:
    # A row with a value that is not finite has such a sum, and sums need no n x d mask.
    with np.errstate(over="ignore", invalid="ignore"):
        sums = vectors.sum(axis=1, dtype=np.float64)
    suspects = np.flatnonzero(~np.isfinite(sums))
    bad = [row for row in suspects if not np.isfinite(vectors[row]).all()]
    if bad:
        row = bad[0]
        what = "NaN" if np.isnan(vectors[row]).any() else "infinity"
        raise ValueError(
            f"Input contains {what}: sample {row} is the first of {len(bad)} samples with values "
            "that are not finite; remove those samples or replace the values"
        )


def prepare(samples: ArrayLike, how: Preparation = "l2") -> NDArray[np.floating]:
    """Return the samples as checked vectors, scaled as in the paper.

    Parameters
    ----------
    samples
        Vectors (n, d) or images (n, h, w[, c]).
    how
        ``"l2"``: divide every sample by its L2 norm, as in the paper. ``"center-l2"``: subtract the
        mean sample first, which reproduces the paper's AC-GDL results for objects and digits.
        ``"none"``: no scaling.

    Examples
    --------
    >>> prepare([[3.0, 4.0], [0.0, 2.0]])
    array([[0.6, 0.8],
           [0. , 1. ]])
    """
    if how not in PREPARATIONS:
        raise ValueError(f"unknown preparation {how!r}: choose one of {', '.join(PREPARATIONS)}")
    vectors = as_vectors(samples)
    if how == "none":
        return vectors
    if how == "center-l2":
        vectors, _ = fit_range(vectors)
        vectors = vectors - vectors.mean(axis=0, dtype=np.float64).astype(vectors.dtype)
    # In place if the vectors are a copy, because they can be most of the memory.
    is_copy = not (isinstance(samples, np.ndarray) and np.may_share_memory(vectors, samples))
    return _divide_by_norms(vectors, in_place=is_copy)


def _divide_by_norms(vectors: NDArray[np.floating], in_place: bool) -> NDArray[np.floating]:
    norms = _l2_norms(vectors)
    extreme = np.flatnonzero((norms < LEAST) | (norms > LARGEST))
    if len(extreme):  # the norm may have lost digits, or all of them: scale these samples first
        vectors = vectors if in_place else vectors.copy()
        in_place = True
        for row in extreme:
            exponent = np.frexp(np.abs(vectors[row]).max())[1]
            vectors[row] = np.ldexp(vectors[row], -exponent)
        norms[extreme] = _l2_norms(vectors[extreme])
    # A sample of zeros has no direction and is not changed.
    norms[norms == 0] = 1.0
    divided: NDArray[np.floating] = np.divide(
        vectors, norms[:, None].astype(vectors.dtype), out=vectors if in_place else None
    )
    return divided


def _l2_norms(vectors: NDArray[np.floating]) -> NDArray[np.float64]:
    with np.errstate(over="ignore"):
        norms: NDArray[np.float64] = np.sqrt(
            np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64)
        )
    return norms


def fit_range(vectors: NDArray[np.floating]) -> tuple[NDArray[np.floating], int]:
    """Shift and scale samples so that their squared distances can be computed.

    Samples whose values are neither very large, nor very small, nor far from 0 are returned as they
    are. Otherwise a feature that is far from 0, compared with the spread of the samples, is shifted
    by its smallest value, and all features are divided by a power of two. Both are exact, unless a
    value is so small beside the spread that it makes no difference to a squared distance.

    Returns
    -------
    vectors
        The samples, or a shifted and scaled copy.
    exponent
        The samples were divided by 2 ** exponent.

    Examples
    --------
    >>> vectors, exponent = fit_range(np.array([[1e300], [3e300]]))
    >>> (vectors.max() - vectors.min()).item() * 2.0**exponent
    2e+300
    """
    low, high = vectors.min(axis=0), vectors.max(axis=0)
    half_spreads = high / 2 - low / 2  # the spread itself may overflow
    half = float(half_spreads.max())
    with np.errstate(over="ignore"):
        far = np.maximum(np.abs(low), np.abs(high)) > half_spreads.dtype.type(half) * 2 * FAR
    in_range = LEAST <= half <= LARGEST or half == 0
    if in_range and not far.any():
        return vectors, 0
    if far.any():
        vectors = vectors - np.where(far, low, 0)
    exponent = 0 if in_range else int(np.frexp(half)[1])
    return (np.ldexp(vectors, -exponent) if exponent else vectors), exponent


def check_not_identical(samples: NDArray) -> None:
    """Raise an error if all samples are identical, so that there is no structure to find.

    Parameters
    ----------
    samples
        (n, ...) samples of any shape.

    Examples
    --------
    >>> check_not_identical(np.eye(2))
    """
    if are_identical(samples, samples.dtype):
        raise ValueError(
            f"all {len(samples)} samples are identical, so there is nothing to cluster; "
            "check how the data was read"
        )


def are_identical(samples: NDArray, dtype: DTypeLike) -> bool:
    """Return whether all samples are identical once they are converted to a type.

    Examples
    --------
    >>> pair = np.array([[1e9], [1e9 + 1]])
    >>> are_identical(pair, np.float64), are_identical(pair, np.float32)
    (False, True)
    """
    rows = max(1, BLOCK_VALUES // max(1, samples[:1].size))
    first = samples[0].astype(dtype, copy=False)
    blocks = (samples[start : start + rows] for start in range(0, len(samples), rows))
    return all((block.astype(dtype, copy=False) == first).all() for block in blocks)
