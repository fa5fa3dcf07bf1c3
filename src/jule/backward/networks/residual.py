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

    Parameters
    ----------
    features
        Length of the vectors, whose values should have a root mean square of about 1.
    hidden
        Width of the hidden layer.
    lift
        Whether (1) or not (0) a constant is appended to the vectors, as large as they are. Their
        directions, which are all that is left when outputs are divided by their norms, then
        tell vectors of different lengths apart.

    Examples
    --------
    >>> x = torch.ones(2, 4)
    >>> torch.equal(Residual(4)(x), x), Residual(4, lift=1)(x)[0].tolist()
    (True, [1.0, 1.0, 1.0, 1.0, 2.0])
    """

    input_ndim = 1
    standardizes = False

    def __init__(self, features: int, *, hidden: int = RESIDUAL_HIDDEN, lift: int = 0) -> None:
        super().__init__()
        self.constant = features**0.5 if lift else None
        width = features + bool(lift)
        self.inner = nn.Linear(width, hidden)
        self.outer = nn.Linear(hidden, width)
        nn.init.normal_(self.inner.weight, std=width**-0.5)
        nn.init.zeros_(self.inner.bias)
        nn.init.zeros_(self.outer.weight)
        nn.init.zeros_(self.outer.bias)

    @property
    def options(self) -> dict[str, int]:
        """Keyword arguments that, with the input shape, build this network again."""
        lift = {} if self.constant is None else {"lift": 1}
        return {"hidden": self.inner.out_features, **lift}

    def layers(self, x: Tensor) -> list[Tensor]:
        """Return the outputs of the hidden layer and of the top.

        Examples
        --------
        >>> [tuple(x.shape) for x in Residual(7, hidden=5).layers(torch.zeros(2, 7))]
        [(2, 5), (2, 7)]
        """
        if self.constant is not None:
            x = torch.cat([x, torch.full_like(x[:, :1], self.constant)], dim=1)
        hidden = torch.relu(self.inner(x))
        return [hidden, x + self.outer(hidden)]

    def forward(self, x: Tensor) -> Tensor:
        """Map vectors (n, d) to vectors (n, d), or (n, d + 1) with `lift`."""
        return self.layers(x)[-1]
