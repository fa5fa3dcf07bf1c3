"""Read the content of one picture, and explain why that may fail."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeAlias

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from PIL import Image

RawImage: TypeAlias = "bytes | Image.Image | NDArray"  # the bytes of a file, or pixels

MOST_BYTES = 2**29  # of one file; no photograph is larger


class BadPictureError(ValueError):
    """A picture that cannot be read or decoded; the message is the reason."""


def open_file(path: Path) -> BinaryIO:
    """Open the file of a picture; raise if it is not a regular file or is too large.

    Examples
    --------
    >>> with open_file(Path(__file__)) as file:
    ...     len(file.read(3))
    3
    """
    descriptor, _ = _open_checked(path)
    return os.fdopen(descriptor, "rb")


def read_file(path: Path) -> bytes:
    """Return the content of a picture's file; raise if it is not a regular file or is too large.

    Examples
    --------
    >>> len(read_file(Path(__file__))) > 0
    True
    """
    descriptor, size = _open_checked(path)
    try:
        # One call reads the whole file, unless it grows at the same time.
        content = os.read(descriptor, size + 1)
        while len(content) < MOST_BYTES and (more := os.read(descriptor, 2**20)):
            content += more
        return content
    finally:
        os.close(descriptor)


def _open_checked(path: Path) -> tuple[int, int]:
    """Return a file descriptor and the size of the file."""
    # Without O_NONBLOCK, opening a named pipe would wait until another process writes to it.
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    descriptor = os.open(path, flags)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise BadPictureError("it is not a regular file")
        check_file_size(status.st_size)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor, status.st_size


def check_file_size(size: int) -> None:
    """Raise if a file is too large to be a picture.

    Examples
    --------
    >>> check_file_size(2**20)
    """
    if size > MOST_BYTES:
        raise BadPictureError(f"its file is too large ({size:,} bytes)")


def reason_of(error: OSError) -> str:
    """Return the reason why a file could not be read.

    Examples
    --------
    >>> reason_of(PermissionError(13, "Permission denied"))
    'it cannot be read (permission denied)'
    """
    if isinstance(error, FileNotFoundError):
        return "it does not exist"
    if isinstance(error, PermissionError):
        return "it cannot be read (permission denied)"
    return f"it cannot be read ({error.strerror or error})"


def is_tensor(data: Any) -> bool:
    """Return whether an object is a torch tensor, without importing torch.

    Examples
    --------
    >>> is_tensor([1, 2])
    False
    """
    return hasattr(data, "detach") and hasattr(data, "shape")


def to_numpy(data: Any) -> NDArray:
    """Convert an array, a torch tensor on any device, or nested lists to a numpy array.

    Examples
    --------
    >>> to_numpy([[1, 2], [3, 4]]).shape
    (2, 2)
    """
    import numpy as np  # here, because worker processes seldom need it

    parts = data if isinstance(data, list | tuple) else [data]
    if any(isinstance(part, np.ma.MaskedArray) for part in parts):
        raise ValueError(
            "masks of masked arrays are not supported: fill or remove the masked values, and pass "
            "a plain array"
        )
    return np.asarray(data.detach().cpu() if is_tensor(data) else data)
