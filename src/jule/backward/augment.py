"""Small geometric changes that leave an image what it is."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional as F

SHIFT = 0.1  # of the side, either way; as in ConvDEC-DA, like the rotation
ROTATION = 10.0  # degrees
SCALE = 0.1
SHEAR = 0.1


def small_warps(
    images: Tensor, strength: float = 1.0, generator: torch.Generator | None = None
) -> Tensor:
    """Shift, turn, scale and shear every image (n, c, h, w) by a little, each at random.

    At strength 1 an image is shifted by up to a tenth of its side and turned by up to 10 degrees,
    with a tenth of scaling and shear; other strengths scale all of this. What comes in from outside
    repeats the border.

    Examples
    --------
    >>> warped = small_warps(torch.ones(2, 1, 8, 8))
    >>> warped.shape, round(warped.min().item(), 3)
    (torch.Size([2, 1, 8, 8]), 1.0)
    """
    n, _, height, width = images.shape
    # For every sample: turn, scale x, scale y, shear x, shear y, shift x, shift y.
    chance = strength * (2.0 * torch.rand(7, n, 1, 1, generator=generator) - 1.0)
    chance = chance.to(images.device)
    turn = chance[0] * math.radians(ROTATION)
    cos, sin = torch.cos(turn), torch.sin(turn)
    rotate = torch.cat([torch.cat([cos, -sin], 2), torch.cat([sin, cos], 2)], 1)  # (n, 2, 2)
    stretch = torch.cat(
        [
            torch.cat([1.0 + SCALE * chance[1], SHEAR * chance[3]], 2),
            torch.cat([SHEAR * chance[4], 1.0 + SCALE * chance[2]], 2),
        ],
        1,
    )
    # A picture of h x w pixels spans -1 .. 1 both ways: turning must not squeeze it.
    aspect = chance.new_tensor([[1.0, height / width], [width / height, 1.0]])
    shift = 2.0 * SHIFT * chance[5:].squeeze(2).permute(1, 0, 2)  # (n, 2, 1)
    grid = F.affine_grid(
        torch.cat([(rotate @ stretch) * aspect, shift], 2), list(images.shape), align_corners=False
    )
    return F.grid_sample(images, grid, padding_mode="border", align_corners=False)
