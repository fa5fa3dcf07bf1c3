"""Create, replace and remove files safely. No other module creates or replaces a file of a run.

A file is written completely or not at all, even if the power fails or the process is killed.
Nothing is written through a link, and no temporary name can be guessed. Files and folders are
private unless the user chose their place.
"""

from __future__ import annotations

import errno
import hashlib
import io
import json
import os
import re
import secrets
import shutil
import signal
import stat
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
from numpy.typing import NDArray

PRIVATE, SHARED = 0o600, 0o666  # modes of new files; the umask may take away more
LEFTOVER = re.compile(r"\.jule-[0-9a-f]{16}\.part|\.jule-lock")
CANNOT_SYNC = {errno.EINVAL, errno.ENOTSUP}  # for folders, on some network file systems
MOST_JSON = 2**28  # bytes of a JSON file; the largest has a few kB per cluster


def write_atomic(path: Path, content: bytes, *, private: bool = True) -> None:
    """Write a file atomically: it is complete or unchanged, even after a power cut.

    A link of this name is replaced, not followed. A file that is replaced keeps its permissions.
    A pipe or a device that the user chose, such as /dev/stdout, is written to as it is.

    Parameters
    ----------
    path
        The file.
    content
        Its new content.
    private
        Whether only the user may read a new file. Otherwise the umask decides, as for any output
        whose place the user chose.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     write_atomic(Path(folder, "labels.csv"), b"path,cluster")
    ...     Path(folder, "labels.csv").read_text()
    'path,cluster'
    """
    if not private and _is_pipe_or_device(path):
        path.write_bytes(content)
        return
    part = path.with_name(f".jule-{secrets.token_hex(8)}.part")
    try:
        write_new(part, content, private=private, mode=mode_of(path))
        os.replace(part, path)
    except BaseException as error:
        with suppress(OSError):  # the original error matters more
            part.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.filename == os.fspath(part):
            error.filename, error.filename2 = os.fspath(path), None  # the name the user knows
        raise
    sync_folder(path.parent)


def write_new(path: Path, content: bytes, *, private: bool = True, mode: int | None = None) -> None:
    """Write a new file and flush it to disk; raise FileExistsError if the name is taken.

    `mode` sets the permissions of the file; by default they follow from `private`.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     write_new(Path(folder, "a"), b"abc")
    ...     Path(folder, "a").read_bytes()
    b'abc'
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    flags |= getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
    try:
        with open(os.open(path, flags, PRIVATE if private else SHARED), "wb") as file:
            file.write(content)
            file.flush()
            if mode is not None and hasattr(os, "fchmod"):
                os.fchmod(file.fileno(), mode)
            os.fsync(file.fileno())
    except OSError as error:
        if error.filename is None:  # the error of a full disk names no file
            error.filename = os.fspath(path)
        raise


def mode_of(path: Path) -> int | None:
    """Return the permissions of a file that will be replaced; None for a new one or a link.

    Examples
    --------
    >>> mode_of(Path("not-there")) is None
    True
    """
    try:
        found = os.lstat(path)
    except OSError:
        return None
    return stat.S_IMODE(found.st_mode) & 0o777 if stat.S_ISREG(found.st_mode) else None


def _is_pipe_or_device(path: Path) -> bool:
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


def read_regular(path: Path, most: int | None = None) -> bytes:
    """Return the content of a regular file; links, pipes and devices are refused.

    Raises
    ------
    ValueError
        If it is not a regular file, or has more than `most` bytes.

    Examples
    --------
    >>> len(read_regular(Path(__file__))) > 0
    True
    """
    with _open_regular(path, most) as file:
        return file.read()


def read_large(path: Path, most: int | None = None) -> memoryview:
    """Read a regular file into a numpy buffer, which takes half as long as `read_regular`.

    Arrays get large pages where the system has them. Errors are those of `read_regular`.

    Examples
    --------
    >>> read_large(Path(__file__)).tobytes() == read_regular(Path(__file__))
    True
    """
    with _open_regular(path, most) as file:
        content = np.empty(os.fstat(file.fileno()).st_size, np.uint8).data
        done = 0
        while done < len(content) and (count := file.readinto(content[done:])):
            done += count
    return content[:done]


@contextmanager
def _open_regular(path: Path, most: int | None) -> Iterator[io.BufferedReader]:
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
    flags |= getattr(os, "O_NONBLOCK", 0)  # opening a pipe would wait for another process
    try:
        descriptor = os.open(path, flags)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EMLINK, errno.ENXIO):
            raise ValueError(f"{path} is a link or a device, not a file of its own") from None
        raise
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise ValueError(f"{path} is not a regular file")
        if most is not None and found.st_size > most:
            raise ValueError(f"{path} is too large ({found.st_size:,} bytes)")
        with open(descriptor, "rb", closefd=False) as file:
            yield file
    finally:
        os.close(descriptor)


def json_bytes(value: Any) -> bytes:
    r"""Return a value as indented JSON.

    Examples
    --------
    >>> json_bytes({"k": 3})
    b'{\n  "k": 3\n}\n'
    """
    return (json.dumps(value, indent=2) + "\n").encode()


def array_bytes(array: NDArray) -> bytes:
    """Return an array in the .npy format.

    Examples
    --------
    >>> np.load(io.BytesIO(array_bytes(np.arange(3)))).tolist()
    [0, 1, 2]
    """
    content = io.BytesIO()
    np.save(content, array, allow_pickle=False)
    return content.getvalue()


def arrays_bytes(**arrays: NDArray | np.generic) -> bytes:
    """Return named arrays in the .npz format.

    Examples
    --------
    >>> np.load(io.BytesIO(arrays_bytes(one=np.arange(3))))["one"].tolist()
    [0, 1, 2]
    """
    content = io.BytesIO()
    np.savez(content, allow_pickle=False, **arrays)
    return content.getvalue()


def write_json(path: Path, value: Any, *, private: bool = True) -> None:
    """Write a value as indented JSON, atomically.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     write_json(Path(folder, "a.json"), {"k": 3})
    ...     json.loads(Path(folder, "a.json").read_text())
    {'k': 3}
    """
    write_atomic(path, json_bytes(value), private=private)


def write_arrays(path: Path, *, private: bool = True, **arrays: NDArray | np.generic) -> None:
    """Write named arrays as a .npz file, atomically.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     write_arrays(Path(folder, "a.npz"), one=np.arange(3))
    ...     np.load(Path(folder, "a.npz"))["one"].tolist()
    [0, 1, 2]
    """
    write_atomic(path, arrays_bytes(**arrays), private=private)


def checked_json(value: Mapping[str, Any]) -> bytes:
    """Return an object as JSON with a checksum of itself.

    Examples
    --------
    >>> parse_checked_json(checked_json({"k": 3}))
    {'k': 3}
    """
    return json_bytes({**value, "checksum": _checksum(value)})


def parse_checked_json(content: bytes) -> dict[str, Any]:
    """Parse what `checked_json` returned, without the checksum; raise ValueError for damage.

    Examples
    --------
    >>> parse_checked_json(b'{"k": 3}')
    Traceback (most recent call last):
    ...
    ValueError: its checksum is wrong
    """
    value = parse_json(content)
    if not isinstance(value, dict) or value.pop("checksum", None) != _checksum(value):
        raise ValueError("its checksum is wrong")
    return value


def parse_json(content: bytes) -> Any:
    """Parse JSON; raise ValueError for anything that is not JSON in UTF-8.

    Examples
    --------
    >>> parse_json(b"[1, 2]")
    [1, 2]
    """
    try:
        return json.loads(content.decode("utf-8"))
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _checksum(value: Mapping[str, Any]) -> str:
    try:
        text = json.dumps(value, sort_keys=True)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    return hashlib.sha256(text.encode()).hexdigest()


def make_folder(path: Path) -> Path:
    """Make a folder that only the user may read, if it does not exist; return its path.

    Raises
    ------
    NotADirectoryError
        If the name belongs to a link or a file.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     make_folder(Path(folder, "a", "b")).name
    'b'
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        if path.is_symlink() or not path.is_dir():
            raise NotADirectoryError(
                f"{path} is a link or a file where a folder is needed: remove it"
            ) from None
    else:
        sync_folder(path.parent)
    return path


def remove_tree(path: Path) -> None:
    """Remove a folder and all its content; a link is removed, not followed.

    Examples
    --------
    >>> remove_tree(Path("not-there"))
    """
    try:
        if path.is_symlink() or not path.is_dir():
            path.unlink()
        else:
            shutil.rmtree(path)
    except FileNotFoundError:
        return
    sync_folder(path.parent)


def is_leftover(name: str) -> bool:
    """Return whether a file, by its name, is a lock or was left behind by a killed process.

    Examples
    --------
    >>> is_leftover(".jule-0123456789abcdef.part"), is_leftover("a.part")
    (True, False)
    """
    return LEFTOVER.fullmatch(name) is not None


def remove_parts(folder: Path) -> None:
    """Remove unfinished files that killed processes left in a folder.

    Examples
    --------
    >>> remove_parts(Path("not-there"))
    """
    if not folder.is_dir() or folder.is_symlink():
        return
    for entry in list(os.scandir(folder)):
        if is_leftover(entry.name) and entry.name.endswith(".part"):
            with suppress(OSError):  # an extra file does no harm
                os.unlink(entry.path)


def sync_folder(folder: Path) -> None:
    """Flush a folder to disk, so that a new file in it survives a power cut.

    Examples
    --------
    >>> sync_folder(Path())
    """
    if not hasattr(os, "O_DIRECTORY"):
        return
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except PermissionError:  # files can be written to it, but it cannot be read
        return
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno in CANNOT_SYNC:
            return
        error.filename = os.path.abspath(folder)  # in an error, "." says little
        raise
    finally:
        os.close(descriptor)


@contextmanager
def delay_interrupts() -> Iterator[None]:
    """Delay Ctrl-C until the end of the block.

    Examples
    --------
    >>> with delay_interrupts():
    ...     pass
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread receives signals
        return
    received: list[tuple[int, FrameType | None]] = []
    previous = signal.signal(signal.SIGINT, lambda number, frame: received.append((number, frame)))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)
        if received and callable(previous):
            previous(*received[0])


def user_cache() -> Path:
    """Return the user's cache folder on this system.

    Examples
    --------
    >>> user_cache().is_absolute()
    True
    """
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")


def user_config() -> Path:
    """Return the user's configuration folder on this system.

    Examples
    --------
    >>> user_config().is_absolute()
    True
    """
    if sys.platform == "win32":
        return Path(os.environ.get("APPDATA") or Path.home() / "AppData" / "Roaming")
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support"
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
