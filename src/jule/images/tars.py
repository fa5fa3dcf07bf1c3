"""Pictures in tar files, one or many: also the shards of WebDataset."""

from __future__ import annotations

import lzma
import tarfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import numpy as np
from numpy.typing import NDArray

from jule.images.batch import MOST_BYTES
from jule.images.decode import BadPictureError
from jule.images.files import identity_of
from jule.images.source import (
    NOT_TEXT,
    OTHER_KIND,
    ImageSource,
    Skipped,
    is_hidden,
    is_picture_name,
    is_text,
    shown,
)

SUFFIXES = (".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz")
BESIDE = (".cls", ".json", ".txt", ".id", ".index")  # what a shard keeps beside its pictures
DAMAGED = (tarfile.TarError, EOFError, zlib.error, lzma.LZMAError, ValueError, OverflowError)
LINK = "it is a link or a device, not a file of its own"
BROKEN_OFF = "the archive is damaged, what comes after its last picture is lost"


@dataclass(frozen=True)
class _Member:
    shard: int
    about: tarfile.TarInfo


class TarSource(ImageSource):
    """The pictures of tar files, in the order they lie there.

    In WebDataset's layout what belongs together has one name up to the first dot: 0001.jpg and
    0001.cls. Where every picture has a .cls file with a whole number, these are the true classes,
    to score the result by.

    Examples
    --------
    >>> TarSource("shards", [Path("shard-0.tar"), Path("shard-1.tar")])  # doctest: +SKIP
    """

    def __init__(self, where: str, paths: list[Path]) -> None:
        self._paths = paths
        self._opened: tuple[int, tarfile.TarFile] | None = None
        self._members: list[_Member] = []
        names: list[str] = []
        left_out: list[Skipped] = []
        classes: dict[str, int] = {}
        for shard in range(len(paths)):
            file = self._file(shard)
            before = "" if len(paths) == 1 else f"{paths[shard].name}/"
            try:
                for about in file:
                    name = before + about.name
                    if about.isdir() or is_hidden(about.name):
                        continue
                    if not about.isfile():
                        left_out.append(Skipped(shown(name), LINK, is_picture_name(about.name)))
                    elif about.name.endswith(".cls"):
                        classes.update(_class_of(file, about, name))
                    elif not is_picture_name(about.name):
                        if not about.name.endswith(BESIDE):
                            left_out.append(Skipped(shown(name), OTHER_KIND, picture=False))
                    elif not is_text(name):
                        left_out.append(Skipped(shown(name), NOT_TEXT))
                    else:
                        self._members.append(_Member(shard, about))
                        names.append(name)
                if not _is_at_its_end(file):
                    left_out.append(Skipped(shown(paths[shard].name), BROKEN_OFF))
            except (*DAMAGED, OSError) as error:
                reason = f"the archive is cut off ({error})"
                left_out.append(Skipped(shown(paths[shard].name), reason))
        super().__init__(where, names, _labels(names, classes), left_out)

    def _file(self, shard: int) -> tarfile.TarFile:
        """Open a shard; one at a time, as there may be more than a process may have open."""
        if self._opened is None or self._opened[0] != shard:
            if self._opened is not None:
                self._opened[1].close()
            self._opened = None
            self._opened = shard, _open(self._paths[shard])
        return self._opened[1]

    def picture(self, number: int) -> bytes:
        """Read one picture out of its shard."""
        member = self._members[number]
        if member.about.size > MOST_BYTES:
            raise BadPictureError(f"its file is too large ({member.about.size:,} bytes)")
        try:
            file = self._file(member.shard).extractfile(member.about)
            content = b"" if file is None else file.read()
        except DAMAGED as error:
            raise BadPictureError(f"it cannot be unpacked ({error})") from error
        if len(content) < member.about.size:
            raise BadPictureError("it is cut off with its archive")
        return content

    def identity(self) -> Iterator[str]:
        """Give path, size and time of every tar file."""
        return (identity_of(path) for path in self._paths)


def _open(path: Path) -> tarfile.TarFile:
    try:
        return tarfile.open(path)
    except (*DAMAGED, OSError) as error:
        if isinstance(error, FileNotFoundError | PermissionError):
            raise
        raise ValueError(f"{path} cannot be read as a tar file: {error}") from error


def _is_at_its_end(file: tarfile.TarFile) -> bool:
    """Tell whether a listing stopped at the end; tarfile also stops, silently, at a bad head."""
    assert file.fileobj is not None
    file.fileobj.seek(file.offset)
    return not file.fileobj.read(tarfile.BLOCKSIZE).strip(b"\0")


def _class_of(file: tarfile.TarFile, about: tarfile.TarInfo, name: str) -> dict[str, int]:
    content = file.extractfile(about)
    text = b"" if content is None else content.read(32)
    try:
        return {key_of(name): int(text)}
    except ValueError:
        return {}


def key_of(name: str) -> str:
    """Give the part of a name that WebDataset's files of one sample share.

    Examples
    --------
    >>> key_of("a.b/0001.left.jpg")
    'a.b/0001'
    """
    path = PurePosixPath(name)
    return str(path.with_name(path.name.split(".")[0] or path.name))


def _labels(names: list[str], classes: dict[str, int]) -> NDArray | None:
    keys = [key_of(name) for name in names]
    if not names or any(key not in classes for key in keys):
        return None
    return np.array([classes[key] for key in keys])
