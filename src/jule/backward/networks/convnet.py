"""The paper's family of convolutional networks.

Shapes in comments: n samples, c channels, h x w pixels.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from jule.backward.fused import can_fuse, normalize_and_activate
from jule.backward.networks.base import Network, init_weights
from jule.backward.plan import CHANNELS, KERNEL, OUTPUTS, layer_plan


class ConvNet(Network):
    """The paper's network for images of one size: convolutional blocks, then 160 outputs.

    Examples
    --------
    >>> net = ConvNet(16, 16, 1)
    >>> net(torch.zeros(2, 1, 16, 16)).shape
    torch.Size([2, 160])
    """

    input_ndim = 3

    def __init__(
        self, height: int, width: int, channels: int = 1, *, outputs: int = OUTPUTS
    ) -> None:
        super().__init__()
        self.blocks = nn.ModuleList()
        for pooled in layer_plan(height, width):
            kernel = (min(KERNEL, height), min(KERNEL, width))
            # Batch norm subtracts the mean, so a bias before it would have no effect.
            layers: list[nn.Module] = [
                nn.Conv2d(channels, CHANNELS, kernel, bias=False),
                nn.BatchNorm2d(CHANNELS),
                nn.ReLU(inplace=True),
            ]
            height, width, channels = height - kernel[0] + 1, width - kernel[1] + 1, CHANNELS
            if pooled:
                layers.append(nn.MaxPool2d(2, ceil_mode=True))
                height, width = -(-height // 2), -(-width // 2)
            self.blocks.append(nn.Sequential(*layers))
        self.top = nn.Linear(CHANNELS * height * width, outputs)
        init_weights(self)
        _use_channels_last(self)

    @property
    def options(self) -> dict[str, int]:
        """Keyword arguments that, with the input shape, build this network again."""
        return {"outputs": self.top.out_features}

    def layers(self, x: Tensor) -> list[Tensor]:
        """Return the flattened output of every block, and the output of the top.

        Examples
        --------
        >>> [tuple(x.shape) for x in ConvNet(16, 16, 1).layers(torch.zeros(2, 1, 16, 16))]
        [(2, 1800), (2, 160)]
        """
        maps = []
        for block in self.blocks:
            x = _apply_block(block, x)  # (n, 50, h', w')
            maps.append(x.flatten(1))
        return [*maps, self.top(maps[-1])]

    def forward(self, x: Tensor) -> Tensor:
        """Map images (n, c, h, w) to vectors (n, 160)."""
        x = x.to(memory_format=torch.channels_last)
        for block in self.blocks:
            x = _apply_block(block, x)
        top: Tensor = self.top(x.flatten(1))
        return top


def _apply_block(block: nn.Module, x: Tensor) -> Tensor:
    """Apply a convolution and what follows it, in as few passes over the maps as possible."""
    assert isinstance(block, nn.Sequential)
    convolution, norm, *others = block
    assert isinstance(norm, nn.BatchNorm2d)
    maps: Tensor = convolution(x)
    if can_fuse(maps, norm):
        return normalize_and_activate(maps, norm, pooled=len(others) > 1)
    for module in (norm, *others):
        maps = module(maps)
    return maps


def _use_channels_last(network: nn.Module) -> None:
    """Store the filters in the order in which convolutions run fastest on a CPU."""
    for module in network.modules():
        if isinstance(module, nn.Conv2d):
            module.weight.data = module.weight.data.to(memory_format=torch.channels_last)
