"""Pictures described by a frozen, pretrained encoder, for clustering instead of their pixels.

The names are loaded when first used, because most of them load torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jule.features.base import Encoder, Preprocessing, power_normalize
    from jule.features.compute import encode_images
    from jule.features.modules import ModuleEncoder
    from jule.features.onnx import OnnxEncoder
    from jule.features.photos import photos_encoder
    from jule.features.registry import open_encoder

__all__ = [
    "Encoder",
    "ModuleEncoder",
    "OnnxEncoder",
    "Preprocessing",
    "encode_images",
    "open_encoder",
    "photos_encoder",
    "power_normalize",
]

_HOMES = {
    "Encoder": "base",
    "ModuleEncoder": "modules",
    "OnnxEncoder": "onnx",
    "Preprocessing": "base",
    "encode_images": "compute",
    "open_encoder": "registry",
    "photos_encoder": "photos",
    "power_normalize": "base",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"jule.features.{_HOMES[name]}"), name)
