"""Read and decode a few pictures at a time, with a reason for each that fails."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from jule.images.decoding.decode import Item, decode, read_item
from jule.images.decoding.spec import ImageSpec
from jule.images.sources.content import BadPictureError


@dataclass(frozen=True, eq=False)
class Batch:
    """Consecutive pictures of a source, decoded to one size and colour mode.

    Attributes
    ----------
    images
        uint8 (m, h, w) or (m, h, w, 3): those that could be decoded.
    indices
        The index of each in the source.
    digests
        16 bytes for each, equal for equal content.
    skipped
        The reasons why pictures could not be decoded, by index.
    """

    images: NDArray[np.uint8]
    indices: list[int]
    digests: list[bytes]
    skipped: dict[int, str]


def decode_chunk(chunk: Mapping[int, Item], spec: ImageSpec) -> Batch:
    """Decode pictures in this process, given by their index in a source.

    Examples
    --------
    >>> decode_chunk({5: np.zeros((2, 2), np.uint8), 6: "it is gone"}, ImageSpec(2, 2, 1)).indices
    [5]
    """
    images = np.empty((len(chunk), *spec.shape), np.uint8)
    indices: list[int] = []
    digests: list[bytes] = []
    skipped: dict[int, str] = {}
    for index, item in chunk.items():
        try:
            images[len(indices)], digest = decode(read_item(item), spec)
        except BadPictureError as error:
            skipped[index] = str(error)
        else:
            indices.append(index)
            digests.append(digest)
    return Batch(images[: len(indices)], indices, digests, skipped)


def is_encoded(chunk: Mapping[int, Item]) -> bool:
    """Return whether all pictures of a chunk have yet to be decoded.

    Examples
    --------
    >>> is_encoded({0: b"...", 1: Path("a.jpg")}), is_encoded({0: np.zeros((2, 2), np.uint8)})
    (True, False)
    """
    return all(isinstance(item, bytes | Path | str) for item in chunk.values())


def concatenate(batches: Sequence[Batch]) -> Batch:
    """Concatenate batches.

    Examples
    --------
    >>> empty = Batch(np.empty((0, 2, 2), np.uint8), [], [], {3: "it is empty"})
    >>> concatenate([empty, empty]).skipped
    {3: 'it is empty'}
    """
    return Batch(
        np.concatenate([batch.images for batch in batches]),
        [index for batch in batches for index in batch.indices],
        [digest for batch in batches for digest in batch.digests],
        {index: reason for batch in batches for index, reason in batch.skipped.items()},
    )
