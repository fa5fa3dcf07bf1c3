"""HDF5 files: the layout of the JULE authors, or any file with an array of images."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jule.images.sources.arrays import MENTIONED, ArraySource, is_channels_first
from jule.images.sources.base import error_text, shorten_name
from jule.memory import check_memory

SUFFIXES = (".h5", ".hdf5", ".hdf")
IMAGES = ("images", "data", "x")
LABELS = ("labels", "label", "y")
SECONDS = 60  # for the structure of a file
TRY = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from jule.images.sources.hdf5 import list_contents; list_contents(sys.argv[2])"
)


def open_hdf5(path: Path) -> ArraySource:
    """Open the images of an HDF5 file.

    They are the data set `images`, `data` or `x`, or the only one with three or four dimensions.
    Its shape is (n, h, w), (n, h, w, c) or, as in the files of the paper's authors, (n, c, h, w).
    Floats up to 1 are scaled to 0 .. 255. `labels` or `y`, one integer per image, are read for
    evaluation. Links are not followed, and nothing is read from other files.
    """
    with _open_file(path) as (file, h5py):
        found = _find_datasets(file, h5py)
        name = _name_of_images(path, found, _find_links(file, h5py, path))
        images = _read_dataset(found[name], name, path)
        labels = None
        for label in LABELS:
            if label in found and found[label].size == len(images):
                labels = _read_dataset(found[label], label, path).reshape(-1)
                break
    if is_channels_first(images.shape):
        images = np.moveaxis(images, 1, -1)
    if images.ndim == 4 and images.shape[3] == 1:
        images = images[..., 0]
    if images.ndim > 2 and images.size:
        images = _to_uint8(images, name, path)
    try:
        return ArraySource(images, labels=labels, where=str(path))
    except ValueError as error:
        raise ValueError(f"{path}, {name!r}: {error}") from None


@contextmanager
def _open_file(path: Path) -> Iterator[tuple[Any, Any]]:
    """Open an HDF5 file; all errors inside the block become a ValueError that names the file."""
    try:
        import h5py
    except ImportError as error:
        raise ImportError(
            f'reading {path} needs h5py, which is not installed: pip install "jule[hdf5]"'
        ) from error
    try:
        _check_structure(path)
        with h5py.File(path, "r") as file:
            yield file, h5py
    except (FileNotFoundError, PermissionError):
        raise
    except Exception as error:  # h5py raises anything for damaged bytes
        if isinstance(error, ValueError) and str(path) in str(error):
            raise
        raise ValueError(
            f"{path} cannot be read as HDF5 ({error_text(error)}): it is damaged or not an HDF5 "
            "file; replace it with a good copy"
        ) from error


def _check_structure(path: Path) -> None:
    """Raise if a damaged file makes the HDF5 library crash or hang.

    The file is opened in a separate process first. Errors are ignored there, because opening it in
    this process raises them again.
    """
    command = [sys.executable, "-P", "-c", TRY, json.dumps(sys.path), os.path.abspath(path)]
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        raise ValueError(f"its structure could not be read in {SECONDS} s") from None
    if done.returncode < 0:
        raise ValueError("the HDF5 library crashed")


def list_contents(path: str) -> None:
    """Visit everything in an HDF5 file that `open_hdf5` visits before it reads an array.

    Examples
    --------
    >>> list_contents("not there")
    """
    import h5py

    with suppress(Exception), h5py.File(path, "r") as file:
        _find_datasets(file, h5py)
        _find_links(file, h5py, Path(path))


def _find_datasets(file: Any, h5py: Any) -> dict[str, Any]:
    """Return all arrays of numbers in the file by name, in lower case, without reading them."""
    found: dict[str, Any] = {}

    def keep(name: str, item: Any) -> None:
        if isinstance(item, h5py.Dataset) and item.ndim and item.dtype.kind in "fiub":
            found[name.lower()] = item

    file.visititems(keep)  # does not follow links
    return found


def _find_links(file: Any, h5py: Any, path: Path) -> dict[str, str]:
    """Return, for the names in the file that are links, why they are not read."""
    return {
        name.lower(): f"{shorten_name(name)!r} in {path} is a link: links are not followed; write "
        "the array into the file itself"
        for name in file
        if not isinstance(file.get(name, getlink=True), h5py.HardLink)
    }


def _read_dataset(dataset: Any, name: str, path: Path) -> NDArray:
    """Read an array, unless it is in other files or does not fit into memory."""
    if dataset.external or dataset.is_virtual:
        raise ValueError(
            f"{shorten_name(name)!r} in {path} refers to other files, which are not read: write "
            "the array into the file itself"
        )
    itemsize = dataset.dtype.itemsize
    size = math.prod(dataset.shape) * itemsize
    if dataset.dtype != np.uint8:
        size *= 3  # scaled and rounded copies
    if dataset.chunks:  # each is unpacked as a whole
        size += math.prod(dataset.chunks) * itemsize
    check_memory(size, f"{shorten_name(name)!r} in {path}")
    array: NDArray = dataset[()]
    return array


def _name_of_images(path: Path, found: dict[str, Any], links: dict[str, str]) -> str:
    for name in IMAGES:
        if name in found:
            return name
        if name in links:
            raise ValueError(links[name])
    with_pixels = [name for name, dataset in found.items() if dataset.ndim in (3, 4)]
    if len(with_pixels) == 1:
        return with_pixels[0]
    some = [f"{shorten_name(name)} {found[name].shape}" for name in list(found)[:MENTIONED]]
    holds = ", ".join(some) or "nothing"
    raise ValueError(f"{path} has no data set {' or '.join(IMAGES)}; it holds {holds}")


def read_authors_hdf5(
    path: str | os.PathLike[str],
) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Read images and labels from an HDF5 file in the layout of the paper's authors.

    The file (theirs is called data4torch.h5) has the keys `data`, N x C x H x W with 1 or 3
    channels, and `labels`, one integer per image. Pixels are integers from 0 to 255, or floats. If
    the largest float is at most 1, floats are scaled by 255; otherwise they are rounded.

    Returns
    -------
    images
        uint8, (N, H, W) for one channel, (N, H, W, 3) for three.
    labels
        int64, (N,).

    Examples
    --------
    >>> import tempfile
    >>> import h5py
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with h5py.File(f"{folder}/mine.h5", "w") as file:
    ...         file["data"] = np.zeros((5, 3, 8, 8), dtype=np.uint8)
    ...         file["labels"] = [0, 0, 1, 1, 2]
    ...     images, labels = read_authors_hdf5(f"{folder}/mine.h5")
    >>> images.shape, labels.shape
    ((5, 8, 8, 3), (5,))
    """
    path = Path(path)
    arrays = _read_hdf5(path, ("data", "labels"))
    data, labels = arrays["data"], arrays["labels"].reshape(-1)  # the authors' are N x 1
    if data.ndim != 4 or data.shape[1] not in (1, 3) or data.size == 0:
        raise ValueError(
            f"'data' in {path} has shape {data.shape}, expected images x channels x height x width "
            "with 1 or 3 channels, none of them 0: reorder or reshape the array and write it again"
        )
    if len(labels) != len(data):
        raise ValueError(
            f"{path} has {len(data)} images in 'data' but {len(labels)} labels in 'labels': "
            "write one label per image"
        )
    channels_last = np.moveaxis(_to_uint8(data, "data", path), 1, -1)
    images = channels_last[..., 0] if channels_last.shape[-1] == 1 else channels_last
    return np.ascontiguousarray(images), _to_int64(labels, path)


def _read_hdf5(path: Path, keys: tuple[str, ...]) -> dict[str, NDArray[Any]]:
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}: check the path of the HDF5 file")
    with _open_file(path) as (file, h5py):
        links = _find_links(file, h5py, path)
        for key in keys:
            if key in links:
                raise ValueError(links[key])
            if not isinstance(file.get(key), h5py.Dataset):
                raise ValueError(
                    f"{path} has no array {key!r}, only {sorted(file)[:MENTIONED]}: "
                    "it needs 'data' (N x C x H x W) and 'labels' (N)"
                )
        return {key: _read_dataset(file[key], key, path) for key in keys}


def _to_uint8(data: NDArray[Any], name: str, path: Path) -> NDArray[np.uint8]:
    if data.dtype == np.uint8:
        return data
    if data.dtype.kind not in "iuf":
        raise ValueError(
            f"{name!r} in {path} has the type {data.dtype}: write the pixels as numbers, "
            "preferably uint8"
        )
    low, high = data.min(), data.max()
    if not (low >= 0 and high <= 255):  # written so that NaN is rejected too
        raise ValueError(
            f"{name!r} in {path} has values from {low} to {high}: pixels must be between 0 and "
            "1 (floats) or 0 and 255; write them without centring or other scaling"
        )
    if data.dtype.kind == "f":
        if high <= 1:
            data = data * 255
        data = np.rint(data)
    return data.astype(np.uint8)


def _to_int64(labels: NDArray[Any], path: Path) -> NDArray[np.int64]:
    if labels.dtype.kind not in "iuf" or not np.all(labels == np.rint(labels)):
        raise ValueError(
            f"'labels' in {path} are not all integers (type {labels.dtype}): "
            "write the class of each image as an integer"
        )
    return labels.astype(np.int64)
