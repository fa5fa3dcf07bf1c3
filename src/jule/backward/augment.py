"""Augmentation by small random affine transformations."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional as F

SHIFT = 0.1  # fraction of the side, in either direction; as in ConvDEC-DA, like the rotation
ROTATION = 10.0  # degrees
SCALE = 0.1
SHEAR = 0.1


def small_warps(
    images: Tensor,
    strength: float = 1.0,
    generator: torch.Generator | None = None,
    part: tuple[slice, int] | None = None,
) -> Tensor:
    """Shift, rotate, scale and shear every image (n, c, h, w) slightly and at random.

    At strength 1 the shift is at most a tenth of the side, the rotation 10 degrees, and scaling and
    shear a tenth; all of them are multiplied by the strength. Pixels outside the image repeat its
    border. `part` says which images of a batch of how many these are, if they are not all of it;
    they are warped as they would be with the whole batch.

    Examples
    --------
    >>> warped = small_warps(torch.ones(2, 1, 8, 8))
    >>> warped.shape, round(warped.min().item(), 3)
    (torch.Size([2, 1, 8, 8]), 1.0)
    """
    n, _, height, width = images.shape
    rows, n_drawn = part or (slice(n), n)
    # For every sample: rotation, scale x, scale y, shear x, shear y, shift x, shift y.
    draws = strength * (2.0 * torch.rand(7, n_drawn, 1, 1, generator=generator) - 1.0)
    draws = draws[:, rows].to(images.device)
    angle = draws[0] * math.radians(ROTATION)
    cos, sin = torch.cos(angle), torch.sin(angle)
    rotate = torch.cat([torch.cat([cos, -sin], 2), torch.cat([sin, cos], 2)], 1)  # (n, 2, 2)
    stretch = torch.cat(
        [
            torch.cat([1.0 + SCALE * draws[1], SHEAR * draws[3]], 2),
            torch.cat([SHEAR * draws[4], 1.0 + SCALE * draws[2]], 2),
        ],
        1,
    )
    # Coordinates span -1 .. 1 along both sides, so rotation has to correct for the aspect ratio.
    aspect = draws.new_tensor([[1.0, height / width], [width / height, 1.0]])
    shift = 2.0 * SHIFT * draws[5:].squeeze(2).permute(1, 0, 2)  # (n, 2, 1)
    grid = F.affine_grid(
        torch.cat([(rotate @ stretch) * aspect, shift], 2), list(images.shape), align_corners=False
    )
    return F.grid_sample(images, grid, padding_mode="border", align_corners=False)
