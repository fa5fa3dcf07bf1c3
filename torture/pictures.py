"""Damaged pictures in every format, in folders, zip files and tar files."""

from __future__ import annotations

import io
import os
import resource
import tarfile
import tempfile
import time
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from PIL import Image

from jule.images import ImageSpec, Samples, open_source, read_images
from jule.images.decoding.decode import known_formats
from jule.images.decoding.pipeline import count_cores
from jule.images.decoding.pool import close_idle_workers
from jule.images.decoding.worker import limits_for
from torture.campaign import Outcome, Progress
from torture.mutations import any_file

BATCH = 500  # pictures that are read together
SPEC = ImageSpec(16, 16, 3)
MOST_SECONDS = 300.0  # for a batch; one picture may take up to a minute
OWN_MEMORY = 2**30  # bytes by which this process may grow, whatever the pictures announce
WORKER_MEMORY = 2**28  # bytes that a worker needs besides what decoders may use
EXTREMES = (0, 1, 2, 0x7F, 0x80, 0xFF)
WHOLE = "whole"


class DamagedPictures:
    """Damage pictures in all kinds of ways, and read them; all must be read or listed."""

    name = "pictures"
    title = "damaged pictures in every format, in folders, zip and tar files"
    goal = 100_000
    promise = (
        "every damaged picture is either read or listed with a reason; the program survives, its "
        "memory and time are bounded, no file is changed, and nothing is written elsewhere"
    )

    def run(self, n_cases: int | None, seed: int, progress: Progress) -> Outcome:
        """Run `n_cases` cases (all of the goal if None) and return how they ended."""
        total = self.goal if n_cases is None else n_cases
        kinds = list(make_pictures().items())
        counts: Counter[str] = Counter()
        failures: list[str] = []
        before = _own_memory()
        for start in range(0, total, BATCH):
            count = min(BATCH, total - start)
            with tempfile.TemporaryDirectory(prefix="torture-") as name:
                batch = _Batch(Path(name), kinds, count, seed, start // BATCH)
                counts.update(batch.run())
            failures += [f"batch {start // BATCH} of seed {seed}: {x}" for x in batch.failures]
            progress(start + count, total)
        close_idle_workers()
        failures += _memory_failures(before)
        return Outcome(total, dict(counts), failures)


class _Batch:
    """Some damaged pictures of all kinds, and one that is whole."""

    def __init__(
        self, folder: Path, kinds: list[tuple[str, bytes]], count: int, seed: int, number: int
    ) -> None:
        self.failures: list[str] = []
        self._folder = folder
        self._number = number
        rng = np.random.default_rng([seed, number])
        self._files = dict(_damage_some(kinds, count, rng))
        self._files[f"{WHOLE}.png"] = dict(kinds)["PNG RGB"]

    def run(self) -> Counter[str]:
        """Read the pictures, check the invariants, and return how the cases ended."""
        pack = (write_folder, write_zip, write_tar)[self._number % 3]
        (self._folder / "outside").mkdir()
        source = pack(self._folder, self._files)
        before = snapshot(self._folder)
        started = time.perf_counter()
        # Every other batch without a spec: then the survey opens the pictures first.
        spec = SPEC if self._number // 3 % 2 else None
        try:
            found = read_images(open_source(source), spec, cache=self._folder / "cache")
        except Exception as error:  # which no picture may cause
            self.failures.append(f"{type(error).__name__}: {error}")
            return Counter({"raised an error": len(self._files) - 1})
        seconds = time.perf_counter() - started
        if seconds > MOST_SECONDS:
            self.failures.append(f"it took {seconds:.0f} s")
        changed = changes(before, snapshot(self._folder))
        self.failures += [f"{name} was written or changed" for name in changed]
        self._check(found)
        counts = Counter(f"skipped: {_kind_of(one.reason)}" for one in found.skipped)
        counts["read"] = len(found) - 1
        return counts

    def _check(self, found: Samples) -> None:
        listed = Counter([*found.names, *(one.name for one in found.skipped)])
        for name in sorted(set(self._files) | set(listed)):
            if listed[name] != 1:
                self.failures.append(f"{name} is listed {listed[name]} times")
        self.failures += [f"{one.name} has no reason" for one in found.skipped if not one.reason]
        self.failures += [
            f"{one.name} has a reason of several lines" for one in found.skipped
            if "\n" in one.reason
        ]  # fmt: skip
        if f"{WHOLE}.png" not in found.names:
            self.failures.append("the picture that is whole was skipped")


def _kind_of(reason: str) -> str:
    """Return the beginning of a reason, without the details of one picture."""
    return reason.partition(" (")[0].partition(": ")[0].partition(" than")[0]


def make_pictures() -> dict[str, bytes]:
    """Return the content of a small picture file of every kind that can be written here."""
    rng = np.random.default_rng(0)
    made: dict[str, bytes] = {}
    for kind, (form, mode, options) in _kinds().items():
        image = _image(rng, mode)
        content = io.BytesIO()
        try:
            image.save(content, form, **options)
        except (KeyError, OSError, ValueError, RuntimeError):
            continue  # this Pillow has no encoder for it
        made[kind] = content.getvalue()
    return made


def _kinds() -> dict[str, tuple[str, str, dict[str, Any]]]:
    """Return format, mode and options of every kind of picture."""
    known_formats()  # registers HEIF where it is installed
    more = [Image.new("P", (48, 36), value) for value in (3, 7)]
    exif = Image.Exif()
    exif[0x0112] = 6
    kinds: dict[str, tuple[str, str, dict[str, Any]]] = {
        "JPEG": ("JPEG", "RGB", {}),
        "JPEG grey": ("JPEG", "L", {}),
        "JPEG CMYK": ("JPEG", "CMYK", {}),
        "JPEG rotated": ("JPEG", "RGB", {"exif": exif.tobytes()}),
        "JPEG progressive": ("JPEG", "RGB", {"progressive": True}),
        "JPEG restarts": ("JPEG", "RGB", {"restart_marker_rows": 1}),
        "MPO": ("MPO", "RGB", {"save_all": True, "append_images": [Image.new("RGB", (48, 36))]}),
        "WebP": ("WEBP", "RGB", {}),
        "WebP lossless": ("WEBP", "RGBA", {"lossless": True}),
        "WebP animation": ("WEBP", "RGB", {"save_all": True, "append_images": more}),
        "GIF": ("GIF", "P", {}),
        "GIF interlaced": ("GIF", "L", {"interlace": 1}),
        "GIF animation": ("GIF", "P", {"save_all": True, "append_images": more}),
        "AVIF": ("AVIF", "RGB", {"speed": 10}),
        "AVIF alpha": ("AVIF", "RGBA", {"speed": 10}),
        "HEIF": ("HEIF", "RGB", {}),
        "PNG animation": ("PNG", "P", {"save_all": True, "append_images": more}),
    }
    for mode in ("1", "L", "LA", "P", "RGB", "RGBA", "I;16"):
        kinds[f"PNG {mode}"] = ("PNG", mode, {})
    for mode in ("1", "L", "P", "RGB", "RGBA"):
        kinds[f"BMP {mode}"] = ("BMP", mode, {})
    for mode in ("1", "L", "RGB", "I;16"):
        kinds[f"PPM {mode}"] = ("PPM", mode, {})
    for mode in ("1", "L", "LA", "P", "RGB", "RGBA", "CMYK", "I;16", "I", "F"):
        kinds[f"TIFF {mode}"] = ("TIFF", mode, {})
    for way in ("tiff_lzw", "tiff_adobe_deflate", "packbits", "jpeg", "zstd", "lzma"):
        kinds[f"TIFF {way}"] = ("TIFF", "RGB", {"compression": way})
    for way in ("group3", "group4", "tiff_ccitt"):
        kinds[f"TIFF {way}"] = ("TIFF", "1", {"compression": way})
    return kinds


def _image(rng: Generator, mode: str) -> Image.Image:
    """Return a picture with large shapes and some noise, so that compression has work to do."""
    rows, columns = np.mgrid[0:36, 0:48]
    waves = [np.sin(rows / a + columns / b) for a, b in ((5, 9), (7, 4), (3, 11), (8, 8))]
    noise = rng.normal(0, 8, (36, 48, 4))
    pixels: NDArray[np.uint8] = np.clip(127 + 100 * np.stack(waves, -1) + noise, 0, 255).astype(
        "u1"
    )
    if mode == "I;16":
        return Image.fromarray(pixels[..., 0].astype(np.uint16) * 257)
    if mode in ("I", "F"):
        return Image.fromarray(pixels[..., 0]).convert(mode)
    return Image.fromarray(pixels, "RGBA" if mode == "RGBA" else None).convert(mode)


def _damage_some(
    kinds: list[tuple[str, bytes]], count: int, rng: Generator
) -> Iterator[tuple[str, bytes]]:
    """Yield the names and contents of damaged pictures."""
    for number in range(count):
        kind, content = kinds[int(rng.integers(len(kinds)))]
        for _ in range(1 if rng.random() < 0.7 else int(rng.integers(2, 5))):
            content = _damage_header(content, rng) if rng.random() < 0.4 else _any(content, rng)
        yield f"{number:05}.{kind.split()[0].lower().replace('mpo', 'jpg')}", content


def _any(content: bytes, rng: Generator) -> bytes:
    damaged = any_file(rng)[1](content, rng)
    return damaged or any_file(rng)[1](content, rng)  # few empty files are enough


def _damage_header(content: bytes, rng: Generator) -> bytes:
    """Set some bytes, mostly of the header, to extreme values: sizes, depths, counts, offsets."""
    found = bytearray(content or b"\0")
    end = len(found) if rng.random() < 0.2 else min(len(found), 64)
    at = int(rng.integers(end))
    width = int(rng.choice([1, 2, 4, 8]))
    for place in range(at, min(len(found), at + width)):
        found[place] = EXTREMES[int(rng.integers(len(EXTREMES)))]
    return bytes(found)


def write_folder(folder: Path, files: dict[str, bytes]) -> Path:
    """Write files into a folder and return its path."""
    where = folder / "pictures"
    where.mkdir()
    for name, content in files.items():
        (where / name).write_bytes(content)
    return where


def write_zip(folder: Path, files: dict[str, bytes]) -> Path:
    """Write files into a zip file and return its path."""
    with zipfile.ZipFile(folder / "pictures.zip", "w", zipfile.ZIP_DEFLATED, True, 1) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return folder / "pictures.zip"


def write_tar(folder: Path, files: dict[str, bytes]) -> Path:
    """Write files into a tar file and return its path."""
    with tarfile.open(folder / "pictures.tar", "w") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return folder / "pictures.tar"


def snapshot(folder: Path) -> dict[str, tuple[int, ...]]:
    """Return kind, size and checksum of everything below a folder, except for its cache."""
    found: dict[str, tuple[int, ...]] = {}
    for root, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if Path(root, name) != folder / "cache"]
        for name in folders + names:
            path = Path(root, name)
            about = os.lstat(path)
            content = path.read_bytes() if name in names and path.is_file() else b""
            found[str(path)] = (about.st_mode, len(content), zlib.crc32(content))
    return found


def changes(before: dict[str, tuple[int, ...]], after: dict[str, tuple[int, ...]]) -> list[str]:
    """Return the paths that differ between two snapshots.

    Examples
    --------
    >>> changes({"a": (1,), "b": (2,)}, {"a": (1,), "c": (3,)})
    ['b', 'c']
    """
    return sorted(
        path for path in before.keys() | after.keys() if before.get(path) != after.get(path)
    )


def _own_memory() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _memory_failures(before: int) -> list[str]:
    """Return what is wrong with the memory at the peak, of this process and of any worker."""
    failures = []
    own = _own_memory() - before
    if own > OWN_MEMORY:
        failures.append(f"this process grew by {own / 1e9:.1f} GB")
    worker = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
    if worker > limits_for(count_cores()).memory + WORKER_MEMORY:
        failures.append(f"a worker took {worker / 1e9:.1f} GB")
    return failures
