"""Encoders that are torch modules."""

from __future__ import annotations

import copy
import hashlib

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from jule.features.base import Encoder, Preprocessing


class ModuleEncoder(Encoder):
    """An encoder made of a `torch.nn.Module`, of which a frozen copy is used.

    Parameters
    ----------
    module
        Maps pictures (n, 3, h, w) to one vector each; further axes are flattened.
    preprocessing
        The form in which it takes pictures.
    name, about
        See `Encoder`.

    Examples
    --------
    >>> means = nn.AdaptiveAvgPool2d(1)  # the mean colour
    >>> encoder = ModuleEncoder(means, Preprocessing(8, 8))
    >>> encoder.encode(np.zeros((2, 16, 16, 3), np.uint8)).shape
    (2, 3)
    """

    def __init__(
        self,
        module: nn.Module,
        preprocessing: Preprocessing,
        *,
        name: str | None = None,
        about: str | None = None,
    ) -> None:
        self.module = copy.deepcopy(module).eval()
        self.preprocessing = preprocessing
        self.name = name or f"module:{type(module).__name__}"
        self.about = about or f"the module {type(module).__name__}"
        self.weights_digest = _weights_digest(self.module)

    @torch.no_grad()
    def encode(self, images: NDArray[np.uint8]) -> NDArray[np.float32]:
        """Return one vector per picture, (n, d)."""
        x = self.preprocessing.apply(images)
        vectors: NDArray[np.float32] = self.module(x).flatten(1).float().numpy()
        return vectors


def _weights_digest(module: nn.Module) -> str:
    """Return the SHA-256 of all weights and buffers, with their names."""
    digest = hashlib.sha256(str(module).encode())
    for name, value in module.state_dict().items():
        digest.update(f"{name} {tuple(value.shape)} {value.dtype}\n".encode())
        digest.update(value.detach().cpu().contiguous().float().numpy().tobytes())
    return digest.hexdigest()
