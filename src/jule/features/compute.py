"""Encode all pictures of an array, each of them once."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from jule.features.base import Encoder, check_pictures, power_normalize
from jule.features.store import FeatureStore, features_folder, picture_ids
from jule.locks import LockedError

LOOKUP_BLOCK = 1024  # pictures that are looked up in the store at once


def encode_images(
    encoder: Encoder,
    images: NDArray[np.uint8],
    *,
    cache: Path | None = None,
    progress: Callable[[float], None] | None = None,
) -> NDArray[np.float32]:
    """Return one vector per picture, power-normalised, of root mean square 1.

    Vectors are stored in the user's cache folder. An interrupted computation is resumed.

    Parameters
    ----------
    encoder
        The encoder.
    images
        uint8 (n, h, w) or (n, h, w, 3).
    cache
        The folder for stored vectors; by default `jule.features.store.features_folder()`.
    progress
        Called from time to time with the fraction that is done.

    Raises
    ------
    ValueError
        If the array does not hold pictures, or if a vector is not finite.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from torch import nn
    >>> from jule.features import ModuleEncoder, Preprocessing
    >>> encoder = ModuleEncoder(nn.AvgPool2d(4), Preprocessing(8, 8))
    >>> with TemporaryDirectory() as folder:
    ...     encode_images(encoder, np.zeros((5, 8, 8), np.uint8), cache=Path(folder)).shape
    (5, 12)
    """
    check_pictures(images)
    _warn_if_small(encoder, images)
    store: FeatureStore | None = FeatureStore(cache or features_folder(), encoder.store_key)
    vectors: NDArray[np.float32] | None = None
    firsts: dict[bytes, int] = {}  # of equal pictures, the first; the others are its copies
    for start in range(0, len(images), LOOKUP_BLOCK):
        block = images[start : start + LOOKUP_BLOCK]
        ids = picture_ids(block)
        for position, identity in enumerate(ids):
            firsts.setdefault(identity, start + position)
        own = [at for at, identity in enumerate(ids) if firsts[identity] == start + at]
        known = store.find(ids) if store else {}
        missing = [position for position in own if position not in known]
        for first in range(0, len(missing), encoder.batch):
            rows = missing[first : first + encoder.batch]
            found = _encode(encoder, block[rows])
            known |= dict(zip(rows, found, strict=True))
            store = _add(store, [ids[row] for row in rows], found)
            if progress is not None:
                progress((start + len(known)) / len(images))
        if vectors is None:
            vectors = np.empty((len(images), len(known[0])), np.float32)
        if own:  # a block may consist of copies alone
            rows = [start + at for at in own]
            vectors[rows] = power_normalize(np.stack([known[at] for at in own]))
        for position, identity in enumerate(ids):
            vectors[start + position] = vectors[firsts[identity]]
        if progress is not None:
            progress((start + len(block)) / len(images))
    if vectors is None:
        raise ValueError("there are no pictures to encode")
    if len(firsts) > 1 and (vectors == vectors[0]).all():
        warnings.warn(
            f"the encoder {encoder.name} returned the same vector for all pictures, so it cannot "
            "tell them apart",
            UserWarning,
            stacklevel=2,
        )
    return vectors


def _warn_if_small(encoder: Encoder, images: NDArray[np.uint8]) -> None:
    height, width = images.shape[1:3]
    scaling = encoder.preprocessing
    if scaling.is_small(width, height):
        warnings.warn(
            f"the pictures have {width} x {height} pixels, and the encoder {encoder.name} takes "
            f"{scaling.width} x {scaling.height}: use pixels as features if the clusters make no "
            "sense",
            UserWarning,
            stacklevel=3,
        )


def _encode(encoder: Encoder, images: NDArray[np.uint8]) -> NDArray[np.float32]:
    vectors = encoder.encode(images)
    if vectors.ndim != 2 or len(vectors) != len(images) or vectors.shape[1] < 2:
        raise ValueError(
            f"the encoder {encoder.name} returned {vectors.shape} for {len(images)} pictures "
            "instead of one vector for each"
        )
    if not np.isfinite(vectors).all():
        raise ValueError(
            f"the encoder {encoder.name} returned values that are not finite: its weights, or its "
            "mean and std, are probably wrong"
        )
    return np.ascontiguousarray(vectors, np.float32)


def _add(
    store: FeatureStore | None, ids: list[bytes], vectors: NDArray[np.float32]
) -> FeatureStore | None:
    """Store vectors; after an error, return None, because the vectors are in memory anyway."""
    if store is not None:
        try:
            store.add(ids, vectors)
        except LockedError:
            return None  # another process holds the store for long: do not wait for it again
        except OSError as error:
            warnings.warn(
                f"vectors cannot be stored in {store.home} ({error.strerror or error}): they will "
                "be computed again next time",
                UserWarning,
                stacklevel=3,
            )
            return None
    return store
