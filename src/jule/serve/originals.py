"""The original pictures of a run in full size, as a browser can show them."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from jule.export.pictures import is_same_array
from jule.images import ImageSource, ImageSpec
from jule.images.decoding.pool import Crew
from jule.images.decoding.worker import limits_for
from jule.images.sources.content import RawImage
from jule.report.pictures import brightness, encode, thumbnail
from jule.runs.folder import RunFolder
from jule.runs.reading import find_again, open_run_source
from jule.runs.results import RunResults

GREY = 128  # of a thumbnail that cannot be made
LARGEST_SIDE = 4096  # of a picture that is decoded here, because browsers do not know its format
# How the files begin that every browser shows; they are sent as they are.
KNOWN = {
    b"\xff\xd8\xff": "image/jpeg",
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"GIF8": "image/gif",
    b"BM": "image/bmp",
}


class Originals:
    """The original pictures of a run, by their row in labels.csv and never by a path.

    Parameters
    ----------
    run, results
        A finished run.
    source
        Where the pictures are, if they have been moved since the run.
    """

    def __init__(self, run: RunFolder, results: RunResults, source: str | None = None) -> None:
        self.run = run
        self.results = results
        self.source = source
        self._lock = threading.Lock()  # archives are read by one thread at a time

    def get(self, image: int) -> tuple[bytes, str]:
        """Return one picture as the content of a file, and its media type.

        Raises
        ------
        ValueError, OSError
            If the source or the picture is not there any more or cannot be read; the message says
            why.
        """
        with self._lock:
            source, places = self._opened
            place = places[image]
            if isinstance(place, str):
                raise ValueError(place)
            raw = source.picture_or_reason(place)
        if isinstance(raw, str):
            raise ValueError(raw)
        if self._scale is not None and isinstance(raw, np.ndarray):
            return encode(thumbnail(raw, self._scale, raw.shape[:2]), "png"), "image/png"
        known = media_type(raw) if isinstance(raw, bytes) else ""
        return (raw, known) if isinstance(raw, bytes) and known else (_as_jpeg(raw), "image/jpeg")

    def thumbnails(self, images: Sequence[int], size: tuple[int, int]) -> list[NDArray[np.uint8]]:
        """Return some pictures in a small size, grey ones for those that cannot be read."""
        found = [np.full(size, GREY, np.uint8) for _ in images]
        try:
            with self._lock:
                source, places = self._opened
                there = {at: places[image] for at, image in enumerate(images)}
                raw = {
                    at: source.picture_or_reason(place)
                    for at, place in there.items()
                    if not isinstance(place, str)
                }
            readable = {at: one for at, one in raw.items() if not isinstance(one, str)}
            for at, pixels in self._small(readable, size):
                found[at] = pixels
        except (ValueError, OSError, ImportError):
            pass  # the source is gone
        return found

    def _small(
        self, raw: dict[int, RawImage], size: tuple[int, int]
    ) -> Iterator[tuple[int, NDArray[np.uint8]]]:
        for at, one in raw.items():
            if self._scale is not None and isinstance(one, np.ndarray):
                yield at, thumbnail(one, self._scale, size)
        if self._scale is None and raw:
            spec = self.run.image_spec()
            small = ImageSpec(*size, 3, "crop" if spec is None else spec.aspect)
            with Crew(limits_for(1)).borrow() as worker:
                batch = worker.decode({**raw}, small)
            yield from zip(batch.indices, batch.images, strict=True)

    @cached_property
    def _opened(self) -> tuple[ImageSource, list[int | str]]:
        """The source, and where in it each picture is, or why it is missing."""
        source = open_run_source(self.run, self.source)
        if source.array() is None:
            return source, find_again(source, self.results.names, self.results.indices.tolist())
        if not is_same_array(self.run, source):
            raise ValueError(f"{source.where} has changed since the run")
        return source, list(range(len(self.results.names)))

    @cached_property
    def _scale(self) -> tuple[float, float] | None:
        """Which values are black and white in an array; None for files."""
        array = self._opened[0].array()
        if array is not None and array.ndim < 3:
            raise ValueError("these are vectors, not images")
        return None if array is None else brightness(array)


def media_type(content: bytes) -> str:
    """Return the type of a file that every browser shows; empty for others.

    Examples
    --------
    >>> media_type(b"GIF89a"), media_type(b"<script>")
    ('image/gif', '')
    """
    if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for head, kind in KNOWN.items() if content.startswith(head)), "")


def _as_jpeg(raw: RawImage) -> bytes:
    """Decode a picture in a process with limits on memory and time, and encode it again."""
    with Crew(limits_for(1)).borrow() as worker:
        found = worker.examine({0: raw}, 0)[0]
        if isinstance(found, str):
            raise ValueError(found)
        share = min(1.0, LARGEST_SIDE / max(found.width, found.height))
        height, width = (max(1, round(share * side)) for side in (found.height, found.width))
        batch = worker.decode({0: raw}, ImageSpec(height, width, 3))
    if batch.skipped:
        raise ValueError(batch.skipped[0])
    pixels: NDArray[np.uint8] = batch.images[0]
    return encode(pixels, "jpeg")
