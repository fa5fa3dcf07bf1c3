"""Decoded pictures, kept on the disk: read once, mapped into memory ever after.

A source and a look have one folder:

pixels.bin    the pictures that could be read, one after the other
digests.bin   16 bytes for each
journal.txt   how far the reading got, a line a batch; what it says is there, is there
whole.json    written last; a folder that has it is complete
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

from jule.images.decode import DIGEST, Look, known_formats
from jule.images.places import user_cache
from jule.images.source import ImageSource

FORMAT = "jule-images-1"
PIXELS, DIGESTS, JOURNAL, WHOLE, LOCK = (
    "pixels.bin", "digests.bin", "journal.txt", "whole.json", "lock"
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Decoded:
    """All pictures of a source that could be read, in one look.

    Attributes
    ----------
    images
        uint8 (m, h, w[, 3]), mapped from the disk.
    numbers
        (m,) their places in the source.
    digests
        (m, 16) uint8, equal where the contents are.
    skipped
        The others, by their places, with the reason.
    """

    images: NDArray[np.uint8]
    numbers: NDArray[np.int64]
    digests: NDArray[np.uint8]
    skipped: dict[int, str]


def cache_folder() -> Path:
    """Give the folder of all caches: $JULE_CACHE, or else `jule/images` in the user's cache folder.

    Examples
    --------
    >>> cache_folder().name  # doctest: +SKIP
    'images'
    """
    chosen = os.environ.get("JULE_CACHE")
    return Path(chosen).expanduser() if chosen else user_cache() / "jule" / "images"


def decoded(
    source: ImageSource,
    look: Look,
    *,
    folder: Path | None = None,
    workers: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Decoded:
    """Give the pictures of a source in one look, from the cache if they are there.

    What was read before an interruption is not read again. Memory holds a few batches, whatever
    the number of pictures.

    Parameters
    ----------
    source, look
        Which pictures, and what to bring them to.
    folder
        Of the caches; `cache_folder` by default.
    workers
        Processes that decode; as many as there are cores by default.
    progress
        Called with the number of pictures done and of all.

    Examples
    --------
    >>> decoded(source, Look(64, 64, 3)).images.shape  # doctest: +SKIP
    (19987, 64, 64, 3)
    """
    key = _key(source, look)
    if key is None:  # nobody could tell whether the content is still the same
        return _read_for_now(source, look, workers, progress)
    home = (folder or cache_folder()) / key
    found = _read_whole(home, look)
    if found is not None:
        return found
    try:
        home.mkdir(parents=True, exist_ok=True)
        with _alone(home) as first:
            if first:
                # Whoever was at it may have finished just now, and have the files in use.
                found = _read_whole(home, look)
                if found is None:
                    _fill(home, source, look, workers, progress)
                    found = _mapped(home, look)
                return found
    except OSError as error:
        raise OSError(
            f"the pictures cannot be kept in {home} ({error.strerror or error}): name another "
            "folder with --cache, or the environment variable JULE_CACHE"
        ) from error
    # Another process is at it: this one does not wait, and keeps nothing.
    return _read_for_now(source, look, workers, progress)


def _key(source: ImageSource, look: Look) -> str | None:
    about = source.identity()
    if about is None:
        return None
    # A decoder that is installed later gets its chance: what was skipped may not be then.
    whole = sha256(f"{FORMAT} {json.dumps(look.to_json())} {known_formats()}".encode())
    for text in about:
        whole.update(text.encode("utf-8", "surrogateescape") + b"\0")
    return whole.hexdigest()[:32]


def _read_for_now(
    source: ImageSource,
    look: Look,
    workers: int | None,
    progress: Callable[[int, int], None] | None,
) -> Decoded:
    """Read into files without a name, which are gone with the process."""
    with TemporaryDirectory(prefix="jule-") as folder:
        _fill(Path(folder), source, look, workers, progress)
        return _mapped(Path(folder), look)


@contextmanager
def _alone(home: Path) -> Iterator[bool]:
    """Say whether this is the only process that fills a folder."""
    try:
        import fcntl
    except ImportError:  # not on Windows
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
    look: Look,
    workers: int | None,
    progress: Callable[[int, int], None] | None,
) -> None:
    done, rows, skipped = _journal(home, look)
    if done == 0:
        _empty(home)
    with (
        _open_at(home / PIXELS, rows * _bytes_of(look)) as pixels,
        _open_at(home / DIGESTS, rows * DIGEST) as digests,
        open(home / JOURNAL, "w", encoding="utf-8") as journal,
    ):
        if done:
            journal.write(json.dumps([done, rows, sorted(skipped.items())]) + "\n")
            journal.flush()
        for batch in source.batches(look, done, workers):
            pixels.write(batch.images.data)
            digests.write(b"".join(batch.digests))
            done += len(batch.numbers) + len(batch.skipped)
            rows += len(batch.numbers)
            skipped.update(batch.skipped)
            pixels.flush()
            digests.flush()
            journal.write(json.dumps([done, rows, sorted(batch.skipped.items())]) + "\n")
            journal.flush()
            if progress is not None:
                progress(done, len(source))
    about = {"format": FORMAT, "count": done, "rows": rows, "skipped": sorted(skipped.items())}
    part = home / (WHOLE + ".part")
    part.write_text(json.dumps(about), encoding="utf-8")
    os.replace(part, home / WHOLE)
    (home / JOURNAL).unlink()


def _bytes_of(look: Look) -> int:
    return look.height * look.width * look.channels


def _open_at(path: Path, size: int) -> BinaryIO:
    """Open a file for writing after its first `size` bytes; the rest goes."""
    file = open(path, "r+b" if path.exists() else "w+b")  # noqa: SIM115 (the caller closes it)
    file.truncate(size)
    file.seek(size)
    return file


def _empty(home: Path) -> None:
    """Remove what is there; never cut it, as another process may have it mapped."""
    for name in (WHOLE, JOURNAL, PIXELS, DIGESTS):
        (home / name).unlink(missing_ok=True)


def _journal(home: Path, look: Look) -> tuple[int, int, dict[int, str]]:
    """Read how far an interrupted reading got: pictures, rows, and what was skipped."""
    done, rows = 0, 0
    skipped: dict[int, str] = {}
    try:
        if (home / WHOLE).exists():  # it was complete once, and is damaged now
            return 0, 0, {}
        for line in (home / JOURNAL).read_text(encoding="utf-8").splitlines():
            then, more, bad = json.loads(line)
            seen = {int(number): str(reason) for number, reason in bad}
            if then <= done or more - rows != then - done - len(seen):
                break
            done, rows = int(then), int(more)
            skipped.update(seen)
    except FileNotFoundError:
        return 0, 0, {}
    except (ValueError, TypeError):  # a line cut off ends it
        pass
    if not _holds(home / PIXELS, rows * _bytes_of(look)) or not _holds(
        home / DIGESTS, rows * DIGEST
    ):
        return 0, 0, {}
    return done, rows, skipped


def _holds(path: Path, size: int) -> bool:
    """Tell whether a file is as long as it must be: after a power cut it may not be."""
    return path.exists() and path.stat().st_size >= size


def _read_whole(home: Path, look: Look) -> Decoded | None:
    try:
        return _mapped(home, look)
    except (ValueError, KeyError, TypeError, OSError):  # not there, or damaged: only a cache
        return None


def _mapped(home: Path, look: Look) -> Decoded:
    about: dict[str, Any] = json.loads((home / WHOLE).read_text(encoding="utf-8"))
    if about["format"] != FORMAT:
        raise ValueError(f"{home} has the format {about['format']!r}")
    rows, skipped = int(about["rows"]), {int(at): str(why) for at, why in about["skipped"]}
    numbers = np.setdiff1d(np.arange(int(about["count"])), np.fromiter(skipped, np.int64))
    if len(numbers) != rows:
        raise ValueError(f"{home} holds {rows} pictures, expected {len(numbers)}")
    images = _map(home / PIXELS, (rows, *look.shape))
    return Decoded(images, numbers, _map(home / DIGESTS, (rows, DIGEST)), skipped)


def _map(path: Path, shape: tuple[int, ...]) -> NDArray[np.uint8]:
    if path.stat().st_size != int(np.prod(shape)):
        raise ValueError(f"{path} has not the length it should")
    if shape[0] == 0:  # nothing cannot be mapped
        return np.empty(shape, np.uint8)
    return np.memmap(path, np.uint8, "r", shape=shape)


def kept() -> list[tuple[Path, int]]:
    """List all caches with their sizes in bytes.

    Examples
    --------
    >>> kept()  # doctest: +SKIP
    """
    if not cache_folder().is_dir():
        return []
    homes = [home for home in sorted(cache_folder().iterdir()) if (home / PIXELS).exists()]
    return [(home, sum(file.stat().st_size for file in home.iterdir())) for home in homes]


def forget() -> int:
    """Remove all caches; gives the bytes that were freed.

    Examples
    --------
    >>> forget()  # doctest: +SKIP
    """
    homes = kept()
    for home, _ in homes:
        shutil.rmtree(home)
    return sum(size for _, size in homes)
