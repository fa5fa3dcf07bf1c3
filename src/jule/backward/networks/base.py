"""Base class of the networks in the registry."""

from __future__ import annotations

from typing import ClassVar

from torch import Tensor, nn

INITIAL_STD = 0.01  # of the weights


class Network(nn.Module):
    """A network that can be rebuilt from its `options`, and whose layers can be read."""

    input_ndim: ClassVar[int]  # of one sample: 3 for images (h, w, c), 1 for vectors (d,)
    standardizes: ClassVar[bool] = True  # whether its input is standardised per feature

    @property
    def options(self) -> dict[str, int]:
        """Keyword arguments that, with the input shape, build this network again."""
        raise NotImplementedError

    def layers(self, x: Tensor) -> list[Tensor]:
        """Return the output of every layer, each as (n, d), the last one being the top."""
        raise NotImplementedError


def init_weights(network: nn.Module) -> None:
    """Draw weights with a standard deviation of 0.01 and set biases to 0, as the authors do."""
    for module in network.modules():
        if isinstance(module, nn.Conv2d | nn.Linear):
            nn.init.normal_(module.weight, std=INITIAL_STD)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
