"""Write files safely.

A file is written completely or not at all, even if the power fails or the process is killed.
"""

from __future__ import annotations

import io
import json
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
from numpy.typing import NDArray


def write_atomic(path: Path, content: bytes) -> None:
    """Write a file atomically: it is complete or unchanged, even after a power cut.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     write_atomic(Path(folder, "labels.csv"), b"path,cluster")
    ...     Path(folder, "labels.csv").read_text()
    'path,cluster'
    """
    part = path.with_name(path.name + ".part")
    try:
        with open(part, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    except BaseException:
        with suppress(OSError):  # the original error matters more
            part.unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)


def write_json(path: Path, value: Any) -> None:
    """Write a value as indented JSON, atomically.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     write_json(Path(folder, "a.json"), {"k": 3})
    ...     json.loads(Path(folder, "a.json").read_text())
    {'k': 3}
    """
    write_atomic(path, (json.dumps(value, indent=2) + "\n").encode())


def write_array(path: Path, array: NDArray) -> None:
    """Write an array as .npy, atomically.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     write_array(Path(folder, "a.npy"), np.arange(3))
    ...     np.load(Path(folder, "a.npy")).tolist()
    [0, 1, 2]
    """
    content = io.BytesIO()
    np.save(content, array, allow_pickle=False)
    write_atomic(path, content.getvalue())


def write_arrays(path: Path, **arrays: NDArray | np.generic) -> None:
    """Write named arrays as a .npz file, atomically.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     write_arrays(Path(folder, "a.npz"), one=np.arange(3))
    ...     np.load(Path(folder, "a.npz"))["one"].tolist()
    [0, 1, 2]
    """
    content = io.BytesIO()
    np.savez(content, allow_pickle=False, **arrays)
    write_atomic(path, content.getvalue())


def _sync_folder(folder: Path) -> None:
    """Flush a folder to disk, so that a new file in it survives a power cut."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
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
