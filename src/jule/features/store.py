"""Vectors of pictures on the disk, so that no picture is encoded twice.

Every encoder has one folder, which only the user can read:

vectors.bin   float32, one vector after the other
index.bin     for each vector, 16 bytes that identify the picture, its CRC-32 and its length

The vectors of a batch are written before their entries in the index, so that a killed process
leaves at most vectors without an entry, which the next one overwrites.
"""

from __future__ import annotations

import os
import re
import stat
import zlib
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from jule.files import is_leftover, make_folder, remove_tree, user_cache
from jule.locks import LockedError, hold

FORMAT = "1"
VECTORS, INDEX = "vectors.bin", "index.bin"
KEY = re.compile(rf"[0-9a-f]{{32}}-{FORMAT}")
ID_BYTES = 16
ENTRY = np.dtype([("id", f"V{ID_BYTES}"), ("crc", "<u4"), ("length", "<u4")])
WAIT = 60.0  # seconds, while another process writes a batch
OPEN_FLAGS = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)


def features_folder() -> Path:
    """Return the folder of all stored vectors, in the user's cache folder.

    Examples
    --------
    >>> features_folder().name
    'features'
    """
    chosen = os.environ.get("JULE_CACHE")
    return (Path(chosen).expanduser() if chosen else user_cache() / "jule") / "features"


def picture_ids(images: NDArray[np.uint8]) -> list[bytes]:
    """Return 16 bytes per picture that are equal for equal pixels.

    Examples
    --------
    >>> ids = picture_ids(np.array([[[1]], [[2]], [[1]]], np.uint8))
    >>> len(ids[0]), ids[0] == ids[2], ids[0] == ids[1]
    (16, True, False)
    """
    shape = str(images.shape[1:]).encode()
    return [
        blake2b(np.ascontiguousarray(image).data, digest_size=ID_BYTES, key=shape).digest()
        for image in images
    ]


class FeatureStore:
    """The stored vectors of one encoder.

    Parameters
    ----------
    folder
        The folder of all stored vectors.
    key
        `Encoder.store_key`, of which the first 32 characters name the encoder's folder.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     store = FeatureStore(Path(folder), "0" * 64)
    ...     store.add([b"a" * 16], np.ones((1, 3), np.float32))
    ...     FeatureStore(Path(folder), "0" * 64).find([b"a" * 16, b"b" * 16])
    {0: array([1., 1., 1.], dtype=float32)}
    """

    def __init__(self, folder: Path, key: str) -> None:
        self.home = folder / f"{key[:32]}-{FORMAT}"
        try:
            content = np.fromfile(self._own(INDEX), np.uint8)
            size = self._own(VECTORS).stat().st_size
        except OSError:  # nothing is stored yet
            content, size = np.empty(0, np.uint8), 0
        self._index = content[: len(content) // ENTRY.itemsize * ENTRY.itemsize].view(ENTRY)
        # All have the same length; one that differs is damaged.
        lengths, counts = np.unique(self._index["length"], return_counts=True)
        self._length = int(lengths[counts.argmax()]) if len(lengths) else 0
        usable = self._index["length"] == self._length
        usable &= 4 * self._length * np.arange(1, len(usable) + 1) <= size
        ids = self._index["id"].tolist()
        self._rows = {bytes(ids[row]): row for row in np.flatnonzero(usable).tolist()}

    def find(self, ids: list[bytes]) -> dict[int, NDArray[np.float32]]:
        """Return the stored vectors, by the position of their pictures in `ids`."""
        wanted = {at: self._rows[one] for at, one in enumerate(ids) if one in self._rows}
        if not wanted:
            return {}
        try:
            values = np.memmap(self._own(VECTORS), np.float32, "r")
            vectors = values[: len(self._index) * self._length].reshape(-1, self._length)
        except (OSError, ValueError):  # deleted or cut off since
            return {}
        found = {}
        for position, row in wanted.items():
            vector = np.array(vectors[row])
            if zlib.crc32(vector.data) == self._index["crc"][row]:
                found[position] = vector
        return found

    def _own(self, name: str) -> Path:
        """Return the path of a file; raise OSError for links and for files of other users."""
        path = self.home / name
        _check_own(os.lstat(path), path)
        return path

    def add(self, ids: list[bytes], vectors: NDArray[np.float32]) -> None:
        """Store vectors of pictures, for later; raise OSError if they cannot be written."""
        make_folder(self.home)
        entries = np.empty(len(ids), ENTRY)
        entries["id"] = [np.void(identity) for identity in ids]
        entries["crc"] = [zlib.crc32(np.ascontiguousarray(vector).data) for vector in vectors]
        entries["length"] = vectors.shape[1]
        with (
            hold(self.home, wait=WAIT),
            open(os.open(self.home / INDEX, OPEN_FLAGS, 0o600), "r+b") as index,
            open(os.open(self.home / VECTORS, OPEN_FLAGS, 0o600), "r+b") as file,
        ):
            for opened in (index, file):
                _check_own(os.fstat(opened.fileno()), self.home)
            count = index.seek(0, os.SEEK_END) // ENTRY.itemsize
            if count and not self._rows and self._length:  # nothing of it can be used
                count = self._length = 0  # once: what follows can be used
                index.truncate(0)
            file.seek(count * vectors.shape[1] * 4)
            file.write(np.ascontiguousarray(vectors, np.float32).data)
            file.flush()
            index.seek(count * ENTRY.itemsize)
            index.write(entries.tobytes())


def _check_own(about: os.stat_result, path: Path) -> None:
    """Raise OSError unless something is a regular file of this user, with one name."""
    if not stat.S_ISREG(about.st_mode) or about.st_nlink > 1:
        raise OSError(f"{path} is not an ordinary file")
    if hasattr(os, "geteuid") and about.st_uid != os.geteuid():
        raise OSError(f"{path} belongs to another user")


def list_stores() -> list[tuple[Path, int]]:
    """Return the folder of each encoder with stored vectors, and its size in bytes."""
    if not features_folder().is_dir():
        return []
    homes = [home for home in sorted(features_folder().iterdir()) if _is_store(home)]
    return [(home, sum(entry.lstat().st_size for entry in home.iterdir())) for home in homes]


def _is_store(home: Path) -> bool:
    """Return whether a folder holds stored vectors and nothing else; links are not followed."""
    if KEY.fullmatch(home.name) is None or home.is_symlink() or not home.is_dir():
        return False
    return all(name in (VECTORS, INDEX) or is_leftover(name) for name in os.listdir(home))


def clear_stores() -> int:
    """Remove all stored vectors that are not being written; return the number of bytes freed."""
    freed = 0
    for home, size in list_stores():
        with suppress(LockedError), hold(home):
            remove_tree(home)
            freed += size
    return freed
