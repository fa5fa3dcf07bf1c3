"""Base class of the encoders, and what they share: scaling of pictures and of vectors."""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass
from numbers import Integral

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

IMAGENET_MEAN, IMAGENET_STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
MAX_SIDE = 4096
BLOCK_VALUES = 2**22  # values that are normalised at a time
SMALL_SIDE = 32  # pixels; smaller pictures, enlarged, show little that an encoder looks for


@dataclass(frozen=True)
class Preprocessing:
    """How pictures are brought to the form that an encoder was trained with.

    Attributes
    ----------
    height, width
        Size in pixels.
    mean, std
        Mean and standard deviation of the red, green and blue values, which are between 0 and 1.

    Examples
    --------
    >>> grey = np.full((1, 8, 8), 255, np.uint8)
    >>> Preprocessing(4, 4, mean=(0.5,) * 3, std=(0.5,) * 3).apply(grey).shape
    torch.Size([1, 3, 4, 4])
    """

    height: int
    width: int
    mean: tuple[float, float, float] = IMAGENET_MEAN
    std: tuple[float, float, float] = IMAGENET_STD

    def __post_init__(self) -> None:
        for name in ("height", "width"):
            side = getattr(self, name)
            if not isinstance(side, Integral) or not 1 <= int(side) <= MAX_SIDE:
                raise ValueError(
                    f"the input size of an encoder must be 1 to {MAX_SIDE} pixels, got {side!r}"
                )
            object.__setattr__(self, name, int(side))
        for name in ("mean", "std"):
            given = getattr(self, name)
            try:
                values = tuple(float(value) for value in given)
            except (TypeError, ValueError):
                values = ()
            if len(values) != 3 or not np.isfinite(values).all():
                raise ValueError(f"{name} must be three numbers, got {given!r}")
            object.__setattr__(self, name, values)
        if min(self.std) <= 0:
            raise ValueError(f"std must be positive, got {self.std!r}")
        if not 0 <= min(self.mean) <= max(self.mean) <= 1:
            raise ValueError(
                f"mean must be from 0 to 1, as colours are, got {self.mean!r}: divide mean and std "
                "by 255 if they are for colours from 0 to 255"
            )

    def is_small(self, width: int, height: int) -> bool:
        """Return whether a picture has to be enlarged so much that its vector says little.

        Examples
        --------
        >>> Preprocessing(224, 224).is_small(400, 31), Preprocessing(8, 8).is_small(10, 10)
        (True, False)
        """
        return min(width, height) < min(SMALL_SIDE, self.width, self.height)

    def apply(self, images: NDArray[np.uint8]) -> Tensor:
        """Return images (n, h, w) or (n, h, w, 3) as a tensor (n, 3, height, width)."""
        check_pictures(images)
        x = torch.from_numpy(np.ascontiguousarray(images)).float()
        x = x[..., None].expand(*x.shape, 3) if x.ndim == 3 else x
        x = x.permute(0, 3, 1, 2)  # the channels stay last in memory, which is fastest
        if x.shape[2:] != (self.height, self.width):
            x = F.interpolate(x, (self.height, self.width), mode="bilinear", antialias=True)
        mean, std = (torch.tensor(one)[:, None, None] for one in (self.mean, self.std))
        scaled = torch.addcmul(-mean / std, x, 1 / (255 * std))
        return scaled.contiguous(memory_format=torch.channels_last)


def check_pictures(images: NDArray) -> None:
    """Raise unless an array holds pictures: uint8, (n, h, w) or (n, h, w, 3).

    Examples
    --------
    >>> check_pictures(np.zeros((1, 8, 8), np.uint8))
    """
    is_picture = images.ndim == 3 or (images.ndim == 4 and images.shape[3] == 3)
    if images.dtype != np.uint8 or not is_picture:
        raise ValueError(
            "a pretrained encoder needs pictures, uint8 of shape (n, h, w) or (n, h, w, 3), got "
            f"{images.dtype} of shape {images.shape}: convert them, or use pixels as features"
        )


class Encoder(ABC):
    """A frozen network that describes pictures by vectors.

    Attributes
    ----------
    name
        Its name for `open_encoder`.
    about
        What it is and what it was trained on, for the page and the terminal.
    weights_digest
        SHA-256 of its weights.
    preprocessing
        The form in which it takes pictures.
    batch
        Number of pictures that are encoded at once.
    """

    name: str
    about: str
    weights_digest: str
    preprocessing: Preprocessing
    batch: int = 16

    @property
    def digest(self) -> str:
        """Hash of everything that its vectors depend on."""
        parts = [type(self).__name__, self.weights_digest, asdict(self.preprocessing)]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()

    @property
    def store_key(self) -> str:
        """Name of its stored vectors, different for encoders with different vectors."""
        return self.digest

    @abstractmethod
    def encode(self, images: NDArray[np.uint8]) -> NDArray[np.float32]:
        """Return one vector per picture, (n, d)."""


def power_normalize(vectors: NDArray[np.floating]) -> NDArray[np.float32]:
    """Return the signed square roots of the values, with rows of root mean square 1.

    A few large values would otherwise dominate the distances between vectors. A row of zeros stays
    as it is.

    References
    ----------
    F. Perronnin, J. Sánchez, T. Mensink: Improving the Fisher kernel for large-scale image
    classification, ECCV 2010.

    Examples
    --------
    >>> power_normalize(np.array([[4.0, -4.0], [0.0, 0.0]])).tolist()
    [[1.0, -1.0], [0.0, 0.0]]
    """
    n, d = vectors.shape
    normalized = np.empty((n, d), np.float32)
    rows = max(1, BLOCK_VALUES // d)
    for start in range(0, n, rows):
        block = vectors[start : start + rows].astype(np.float64)
        roots = np.sign(block) * np.sqrt(np.abs(block))
        rms = np.sqrt(np.square(roots).mean(axis=1, keepdims=True))
        normalized[start : start + rows] = roots / np.where(rms > 0, rms, 1.0)
    return normalized
