"""Large temporary arrays, kept in files that are mapped into memory."""

from __future__ import annotations

import math
import os

import numpy as np
from numpy.typing import DTypeLike, NDArray

from jule.files import make_folder, user_cache

LARGE = 2**30  # bytes from which on an array is put into a file


def scratch_array(shape: tuple[int, ...], dtype: DTypeLike) -> NDArray:
    """Return an array whose values are not set, in a file if it has a gigabyte or more.

    The system writes parts of it to the disk when memory is short, instead of ending the program.
    The file has no name, so it is gone when nobody uses the array any more, also after a crash. It
    is in the cache folder of the user, because temporary folders are often kept in memory. If the
    disk is full, the array is an ordinary one.

    Parameters
    ----------
    shape, dtype
        Shape and data type of the array.

    Examples
    --------
    >>> scratch_array((2, 3), np.float32).shape
    (2, 3)
    """
    n_bytes = math.prod(shape) * np.dtype(dtype).itemsize
    if n_bytes < LARGE:
        return np.empty(shape, dtype)
    import tempfile  # which takes longer to load than most runs need

    try:
        with tempfile.TemporaryFile(dir=make_folder(user_cache() / "jule")) as file:
            # Reserved at once: a disk that is full later would end the program without a word.
            os.posix_fallocate(file.fileno(), 0, n_bytes)
            return np.memmap(file, dtype, "r+", shape=shape).view(np.ndarray)
    except (OSError, AttributeError):  # a full disk, or a system that cannot reserve
        return np.empty(shape, dtype)
