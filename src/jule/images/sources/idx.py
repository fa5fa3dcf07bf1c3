"""IDX files, plain or gzipped: the format of MNIST."""

from __future__ import annotations

import gzip
import math
import zlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from jule.images.sources.arrays import ArraySource
from jule.images.sources.base import error_text
from jule.memory import check_memory

TYPES = {8: ">u1", 9: ">i1", 11: ">i2", 12: ">i4", 13: ">f4", 14: ">f8"}
BLOCK = 2**24  # bytes


def open_idx(path: Path) -> ArraySource:
    """Open an IDX file of images.

    A file of labels beside it is read as well, for evaluation, if it is named as in MNIST
    (train-images-idx3-ubyte and train-labels-idx1-ubyte).
    """
    images = read_idx(path)
    label_path = path.with_name(path.name.replace("images", "labels").replace("idx3", "idx1"))
    labels = read_idx(label_path) if label_path != path and label_path.exists() else None
    try:
        return ArraySource(images, labels=labels, where=str(path))
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def read_idx(path: Path) -> NDArray:
    """Read the array of an IDX file.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "labels.idx")
    ...     _ = path.write_bytes(bytes([0, 0, 8, 1, 0, 0, 0, 3, 7, 8, 9]))
    ...     read_idx(path).tolist()
    [7, 8, 9]
    """
    try:
        with gzip.open(path) if is_gzip(path) else open(path, "rb") as file:
            head = file.read(4)
            if not is_idx(head):
                raise ValueError("it does not begin like an IDX file")
            shape = np.frombuffer(file.read(4 * head[3]), ">u4").tolist()
            kind = np.dtype(TYPES[head[2]])
            if len(shape) != head[3]:
                raise ValueError("it is cut off")
            size = math.prod(shape) * kind.itemsize
            if not is_gzip(path) and file.tell() + size > path.stat().st_size:
                raise ValueError(f"its header announces {size:,} bytes, more than it has")
            # Twice: the bytes, and the array of native numbers that is made of them.
            check_memory(size if kind.itemsize == 1 else 2 * size, "what its header announces")
            content = bytearray()
            while block := file.read(min(BLOCK, size + 1 - len(content))):
                content += block
    except (FileNotFoundError, PermissionError):
        raise
    except (EOFError, OSError, zlib.error, ValueError) as error:
        raise ValueError(f"{path} cannot be read as IDX: {error_text(error)}") from error
    if len(content) != size:
        raise ValueError(
            f"{path} cannot be read as IDX: its header announces {size:,} bytes for the shape "
            f"{shape}, it has {'more' if len(content) > size else format(len(content), ',')}"
        )
    return np.frombuffer(content, kind).reshape(shape).astype(kind.newbyteorder("="), copy=False)


def is_gzip(path: Path) -> bool:
    """Return whether the first bytes of a file are those of gzip.

    Examples
    --------
    >>> is_gzip(Path(__file__))
    False
    """
    with open(path, "rb") as file:
        return file.read(2) == b"\x1f\x8b"


def is_idx(head: bytes) -> bool:
    """Return whether the first four bytes of a file are those of an IDX file.

    Examples
    --------
    >>> is_idx(b"\\0\\0\\x08\\x03"), is_idx(b"PK\\3\\4")
    (True, False)
    """
    return len(head) == 4 and head[:2] == b"\0\0" and head[2] in TYPES and head[3] in (1, 2, 3, 4)
