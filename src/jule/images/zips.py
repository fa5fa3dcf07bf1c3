"""Pictures in a zip file."""

from __future__ import annotations

import lzma
import struct
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path

from jule.images.batch import MOST_BYTES
from jule.images.decode import BadPictureError
from jule.images.files import identity_of
from jule.images.source import (
    OTHER_KIND,
    ImageSource,
    Skipped,
    is_hidden,
    is_picture_name,
    shown,
)

# RuntimeError is zipfile's word for a password that nobody gave.
DAMAGED = (
    zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error,
    EOFError, RuntimeError, NotImplementedError, ValueError,
)  # fmt: skip


class ZipSource(ImageSource):
    """The pictures of a zip file, in the order of their names.

    Examples
    --------
    >>> ZipSource(Path("photos.zip"))  # doctest: +SKIP
    """

    def __init__(self, path: Path) -> None:
        try:
            self._file = zipfile.ZipFile(path)
        except DAMAGED as error:
            raise ValueError(f"{path} cannot be read as a zip file: {error}") from error
        self._path = path
        seen = [
            about
            for about in sorted(self._file.infolist(), key=lambda about: about.filename)
            if not about.is_dir() and not is_hidden(about.filename)
        ]
        self._members = [about for about in seen if is_picture_name(about.filename)]
        super().__init__(
            str(path),
            [shown(about.filename) for about in self._members],
            left_out=[
                Skipped(shown(about.filename), OTHER_KIND, picture=False)
                for about in seen
                if not is_picture_name(about.filename)
            ],
        )

    def picture(self, number: int) -> bytes:
        """Read and unpack one picture."""
        about = self._members[number]
        if about.file_size > MOST_BYTES:
            raise BadPictureError(f"its file is too large ({about.file_size:,} bytes)")
        try:
            with self._file.open(about) as file:
                return file.read(MOST_BYTES)
        except DAMAGED as bad:
            raise BadPictureError(f"it cannot be unpacked ({bad})") from bad

    def identity(self) -> Iterator[str]:
        """Give path, size and time of the zip file."""
        yield identity_of(self._path)
