"""Encoders by name. Importing this needs no torch."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jule.features.base import Encoder, Preprocessing

AUTO = "auto"  # photos for large colour pictures if it is installed, pixels otherwise
PIXELS = "pixels"  # no encoder: the network sees the pictures themselves
PHOTOS = "photos"
ONNX, TIMM, OPEN_CLIP = "onnx:", "timm:", "open_clip:"
NAMES = f"{PIXELS}, {PHOTOS}, {ONNX}FILE, {TIMM}MODEL or {OPEN_CLIP}MODEL/WEIGHTS"


def is_on_disk(name: str) -> bool:
    """Return whether a name stands for a file or model that the user has put on this machine.

    Examples
    --------
    >>> is_on_disk("onnx:clip.onnx"), is_on_disk("photos")
    (True, False)
    """
    return name.startswith((ONNX, TIMM, OPEN_CLIP))


def open_encoder(name: str, preprocessing: Preprocessing | None = None) -> Encoder:
    """Open an encoder by its name.

    Parameters
    ----------
    name
        ``"photos"``, ``"onnx:FILE"``, ``"timm:MODEL"`` or
        ``"open_clip:MODEL/WEIGHTS"``; see `OnnxEncoder`, `jule.features.hubs.timm_encoder` and
        `jule.features.hubs.open_clip_encoder`.
    preprocessing
        The form in which an ONNX file takes pictures; None reads it from a file beside it. The
        other encoders know it.

    Raises
    ------
    ImportError
        If a package is missing.
    ValueError
        If there is no such encoder.

    Examples
    --------
    >>> open_encoder("photoes")
    Traceback (most recent call last):
        ...
    ValueError: unknown features 'photoes': choose pixels, photos, onnx:FILE, timm:MODEL or \
open_clip:MODEL/WEIGHTS
    """
    scheme, _, rest = name.partition(":")
    if preprocessing is not None and scheme + ":" != ONNX:
        raise ValueError(f"how pictures are scaled can be chosen for {ONNX}FILE, not for {name}")
    if name == PHOTOS:
        from jule.features.photos import photos_encoder

        return photos_encoder()
    if is_on_disk(name) and rest:
        if name.startswith(ONNX):
            from jule.features.onnx import OnnxEncoder

            return OnnxEncoder(Path(rest).expanduser(), preprocessing)
        from jule.features.hubs import open_clip_encoder, timm_encoder

        return timm_encoder(rest) if name.startswith(TIMM) else open_clip_encoder(rest)
    raise ValueError(f"unknown features {name!r}: choose {NAMES}")
