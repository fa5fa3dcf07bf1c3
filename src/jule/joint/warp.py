"""Decide from the data alone whether training images may be warped."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from jule.backward.augment import small_warps
from jule.backward.embedder import as_images
from jule.forward import prepare
from jule.joint.clustering import Representation
from jule.joint.config import Config

PROBES = 500
ENOUGH = 0.5  # fraction of warped images that must stay in their cluster


def warps_keep_clusters(
    samples: NDArray, raw: Representation, clusters: NDArray[np.int32], config: Config
) -> bool:
    """Return whether most images stay in their cluster when they are warped slightly.

    Up to 500 images are warped. For each, the cluster of the nearest other sample is compared with
    its own. Handwritten digits pass easily. Tightly cropped faces do not: a face shifted by a tenth
    resembles other people more, and training on warps would teach the network to ignore what
    distinguishes people. Vectors cannot be warped.

    Parameters
    ----------
    samples
        The images.
    raw
        Their prepared intensities.
    clusters
        (n,) K clusters of the prepared intensities.
    config
        The settings; `preparation` is used.

    Examples
    --------
    >>> warps_keep_clusters(np.eye(3), None, None, Config())
    False
    """
    if samples.ndim == 2:
        return False
    rng = np.random.default_rng(0)
    probes = np.sort(rng.choice(len(samples), min(PROBES, len(samples)), replace=False))
    images = as_images(samples[probes])
    warped = small_warps(images, generator=torch.Generator().manual_seed(0))
    # Prepared together, so that a subtracted mean image is the same for both.
    both = prepare(torch.cat([images, warped]).flatten(1).numpy(), config.preparation)
    after = both[len(probes) :]
    half_norms = 0.5 * np.einsum("ij,ij->i", raw.vectors, raw.vectors)
    distances = half_norms - after @ raw.vectors.T
    distances[np.arange(len(probes)), probes] = np.inf
    found = clusters[distances.argmin(axis=1)]
    return bool((found == clusters[probes]).mean() >= ENOUGH)
