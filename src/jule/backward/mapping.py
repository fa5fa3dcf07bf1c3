"""Train a network that places samples on a map of few dimensions."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from jule.backward.batches import cluster_batches, random_batches
from jule.backward.embedder import as_images
from jule.backward.loss import triplet_hinge
from jule.backward.map_loss import map_distances, neighbor_loss
from jule.backward.memory import keep_freed_memory
from jule.backward.settings import MapTraining
from jule.backward.training import TrainingFailedError


@keep_freed_memory()
def train_map(
    network: nn.Module,
    samples: NDArray,
    stages: Sequence[NDArray[np.integer]],
    neighbors: NDArray[np.integer],
    *,
    n_steps: int,
    settings: MapTraining | None = None,
    seed: int | list[int] = 0,
    progress: Callable[[float], None] | None = None,
) -> list[float]:
    """Train a network in place to place samples on a map, and return the loss of every batch.

    A batch has samples of a few clusters, for the triplet loss that keeps clusters apart, and pairs
    of neighbours, for the loss that keeps the order within clusters.

    Parameters
    ----------
    network
        Maps images (n, c, h, w) or vectors (n, d) to positions; trained in place.
    samples
        Images or vectors of any dtype; each batch is converted to float32.
    stages
        Clusters of every sample, from many small ones to few large ones. All stages have the same
        number of steps.
    neighbors
        (n, k) neighbours of every sample, which should be near it on the map.
    n_steps
        Number of batches.
    settings
        Learning rate, loss and batches.
    seed
        Random seed of the batches.
    progress
        Called after every batch with the fraction done.

    Examples
    --------
    >>> points = np.random.default_rng(0).normal(size=(40, 5))
    >>> stages = [np.arange(40) // 2, np.arange(40) // 20]
    >>> nearest = (np.arange(40)[:, None] + [1, 2]) % 40
    >>> len(train_map(nn.Linear(5, 2), points, stages, nearest, n_steps=4))
    4
    """
    settings = settings or MapTraining()
    device = next(network.parameters()).device
    optimizer = torch.optim.Adam(network.parameters(), lr=settings.learning_rate)
    rng = np.random.default_rng(seed)
    losses: list[float] = []
    network.train()
    for grouped, clusters, pairs in _batches(stages, neighbors, n_steps, settings, rng):
        step = len(losses)
        optimizer.param_groups[0]["lr"] = settings.learning_rate * (1.0 - step / n_steps)
        batch = np.concatenate([grouped, pairs])
        positions = network(as_images(samples[batch]).to(device))
        loss = _loss(positions, clusters.to(device), torch.from_numpy(pairs).to(device), settings)
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        losses.append(loss.item())
        if not math.isfinite(losses[-1]):
            raise TrainingFailedError(
                f"the loss of the map became {losses[-1]} at step {step}: look for extreme values "
                "in the data"
            )
        if progress is not None:
            progress((step + 1) / n_steps)
    return losses


def _batches(
    stages: Sequence[NDArray[np.integer]],
    neighbors: NDArray[np.integer],
    n_steps: int,
    settings: MapTraining,
    rng: np.random.Generator,
) -> Iterator[tuple[NDArray[np.int64], Tensor, NDArray[np.int64]]]:
    """Yield samples of a few clusters, their clusters, and samples with a neighbour of each."""
    none: NDArray[np.int64] = np.empty(0, np.int64)
    anchors = random_batches(len(neighbors), settings.n_pairs, rng)
    edges = [round(at * n_steps / len(stages)) for at in range(len(stages) + 1)]
    for labels, first, last in zip(stages, edges[:-1], edges[1:], strict=True):
        groups = cluster_batches(labels, settings.batch_size, settings.per_cluster, rng)
        for _ in range(first, last):
            grouped = next(batch for batch in groups if len(batch) > 1)
            near = next(anchors) if settings.within else none
            partners = neighbors[near, rng.integers(neighbors.shape[1], size=len(near))]
            pairs = np.concatenate([near, partners]).astype(np.int64)
            yield grouped, torch.from_numpy(labels[grouped].astype(np.int64)), pairs


def _loss(positions: Tensor, clusters: Tensor, pairs: Tensor, settings: MapTraining) -> Tensor:
    """Return the loss of a batch: samples with their clusters first, then pairs of neighbours."""
    n = len(clusters)
    loss = triplet_hinge(
        map_distances(positions[:n]),
        clusters,
        gamma=1.0,
        margin=settings.margin,
        negatives="nearest",
        n_negatives=settings.n_negatives,
    )
    if settings.within:
        told_apart = neighbor_loss(map_distances(positions[n:]), pairs)
        loss = loss + settings.within * told_apart
    return loss
