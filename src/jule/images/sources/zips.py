"""Pictures in a zip file."""

from __future__ import annotations

import lzma
import struct
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path

from jule.images.sources.base import (
    OTHER_KIND,
    ImageSource,
    Skipped,
    escape_name,
    is_hidden,
    is_picture_name,
)
from jule.images.sources.content import MOST_BYTES, BadPictureError, check_file_size
from jule.images.sources.files import file_identity

# zipfile raises RuntimeError for files that need a password.
DAMAGED = (
    zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error,
    EOFError, RuntimeError, NotImplementedError, ValueError,
)  # fmt: skip


class ZipSource(ImageSource):
    """The pictures of a zip file, sorted by name."""

    def __init__(self, path: Path) -> None:
        try:
            self._file = zipfile.ZipFile(path)
        except DAMAGED as error:
            raise ValueError(f"{path} cannot be read as a zip file: {error}") from error
        self._path = path
        members = [
            member
            for member in sorted(self._file.infolist(), key=lambda member: member.filename)
            if not member.is_dir() and not is_hidden(member.filename)
        ]
        self._members = [member for member in members if is_picture_name(member.filename)]
        super().__init__(
            str(path),
            [escape_name(member.filename) for member in self._members],
            skipped=[
                Skipped(escape_name(member.filename), OTHER_KIND, is_picture=False)
                for member in members
                if not is_picture_name(member.filename)
            ],
        )

    def picture(self, index: int) -> bytes:
        """Return the unpacked content of one picture."""
        member = self._members[index]
        check_file_size(member.file_size)
        try:
            with self._file.open(member) as file:
                return file.read(MOST_BYTES)
        except DAMAGED as error:
            raise BadPictureError(f"it cannot be unpacked ({error})") from error

    def identity(self) -> Iterator[str]:
        """Yield the identity of the zip file; see `file_identity`."""
        yield file_identity(self._path)
