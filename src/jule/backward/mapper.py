"""A network from a representation to positions on a map of few dimensions."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from jule.backward.embedder import channel_moments
from jule.backward.plan import HIDDEN

AT_ONCE = 4096  # samples that are placed at once


class Mapper(nn.Module):
    """Two hidden layers with batch norm, from vectors to positions.

    Positions are not divided by their norms: in two dimensions, they would lie on a circle. Layers
    that are not linear are needed, too: few dimensions leave no room to untangle clusters.

    Parameters
    ----------
    features
        Length of the vectors.
    outputs
        Number of dimensions of the map.
    hidden
        Width of the hidden layers.
    mean, std
        Mean and standard deviation of every feature, by default 0 and 1.

    Examples
    --------
    >>> Mapper(160, 2)(torch.zeros(3, 160)).shape
    torch.Size([3, 2])
    """

    mean: Tensor
    std: Tensor

    def __init__(
        self,
        features: int,
        outputs: int,
        *,
        hidden: int = HIDDEN,
        mean: Tensor | None = None,
        std: Tensor | None = None,
    ) -> None:
        super().__init__()
        self.outputs = outputs
        self.register_buffer("mean", torch.zeros(features) if mean is None else mean)
        self.register_buffer("std", torch.ones(features) if std is None else std)
        self.layers = nn.Sequential(
            nn.Linear(features, hidden, bias=False),
            nn.BatchNorm1d(hidden),
            nn.ReLU(inplace=True),
            nn.Linear(hidden, hidden, bias=False),
            nn.BatchNorm1d(hidden),
            nn.ReLU(inplace=True),
            nn.Linear(hidden, outputs),
        )

    def forward(self, x: Tensor) -> Tensor:
        """Map vectors (n, d) to positions (n, outputs)."""
        positions: Tensor = self.layers((x - self.mean) / self.std)
        return positions

    @property
    def shape(self) -> tuple[int, int]:
        """The length of the vectors, and the number of dimensions of the map."""
        return len(self.mean), self.outputs

    def weights(self) -> dict[str, NDArray]:
        """Return a copy of all weights, from which `from_weights` builds the network again."""
        return {name: np.array(x.detach().cpu().numpy()) for name, x in self.state_dict().items()}

    @classmethod
    def from_weights(cls, weights: Mapping[str, NDArray]) -> Mapper:
        """Build a network from its weights.

        Raises
        ------
        ValueError
            If they are not the weights of such a network, or are not finite.

        Examples
        --------
        >>> Mapper.from_weights(Mapper(7, 3).weights())(torch.zeros(1, 7)).shape
        torch.Size([1, 3])
        """
        try:
            hidden, features = weights["layers.0.weight"].shape
            outputs = weights["layers.6.weight"].shape[0]
            built = cls(features, outputs, hidden=hidden)
            built.load_state_dict({name: torch.from_numpy(x) for name, x in weights.items()})
        except (KeyError, IndexError, TypeError, RuntimeError, ValueError):
            raise ValueError("its weights are not those of a map") from None
        if not all(np.isfinite(x).all() for x in weights.values()) or not weights["std"].all():
            raise ValueError("its weights are not finite")
        return built.eval()


def build_mapper(vectors: NDArray[np.floating], outputs: int, *, seed: int = 0) -> Mapper:
    """Build an untrained map for given vectors, which are standardised.

    Examples
    --------
    >>> build_mapper(np.eye(3), 2).mean.tolist()
    [0.333..., 0.333..., 0.333...]
    """
    mean, std = map(torch.from_numpy, channel_moments(vectors))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return Mapper(vectors.shape[1], outputs, mean=mean, std=std)


@torch.no_grad()
def place(mapper: Mapper, vectors: NDArray[np.floating]) -> NDArray[np.float32]:
    """Return the positions of vectors on a map, (n, outputs).

    Examples
    --------
    >>> place(Mapper(5, 2), np.zeros((3, 5))).shape
    (3, 2)
    """
    mapper.eval()
    device = mapper.mean.device
    parts = [
        mapper(torch.from_numpy(vectors[start : start + AT_ONCE].astype(np.float32)).to(device))
        for start in range(0, len(vectors), AT_ONCE)
    ]
    positions: NDArray[np.float32] = torch.cat(parts).cpu().numpy()
    return positions
