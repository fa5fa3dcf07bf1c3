"""Pictures in one or more tar files, including the shards of WebDataset."""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import numpy as np
from numpy.typing import NDArray

from jule.images.sources.base import (
    LONGEST_NAME,
    NOT_UTF8,
    OTHER_KIND,
    TOO_LONG,
    ImageSource,
    Skipped,
    error_text,
    escape_name,
    is_hidden,
    is_picture_name,
    is_utf8,
    shorten_name,
)
from jule.images.sources.content import BadPictureError, check_file_size
from jule.images.sources.files import file_identity

SUFFIXES = (".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz")
METADATA = (".cls", ".json", ".txt", ".id", ".index")  # files beside the pictures of a shard
HEADERS = (
    tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE, tarfile.GNUTYPE_LONGNAME,
    tarfile.GNUTYPE_LONGLINK,
)  # fmt: skip
MOST_HEADER = 2**20  # bytes of a header that extends others: names, times, ...
LINK = "it is a link or a device, not a file of its own"
SPARSE = "it is a sparse file"
BROKEN_OFF = "the archive is damaged: everything after its last picture is lost"


class _TarInfo(tarfile.TarInfo):
    """A member whose header is checked before tarfile acts on it."""

    def _proc_member(self, archive: tarfile.TarFile) -> tarfile.TarInfo:
        if self.size < 0:  # tarfile would go back and forth forever
            raise tarfile.ReadError("a member has a negative size")
        if self.type in HEADERS and self.size > MOST_HEADER:
            raise tarfile.ReadError(f"a header of {self.size:,} bytes")
        found: tarfile.TarInfo = super()._proc_member(archive)  # type: ignore[misc]
        if found.size < 0 or archive.offset < found.offset_data:
            raise tarfile.ReadError("a member has a negative size")
        return found


@dataclass(frozen=True)
class _Member:
    shard: int
    info: tarfile.TarInfo


class TarSource(ImageSource):
    """The pictures of tar files, in the order of the files.

    In WebDataset's layout the files of one sample share their name up to the first dot: 0001.jpg
    and 0001.cls. If every picture has a .cls file with an integer, these are its true classes, for
    evaluation.
    """

    def __init__(self, where: str, paths: list[Path]) -> None:
        super().__init__(where, [])
        self._paths = paths
        self._opened: tuple[int, tarfile.TarFile] | None = None
        self._members: list[_Member] = []
        classes: dict[str, int] = {}
        for shard, path in enumerate(paths):
            prefix = "" if len(paths) == 1 else f"{path.name}/"
            file = self._file(shard)
            try:
                for info in file:
                    self._list_member(file, _Member(shard, info), prefix + info.name, classes)
                if not _is_at_end(file):
                    self.skipped.append(Skipped(escape_name(path.name), BROKEN_OFF))
            except Exception as error:  # what damaged bytes lead to, in tarfile or a decompressor
                reason = f"the archive is cut off ({error_text(error)})"
                self.skipped.append(Skipped(escape_name(path.name), reason))
        self.labels = _labels(self.names, classes)

    def _list_member(
        self, file: tarfile.TarFile, member: _Member, name: str, classes: dict[str, int]
    ) -> None:
        info = member.info
        if info.isdir() or is_hidden(info.name):
            return
        is_picture = is_picture_name(info.name)
        if len(name) > LONGEST_NAME:
            self.skipped.append(Skipped(shorten_name(name), TOO_LONG, is_picture))
        elif info.issparse():
            self.skipped.append(Skipped(escape_name(name), SPARSE, is_picture))
        elif not info.isfile():
            self.skipped.append(Skipped(escape_name(name), LINK, is_picture))
        elif info.name.endswith(".cls"):
            classes.update(_read_class(file, info, name))
        elif not is_picture:
            if not info.name.endswith(METADATA):
                self.skipped.append(Skipped(escape_name(name), OTHER_KIND, is_picture=False))
        elif not is_utf8(name):
            self.skipped.append(Skipped(escape_name(name), NOT_UTF8))
        else:
            self._members.append(member)
            self.names.append(name)

    def _file(self, shard: int) -> tarfile.TarFile:
        """Open a shard; one at a time, as there may be more shards than a process may open."""
        if self._opened is None or self._opened[0] != shard:
            if self._opened is not None:
                self._opened[1].close()
            self._opened = None
            self._opened = shard, _open(self._paths[shard])
        return self._opened[1]

    def picture(self, index: int) -> bytes:
        """Return the unpacked content of one picture."""
        member = self._members[index]
        check_file_size(member.info.size)
        try:
            file = self._file(member.shard).extractfile(member.info)
            content = b"" if file is None else file.read()
        except Exception as error:
            raise BadPictureError(f"it cannot be unpacked ({error_text(error)})") from error
        if len(content) < member.info.size:
            raise BadPictureError("it is cut off with its archive")
        return content

    def identity(self) -> Iterator[str]:
        """Yield the identity of every tar file; see `file_identity`."""
        return (file_identity(path) for path in self._paths)


def _open(path: Path) -> tarfile.TarFile:
    try:
        return tarfile.open(path, tarinfo=_TarInfo)
    except (FileNotFoundError, PermissionError):
        raise
    except Exception as error:  # what damaged bytes lead to, in tarfile or a decompressor
        raise ValueError(f"{path} cannot be read as a tar file: {error_text(error)}") from error


def _is_at_end(file: tarfile.TarFile) -> bool:
    """Return whether listing reached the end; tarfile silently stops at a damaged header."""
    assert file.fileobj is not None
    file.fileobj.seek(file.offset)
    return not file.fileobj.read(tarfile.BLOCKSIZE).strip(b"\0")


def _read_class(file: tarfile.TarFile, info: tarfile.TarInfo, name: str) -> dict[str, int]:
    content = file.extractfile(info)
    text = b"" if content is None else content.read(32)
    try:
        return {sample_key(name): int(text)}
    except ValueError:
        return {}


def sample_key(name: str) -> str:
    """Return the part of a name that the files of one WebDataset sample share.

    Examples
    --------
    >>> sample_key("a.b/0001.left.jpg")
    'a.b/0001'
    """
    path = PurePosixPath(name)
    return str(path.with_name(path.name.split(".")[0] or path.name))


def _labels(names: list[str], classes: dict[str, int]) -> NDArray | None:
    keys = [sample_key(name) for name in names]
    if not names or any(key not in classes for key in keys):
        return None
    return np.array([classes[key] for key in keys])
