"""A few pictures at a time: read, decoded, and what went wrong said in words."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from jule.images.decode import BadPictureError, Look, decode

Picture = bytes | Image.Image | NDArray  # a file's content, or pixels

MOST_BYTES = 2**29  # of one picture's file; nobody's photograph is larger


@dataclass(frozen=True, eq=False)
class Batch:
    """Some pictures in a row, brought to one look.

    Attributes
    ----------
    images
        uint8 (m, h, w) or (m, h, w, 3): those that could be read.
    numbers
        (m,) their places in the source.
    digests
        16 bytes for each, the same for the same content.
    skipped
        Those that could not be read, by their places.
    """

    images: NDArray[np.uint8]
    numbers: list[int]
    digests: list[bytes]
    skipped: dict[int, str]


def decode_chunk(chunk: Mapping[int, Picture | Path | str], look: Look) -> Batch:
    """Decode pictures, or files, by their places in a source; a text is why one is not there.

    Examples
    --------
    >>> decode_chunk({5: np.zeros((2, 2), np.uint8), 6: "it is gone"}, Look(2, 2, 1)).numbers
    [5]
    """
    images = np.empty((len(chunk), *look.shape), np.uint8)
    numbers: list[int] = []
    digests: list[bytes] = []
    skipped: dict[int, str] = {}
    for number, item in chunk.items():
        try:
            images[len(numbers)], digest = decode(_content(item), look)
        except BadPictureError as error:
            skipped[number] = str(error)
        else:
            numbers.append(number)
            digests.append(digest)
    return Batch(images[: len(numbers)], numbers, digests, skipped)


def _content(item: Picture | Path | str) -> Picture:
    if isinstance(item, str):
        raise BadPictureError(item)
    if not isinstance(item, Path):
        return item
    try:
        return read_file(item)
    except OSError as error:
        raise BadPictureError(reason_of(error)) from error
    except ValueError as error:  # bad pictures, and names that no file can have
        raise BadPictureError(str(error)) from error


def read_file(path: Path) -> bytes:
    """Read a picture's file, but nothing that is no plain file and nothing without an end.

    Examples
    --------
    >>> read_file(Path("a.jpg"))  # doctest: +SKIP
    """
    # Without waiting: to open a named pipe would last until somebody writes to it.
    number = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    try:
        about = os.fstat(number)
        if not stat.S_ISREG(about.st_mode):
            raise BadPictureError("it is not a plain file")
        if about.st_size > MOST_BYTES:
            raise BadPictureError(f"its file is too large ({about.st_size:,} bytes)")
        return _all_of(number, about.st_size)
    finally:
        os.close(number)


def _all_of(number: int, size: int) -> bytes:
    """Read an open file to its end; one call does it, unless the file changes under our hands."""
    content = os.read(number, size + 1)
    while len(content) < MOST_BYTES and (more := os.read(number, 2**20)):
        content += more
    return content


def reason_of(error: OSError) -> str:
    """Say in words why a file could not be read.

    Examples
    --------
    >>> reason_of(PermissionError(13, "Permission denied"))
    'it may not be read (permission denied)'
    """
    if isinstance(error, FileNotFoundError):
        return "it vanished before it was read"
    if isinstance(error, PermissionError):
        return "it may not be read (permission denied)"
    return f"it cannot be read ({error.strerror or error})"
