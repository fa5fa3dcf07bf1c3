"""Pictures that are files of their own: what a folder, a list and a pattern have in common."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from numpy.typing import NDArray

from jule.images.decode import BadPictureError
from jule.images.source import MOST_BYTES, ImageSource, Skipped


class FileSource(ImageSource):
    """Files, each with the name it is shown by.

    Examples
    --------
    >>> FileSource("two", [Path("a.jpg"), Path("b.jpg")], ["a.jpg", "b.jpg"]).place(1).name
    'b.jpg'
    """

    def __init__(
        self,
        where: str,
        paths: list[Path],
        names: list[str],
        labels: NDArray | None = None,
        left_out: list[Skipped] | None = None,
    ) -> None:
        super().__init__(where, names, labels, left_out)
        self._paths = paths

    def picture(self, number: int) -> bytes:
        """Read a whole file."""
        return read_file(self._paths[number])

    def place(self, number: int) -> Path:
        """Give the file."""
        return self._paths[number]

    def identity(self) -> Iterator[str]:
        """Give path, size and time of every file: who changes the content changes these."""
        for path in self._paths:
            try:
                yield identity_of(path)
            except (OSError, ValueError):  # the latter for a name that no file can have
                yield f"{path} is gone"


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
        with open(number, "rb", closefd=False) as file:
            return file.read()
    finally:
        os.close(number)


def identity_of(path: Path) -> str:
    """Give path, size, time and mode of one file: who was refused may be let in later.

    Examples
    --------
    >>> identity_of(Path("photos.zip"))  # doctest: +SKIP
    """
    about = os.stat(path)
    where = os.path.abspath(path)
    return f"{where} {about.st_size} {about.st_mtime_ns} {about.st_ino} {about.st_mode}"
