"""One process at a time per folder.

The system releases a lock when the process that holds it ends, however it ends. A lock file that a
dead process left behind is taken over.
"""

from __future__ import annotations

import errno
import json
import os
import socket
import stat
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path

NAME = ".jule-lock"
PAUSE = 0.05  # seconds between two attempts
NO_LOCKS = {errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS}

_held: set[tuple[int, int, int]] = set()  # device, inode and thread


class LockedError(OSError):
    """A folder is in use by another process; the message says by which, and since when."""


@contextmanager
def hold(folder: Path, *, wait: float = 0.0) -> Iterator[None]:
    """Hold the lock of a folder; the same thread may hold it more than once.

    Parameters
    ----------
    folder
        An existing folder.
    wait
        Seconds to wait while another process holds the lock.

    Raises
    ------
    LockedError
        If another process, or another thread, holds the lock.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder, hold(Path(folder)):
    ...     os.listdir(folder)
    ['.jule-lock']
    """
    about = os.stat(folder)
    key = (about.st_dev, about.st_ino, threading.get_ident())
    if key in _held:
        yield
        return
    path = folder / NAME
    descriptor = _acquire(folder, path, time.monotonic() + wait)
    _held.add(key)
    try:
        yield
    finally:
        _held.discard(key)
        with suppress(OSError):  # the folder itself may be gone
            if _is_still_there(path, descriptor):
                path.unlink()
        os.close(descriptor)


def _acquire(folder: Path, path: Path, deadline: float) -> int:
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o600)
        try:
            _check_own_file(path, descriptor)
            if not _lock(descriptor):
                holder = _describe_holder(descriptor)
            elif _is_still_there(path, descriptor):
                _sign(descriptor)
                return descriptor
            else:  # removed by its last holder after it was opened here
                holder = ""
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)
        if holder:
            if time.monotonic() >= deadline:
                raise LockedError(
                    f"{folder} is in use by {holder}: wait until it has finished, or stop it"
                )
            time.sleep(PAUSE)


def _check_own_file(path: Path, descriptor: int) -> None:
    """Raise if the lock file is another file by a second name, which would be written to."""
    about = os.fstat(descriptor)
    if not stat.S_ISREG(about.st_mode) or about.st_nlink > 1:
        raise OSError(f"{path} is not a lock file: remove it")


def _lock(descriptor: int) -> bool:
    """Lock an open file; return False if another process has locked it."""
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    except OSError as error:
        # Some network file systems have no locks: better to work without one than not at all.
        return error.errno in NO_LOCKS
    return True


def _is_still_there(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(os.lstat(path), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _sign(descriptor: int) -> None:
    """Write who holds the lock, so that other processes can say so."""
    command = " ".join([os.path.basename(sys.argv[0] or "python"), *sys.argv[1:2]])
    about = {
        "process": os.getpid(),
        "machine": socket.gethostname(),
        "command": command,
        "since": datetime.now().isoformat(" ", "seconds"),
    }
    with suppress(OSError):  # a full disk must not stop what only frees space
        os.ftruncate(descriptor, 0)
        os.lseek(descriptor, 0, os.SEEK_SET)
        os.write(descriptor, json.dumps(about).encode())


def _describe_holder(descriptor: int) -> str:
    try:
        about = json.loads(os.read(descriptor, 4096))
        process, machine = int(about["process"]), str(about["machine"])
        where = "" if machine == socket.gethostname() else f" on {machine}"
        return f"process {process}{where} ({about['command']}) since {about['since']}"
    except (OSError, ValueError, KeyError, TypeError):
        return "another process"
