"""Several networks side by side."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class Ensemble(nn.Module):
    """Networks of one kind, which see the same samples: their unit vectors side by side.

    Divided by its norm, the output of E networks is again a unit vector, and the squared distance
    of two samples is the mean of their squared distances in the E representations.

    Parameters
    ----------
    members
        The networks.

    Examples
    --------
    >>> Ensemble([nn.Identity(), nn.Identity()])(torch.tensor([[3.0, 4.0]])).tolist()
    [[0.6000000238418579, 0.800000011920929, 0.6000000238418579, 0.800000011920929]]
    """

    def __init__(self, members: Sequence[nn.Module]) -> None:
        super().__init__()
        self.members = nn.ModuleList(members)

    def forward(self, x: Tensor) -> Tensor:
        """Map samples to the unit vectors of all members, (n, E d)."""
        return torch.cat([F.normalize(member(x).flatten(1)) for member in self.members], dim=1)
