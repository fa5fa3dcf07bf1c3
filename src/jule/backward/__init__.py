"""The backward pass: from clusters to a network that embeds. Torch only."""

from jule.backward.embedder import Embedder, build_embedder
from jule.backward.loss import weighted_triplet_loss
from jule.backward.networks import MLP, ConvNet, layer_plan
from jule.backward.train import Training, TrainingFailedError, embed, train

__all__ = [
    "MLP",
    "ConvNet",
    "Embedder",
    "Training",
    "TrainingFailedError",
    "build_embedder",
    "embed",
    "layer_plan",
    "train",
    "weighted_triplet_loss",
]
