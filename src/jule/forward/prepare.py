"""What is done to the samples before anything is measured between them."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

Preparation = Literal["l2", "center-l2", "none"]
PREPARATIONS: tuple[Preparation, ...] = ("l2", "center-l2", "none")

# Sample numbers are kept as int32 in every table of the forward pass.
MOST_SAMPLES = 2**31 - 1


def as_vectors(samples: ArrayLike) -> NDArray[np.floating]:
    """Check the samples and give them as rows of a C-ordered float32 or float64 array.

    Images, (n, h, w) or (n, h, w, c), are flattened; whole numbers become float32; float64 stays.

    Raises
    ------
    ValueError
        When there are fewer than two samples, no features, NaN or infinity, or a shape or type
        that is not a table of numbers.

    Examples
    --------
    >>> as_vectors([[0, 3], [4, 0]]).dtype
    dtype('float32')
    """
    array = np.asarray(samples)
    if array.ndim < 2:
        raise ValueError(
            f"Expected 2D array: samples must have shape (n_samples, n_features) or be images, "
            f"got shape {array.shape}. Reshape your data either using array.reshape(-1, 1) if it "
            f"has a single feature or array.reshape(1, -1) if it is a single sample."
        )
    n = array.shape[0]
    if n > MOST_SAMPLES:
        raise ValueError(f"{n} samples are more than the {MOST_SAMPLES} that can be numbered")
    if n < 2:
        raise ValueError(f"clustering needs at least 2 samples, got n_samples={n}")
    if array.size == 0:
        raise ValueError(
            f"0 feature(s) (shape={array.shape}) while a minimum of 1 is required: "
            "there is nothing to compare the samples by"
        )
    if array.dtype == object:
        array = _numbers_of_objects(array)
    if array.dtype.kind not in "fiub":
        raise ValueError(f"samples must be real numbers, got dtype {array.dtype}")
    keeps = array.dtype in (np.float32, np.float64)
    vectors = np.ascontiguousarray(array.reshape(n, -1), dtype=array.dtype if keeps else np.float32)
    _refuse_not_finite(vectors)
    return vectors


def _numbers_of_objects(array: NDArray) -> NDArray[np.float64]:
    try:
        return array.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"samples must be real numbers in rows of one length: {error}") from None


def _refuse_not_finite(vectors: NDArray[np.floating]) -> None:
    # A sum is not finite as soon as one term is not, and needs no n x d mask.
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
    """Give the samples as checked vectors, scaled the way the paper scales image intensities.

    Parameters
    ----------
    samples
        Vectors (n, d) or images (n, h, w[, c]).
    how
        ``"l2"``: every sample divided by its L2 norm, as the paper says. ``"center-l2"``: the mean
        sample subtracted first, which is what the paper's AC-GDL numbers for objects and digits
        were made with. ``"none"``: left as it is.

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
        vectors = vectors - vectors.mean(axis=0, dtype=np.float64).astype(vectors.dtype)
    norms = np.sqrt(np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64))
    # A sample of zeros has no direction: it stays where it is.
    norms[norms == 0] = 1.0
    # In place where the vectors are no longer the caller's: they can be most of the memory.
    ours = not (isinstance(samples, np.ndarray) and np.may_share_memory(vectors, samples))
    scaled: NDArray[np.floating] = np.divide(
        vectors, norms[:, None].astype(vectors.dtype), out=vectors if ours else None
    )
    return scaled


def refuse_all_identical(vectors: NDArray[np.floating]) -> None:
    """Raise when every sample is the same: there is no structure to find.

    Examples
    --------
    >>> refuse_all_identical(np.eye(2))
    """
    if (vectors[1:] == vectors[0]).all():
        raise ValueError(
            f"all {len(vectors)} samples are identical, so there is nothing to cluster; "
            "check how the data was read"
        )
