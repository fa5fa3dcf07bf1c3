"""The backward pass: train a network on clusters and embed samples with it.

The public names are loaded when first used, so that the settings can be read without torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jule.backward.embedder import Embedder, build_embedder
    from jule.backward.loss import weighted_triplet_loss
    from jule.backward.networks import MLP, NETWORKS, ConvNet, build_network
    from jule.backward.plan import layer_plan
    from jule.backward.settings import Training
    from jule.backward.training import TrainingFailedError, embed, train

__all__ = [
    "MLP",
    "NETWORKS",
    "ConvNet",
    "Embedder",
    "Training",
    "TrainingFailedError",
    "build_embedder",
    "build_network",
    "embed",
    "layer_plan",
    "train",
    "weighted_triplet_loss",
]

_HOMES = {
    "MLP": "networks",
    "NETWORKS": "networks",
    "ConvNet": "networks",
    "Embedder": "embedder",
    "Training": "settings",
    "TrainingFailedError": "training",
    "build_embedder": "embedder",
    "build_network": "networks",
    "embed": "training",
    "layer_plan": "plan",
    "train": "training",
    "weighted_triplet_loss": "loss",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"jule.backward.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'jule.backward' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
