"""Sort pictures into one folder per cluster, as links or as copies.

File names are not trusted: only the last part of each is used, made safe for every common file
system. Folders are held open while they are written to, so that nothing can be written elsewhere,
and existing files are never replaced. If an export is killed at any moment, the next one adds what
is missing.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from jule.export.names import Names, folded, safe_text
from jule.files import CANNOT_SYNC

How = Literal["link", "copy"]
Outcome = Literal["made", "there", "conflict"]

COPY_INSTEAD = "copy them instead (how='copy', --how copy)"
CHUNK = 2**20
PART = ".jule-export.part"  # the copy being written; no picture's name begins with a dot
NO_LINKS = {errno.EPERM, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EINVAL}

# If the system can name files relative to an open folder, replacing that folder by a link has no
# effect. Otherwise (Windows) the folder is checked once, when it is opened.
RELATIVE = (
    {os.open, os.mkdir, os.stat, os.link, os.symlink, os.readlink, os.rename, os.unlink}
    <= os.supports_dir_fd
)  # fmt: skip


@dataclass(frozen=True)
class Picture:
    """A picture and the folder it belongs in.

    Attributes
    ----------
    name
        Path or name as shown to the user; not trusted.
    folder
        The name of its folder.
    place
        The original file; None for a picture inside an archive or an array.
    content
        Function that returns the bytes of a picture without a file.
    suffix
        Suffix for a name that has none.
    missing
        Why the picture cannot be exported; empty if it can.
    """

    name: str
    folder: str
    place: Path | None = None
    content: Callable[[], bytes] | None = field(default=None, repr=False)
    suffix: str = ""
    missing: str = ""


@dataclass(frozen=True)
class Exported:
    """The outcome of sorting pictures into folders.

    Attributes
    ----------
    made
        The number of pictures that were linked or copied.
    already_there
        The number of pictures that were there before.
    conflicts
        Pictures that were not written because another file has their name, relative to the folder.
    missing
        Names of pictures that could not be read, and why.
    n_folders
        The number of folders with pictures.
    n_others
        The number of other folders, such as those of an earlier export with other names.
    """

    made: int = 0
    already_there: int = 0
    conflicts: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    n_folders: int = 0
    n_others: int = 0


class _UnreadableError(Exception):
    """The original of a picture is gone or cannot be read."""


def sort_into_folders(
    pictures: Sequence[Picture],
    to: Path,
    how: How,
    progress: Callable[[float], None] | None = None,
    *,
    source_folder: Path | None = None,
) -> Exported:
    """Sort pictures into their folders in `to`, as links to the originals or as copies.

    Parameters
    ----------
    pictures
        The pictures. If several have the same name, the first one keeps it.
    to
        The folder to sort into, created if needed. Existing files in it are never changed.
    how
        ``"link"`` or ``"copy"``; pictures that are not files can only be copied.
    progress
        Called with the fraction that is done.
    source_folder
        The folder of the originals, if there is one; `to` must be outside of it.

    Raises
    ------
    ValueError
        Before anything is written, if the sorted pictures would mix with the originals or a
        picture cannot be exported in this way.
    OSError
        If a folder in `to` is a link, links are impossible here, or the disk is full.

    Examples
    --------
    >>> sort_into_folders([], Path("sorted"), "copy").made
    0
    """
    _check_possible(pictures, how)
    if not pictures:
        return Exported()
    to = to.resolve()
    _check_not_mixed(pictures, to, source_folder)
    plan = _plan(pictures)
    counts: dict[Outcome, int] = {"made": 0, "there": 0, "conflict": 0}
    conflicts: list[str] = []
    missing: list[str] = []
    done = 0
    if to.exists() and not to.is_dir():
        raise NotADirectoryError(f"{to} is a file: sort into a folder")
    to.mkdir(parents=True, exist_ok=True)
    with _held(to) as root:
        for name in plan:  # all folders first, so that a bad one stops everything
            with _opened(root, name):
                pass
        for folder_name, places in plan.items():
            with _opened(root, folder_name) as folder:
                for name, picture in places:
                    try:
                        outcome = _put(root, folder, name, picture, how)
                    except _UnreadableError as error:
                        missing.append(f"{picture.name}: {error}")
                    else:
                        counts[outcome] += 1
                        if outcome == "conflict":
                            conflicts.append(f"{folder_name}/{name}")
                    done += 1
                    if progress is not None:
                        progress(done / len(pictures))
                _flush(folder)
    n_others = sum(entry.is_dir() and entry.name not in plan for entry in os.scandir(to))
    return Exported(
        counts["made"], counts["there"], tuple(conflicts), tuple(missing), len(plan), n_others
    )


# ---- checks before anything is written


def _check_possible(pictures: Iterable[Picture], how: str) -> None:
    if how not in ("link", "copy"):
        raise ValueError(f"pictures are sorted as 'link' or 'copy', not {how!r}")
    for picture in pictures:
        if picture.missing:
            continue
        if picture.place is None and picture.content is None:
            raise ValueError(f"{picture.name!r} has neither a file nor content")
        if picture.place is None and how == "link":
            raise ValueError(
                f"{picture.name!r} is not a file of its own, so no link can point to it: "
                f"{COPY_INSTEAD}"
            )


def _check_not_mixed(pictures: Iterable[Picture], to: Path, source_folder: Path | None) -> None:
    """Raise if reading the originals again would also find the sorted pictures."""
    homes = set()
    for parent in {picture.place.parent for picture in pictures if picture.place is not None}:
        with suppress(OSError, ValueError):  # a path that no file can have is no original
            homes.add(parent.resolve())
    for home in sorted(homes):
        if home.is_relative_to(to):
            raise ValueError(f"{to} contains originals (in {home}): sort into another folder")
    if source_folder is not None:
        homes.add(source_folder.resolve())
    for home in sorted(homes):
        if to.is_relative_to(home):
            raise ValueError(
                f"{to} is inside {home}, among the originals, and would be read with them next "
                "time: sort into a folder outside of it"
            )


def _plan(pictures: Iterable[Picture]) -> dict[str, list[tuple[str, Picture]]]:
    """Assign each picture a unique name in its folder."""
    spelled: dict[str, str] = {}
    plan: dict[str, list[tuple[str, Picture]]] = {}
    given: dict[str, Names] = {}
    for picture in pictures:
        wanted = safe_text(picture.folder)
        folder = spelled.setdefault(folded(wanted), wanted)
        names = given.setdefault(folder, Names())
        plan.setdefault(folder, []).append((names.assign(picture.name, picture.suffix), picture))
    return plan


# ---- writing


@dataclass(frozen=True)
class _Folder:
    """An open folder. Files in it are named by `at` and `fd`, so that it cannot be swapped."""

    path: Path
    fd: int | None

    def at(self, name: str) -> str:
        return name if self.fd is not None else str(self.path / name)

    def kind(self, name: str) -> int | None:
        """Return the file type of a name, links not followed; None if there is nothing."""
        try:
            found = os.stat(self.at(name), dir_fd=self.fd, follow_symlinks=False)
        except FileNotFoundError:
            return None
        return stat.S_IFMT(found.st_mode)

    def open(self, name: str, flags: int, mode: int = 0o666) -> int:
        flags |= getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
        return os.open(self.at(name), flags, mode, dir_fd=self.fd)


@contextmanager
def _held(to: Path) -> Iterator[_Folder]:
    """Open and lock the root folder, and remove a partial copy left in it."""
    fd = os.open(to, os.O_RDONLY | os.O_DIRECTORY) if RELATIVE else None
    root = _Folder(to, fd)
    try:
        if fd is not None:
            _lock(fd, to)
        _remove_part(root)
        yield root
    finally:
        if fd is not None:
            os.close(fd)


def _lock(fd: int, to: Path) -> None:
    """Lock out other processes; the system releases the lock when the process ends."""
    import fcntl  # does not exist on Windows

    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise BlockingIOError(
            f"another process is sorting pictures into {to}: wait until it has finished"
        ) from None
    except OSError:
        pass  # some network file systems have no locks


@contextmanager
def _opened(root: _Folder, name: str) -> Iterator[_Folder]:
    """Open a folder in the root, created if needed; a link or a file raises."""
    with suppress(FileExistsError):
        os.mkdir(root.at(name), dir_fd=root.fd)
    path = root.path / name
    refused = NotADirectoryError(
        f"{path} is a link or a file; pictures are only sorted into real folders: remove it, or "
        "sort into another folder"
    )
    if root.fd is None:
        if not path.is_dir() or path.resolve() != path:
            raise refused
        yield _Folder(path, None)
        return
    try:
        fd = root.open(name, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR, errno.EMLINK):
            raise refused from None
        raise
    try:
        yield _Folder(path, fd)
    finally:
        os.close(fd)


def _put(root: _Folder, folder: _Folder, name: str, picture: Picture, how: How) -> Outcome:
    if picture.missing:
        raise _UnreadableError(picture.missing)
    if picture.place is not None and not os.path.isfile(picture.place):
        raise _UnreadableError("the file is gone or cannot be reached")
    if how == "link":
        return _link(folder, name, picture)
    return _copy(root, folder, name, picture)


def _link(folder: _Folder, name: str, picture: Picture) -> Outcome:
    assert picture.place is not None  # checked before
    target = str(picture.place.absolute())
    try:
        os.symlink(target, folder.at(name), dir_fd=folder.fd)
    except FileExistsError:
        same = folder.kind(name) == stat.S_IFLNK and _target(folder, name) == target
        return "there" if same else "conflict"
    except (OSError, NotImplementedError) as error:
        if isinstance(error, OSError) and error.errno not in NO_LINKS:
            raise
        raise OSError(f"links cannot be made in {folder.path} ({error}): {COPY_INSTEAD}") from error
    return "made"


def _target(folder: _Folder, name: str) -> str:
    # Windows prefixes long and absolute targets.
    return os.readlink(folder.at(name), dir_fd=folder.fd).removeprefix("\\\\?\\")


def _copy(root: _Folder, folder: _Folder, name: str, picture: Picture) -> Outcome:
    if folder.kind(name) is not None:
        return "there" if _is_same(folder, name, picture) else "conflict"
    try:
        _write_part(root, picture)
        return "made" if _name_part(root, folder, name) else "conflict"
    except OSError as error:
        raise _named(error, folder.path / name) from None
    finally:
        _remove_part(root)


def _write_part(root: _Folder, picture: Picture) -> None:
    # The original may be private; the copy gets its permissions when it is complete.
    mode = 0o666 if picture.place is None else 0o600
    fd = root.open(PART, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with open(fd, "wb") as file:
        for chunk in _chunks(picture):
            file.write(chunk)
        file.flush()
        if picture.place is not None:
            _take_over(picture.place, fd, root)
        os.fsync(fd)  # before it has a name: a copy with a name is complete


def _named(error: OSError, path: Path) -> OSError:
    """Return an error that names a file; one of an open file does not."""
    if not isinstance(error.filename, str):
        error.filename = str(path)
    return error


def _flush(folder: _Folder) -> None:
    """Flush a folder to disk, so that new names in it survive a power cut."""
    if folder.fd is None:
        return
    try:
        os.fsync(folder.fd)
    except OSError as error:
        if error.errno not in CANNOT_SYNC:
            raise _named(error, folder.path) from None


def _take_over(place: Path, fd: int, root: _Folder) -> None:
    """Copy the times and permissions of the original."""
    try:
        about = place.stat()
    except OSError as error:
        raise _UnreadableError(error.strerror or str(error)) from error
    path = root.path / PART
    times = about.st_atime_ns, about.st_mtime_ns
    os.utime(fd if os.utime in os.supports_fd else path, ns=times)
    os.chmod(fd if os.chmod in os.supports_fd else path, stat.S_IMODE(about.st_mode) & 0o777)


def _name_part(root: _Folder, folder: _Folder, name: str) -> bool:
    """Rename the finished copy, unless the name was taken in the meantime."""
    part, final = root.at(PART), folder.at(name)
    try:
        os.link(part, final, src_dir_fd=root.fd, dst_dir_fd=folder.fd)
    except FileExistsError:
        return False
    except OSError as error:
        if error.errno not in NO_LINKS:
            raise
        # A file system without hard links, such as a memory card's: check, then rename.
        if folder.kind(name) is not None:
            return False
        os.rename(part, final, src_dir_fd=root.fd, dst_dir_fd=folder.fd)
    return True


def _remove_part(root: _Folder) -> None:
    try:
        os.unlink(root.at(PART), dir_fd=root.fd)
    except FileNotFoundError:
        pass
    except OSError as error:  # such as a folder of this name
        where = root.path / PART
        raise OSError(f"{where} is in the way and cannot be removed: {error.strerror}") from error


def _chunks(picture: Picture) -> Iterator[bytes]:
    """Yield the bytes of a picture in pieces; every error becomes an `_UnreadableError`."""
    try:
        if picture.place is None:
            assert picture.content is not None  # checked before
            yield picture.content()
            return
        with open(picture.place, "rb") as file:
            while chunk := file.read(CHUNK):
                yield chunk
    except GeneratorExit:
        raise
    except Exception as error:  # archives raise anything; one picture must not stop the rest
        raise _UnreadableError(str(error) or type(error).__name__) from error


def _is_same(folder: _Folder, name: str, picture: Picture) -> bool:
    """Return whether a name is a regular file with exactly the bytes of the picture."""
    if folder.kind(name) != stat.S_IFREG:
        return False
    try:
        fd = folder.open(name, os.O_RDONLY)
    except OSError:
        return False  # an unreadable file cannot be compared
    with open(fd, "rb") as file:
        if picture.place is not None and os.fstat(fd).st_size != _size(picture.place):
            return False
        begins_alike = all(file.read(len(chunk)) == chunk for chunk in _chunks(picture))
        return begins_alike and not file.read(1)


def _size(place: Path) -> int:
    try:
        return place.stat().st_size
    except OSError as error:
        raise _UnreadableError(error.strerror or str(error)) from error
