"""Train a network with a softmax layer on labels, in place of the triplet loss."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.nn import functional as F

from jule.backward import Embedder
from jule.backward.augment import small_warps
from jule.backward.batches import random_batches
from jule.backward.embedder import as_images
from jule.backward.memory import keep_freed_memory
from jule.backward.settings import Training
from jule.backward.training import TrainingFailedError, learning_rate


@keep_freed_memory()
def train_softmax(
    embedder: Embedder,
    samples: NDArray,
    labels: NDArray[np.integer],
    *,
    n_steps: int,
    settings: Training,
    seed: int = 0,
    progress: Callable[[float], None] | None = None,
) -> list[float]:
    """Train a network in place to tell labels apart, and return the loss of every batch.

    A softmax layer, which is dropped afterwards, is put on the outputs of the network before they
    are divided by their norms.

    Parameters
    ----------
    embedder
        The network, changed in place.
    samples
        Images of any dtype.
    labels
        (n,) labels 0, 1, ... of the samples.
    n_steps
        Number of batches.
    settings
        Optimiser, batch size and augmentation; those of the triplet loss are not used.
    seed
        Random seed of the softmax layer, the batches and the augmentation.
    progress
        Called after every batch with the fraction done.

    Examples
    --------
    >>> from jule.backward.embedder import build_embedder
    >>> images = np.random.default_rng(0).integers(0, 255, (40, 8, 8), np.uint8)
    >>> labels = np.arange(40) % 4
    >>> len(train_softmax(build_embedder(images), images, labels, n_steps=2, settings=Training()))
    2
    """
    rng = np.random.default_rng(seed)
    generator = torch.Generator().manual_seed(int(rng.integers(2**62)))
    classes = torch.from_numpy(labels.astype(np.int64))
    layer = _softmax_layer(embedder, samples, int(classes.max()) + 1, generator)
    optimizer = torch.optim.SGD(
        [*embedder.parameters(), *layer.parameters()],
        lr=settings.learning_rate,
        momentum=settings.momentum,
        weight_decay=settings.weight_decay,
    )
    batches = random_batches(len(samples), settings.batch_size, rng)
    batches = (batch for batch in batches if len(batch) > 1)  # one has no batch statistics
    losses = []
    embedder.train()
    for step in range(n_steps):
        batch = next(batches)
        optimizer.param_groups[0]["lr"] = learning_rate(settings, step)
        x = embedder.scaled(as_images(samples[batch]))
        if settings.warp:
            x = small_warps(x, settings.warp, generator)
        loss = F.cross_entropy(layer(embedder.body(x).flatten(1)), classes[batch])
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        losses.append(loss.item())
        if not math.isfinite(losses[-1]):
            raise TrainingFailedError(f"the softmax loss became {losses[-1]} at step {step}")
        if progress is not None:
            progress((step + 1) / n_steps)
    return losses


@torch.no_grad()
def _softmax_layer(
    embedder: Embedder, samples: NDArray, n_labels: int, generator: torch.Generator
) -> nn.Linear:
    """Return a layer with random weights, to put on top of the network."""
    width = embedder.eval()(as_images(samples[:1])).shape[1]
    with torch.random.fork_rng(devices=[]):
        layer = nn.Linear(width, n_labels)
    layer.weight.copy_(torch.randn(layer.weight.shape, generator=generator) * width**-0.5)
    layer.bias.zero_()
    return layer
