"""How a network is trained: the settings and their defaults. Importing this needs no torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Negatives = Literal["random", "nearest"]
NEGATIVES: tuple[Negatives, ...] = ("random", "nearest")

Batches = Literal["clusters", "random"]
BATCHES: tuple[Batches, ...] = ("clusters", "random")


@dataclass(frozen=True)
class Training:
    """Settings of the backward pass.

    Examples
    --------
    >>> Training(margin=0.3).margin
    0.3
    """

    learning_rate: float = 0.001  # the authors' 0.01, damped by 1 - momentum in their optimiser
    momentum: float = 0.9  # as in the paper
    weight_decay: float = 5e-5  # as in the paper
    decay: float = 1e-4  # inverse policy: learning_rate * (1 + decay * step) ** -decay_power
    decay_power: float = 0.75  # as in the paper, like decay
    gamma: float = 1.0  # weight of the positive pair in the triplet loss; as in the authors' code
    margin: float = 0.2  # as in the authors' code
    negatives: Negatives = "nearest"  # as in the paper; random ones soon become too easy
    n_negatives: int = 20  # fewer can collapse an untrained network
    batches: Batches = "clusters"  # a random batch has hardly any pairs to learn from
    batch_size: int = 100  # 25 clusters with per_cluster samples each
    per_cluster: int = 4  # samples of one cluster that meet in a batch
    warp: float = 0.0  # strength of the augmentation; 0 is off, since not all images allow it


@dataclass(frozen=True)
class MapTraining:
    """Settings of the training of a map.

    Examples
    --------
    >>> MapTraining(within=0.0).within
    0.0
    """

    learning_rate: float = 0.003  # of Adam; falls to 0 in the end
    within: float = 1.0  # weight of the term for neighbours; 0 leaves the paper's term for clusters
    margin: float = 1.0  # how much farther away another cluster is, in `map_distances`
    n_negatives: int = 20  # as in `Training`
    batch_size: int = 100  # samples per batch for clusters ...
    per_cluster: int = 4  # ... of which so many are of one cluster
    n_pairs: int = 100  # pairs of neighbours per batch
