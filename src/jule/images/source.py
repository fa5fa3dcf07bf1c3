"""What every kind of source offers: a length, names, and batches of pictures of one size."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from numpy.typing import NDArray

from jule.images.batch import Batch, Picture, decode_chunk, reason_of
from jule.images.decode import Look
from jule.images.pipeline import cores, in_order
from jule.images.worker import Worker

SUFFIXES = (
    ".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".webp", ".bmp", ".dib", ".tif", ".tiff", ".gif",
    ".avif", ".ppm", ".pgm", ".heic", ".heif",
)  # fmt: skip
CHUNK = 128  # pictures, or ...
CHUNK_BYTES = 2**21  # ... fewer large ones: workers report often, and little waits in memory
FEW = 200  # pictures that are decoded before a worker would have started


@dataclass(frozen=True)
class Skipped:
    """What was left out, and why.

    Attributes
    ----------
    name
        As it is shown; never a name to open.
    reason
        In words.
    picture
        Whether it was meant to be a picture. Other files that lie around are listed too, but no
        reason to stop for anybody.
    """

    name: str
    reason: str
    picture: bool = True


class ImageSource(ABC):
    """A pile of pictures somewhere.

    A kind of source says how many there are, their names, and how to get one as it comes; bringing
    them all to one size on all cores is the same for every kind.

    Attributes
    ----------
    where
        What the user typed.
    names
        One text a picture.
    labels
        True classes, where the source has them: for evaluation alone.
    left_out
        What was seen while listing and will not be read.
    """

    def __init__(
        self,
        where: str,
        names: list[str],
        labels: NDArray | None = None,
        left_out: list[Skipped] | None = None,
    ) -> None:
        self.where = where
        self.names = names
        self.labels = labels
        self.left_out = left_out or []

    def __len__(self) -> int:
        return len(self.names)

    @abstractmethod
    def picture(self, number: int) -> Picture:
        """Give one picture as it comes: the bytes of its file, or its pixels.

        Raises OSError or BadPictureError where that cannot be done.
        """

    def array(self) -> NDArray | None:
        """Give all pictures at once, where they are one array already."""
        return None

    def place(self, number: int) -> Path | None:
        """Give the file of a picture, where it is a file of its own."""
        return None

    def identity(self) -> Iterator[str] | None:
        """Give texts that change when the content does; None where nobody can tell."""
        return None

    def batches(self, look: Look, start: int = 0, workers: int | None = None) -> Iterator[Batch]:
        """Give the pictures from `start` on, in order, decoded on all cores.

        Examples
        --------
        >>> import numpy as np
        >>> from jule.images.arrays import ArraySource
        >>> source = ArraySource(np.zeros((5, 8, 8), np.uint8))
        >>> [batch.images.shape for batch in source.batches(Look(4, 4, 1))]
        [(5, 4, 4)]
        """
        workers = workers or cores()
        chunks = self._chunks(start)
        if len(self) - start <= FEW:
            return (decode_chunk(chunk, look) for chunk in chunks)
        return in_order([Worker(look) for _ in range(workers)], chunks)

    def _chunks(self, start: int) -> Iterator[dict[int, Picture | Path | str]]:
        """Gather pictures in order; what cannot be read is a text that says why."""
        chunk: dict[int, Picture | Path | str] = {}
        size = 0
        for number in range(start, len(self)):
            chunk[number] = item = self.place(number) or self.picture_or_reason(number)
            size += _bytes_of(item)
            if len(chunk) == CHUNK or size > CHUNK_BYTES:
                yield chunk
                chunk, size = {}, 0
        if chunk:
            yield chunk

    def picture_or_reason(self, number: int) -> Picture | str:
        """Give one picture, or the reason why it cannot be had."""
        try:
            return self.picture(number)
        except OSError as error:
            return reason_of(error)
        except ValueError as error:  # bad pictures, and names that no file can have
            return str(error)


def _bytes_of(item: Picture | Path | str) -> int:
    if isinstance(item, Path):
        with suppress(OSError, ValueError):
            return os.stat(item).st_size
    return len(item) if isinstance(item, bytes) else 0


def is_picture_name(name: str) -> bool:
    """Tell by its suffix whether a file is meant to be a picture.

    Examples
    --------
    >>> is_picture_name("a/IMG_1.JPG"), is_picture_name("notes.txt")
    (True, False)
    """
    return Path(name).suffix.lower() in SUFFIXES


def is_hidden(name: str) -> bool:
    """Tell whether a path inside a folder or an archive is hidden, or a system's own litter.

    Examples
    --------
    >>> is_hidden(".thumbs/a.jpg"), is_hidden("__MACOSX/a.jpg"), is_hidden("b/a.jpg")
    (True, True, False)
    """
    return any(
        (part.startswith(".") and part != "..") or part == "__MACOSX" for part in Path(name).parts
    )


def shown(name: str) -> str:
    """Give a name that can be written anywhere, bytes that are no text as escapes.

    Examples
    --------
    >>> shown("caf\\udce9.jpg")
    'caf\\\\udce9.jpg'
    """
    return name.encode("utf-8", "backslashreplace").decode("utf-8")


def is_text(name: str) -> bool:
    """Tell whether a file's name is proper UTF-8.

    Examples
    --------
    >>> is_text("café.jpg"), is_text("caf\\udce9.jpg")
    (True, False)
    """
    return shown(name) == name


NOT_TEXT = "its name is not UTF-8: rename it"
OTHER_KIND = "it is not a picture file"
