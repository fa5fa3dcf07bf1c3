"""The cache of decoded pictures: decoded once, mapped into memory afterwards.

A source and an ImageSpec have one folder:

pixels.bin    the pictures that could be decoded, one after the other
digests.bin   16 bytes for each
journal.txt   how far decoding got, one line per batch; everything it lists has been written
whole.json    written last: a folder that has it is complete
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from jule.files import user_cache, write_json
from jule.images.decoding.decode import DIGEST, ImageSpec, known_formats
from jule.images.decoding.pipeline import decode_batches
from jule.images.sources.base import ImageSource

FORMAT = "jule-images-1"
PIXELS, DIGESTS, JOURNAL, WHOLE, LOCK = (
    "pixels.bin", "digests.bin", "journal.txt", "whole.json", "lock"
)  # fmt: skip

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
    """

    images: NDArray[np.uint8]
    indices: NDArray[np.int64]
    digests: NDArray[np.uint8]
    skipped: dict[int, str]


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
        return _decode_temporarily(source, spec, workers, progress)
    home = (folder or cache_folder()) / key
    found = _map_if_whole(home, spec)
    if found is not None:
        return found
    try:
        home.mkdir(parents=True, exist_ok=True)
        with _lock(home) as locked:
            if locked:
                # Another process may have finished in the meantime and be using the files.
                found = _map_if_whole(home, spec)
                if found is None:
                    about = _fill(home, source, spec, workers, progress)
                    _mark_whole(home, about)
                    found = _map_files(home, about, spec)
                return found
    except OSError as error:
        raise OSError(
            f"decoded pictures cannot be written to {home} ({error.strerror or error}): choose "
            "another folder with --cache, or with the environment variable JULE_CACHE"
        ) from error
    # Another process is filling this folder: decode without waiting for it.
    return _decode_temporarily(source, spec, workers, progress)


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
    source: ImageSource, spec: ImageSpec, workers: int | None, progress: Progress | None
) -> DecodedImages:
    """Decode into temporary files, which exist only while they are mapped."""
    with TemporaryDirectory(prefix="jule-") as folder:
        about = _fill(Path(folder), source, spec, workers, progress)
        return _map_files(Path(folder), about, spec)


@contextmanager
def _lock(home: Path) -> Iterator[bool]:
    """Lock a folder; yield False if another process is filling it."""
    try:
        import fcntl
    except ImportError:  # Windows
        yield True
        return
    with open(home / LOCK, "w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        yield True


def _fill(
    home: Path,
    source: ImageSource,
    spec: ImageSpec,
    workers: int | None,
    progress: Progress | None,
) -> dict[str, Any]:
    """Decode what the journal does not list yet; return the content of whole.json."""
    done, rows, skipped = _read_journal(home, spec)
    if done == 0:
        _remove_files(home)
    with (
        _open_at(home / PIXELS, rows * _image_bytes(spec)) as pixels,
        _open_at(home / DIGESTS, rows * DIGEST) as digests,
        open(home / JOURNAL, "w", encoding="utf-8") as journal,
    ):
        if done:
            journal.write(json.dumps([done, rows, sorted(skipped.items())]) + "\n")
            journal.flush()
        for batch in decode_batches(source, spec, done, workers):
            pixels.write(batch.images.data)
            digests.write(b"".join(batch.digests))
            done += len(batch.indices) + len(batch.skipped)
            rows += len(batch.indices)
            skipped.update(batch.skipped)
            pixels.flush()
            digests.flush()
            journal.write(json.dumps([done, rows, sorted(batch.skipped.items())]) + "\n")
            journal.flush()
            if progress is not None:
                progress(done, len(source))
    return {"format": FORMAT, "count": done, "rows": rows, "skipped": sorted(skipped.items())}


def _mark_whole(home: Path, about: dict[str, Any]) -> None:
    """Write whole.json, after the files that it calls complete have reached the disk."""
    for name in (PIXELS, DIGESTS):
        with open(home / name, "rb") as file:
            os.fsync(file.fileno())
    write_json(home / WHOLE, about)
    (home / JOURNAL).unlink()


def _image_bytes(spec: ImageSpec) -> int:
    return spec.height * spec.width * spec.channels


def _open_at(path: Path, size: int) -> BinaryIO:
    """Open a file for writing after its first `size` bytes, and remove the rest."""
    file = open(path, "r+b" if path.exists() else "w+b")  # noqa: SIM115 (the caller closes it)
    file.truncate(size)
    file.seek(size)
    return file


def _remove_files(home: Path) -> None:
    """Remove all files; truncating them would crash another process that has them mapped."""
    for name in (WHOLE, JOURNAL, PIXELS, DIGESTS):
        (home / name).unlink(missing_ok=True)


def _read_journal(home: Path, spec: ImageSpec) -> tuple[int, int, dict[int, str]]:
    """Read how far interrupted decoding got: pictures, rows, and what was skipped."""
    done, rows = 0, 0
    skipped: dict[int, str] = {}
    try:
        if (home / WHOLE).exists():  # complete once, but damaged since
            return 0, 0, {}
        for line in (home / JOURNAL).read_text(encoding="utf-8").splitlines():
            next_done, next_rows, bad = json.loads(line)
            reasons = {int(index): str(reason) for index, reason in bad}
            if next_done <= done or next_rows - rows != next_done - done - len(reasons):
                break
            done, rows = int(next_done), int(next_rows)
            skipped.update(reasons)
    except FileNotFoundError:
        return 0, 0, {}
    except (ValueError, TypeError):  # a line that was cut off ends the journal
        pass
    lengths = {PIXELS: rows * _image_bytes(spec), DIGESTS: rows * DIGEST}
    if not all(_has_length(home / name, size) for name, size in lengths.items()):
        return 0, 0, {}
    return done, rows, skipped


def _has_length(path: Path, size: int) -> bool:
    """Return whether a file has at least `size` bytes; after a power cut it may have fewer."""
    return path.exists() and path.stat().st_size >= size


def _map_if_whole(home: Path, spec: ImageSpec) -> DecodedImages | None:
    try:
        about: dict[str, Any] = json.loads((home / WHOLE).read_text(encoding="utf-8"))
        return _map_files(home, about, spec)
    except (ValueError, KeyError, TypeError, OSError):  # missing or damaged: it is only a cache
        return None


def _map_files(home: Path, about: dict[str, Any], spec: ImageSpec) -> DecodedImages:
    if about["format"] != FORMAT:
        raise ValueError(f"{home} has the format {about['format']!r}")
    rows, skipped = int(about["rows"]), {int(index): str(why) for index, why in about["skipped"]}
    indices = np.setdiff1d(np.arange(int(about["count"])), np.fromiter(skipped, np.int64))
    if len(indices) != rows:
        raise ValueError(f"{home} holds {rows} pictures, expected {len(indices)}")
    images = _map_file(home / PIXELS, (rows, *spec.shape))
    return DecodedImages(images, indices, _map_file(home / DIGESTS, (rows, DIGEST)), skipped)


def _map_file(path: Path, shape: tuple[int, ...]) -> NDArray[np.uint8]:
    if path.stat().st_size != int(np.prod(shape)):
        raise ValueError(f"{path} has the wrong length")
    if shape[0] == 0:  # an empty file cannot be mapped
        return np.empty(shape, np.uint8)
    return np.memmap(path, np.uint8, "r", shape=shape)


def list_caches() -> list[tuple[Path, int]]:
    """Return the folder of each cache and its size in bytes."""
    if not cache_folder().is_dir():
        return []
    homes = [home for home in sorted(cache_folder().iterdir()) if (home / PIXELS).exists()]
    return [(home, sum(file.stat().st_size for file in home.iterdir())) for home in homes]


def clear_caches() -> int:
    """Remove all caches and return the number of bytes freed."""
    caches = list_caches()
    for home, _ in caches:
        shutil.rmtree(home)
    return sum(size for _, size in caches)
