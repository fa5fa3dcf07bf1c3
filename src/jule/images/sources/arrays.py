"""Arrays of images or vectors, in memory or in .npy and .npz files."""

from __future__ import annotations

import math
import warnings
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from jule.images.sources.base import (
    LONGEST_NAME,
    ImageSource,
    error_text,
    escape_name,
    shorten_name,
)
from jule.images.sources.content import is_tensor, to_numpy
from jule.memory import check_memory

SAMPLES, LABELS, NAMES = "images", "labels", "names"  # the arrays of an .npz file
SUFFIXES = (".npy", ".npz")
CHANNELS = (1, 3, 4)  # grey, RGB, RGBA
MENTIONED = 10  # names in an error message
BLOCK_BYTES = 2**24  # of the blocks in which arrays are processed


class ArraySource(ImageSource):
    """Images or vectors in one array, which is used without decoding.

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
        n = len(self._samples)
        if names is not None and len(names) != n:
            raise ValueError(f"{n} images need as many names, got {len(names)}")
        super().__init__(
            where,
            [_as_name(name) for name in (range(n) if names is None else names)],
            None if labels is None else check_labels(labels, n),
        )

    def picture(self, index: int) -> NDArray:
        """Return the pixels of one image."""
        image: NDArray = self._samples[index]
        return image

    def array(self) -> NDArray:
        """Return all images."""
        return self._samples

    def identity(self) -> Iterator[str]:
        """Yield the fingerprint of the array."""
        yield str(self._fingerprint)

    @cached_property
    def _fingerprint(self) -> dict[str, Any]:
        return fingerprint(self._samples)


def _as_name(name: object) -> str:
    text = escape_name(str(name))
    if len(text) > LONGEST_NAME:
        raise ValueError(
            f"the name {shorten_name(text)!r} has more than {LONGEST_NAME:,} characters"
        )
    return text


def as_samples(data: Any) -> NDArray:
    """Check images (n, h, w[, c]) or vectors (n, d) and return them as one contiguous array.

    uint8 stays uint8; other numbers become float32.

    Raises
    ------
    ValueError
        If the shape or type is wrong, images are channels-first or of different sizes, or values
        are not finite.

    Examples
    --------
    >>> as_samples([np.zeros((4, 4), np.uint8), np.ones((4, 4), np.uint8)]).shape
    (2, 4, 4)
    """
    if isinstance(data, Sequence) and not isinstance(data, str | bytes):
        check_same_shape(data)
    array = to_numpy(data)
    check_layout(array.shape, "permute" if is_tensor(data) else "transpose")
    if array.size == 0:
        raise ValueError(f"an array of shape {array.shape} is empty")
    if array.dtype.kind not in "fiub":
        raise ValueError(f"images must be numbers, got dtype {array.dtype}")
    if array.dtype != np.uint8:
        if array.dtype != np.float32:
            check_memory(4 * array.size, f"an array of shape {array.shape} as float32")
        with np.errstate(over="ignore"):  # too large for float32: reported as infinity below
            array = array.astype(np.float32, copy=False)
        _check_finite(array)
    return np.ascontiguousarray(array)


def check_layout(shape: tuple[int, ...], method: str = "transpose") -> None:
    """Raise unless a shape is that of images (n, h, w[, c]) or vectors (n, d).

    `method` is the name of the method that reorders axes, for the error message.

    Examples
    --------
    >>> check_layout((50, 32, 32, 3))
    """
    if is_channels_first(shape):
        raise ValueError(
            f"an array of shape {shape} looks channels-first; jule expects "
            f"(n, height, width, channels): use images.{method}(0, 2, 3, 1)"
        )
    if len(shape) not in (2, 3, 4):
        more = ": flatten or select the additional axes first" if len(shape) > 4 else ""
        raise ValueError(
            "expected images (n, height, width) or (n, height, width, channels), or vectors "
            f"(n, d), got an array of shape {shape}{more}"
        )


def is_channels_first(shape: tuple[int, ...]) -> bool:
    """Return whether a shape looks like (n, channels, height, width).

    Examples
    --------
    >>> is_channels_first((50, 3, 32, 32)), is_channels_first((50, 32, 32, 8))
    (True, False)
    """
    return len(shape) == 4 and shape[1] in CHANNELS and shape[3] not in CHANNELS


def check_same_shape(images: Sequence[Any]) -> None:
    """Raise if the images have different shapes, naming the first that differs.

    Examples
    --------
    >>> check_same_shape([np.zeros((2, 2)), np.zeros((2, 2))])
    """
    shapes = [np.shape(image) for image in images]
    for index, shape in enumerate(shapes):
        if shape != shapes[0]:
            raise ValueError(
                f"all images must have the same size: image {index} has shape {shape}, "
                f"image 0 has {shapes[0]}; resize or crop them first"
            )


def _check_finite(array: NDArray[np.floating]) -> None:
    # A sum is not finite as soon as one term is not, and needs no mask of the array's size.
    with np.errstate(over="ignore", invalid="ignore"):
        sums = array.sum(axis=tuple(range(1, array.ndim)), dtype=np.float64)
    bad = [
        index for index in np.flatnonzero(~np.isfinite(sums)) if not np.isfinite(array[index]).all()
    ]
    if bad:
        raise ValueError(
            f"sample {bad[0]} is the first of {len(bad)} that contain NaN or infinity; remove or "
            "repair them first"
        )


def check_labels(labels: Any, n_samples: int) -> NDArray:
    """Return labels as an array; raise unless there is one per sample.

    Examples
    --------
    >>> check_labels([0, 1], 2).tolist()
    [0, 1]
    """
    array = np.asarray(labels)
    if array.shape != (n_samples,):
        raise ValueError(
            f"{n_samples} samples need as many labels, got an array of shape {array.shape}"
        )
    return array


def fingerprint(samples: NDArray, checksum: int | None = None) -> dict[str, Any]:
    """Return the shape, type and checksum of an array, which identify it.

    `checksum` is the CRC-32 of its bytes, if it is known already.

    Examples
    --------
    >>> fingerprint(np.zeros((2, 3), np.uint8))["shape"]
    [2, 3]
    """
    if checksum is None:
        checksum = 0
        for block in row_blocks(samples):
            checksum = zlib.crc32(block.data, checksum)
    return {"shape": list(samples.shape), "dtype": str(samples.dtype), "checksum": checksum}


def row_blocks(array: NDArray) -> Iterator[NDArray]:
    """Yield contiguous blocks of rows, so that no copy of the whole array is made.

    Examples
    --------
    >>> [block.shape for block in row_blocks(np.zeros((3, 2)))]
    [(3, 2)]
    """
    if array.size == 0:
        return
    rows = max(1, BLOCK_BYTES // (array.nbytes // len(array)))
    for start in range(0, len(array), rows):
        yield np.ascontiguousarray(array[start : start + rows])


def open_arrays(path: Path) -> ArraySource:
    """Open a .npy file of images, or an .npz file with the array `images`.

    An .npz file may also have `labels`, for evaluation, and `names`, one string per image. If it
    has a single array, its name does not matter. A .npy file is mapped into memory.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # numpy warns of unusual but valid headers
            arrays = _load_npz(path) if zipfile.is_zipfile(path) else {SAMPLES: _load_npy(path)}
    except (FileNotFoundError, PermissionError):
        raise
    except Exception as error:  # numpy, zipfile and tokenize raise anything for damaged bytes
        raise ValueError(f"{path} cannot be read as arrays: {error_text(error)}") from error
    try:
        return _source_of(arrays, str(path))
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def _load_npy(path: Path) -> NDArray:
    with open(path, "rb") as file:
        size = _check_header(file, "it")
        if file.tell() + size > path.stat().st_size:
            raise ValueError(f"it is cut off: its header announces {size:,} bytes")
    array: NDArray = np.load(path, mmap_mode="r", allow_pickle=False)
    return array


def _load_npz(path: Path) -> dict[str, NDArray]:
    """Read the arrays that are needed, after checking that they fit into memory."""
    with zipfile.ZipFile(path) as file:
        names = [name for name in file.namelist() if name.endswith(".npy")]
        members = {name.removesuffix(".npy"): name for name in names}
        if SAMPLES in members:
            needed = [name for name in (SAMPLES, LABELS, NAMES) if name in members]
        elif len(members) == 1:
            needed = list(members)
        else:
            some = ", ".join(shorten_name(name) for name in sorted(members)[:MENTIONED])
            raise ValueError(f"there is no array {SAMPLES!r} among {some or 'no arrays'}")
        arrays = {}
        for name in needed:
            with file.open(members[name]) as member:
                size = _check_header(member, f"the array {shorten_name(name)!r}")
            check_memory(size, f"the array {shorten_name(name)!r}")
            with file.open(members[name]) as member:
                arrays[name] = np.lib.format.read_array(member, allow_pickle=False)
    if SAMPLES not in arrays:
        arrays = {SAMPLES: arrays[needed[0]]}
    return arrays


def _check_header(file: IO[bytes], what: str) -> int:
    """Read the header of an array in the .npy format; return how many bytes the array has."""
    head = np.lib.format
    if file.read(len(head.MAGIC_PREFIX)) != head.MAGIC_PREFIX:
        raise ValueError(f"{what} is not in the .npy format")
    version = tuple(file.read(2))
    if version not in ((1, 0), (2, 0)):
        raise ValueError(f"{what} has an unknown version of the .npy format")
    read = head.read_array_header_1_0 if version == (1, 0) else head.read_array_header_2_0
    shape, _, dtype = read(file)
    if min(shape, default=0) < 0:
        raise ValueError(f"{what} has the shape {shape}")
    if dtype.hasobject:
        raise ValueError(
            f"{what} holds Python objects, which are never loaded: save an array of numbers instead"
        )
    return math.prod(shape) * dtype.itemsize


def _source_of(arrays: dict[str, NDArray], where: str) -> ArraySource:
    names = arrays.get(NAMES)
    if names is not None and names.ndim != 1:
        raise ValueError(f"names must be one string per image, got an array {names.shape}")
    return ArraySource(arrays[SAMPLES], names, arrays.get(LABELS), where)
