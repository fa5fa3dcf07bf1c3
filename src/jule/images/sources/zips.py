"""Pictures in a zip file."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from pathlib import Path

from jule.images.sources.base import (
    LONGEST_NAME,
    OTHER_KIND,
    TOO_LONG,
    ImageSource,
    Skipped,
    error_text,
    escape_name,
    is_hidden,
    is_picture_name,
    shorten_name,
)
from jule.images.sources.content import MOST_BYTES, BadPictureError, check_file_size
from jule.images.sources.files import file_identity


class ZipSource(ImageSource):
    """The pictures of a zip file, sorted by name; those of one name stay in their order."""

    def __init__(self, path: Path) -> None:
        try:
            self._file = zipfile.ZipFile(path)
        except (FileNotFoundError, PermissionError):
            raise
        except Exception as error:  # zipfile passes on what damaged bytes lead to
            raise ValueError(f"{path} cannot be read as a zip file: {error_text(error)}") from error
        super().__init__(str(path), [])
        self._path = path
        self._members: list[zipfile.ZipInfo] = []
        for member in sorted(self._file.infolist(), key=lambda member: member.filename):
            name = member.filename
            if member.is_dir() or is_hidden(name):
                continue
            is_picture = is_picture_name(name)
            if len(name) > LONGEST_NAME:
                self.skipped.append(Skipped(shorten_name(name), TOO_LONG, is_picture))
            elif not is_picture:
                self.skipped.append(Skipped(escape_name(name), OTHER_KIND, is_picture=False))
            else:
                self._members.append(member)
                self.names.append(escape_name(name))

    def picture(self, index: int) -> bytes:
        """Return the unpacked content of one picture."""
        member = self._members[index]
        check_file_size(member.file_size)
        try:
            # The member itself, not its name: several may share one.
            with self._file.open(member) as file:
                return file.read(MOST_BYTES)
        except Exception as error:  # a wrong checksum, a password, an unknown compression, ...
            raise BadPictureError(f"it cannot be unpacked ({error_text(error)})") from error

    def identity(self) -> Iterator[str]:
        """Yield the identity of the zip file; see `file_identity`."""
        yield file_identity(self._path)
