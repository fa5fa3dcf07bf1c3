"""Encoders by name."""

from __future__ import annotations

from pathlib import Path

from jule.features.base import Encoder
from jule.features.onnx import OnnxEncoder
from jule.features.photos import NAME as PHOTOS
from jule.features.photos import photos_encoder

PIXELS = "pixels"  # no encoder: the network sees the pictures themselves
ONNX = "onnx:"


def open_encoder(name: str) -> Encoder:
    """Open an encoder by its name.

    Parameters
    ----------
    name
        ``"photos"``, or ``"onnx:FILE"``.

    Raises
    ------
    ValueError
        If there is no such encoder.

    Examples
    --------
    >>> open_encoder("photoes")
    Traceback (most recent call last):
        ...
    ValueError: unknown features 'photoes': choose pixels, photos or onnx:FILE
    """
    if name == PHOTOS:
        return photos_encoder()
    if name.startswith(ONNX) and len(name) > len(ONNX):
        return OnnxEncoder(Path(name.removeprefix(ONNX)).expanduser())
    raise ValueError(f"unknown features {name!r}: choose {PIXELS}, {PHOTOS} or {ONNX}FILE")
