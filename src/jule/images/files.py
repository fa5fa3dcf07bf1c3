"""Pictures that are files of their own: what a folder, a list and a pattern have in common."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from numpy.typing import NDArray

from jule.images.batch import read_file
from jule.images.source import ImageSource, Skipped


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


def identity_of(path: Path) -> str:
    """Give path, size, time and mode of one file: who was refused may be let in later.

    Examples
    --------
    >>> identity_of(Path("photos.zip"))  # doctest: +SKIP
    """
    about = os.stat(path)
    where = os.path.abspath(path)
    return f"{where} {about.st_size} {about.st_mtime_ns} {about.st_ino} {about.st_mode}"
