"""Networks by name, so that settings and saved runs can refer to them."""

from __future__ import annotations

from torch import nn

from jule.backward.networks.base import Network
from jule.backward.networks.convnet import ConvNet
from jule.backward.networks.mlp import MLP
from jule.backward.networks.residual import Residual

NETWORKS: dict[str, type[Network]] = {"cnn": ConvNet, "mlp": MLP, "residual": Residual}


def build_network(name: str, input_shape: tuple[int, ...], **options: int) -> Network:
    """Build a network by name, with random weights from torch's global generator.

    Parameters
    ----------
    name
        A key of `NETWORKS`, or ``"auto"``: ``"cnn"`` for images and ``"mlp"`` for vectors.
    input_shape
        Shape of one sample: (height, width, channels) or (features,).
    **options
        Passed on to the network, for example ``outputs=160``.

    Examples
    --------
    >>> type(build_network("auto", (28, 28, 1))).__name__
    'ConvNet'
    >>> build_network("mlp", (64,), hidden=100).options
    {'outputs': 160, 'hidden': 100}
    """
    if name == "auto":
        name = "cnn" if len(input_shape) == 3 else "mlp"
    if name not in NETWORKS:
        raise ValueError(f"unknown network {name!r}: choose one of auto, {', '.join(NETWORKS)}")
    network = NETWORKS[name]
    if network.input_ndim != len(input_shape):
        wanted = "images" if network.input_ndim == 3 else "vectors"
        raise ValueError(f"network {name!r} takes {wanted}, but a sample has shape {input_shape}")
    return network(*input_shape, **options)


def network_name(network: nn.Module) -> str | None:
    """Return the name of a network in `NETWORKS`, or None for any other module.

    Examples
    --------
    >>> network_name(MLP(7)), network_name(nn.Flatten())
    ('mlp', None)
    """
    return next((name for name, kind in NETWORKS.items() if type(network) is kind), None)
