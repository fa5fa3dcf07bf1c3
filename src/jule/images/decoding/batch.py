"""Read and decode a few pictures at a time, with a reason for each that fails."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from jule.images.decoding.decode import ImageSpec, decode
from jule.images.sources.content import BadPictureError, RawImage, read_file, reason_of

# A picture to decode: its content, its path, or the reason why it could not be read.
Item = RawImage | Path | str


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
    """Decode pictures, given by their index in a source.

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
            images[len(indices)], digest = decode(_read(item), spec)
        except BadPictureError as error:
            skipped[index] = str(error)
        else:
            indices.append(index)
            digests.append(digest)
    return Batch(images[: len(indices)], indices, digests, skipped)


def _read(item: Item) -> RawImage:
    if isinstance(item, str):
        raise BadPictureError(item)
    if not isinstance(item, Path):
        return item
    try:
        return read_file(item)
    except OSError as error:
        raise BadPictureError(reason_of(error)) from error
    except ValueError as error:  # bad pictures, and names that no file can have
        raise BadPictureError(str(error)) from error
