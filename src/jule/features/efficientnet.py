"""EfficientNet-Lite0 without its classifier: a small network for photographs.

M. Tan, Q. Le: EfficientNet: rethinking model scaling for convolutional neural networks, ICML 2019.
The Lite variant has no squeeze-and-excitation, and ReLU6 instead of swish.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import torch
from torch import Tensor, nn
from torch.nn import functional as F

N_FEATURES = 1280
STEM = 32
EPSILON = 1e-3  # of batch normalisation
# Per stage: number of blocks, channels, stride of the first block, kernel size, expansion factor.
STAGES = (
    (1, 16, 1, 3, 1),
    (2, 24, 2, 3, 6),
    (2, 40, 2, 5, 6),
    (3, 80, 2, 3, 6),
    (3, 112, 1, 5, 6),
    (4, 192, 2, 5, 6),
    (1, 320, 1, 3, 6),
)


class Convolution(nn.Module):
    """A convolution with the batch normalisation that follows it, and ReLU6.

    Padding is as in TensorFlow, where the network was trained: with a stride of 2 and an even
    number of pixels, the right and lower border get one more pixel than the left and upper one.
    """

    def __init__(
        self,
        inputs: int,
        outputs: int,
        kernel: int = 1,
        stride: int = 1,
        groups: int = 1,
        is_linear: bool = False,
    ) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(outputs, inputs // groups, kernel, kernel))
        self.bias = nn.Parameter(torch.zeros(outputs))
        self.stride, self.groups, self.is_linear = stride, groups, is_linear

    def forward(self, x: Tensor) -> Tensor:
        padding = self.weight.shape[-1] // 2
        weight: Tensor = self.weight
        above, left = (int(self.stride == 2 and side % 2 == 0) for side in x.shape[-2:])
        if torch.compiler.is_compiling():  # for export: other programs pad pictures at no cost
            x = F.pad(x, (padding - left, padding, padding - above, padding))
            padding = 0
        elif above or left:
            # Zeros before the weights do the same as one pixel less before the picture, without a
            # padded copy of it.
            weight = F.pad(weight, (left, 0, above, 0))
        x = F.conv2d(x, weight, self.bias, self.stride, padding, groups=self.groups)
        return x if self.is_linear else F.relu6(x, inplace=not torch.is_grad_enabled())


class Block(nn.Module):
    """An inverted residual block: expand, filter each channel, project."""

    def __init__(self, inputs: int, outputs: int, stride: int, kernel: int, expansion: int) -> None:
        super().__init__()
        inner = inputs * expansion
        layers = [Convolution(inputs, inner)] if expansion > 1 else []
        layers.append(Convolution(inner, inner, kernel, stride, groups=inner))
        layers.append(Convolution(inner, outputs, is_linear=True))
        self.layers = nn.Sequential(*layers)
        self.is_residual = stride == 1 and inputs == outputs

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.layers(x)
        return x + y if self.is_residual else y


class EfficientNetLite0(nn.Module):
    """EfficientNet-Lite0: pictures (n, 3, h, w), scaled to about -1 .. 1, to (n, 1280) features.

    Examples
    --------
    >>> EfficientNetLite0()(torch.zeros(1, 3, 64, 64)).shape
    torch.Size([1, 1280])
    """

    def __init__(self) -> None:
        super().__init__()
        layers: list[nn.Module] = [Convolution(3, STEM, 3, 2)]
        inputs = STEM
        for count, outputs, stride, kernel, expansion in STAGES:
            for number in range(count):
                step = stride if number == 0 else 1
                layers.append(Block(inputs, outputs, step, kernel, expansion))
                inputs = outputs
        layers.append(Convolution(inputs, N_FEATURES))
        self.layers = nn.Sequential(*layers)

    def forward(self, x: Tensor) -> Tensor:
        return self.layers(x).mean((2, 3))  # type: ignore[no-any-return]


def load_pretrained(network: EfficientNetLite0, weights: Mapping[str, Tensor]) -> None:
    """Load weights in the form in which they are published, with batch normalisation folded in.

    Raises
    ------
    ValueError
        If they are the weights of another network.
    """
    convolutions = [layer for layer in network.modules() if isinstance(layer, Convolution)]
    names = list(_published_names(network))
    with torch.no_grad():
        for layer, (convolution, norm) in zip(convolutions, names, strict=True):
            try:
                weight = weights[f"{convolution}.weight"]
                scale, shift, mean, variance = (
                    weights[f"{norm}.{name}"]
                    for name in ("weight", "bias", "running_mean", "running_var")
                )
            except KeyError as error:
                raise ValueError(f"the weights have no entry {error}") from None
            if weight.shape != layer.weight.shape or scale.shape != layer.bias.shape:
                raise ValueError(f"the weights {convolution} have the shape {tuple(weight.shape)}")
            factor = scale / torch.sqrt(variance + EPSILON)
            layer.weight.copy_(weight * factor[:, None, None, None])
            layer.bias.copy_(shift - mean * factor)


def _published_names(network: EfficientNetLite0) -> Iterator[tuple[str, str]]:
    """Yield the names of each convolution and of its batch normalisation, in order."""
    yield "_conv_stem", "_bn0"
    blocks = [layer for layer in network.layers if isinstance(layer, Block)]
    for number, block in enumerate(blocks):
        parts = [("_expand_conv", "_bn0"), ("_depthwise_conv", "_bn1"), ("_project_conv", "_bn2")]
        for convolution, norm in parts[-len(block.layers) :]:
            yield f"_blocks.{number}.{convolution}", f"_blocks.{number}.{norm}"
    yield "_conv_head", "_bn1"
