"""The networks that can be trained, by name."""

from jule.backward.networks.base import Network
from jule.backward.networks.convnet import ConvNet
from jule.backward.networks.ensemble import Ensemble
from jule.backward.networks.mlp import MLP
from jule.backward.networks.registry import NETWORKS, build_network, network_name
from jule.backward.networks.residual import Residual

__all__ = [
    "MLP",
    "NETWORKS",
    "ConvNet",
    "Ensemble",
    "Network",
    "Residual",
    "build_network",
    "network_name",
]
