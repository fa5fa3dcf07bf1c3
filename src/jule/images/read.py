"""Read all pictures of a source as one array."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jule.images.copies import choose_originals, find_copies
from jule.images.decoding.cache import decode_source
from jule.images.decoding.decode import DIGEST, content_digest
from jule.images.decoding.pool import Crew
from jule.images.decoding.shared import SharedDecoding
from jule.images.decoding.spec import Aspect, ImageSpec, check_aspect
from jule.images.decoding.survey import Colour, check_colour, choose_spec, survey
from jule.images.decoding.worker import limits_for
from jule.images.sources.arrays import fingerprint
from jule.images.sources.base import ImageSource, Skipped, shorten_name
from jule.images.sources.content import open_file
from jule.images.sources.resolve import open_source

MENTIONED = 3  # bad files in an error message


@dataclass(frozen=True, eq=False)
class Samples:
    """Images or vectors with their names, and true classes if they are known.

    Attributes
    ----------
    samples
        (n, h, w), (n, h, w, c) or (n, d).
    names
        One name per sample; its index in the source if it has no name.
    labels
        True classes, for evaluation only; None if there are none.
    indices
        (n,) the index of each sample in its source.
    first_copies
        (n,) index of the original of each sample; its own index if it is not a copy.
    skipped
        Files that could not be read, and why.
    spec
        Size and colour mode that pictures were decoded to; None for arrays.
    checksum
        CRC-32 of the samples, if it is known.
    file_digests
        (n, 16) checksums of the files of the pictures; None for arrays.
    """

    samples: NDArray
    names: list[str] = field(repr=False)
    labels: NDArray | None = field(repr=False)
    indices: NDArray[np.int64] = field(repr=False)
    first_copies: NDArray[np.int64] = field(repr=False)
    skipped: tuple[Skipped, ...] = field(repr=False)
    spec: ImageSpec | None
    checksum: int | None = field(default=None, repr=False)
    file_digests: NDArray[np.uint8] | None = field(default=None, repr=False)

    def __len__(self) -> int:
        return len(self.samples)

    @cached_property
    def fingerprint(self) -> dict[str, Any]:
        """Shape, type and checksum of the samples, computed when first needed."""
        return fingerprint(self.samples, self.checksum)

    @cached_property
    def digests(self) -> NDArray[np.uint8]:
        """(n, 16) checksums that identify each picture by its content, wherever it is."""
        return digests_of(self.samples) if self.file_digests is None else self.file_digests


def digests_of(samples: NDArray) -> NDArray[np.uint8]:
    """Return a checksum of the values of each sample, (n, 16).

    Examples
    --------
    >>> digests_of(np.zeros((3, 8, 8), np.uint8)).shape
    (3, 16)
    """
    found = b"".join(content_digest(sample) for sample in samples)
    return np.frombuffer(found, np.uint8).reshape(len(samples), DIGEST)


def read_images(
    source: Any,
    spec: ImageSpec | None = None,
    *,
    strict: bool = False,
    cache: Path | None = None,
    progress: Callable[[int, int], None] | None = None,
    shared: SharedDecoding | None = None,
) -> Samples:
    """Read pictures from a folder, a list of files, an archive, an array or a data set.

    Parameters
    ----------
    source
        Anything that `open_source` accepts.
    spec
        Target size and colour mode. By default, `spec_for` chooses it, and arrays are not changed.
    strict
        Whether to raise an error if a picture cannot be read, instead of skipping it.
    cache
        The folder for decoded pictures; by default `jule.images.decoding.cache.cache_folder()`.
    progress
        Called with the number of pictures read so far and the total.
    shared
        Other machines that decode some of the pictures, if there are any.

    Raises
    ------
    ValueError
        If nothing can be read, or, with `strict`, if any picture cannot be read.

    Examples
    --------
    >>> read_images(np.zeros((3, 8, 8), np.uint8)).samples.shape
    (3, 8, 8)
    """
    opened = open_source(source)
    check_not_empty(opened)
    array = opened.array()
    if array is not None and (spec is None or array.shape[1:] == spec.shape):
        return _from_array(opened, array)
    if spec is None:
        spec = spec_for(opened)
    found = decode_source(opened, spec, folder=cache, progress=progress, shared=shared)
    bad = [Skipped(opened.names[index], reason) for index, reason in found.skipped.items()]
    skipped = (*opened.skipped, *bad)
    if strict and (wrong := [one for one in skipped if one.is_picture]):
        raise ValueError(f"{len(wrong)} of the pictures cannot be read: {_list_some(wrong)}")
    if len(found.images) == 0:
        raise ValueError(_none_readable(opened, bad))
    names = [opened.names[index] for index in found.indices]
    return Samples(
        found.images,
        names,
        None if opened.labels is None else opened.labels[found.indices],
        found.indices,
        choose_originals(find_copies(found.digests), names),
        skipped,
        spec,
        found.checksum,
        found.digests,
    )


def _from_array(source: ImageSource, array: NDArray) -> Samples:
    return Samples(
        array,
        source.names,
        source.labels,
        np.arange(len(array)),
        choose_originals(find_copies(array), source.names),
        tuple(source.skipped),
        None,
    )


def spec_for(
    source: ImageSource,
    *,
    size: tuple[int, int] | int | None = None,
    aspect: Aspect = "crop",
    colour: Colour = "auto",
) -> ImageSpec:
    """Choose the size and colour mode for a source, after a survey of some of its pictures.

    The parameters are those of `choose_spec`. Nothing is read if they determine everything.

    Examples
    --------
    >>> spec_for(open_source(np.zeros((3, 80, 40), np.uint8)), size=20)
    ImageSpec(height=20, width=10, channels=1, aspect='crop')
    """
    check_aspect(aspect)
    check_colour(colour)
    if isinstance(size, tuple) and colour != "auto":
        return ImageSpec(size[1], size[0], 3 if colour == "rgb" else 1, aspect)
    surveyed = survey(source, colour=colour == "auto")
    if not surveyed.sizes:
        raise ValueError(_none_readable(source, [Skipped(*one) for one in surveyed.bad]))
    return choose_spec(surveyed, size=size, aspect=aspect, colour=colour)


def read_one(path: Path, spec: ImageSpec) -> NDArray[np.uint8]:
    """Read and decode a single picture file."""
    try:
        open_file(path).close()
    except ValueError as error:
        raise ValueError(f"{path} cannot be read: {error}") from error
    with Crew(limits_for(1)).borrow() as worker:
        found = worker.decode({0: path}, spec)
    if found.skipped:
        raise ValueError(f"{path} cannot be read: {found.skipped[0]}")
    image: NDArray[np.uint8] = found.images[0]
    return image


def check_not_empty(source: ImageSource) -> None:
    """Raise if a source has no pictures.

    Examples
    --------
    >>> check_not_empty(open_source(np.zeros((3, 8, 8), np.uint8)))
    """
    if len(source) == 0:
        others, n = "", len(source.skipped)
        if n:
            others = f", only {n} other file{'s' * (n > 1)}: {_list_some(source.skipped)}"
        raise ValueError(f"there are no pictures in {source.where}{others}")


def _none_readable(source: ImageSource, bad: Sequence[Skipped]) -> str:
    return f"none of {len(source)} files in {source.where} can be read: {_list_some(bad)}"


def _list_some(skipped: Sequence[Skipped]) -> str:
    text = "; ".join(f"{shorten_name(one.name)}: {one.reason}" for one in skipped[:MENTIONED])
    return text + ("; ..." if len(skipped) > MENTIONED else "")
