"""Pictures described by a frozen, pretrained encoder, for clustering instead of their pixels."""

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
