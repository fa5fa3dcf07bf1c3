"""A head for vectors that are a good representation already."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from jule.backward.networks.base import Network
from jule.backward.plan import RESIDUAL_HIDDEN


class Residual(Network):
    """Head for the vectors of a pretrained encoder: the vector plus a learned correction.

    It starts as the identity. A network with random weights would forget a good representation
    before it learns.

    Examples
    --------
    >>> x = torch.ones(2, 7)
    >>> torch.equal(Residual(7)(x), x)
    True
    """

    input_ndim = 1
    standardizes = False

    def __init__(self, features: int, *, hidden: int = RESIDUAL_HIDDEN) -> None:
        super().__init__()
        self.inner = nn.Linear(features, hidden)
        self.outer = nn.Linear(hidden, features)
        nn.init.normal_(self.inner.weight, std=features**-0.5)
        nn.init.zeros_(self.inner.bias)
        nn.init.zeros_(self.outer.weight)
        nn.init.zeros_(self.outer.bias)

    @property
    def options(self) -> dict[str, int]:
        """Keyword arguments that, with the input shape, build this network again."""
        return {"hidden": self.inner.out_features}

    def layers(self, x: Tensor) -> list[Tensor]:
        """Return the outputs of the hidden layer and of the top.

        Examples
        --------
        >>> [tuple(x.shape) for x in Residual(7, hidden=5).layers(torch.zeros(2, 7))]
        [(2, 5), (2, 7)]
        """
        hidden = torch.relu(self.inner(x))
        return [hidden, x + self.outer(hidden)]

    def forward(self, x: Tensor) -> Tensor:
        """Map vectors (n, d) to vectors (n, d)."""
        return self.layers(x)[-1]
