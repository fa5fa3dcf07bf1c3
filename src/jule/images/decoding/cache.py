"""The cache of decoded pictures: decoded once, mapped into memory afterwards.

A source and an ImageSpec have one folder, which only the user can read:

pixels.bin    the pictures that could be decoded, one after the other
digests.bin   16 bytes for each
journal.txt   how far decoding got, one line per batch with the checksums of what it wrote
whole.json    written last, when the others are on the disk: sizes, checksums, what was skipped

Checksums are CRC-32. A folder whose files do not match them is filled again. Nothing is read or
written through a link.
"""

from __future__ import annotations

import json
import os
import re
import stat
import zlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from io import BufferedReader
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from jule.files import (
    checked_json,
    is_leftover,
    make_folder,
    parse_checked_json,
    read_regular,
    remove_parts,
    remove_tree,
    user_cache,
    write_atomic,
    write_new,
)
from jule.images.decoding.decode import DIGEST, known_formats
from jule.images.decoding.pipeline import decode_batches
from jule.images.decoding.shared import SharedDecoding
from jule.images.decoding.spec import ImageSpec
from jule.images.decoding.worker import NoWorkerError
from jule.images.sources.base import ImageSource
from jule.locks import NAME as LOCK_NAME
from jule.locks import LockedError, hold
from jule.ranks import LostRankError

FORMAT = "jule-images-2"
PIXELS, DIGESTS, JOURNAL, WHOLE = "pixels.bin", "digests.bin", "journal.txt", "whole.json"
OWN_FILES = {PIXELS, DIGESTS, JOURNAL, WHOLE, "lock"}  # "lock": from earlier versions
KEY = re.compile(r"[0-9a-f]{32}")
BLOCK_BYTES = 2**20  # read at a time to compute checksums
OPEN_FLAGS = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)

Progress = Callable[[int, int], None]  # called with the number of pictures done and the total


@dataclass(frozen=True, eq=False)
class DecodedImages:
    """All pictures of a source that could be decoded, with one size and colour mode.

    Attributes
    ----------
    images
        uint8 (m, h, w[, 3]), mapped from a file.
    indices
        (m,) the index of each in the source.
    digests
        (m, 16) uint8, equal for equal content.
    skipped
        The reasons why the others were skipped, by index.
    checksum
        CRC-32 of all bytes of `images`.
    """

    images: NDArray[np.uint8]
    indices: NDArray[np.int64]
    digests: NDArray[np.uint8]
    skipped: dict[int, str]
    checksum: int


def cache_folder() -> Path:
    """Return the folder of all caches: $JULE_CACHE, or `jule/images` in the user's cache folder.

    Examples
    --------
    >>> cache_folder().is_absolute()
    True
    """
    chosen = os.environ.get("JULE_CACHE")
    return Path(chosen).expanduser() if chosen else user_cache() / "jule" / "images"


def decode_source(
    source: ImageSource,
    spec: ImageSpec,
    *,
    folder: Path | None = None,
    workers: int | None = None,
    progress: Progress | None = None,
    shared: SharedDecoding | None = None,
) -> DecodedImages:
    """Decode all pictures of a source, or map them from the cache.

    Interrupted decoding is resumed. Only a few batches are in memory at a time.

    Parameters
    ----------
    source, spec
        The pictures, and their target size and colour mode.
    folder
        The folder of all caches; `cache_folder()` by default.
    workers
        Number of processes; the number of cores by default.
    progress
        Called with the number of pictures done so far and the total.
    shared
        Other machines that decode some of the pictures, if there are any.

    Examples
    --------
    >>> from jule.images.sources.arrays import ArraySource
    >>> source = ArraySource(np.zeros((5, 8, 8), np.uint8))
    >>> with TemporaryDirectory() as folder:
    ...     decode_source(source, ImageSpec(4, 4, 1), folder=Path(folder)).images.shape
    (5, 4, 4)
    """
    key = _key(source, spec)
    if key is None:  # there is no way to know whether the content has changed
        return _decode_temporarily(source, spec, workers, progress, shared)
    home = (folder or cache_folder()) / key
    if not _is_own(home):  # it could be read and changed by its owner
        return _decode_temporarily(source, spec, workers, progress, shared)
    found = _map_if_whole(home, spec)
    if found is not None:
        _remove_leftovers(home)
        return found
    try:
        make_folder(home)
        with hold(home):
            # Another process may have finished in the meantime and be using the files.
            found = _map_if_whole(home, spec)
            if found is None:
                about = _fill(home, source, spec, workers, progress, shared)
                _mark_whole(home, about)
                found = _map_files(home, about, spec)
            return found
    except (NoWorkerError, LostRankError):
        raise
    except LockedError:
        pass  # another process is filling this folder: decode without waiting for it
    except OSError as error:
        how = "--cache, or with the environment variable JULE_CACHE"
        raise _cannot_write(home, error, how) from error
    return _decode_temporarily(source, spec, workers, progress, shared)


def _remove_leftovers(home: Path) -> None:
    """Remove what is left of a process that was killed just before it finished."""
    if any((home / name).exists() for name in (JOURNAL, LOCK_NAME)):
        with suppress(OSError), hold(home):  # harmless files: another time will do
            (home / JOURNAL).unlink(missing_ok=True)


def _cannot_write(folder: Path, error: OSError, how: str) -> OSError:
    return OSError(
        f"decoded pictures cannot be written to {folder} ({error.strerror or error}): choose "
        f"another folder with {how}"
    )


def _key(source: ImageSource, spec: ImageSpec) -> str | None:
    identity = source.identity()
    if identity is None:
        return None
    # The known formats matter: a decoder installed later may read what was skipped.
    key = sha256(f"{FORMAT} {json.dumps(spec.to_json())} {known_formats()}".encode())
    for text in identity:
        key.update(text.encode("utf-8", "surrogateescape") + b"\0")
    return key.hexdigest()[:32]


def _decode_temporarily(
    source: ImageSource,
    spec: ImageSpec,
    workers: int | None,
    progress: Progress | None,
    shared: SharedDecoding | None,
) -> DecodedImages:
    """Decode into temporary files, which exist only while they are mapped."""
    with TemporaryDirectory(prefix="jule-") as folder:
        try:
            about = _fill(Path(folder), source, spec, workers, progress, shared)
            return _map_files(Path(folder), about, spec)
        except (NoWorkerError, LostRankError):
            raise
        except OSError as error:
            how = "the environment variable TMPDIR"
            raise _cannot_write(Path(folder), error, how) from error


@dataclass
class _Progress:
    """How far decoding got.

    `done` pictures are either among the `rows` that were written or `skipped`. The checksums are
    those of all bytes written so far.
    """

    done: int = 0
    rows: int = 0
    pixels: int = 0
    digests: int = 0

    def __post_init__(self) -> None:
        self.skipped: dict[int, str] = {}


def _fill(
    home: Path,
    source: ImageSource,
    spec: ImageSpec,
    workers: int | None,
    progress: Progress | None,
    shared: SharedDecoding | None,
) -> dict[str, Any]:
    """Decode what the journal does not list yet; return the content of whole.json."""
    remove_parts(home)
    state, is_shared = _find_start(home, source, spec, shared)
    if shared is not None and is_shared:
        batches = shared.batches(source, spec, state.done, workers)
    else:
        batches = decode_batches(source, spec, state.done, workers)
    if state.done == 0:
        _remove_files(home)
    with (
        _open_at(home / PIXELS, state.rows * _image_bytes(spec)) as pixels,
        _open_at(home / DIGESTS, state.rows * DIGEST) as digests,
        _open_at(home / JOURNAL, _journal_length(home, state)) as journal,
    ):
        for batch in batches:
            new_digests = b"".join(batch.digests)
            pixels.write(batch.images.data)
            digests.write(new_digests)
            pixels.flush()
            digests.flush()
            state.done += len(batch.indices) + len(batch.skipped)
            state.rows += len(batch.indices)
            state.pixels = zlib.crc32(batch.images.data, state.pixels)
            state.digests = zlib.crc32(new_digests, state.digests)
            state.skipped.update(batch.skipped)
            line = [
                state.done, state.rows, state.pixels, state.digests, sorted(batch.skipped.items())
            ]  # fmt: skip
            journal.write(json.dumps(line).encode() + b"\n")
            journal.flush()
            if progress is not None:
                progress(state.done, len(source))
        for file in (pixels, digests):
            os.fsync(file.fileno())
    return {
        "format": FORMAT,
        "count": state.done,
        "rows": state.rows,
        "pixels": state.pixels,
        "digests": state.digests,
        "skipped": sorted(state.skipped.items()),
    }


def _mark_whole(home: Path, about: dict[str, Any]) -> None:
    """Write whole.json, after the files that it calls complete have reached the disk."""
    write_atomic(home / WHOLE, checked_json(about))
    (home / JOURNAL).unlink()


def _image_bytes(spec: ImageSpec) -> int:
    return spec.height * spec.width * spec.channels


def _open_at(path: Path, size: int) -> BinaryIO:
    """Open a file for writing after its first `size` bytes, and remove the rest."""
    if not size:
        path.unlink(missing_ok=True)
        write_new(path, b"")
    file = open(os.open(path, os.O_RDWR | OPEN_FLAGS), "r+b")  # noqa: SIM115 (the caller closes it)
    file.truncate(size)
    file.seek(size)
    return file


def _remove_files(home: Path) -> None:
    """Remove all files; truncating them would crash another process that has them mapped."""
    for name in (WHOLE, JOURNAL, PIXELS, DIGESTS):
        (home / name).unlink(missing_ok=True)


def _find_start(
    home: Path, source: ImageSource, spec: ImageSpec, shared: SharedDecoding | None
) -> tuple[_Progress, bool]:
    """Return how far decoding got, on all machines if the rest is shared, and whether it is."""
    state = _resume(home, spec)
    while shared is not None:
        counts = shared.compare(source, spec, state.done)
        if counts is None:
            break
        if min(counts) == max(counts):
            return state, True
        state = _resume(home, spec, min(counts))
    return state, False


def _resume(home: Path, spec: ImageSpec, most: int | None = None) -> _Progress:
    """Find out how far interrupted decoding got, as far as its files match their checksums.

    At most the first `most` pictures count.
    """
    state = _Progress()
    if os.path.lexists(home / WHOLE):  # complete once, but damaged since
        return state
    try:
        lines = read_regular(home / JOURNAL).splitlines()
        with _open_regular(home / PIXELS) as pixels, _open_regular(home / DIGESTS) as digests:
            for line in lines:
                done, rows, pixels_sum, digests_sum, bad = json.loads(line)
                new = rows - state.rows
                reasons = {int(index): str(reason) for index, reason in bad}
                if new < 0 or new != done - state.done - len(reasons) or done <= state.done:
                    break
                if most is not None and done > most:
                    break
                found = (
                    _checksum(pixels, new * _image_bytes(spec), state.pixels),
                    _checksum(digests, new * DIGEST, state.digests),
                )
                if found != (pixels_sum, digests_sum):
                    break
                skipped = state.skipped | reasons
                state = _Progress(done, rows, *found)
                state.skipped = skipped
    except (OSError, ValueError, TypeError, EOFError):
        pass  # what is missing or cut off ends the journal
    return state


def _journal_length(home: Path, state: _Progress) -> int:
    """Return the length of the lines of the journal that were verified."""
    length = 0
    if state.done:
        for line in read_regular(home / JOURNAL).splitlines(keepends=True):
            length += len(line)
            if json.loads(line)[0] == state.done:
                break
    return length


def _open_regular(path: Path) -> BufferedReader:
    file = open(os.open(path, os.O_RDONLY | OPEN_FLAGS), "rb")  # noqa: SIM115 (as above)
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise ValueError(f"{path} is not a regular file")
    return file


def _checksum(file: BufferedReader, size: int, checksum: int = 0) -> int:
    """Continue a checksum with the next `size` bytes of a file; raise EOFError if it is shorter."""
    block = memoryview(bytearray(min(size, BLOCK_BYTES)))
    while size:
        n_read = file.readinto(block[:size])
        if not n_read:
            raise EOFError
        checksum = zlib.crc32(block[:n_read], checksum)
        size -= n_read
    return checksum


def _map_if_whole(home: Path, spec: ImageSpec) -> DecodedImages | None:
    """Map a folder that is complete and undamaged; otherwise return None."""
    try:
        if home.is_symlink():
            return None
        return _map_files(home, parse_checked_json(read_regular(home / WHOLE)), spec)
    except (ValueError, KeyError, TypeError, OSError, EOFError):  # it is only a cache
        return None


def _is_own(home: Path) -> bool:
    """Return whether a folder belongs to this user, or does not exist yet."""
    try:
        return not hasattr(os, "geteuid") or os.lstat(home).st_uid == os.geteuid()
    except OSError:
        return True


def _map_files(home: Path, about: dict[str, Any], spec: ImageSpec) -> DecodedImages:
    if about["format"] != FORMAT:
        raise ValueError(f"{home} has the format {about['format']!r}")
    rows, skipped = int(about["rows"]), {int(index): str(why) for index, why in about["skipped"]}
    indices = np.setdiff1d(np.arange(int(about["count"])), np.fromiter(skipped, np.int64))
    if len(indices) != rows:
        raise ValueError(f"{home} holds {rows} pictures, expected {len(indices)}")
    images = _map_file(home / PIXELS, (rows, *spec.shape), about["pixels"])
    digests = _map_file(home / DIGESTS, (rows, DIGEST), about["digests"])
    return DecodedImages(images, indices, digests, skipped, about["pixels"])


# Files that were found undamaged by this process: path, device, inode, size, time and checksum.
_verified: set[tuple[str, int, int, int, int, int]] = set()


def _map_file(path: Path, shape: tuple[int, ...], checksum: int) -> NDArray[np.uint8]:
    """Map a file after verifying its checksum, once per process as long as it does not change."""
    with _open_regular(path) as file:
        about = os.fstat(file.fileno())
        if about.st_size != int(np.prod(shape)):
            raise ValueError(f"{path} has the wrong length")
        known = (
            str(path), about.st_dev, about.st_ino, about.st_size, about.st_mtime_ns, checksum
        )  # fmt: skip
        if known not in _verified:
            # Read, not mapped: a disk that fails is then an error instead of a signal.
            if _checksum(file, about.st_size) != checksum:
                raise ValueError(f"{path} is damaged: its checksum is wrong")
            _verified.add(known)
        if shape[0] == 0:  # an empty file cannot be mapped
            return np.empty(shape, np.uint8)
        return np.memmap(file, np.uint8, "r", shape=shape)


def list_caches() -> list[tuple[Path, int]]:
    """Return the folder of each cache and its size in bytes."""
    if not cache_folder().is_dir():
        return []
    homes = [home for home in sorted(cache_folder().iterdir()) if _is_cache(home)]
    return [(home, sum(entry.lstat().st_size for entry in home.iterdir())) for home in homes]


def _is_cache(home: Path) -> bool:
    """Return whether a folder is a cache and holds nothing else; links are not followed."""
    if KEY.fullmatch(home.name) is None or home.is_symlink() or not home.is_dir():
        return False
    return all(name in OWN_FILES or is_leftover(name) for name in os.listdir(home))


def clear_caches() -> int:
    """Remove all caches that are not in use, and return the number of bytes freed."""
    freed = 0
    for home, size in list_caches():
        with suppress(LockedError), hold(home):
            remove_tree(home)
            freed += size
    return freed
