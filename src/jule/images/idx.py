"""IDX files, plain or gzipped: the format of MNIST and its many relatives."""

from __future__ import annotations

import gzip
import math
import zlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from jule.images.arrays import ArraySource

TYPES = {8: ">u1", 9: ">i1", 11: ">i2", 12: ">i4", 13: ">f4", 14: ">f8"}

BLOCK = 2**24  # bytes


def open_idx(path: Path) -> ArraySource:
    """Open images in an IDX file.

    Labels beside it, called as MNIST's are (train-images-idx3-ubyte, train-labels-idx1-ubyte), are
    taken to score the result by.

    Examples
    --------
    >>> open_idx(Path("t10k-images-idx3-ubyte.gz"))  # doctest: +SKIP
    """
    images = read_idx(path)
    beside = path.with_name(path.name.replace("images", "labels").replace("idx3", "idx1"))
    labels = read_idx(beside) if beside != path and beside.exists() else None
    try:
        return ArraySource(images, labels=labels, where=str(path))
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def read_idx(path: Path) -> NDArray:
    """Read the array of an IDX file.

    Examples
    --------
    >>> read_idx(Path("t10k-images-idx3-ubyte.gz"))  # doctest: +SKIP
    """
    try:
        with gzip.open(path) if is_gzip(path) else open(path, "rb") as file:
            head = file.read(4)
            if not is_idx(head):
                raise ValueError("it does not begin as an IDX file does")
            shape = np.frombuffer(file.read(4 * head[3]), ">u4").tolist()
            kind = np.dtype(TYPES[head[2]])
            if len(shape) != head[3]:
                raise ValueError("it is cut off")
            size = math.prod(shape) * kind.itemsize
            # In blocks: nobody may ask for as much memory as a damaged head promises.
            content = bytearray()
            while block := file.read(min(BLOCK, size + 1 - len(content))):
                content += block
    except (EOFError, gzip.BadGzipFile, zlib.error, ValueError) as error:
        raise ValueError(f"{path} cannot be read as IDX: {error}") from error
    if len(content) != size:
        raise ValueError(
            f"{path} cannot be read as IDX: its head promises {size:,} bytes of {shape}, "
            f"it has {'more' if len(content) > size else format(len(content), ',')}"
        )
    return np.frombuffer(content, kind).reshape(shape).astype(kind.newbyteorder("="), copy=False)


def is_gzip(path: Path) -> bool:
    """Tell a gzipped file by its first bytes.

    Examples
    --------
    >>> is_gzip(Path(__file__))
    False
    """
    with open(path, "rb") as file:
        return file.read(2) == b"\x1f\x8b"


def is_idx(head: bytes) -> bool:
    """Tell an IDX file by its first four bytes.

    Examples
    --------
    >>> is_idx(b"\\0\\0\\x08\\x03"), is_idx(b"PK\\3\\4")
    (True, False)
    """
    return len(head) == 4 and head[:2] == b"\0\0" and head[2] in TYPES and head[3] in (1, 2, 3, 4)
