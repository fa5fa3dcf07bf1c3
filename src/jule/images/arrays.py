"""Arrays of images or vectors, from memory or from .npy and .npz files, checked before use."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jule.images.source import ImageSource

SAMPLES, LABELS, NAMES = "images", "labels", "names"  # the arrays of an .npz file
SUFFIXES = (".npy", ".npz")


class ArraySource(ImageSource):
    """Images or vectors that are one array already; they are taken as they are.

    Examples
    --------
    >>> source = ArraySource(np.zeros((2, 8, 8), np.uint8))
    >>> len(source), source.names
    (2, ['0', '1'])
    """

    def __init__(
        self,
        samples: Any,
        names: Sequence[str] | NDArray | None = None,
        labels: Any = None,
        where: str = "an array",
    ) -> None:
        self._samples = as_samples(samples)
        if names is not None and len(names) != len(self._samples):
            raise ValueError(f"{len(self._samples)} images need as many names, got {len(names)}")
        super().__init__(
            where,
            [str(name) for name in (range(len(self._samples)) if names is None else names)],
            None if labels is None else check_labels(labels, len(self._samples)),
        )

    def picture(self, number: int) -> NDArray:
        """Give the pixels of one image."""
        image: NDArray = self._samples[number]
        return image

    def array(self) -> NDArray:
        """Give all images."""
        return self._samples

    def identity(self) -> Iterator[str]:
        """Give what tells this array from others."""
        yield str(fingerprint(self._samples))


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


def open_arrays(path: Path) -> ArraySource:
    """Open a .npy file of images, or an .npz file with the array `images`.

    An .npz file may also have `labels`, for evaluation, and `names`, one text an image; with a
    single array it may have any name. The pixels of a .npy file stay on the disk until they are
    needed.

    Examples
    --------
    >>> open_arrays(Path("pictures.npz"))  # doctest: +SKIP
    """
    try:
        loaded = np.load(path, mmap_mode="r", allow_pickle=False)
        members = {"": loaded} if isinstance(loaded, np.ndarray) else dict(loaded.items())
    except (FileNotFoundError, PermissionError):
        raise
    except Exception as error:  # damaged bytes make numpy, zipfile and tokenize raise anything
        reason = str(error) or type(error).__name__
        raise ValueError(f"{path} cannot be read as arrays: {reason}") from error
    arrays = {name: one for name, one in members.items() if isinstance(one, np.ndarray)}
    try:
        return _source_of(arrays, str(path))
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def _source_of(arrays: dict[str, NDArray], where: str) -> ArraySource:
    if SAMPLES not in arrays and len(arrays) != 1:
        raise ValueError(f"there is no array {SAMPLES!r} among {', '.join(sorted(arrays))}")
    samples = arrays[SAMPLES] if SAMPLES in arrays else next(iter(arrays.values()))
    names = arrays.get(NAMES)
    if names is not None and names.ndim != 1:
        raise ValueError(f"names must be one text an image, got an array of shape {names.shape}")
    return ArraySource(samples, names, arrays.get(LABELS), where)


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
