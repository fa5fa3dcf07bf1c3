"""How strong augmentation may be, read off the data."""

from __future__ import annotations

import math

import numpy as np
import torch
from numpy.typing import NDArray

from jule.backward.augment import small_warps
from jule.backward.networks import as_images
from jule.forward import Neighbors, prepare
from jule.joint.config import Config

PROBES = 500
# A warp may move an image so many times as far as its nearest neighbour is (squared distances).
# Handwritten digits are at 2.5 to 3.4 with full warps, faces cropped to the pixel at 22: there full
# warps would teach the network to overlook what tells people apart.
FARTHEST = 3.0


def warp_strength(samples: NDArray, neighbors: Neighbors, config: Config) -> float:
    """Give the strength, 0 .. 1, at which warps move an image about as far as its neighbours are.

    Squared distances grow with the square of the strength, so one probe at full strength tells.
    Plain vectors are not warped.

    Examples
    --------
    >>> from jule.joint.clustering import view
    >>> images = np.random.default_rng(0).integers(0, 255, (30, 8, 8), np.uint8)
    >>> seen = view(prepare(images), Config())
    >>> 0 < warp_strength(images, seen.neighbors, Config()) <= 1
    True
    """
    if samples.ndim == 2:
        return 0.0
    rng = np.random.default_rng(0)
    probes = np.sort(rng.choice(len(samples), min(PROBES, len(samples)), replace=False))
    images = as_images(samples[probes])
    warped = small_warps(images, generator=torch.Generator().manual_seed(0))
    both = torch.cat([images, warped]).flatten(1).numpy()
    before, after = np.split(prepare(both, config.preparation), 2)
    moved = float(((after - before) ** 2).sum(axis=1).mean())
    nearest = float(neighbors.distances[:, 0].mean())
    return min(1.0, math.sqrt(FARTHEST * nearest / moved)) if moved > 0 else 1.0
