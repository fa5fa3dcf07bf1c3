"""The paper's family of convolutional networks, and an MLP for plain vectors.

Shapes in comments: n samples, c channels, h x w pixels.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

CHANNELS = 50  # of every convolution
KERNEL = 5
OUTPUTS = 160  # length of the representation
HIDDEN = 500  # width of the MLP for plain vectors
LARGEST_TOP = 11  # convolutions are added while the map is larger than this ...
SMALLEST_POOLED = 8  # ... and a map this small is not pooled any more
FIRST_WEIGHTS = 0.01  # standard deviation


def layer_plan(height: int, width: int) -> list[bool]:
    """Say how many convolutions an image size gets, and after which of them there is pooling.

    While the larger side of the map is over 11, add a 5x5 convolution without padding, and a 2x2
    pooling after it unless the map is then 8 or smaller. This gives all nine networks of the
    appendix. An image too small for the rule gets one convolution.

    Examples
    --------
    >>> layer_plan(16, 16), layer_plan(28, 28), layer_plan(128, 128)
    ([True], [True, False], [True, True, True, True])
    """
    plan = []
    side = max(height, width)
    while side > LARGEST_TOP:
        side -= KERNEL - 1
        pooled = side > SMALLEST_POOLED
        side = -(-side // 2) if pooled else side
        plan.append(pooled)
    return plan or [False]


class ConvNet(nn.Module):
    """The paper's network for images of one size: blocks of convolution, then 160 outputs.

    Examples
    --------
    >>> net = ConvNet(16, 16, 1)
    >>> net(torch.zeros(2, 1, 16, 16)).shape
    torch.Size([2, 160])
    """

    def __init__(self, height: int, width: int, channels: int = 1, outputs: int = OUTPUTS) -> None:
        super().__init__()
        self.blocks = nn.ModuleList()
        for pooled in layer_plan(height, width):
            kernel = (min(KERNEL, height), min(KERNEL, width))
            # Batch norm subtracts the mean, so a bias before it would do nothing.
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
        _start_small(self)
        _channels_last(self)

    def layers(self, x: Tensor) -> list[Tensor]:
        """Give the output of every block, flattened, and of the top.

        Examples
        --------
        >>> [tuple(x.shape) for x in ConvNet(16, 16, 1).layers(torch.zeros(2, 1, 16, 16))]
        [(2, 1800), (2, 160)]
        """
        maps = []
        for block in self.blocks:
            x = block(x)  # (n, 50, h', w')
            maps.append(x.flatten(1))
        return [*maps, self.top(maps[-1])]

    def forward(self, x: Tensor) -> Tensor:
        """Map images (n, c, h, w) to vectors (n, 160)."""
        x = x.to(memory_format=torch.channels_last)
        for block in self.blocks:
            x = block(x)
        top: Tensor = self.top(x.flatten(1))
        return top


class MLP(nn.Module):
    """The network for plain vectors: one hidden layer with batch norm, then 160 outputs.

    Examples
    --------
    >>> MLP(7)(torch.zeros(2, 7)).shape
    torch.Size([2, 160])
    """

    def __init__(self, features: int, outputs: int = OUTPUTS, hidden: int = HIDDEN) -> None:
        super().__init__()
        self.hidden = nn.Sequential(
            nn.Linear(features, hidden, bias=False),
            nn.BatchNorm1d(hidden),
            nn.ReLU(inplace=True),
        )
        self.top = nn.Linear(hidden, outputs)
        self.widths = [outputs, hidden]
        _start_small(self)

    def layers(self, x: Tensor) -> list[Tensor]:
        """Give the outputs of the hidden layer and of the top.

        Examples
        --------
        >>> [tuple(x.shape) for x in MLP(7).layers(torch.zeros(2, 7))]
        [(2, 500), (2, 160)]
        """
        hidden = self.hidden(x)
        return [hidden, self.top(hidden)]

    def forward(self, x: Tensor) -> Tensor:
        """Map vectors (n, d) to vectors (n, 160)."""
        return self.layers(x)[-1]


def _channels_last(network: nn.Module) -> None:
    """Lay the filters out as convolutions on a CPU like them."""
    for module in network.modules():
        if isinstance(module, nn.Conv2d):
            module.weight.data = module.weight.data.to(memory_format=torch.channels_last)


def _start_small(network: nn.Module) -> None:
    """Draw weights from N(0, 0.01) and set biases to 0, as the authors do."""
    for module in network.modules():
        if isinstance(module, nn.Conv2d | nn.Linear):
            nn.init.normal_(module.weight, std=FIRST_WEIGHTS)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
