"""Picture files: the base of folders, lists and patterns."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from numpy.typing import NDArray

from jule.images.sources.base import ImageSource, Skipped, escape_name
from jule.images.sources.content import read_file


class FileSource(ImageSource):
    """Picture files and the names to print for them.

    Examples
    --------
    >>> FileSource("two", [Path("a.jpg"), Path("b.jpg")], ["a.jpg", "b.jpg"]).path(1).name
    'b.jpg'
    """

    def __init__(
        self,
        where: str,
        paths: list[Path],
        names: list[str],
        labels: NDArray | None = None,
        skipped: list[Skipped] | None = None,
    ) -> None:
        super().__init__(where, names, labels, skipped)
        self._paths = paths

    def picture(self, index: int) -> bytes:
        """Return the content of a file."""
        return read_file(self._paths[index])

    def path(self, index: int) -> Path:
        """Return the path of a file."""
        return self._paths[index]

    def identity(self) -> Iterator[str]:
        """Yield the identity of every file; see `file_identity`."""
        for path in self._paths:
            try:
                yield file_identity(path)
            except (OSError, ValueError):  # ValueError: a name that no file can have
                yield f"{path} is gone"


def open_paths(paths: Sequence[str | os.PathLike[str]]) -> FileSource:
    """Open a list of paths; the names are the paths as given.

    Examples
    --------
    >>> open_paths(["photos/a.jpg", Path("b.jpg")]).names
    ['photos/a.jpg', 'b.jpg']
    """
    names = [os.fspath(path) for path in paths]
    return FileSource(
        f"a list of {len(names)} paths",
        [Path(name).expanduser() for name in names],
        [escape_name(name) for name in names],
    )


def file_identity(path: Path) -> str:
    """Return path, size, time, inode and mode of a file, which change when it changes.

    The mode matters because a file that could not be read may become readable.

    Examples
    --------
    >>> file_identity(Path(__file__)) == file_identity(Path(__file__))
    True
    """
    status = os.stat(path)
    where = os.path.abspath(path)
    return f"{where} {status.st_size} {status.st_mtime_ns} {status.st_ino} {status.st_mode}"
