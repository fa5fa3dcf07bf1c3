"""Arrays of images or vectors, from memory or from .npy and .npz files, checked before use."""

from __future__ import annotations

import os
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

SAMPLES, LABELS, NAMES = "images", "labels", "names"  # the arrays of an .npz file


@dataclass(frozen=True, eq=False)
class Samples:
    """Images or vectors with their names, and true classes where they are known.

    Attributes
    ----------
    samples
        (n, h, w), (n, h, w, c) or (n, d).
    names
        One text a sample; its number where it has no name.
    labels
        For evaluation alone; None where there are none.
    """

    samples: NDArray
    names: list[str] = field(repr=False)
    labels: NDArray | None = field(default=None, repr=False)

    def __len__(self) -> int:
        return len(self.samples)


def as_samples(data: Any) -> NDArray:
    """Check images (n, h, w[, c]) or vectors (n, d), and give them as one uint8 or float array.

    uint8 stays uint8, other numbers become float32.

    Raises
    ------
    ValueError
        Naming the first sample that is not finite or has another size than the others.

    Examples
    --------
    >>> as_samples([np.zeros((4, 4), np.uint8), np.ones((4, 4), np.uint8)]).shape
    (2, 4, 4)
    """
    if isinstance(data, Sequence) and not isinstance(data, str | bytes):
        refuse_other_sizes(data)
    array = np.asarray(data)
    if array.ndim not in (2, 3, 4):
        raise ValueError(
            f"expected images (n, height, width) or (n, height, width, channels), or vectors "
            f"(n, d), got an array of shape {array.shape}"
        )
    if array.size == 0:
        raise ValueError(f"there is nothing in an array of shape {array.shape}")
    if array.dtype.kind not in "fiub":
        raise ValueError(f"images must be numbers, got dtype {array.dtype}")
    if array.dtype != np.uint8:
        array = array.astype(np.float32, copy=False)
        _refuse_not_finite(array)
    return np.ascontiguousarray(array)


def refuse_other_sizes(images: Sequence[Any]) -> None:
    """Raise when one of the images has another shape than the first, naming it.

    Examples
    --------
    >>> refuse_other_sizes([np.zeros((2, 2)), np.zeros((2, 2))])
    """
    shapes = [np.shape(image) for image in images]
    for number, shape in enumerate(shapes):
        if shape != shapes[0]:
            raise ValueError(
                f"all images must have one size: image {number} has shape {shape}, "
                f"image 0 has {shapes[0]}; resize or crop them first"
            )


def _refuse_not_finite(array: NDArray) -> None:
    finite = np.isfinite(array.reshape(len(array), -1)).all(axis=1)
    if not finite.all():
        raise ValueError(
            f"sample {int(np.argmin(finite))} is the first of {int((~finite).sum())} with NaN or "
            "infinity in it; remove or repair them first"
        )


def check_labels(labels: Any, n_samples: int) -> NDArray:
    """Check labels that are given for evaluation: one for every sample.

    Examples
    --------
    >>> check_labels([0, 1], 2).tolist()
    [0, 1]
    """
    array = np.asarray(labels)
    if array.shape != (n_samples,):
        raise ValueError(
            f"{n_samples} samples need as many labels to be evaluated by, got shape {array.shape}"
        )
    return array


def read_samples(path: str | os.PathLike[str]) -> Samples:
    """Read a .npy file of images, or an .npz file with the array `images`.

    An .npz file may also have `labels`, for evaluation, and `names`, one text an image; with a
    single array it may have any name.

    Examples
    --------
    >>> read_samples("pictures.npz")  # doctest: +SKIP
    """
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"{path} is not there")
    if path.suffix not in (".npy", ".npz"):
        raise ValueError(f"{path} is not a .npy or .npz file of images")
    try:
        with open(path, "rb") as file:
            loaded = np.load(file, allow_pickle=False)
            arrays = {"": loaded} if isinstance(loaded, np.ndarray) else dict(loaded.items())
    except (ValueError, EOFError, OSError, KeyError, BadZipFile, zlib.error) as error:
        raise ValueError(f"{path} cannot be read as arrays: {error}") from error
    try:
        return _samples_of(arrays)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def _samples_of(arrays: dict[str, NDArray]) -> Samples:
    if SAMPLES not in arrays and len(arrays) != 1:
        raise ValueError(f"there is no array {SAMPLES!r} among {', '.join(sorted(arrays))}")
    samples = as_samples(arrays[SAMPLES] if SAMPLES in arrays else next(iter(arrays.values())))
    names = arrays.get(NAMES)
    if names is not None and names.shape != (len(samples),):
        raise ValueError(f"{len(samples)} images need as many names, got shape {names.shape}")
    labels = arrays.get(LABELS)
    return Samples(
        samples,
        [str(name) for name in (range(len(samples)) if names is None else names)],
        None if labels is None else check_labels(labels, len(samples)),
    )


def fingerprint(samples: NDArray) -> dict[str, Any]:
    """Give what tells one array from another: shape, type and a checksum of all values.

    Examples
    --------
    >>> fingerprint(np.zeros((2, 3), np.uint8))["shape"]
    [2, 3]
    """
    value = 0
    for row in samples:
        value = zlib.crc32(np.ascontiguousarray(row).data, value)
    return {"shape": list(samples.shape), "dtype": str(samples.dtype), "checksum": value}
