"""A network with one hidden layer, for plain vectors."""

from __future__ import annotations

from torch import Tensor, nn

from jule.backward.networks.base import Network, init_weights
from jule.backward.plan import HIDDEN, OUTPUTS


class MLP(Network):
    """Network for plain vectors: one hidden layer with batch norm, then 160 outputs.

    Examples
    --------
    >>> import torch
    >>> MLP(7)(torch.zeros(2, 7)).shape
    torch.Size([2, 160])
    """

    input_ndim = 1

    def __init__(self, features: int, *, outputs: int = OUTPUTS, hidden: int = HIDDEN) -> None:
        super().__init__()
        self.hidden = nn.Sequential(
            nn.Linear(features, hidden, bias=False),
            nn.BatchNorm1d(hidden),
            nn.ReLU(inplace=True),
        )
        self.top = nn.Linear(hidden, outputs)
        init_weights(self)

    @property
    def options(self) -> dict[str, int]:
        """Keyword arguments that, with the input shape, build this network again."""
        return {"outputs": self.top.out_features, "hidden": self.top.in_features}

    def layers(self, x: Tensor) -> list[Tensor]:
        """Return the outputs of the hidden layer and of the top.

        Examples
        --------
        >>> import torch
        >>> [tuple(x.shape) for x in MLP(7).layers(torch.zeros(2, 7))]
        [(2, 500), (2, 160)]
        """
        hidden = self.hidden(x)
        return [hidden, self.top(hidden)]

    def forward(self, x: Tensor) -> Tensor:
        """Map vectors (n, d) to vectors (n, 160)."""
        return self.layers(x)[-1]
