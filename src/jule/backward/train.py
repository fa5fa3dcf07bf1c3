"""One period of training, and embedding a whole set."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from jule.backward.augment import small_warps
from jule.backward.batches import Batches, cluster_batches, random_batches
from jule.backward.embedder import Embedder, as_images
from jule.backward.loss import Negatives, weighted_triplet_loss
from jule.backward.memory import freed_memory_kept

EMBED_AT_ONCE = 500  # samples, or ...
PIXELS_AT_ONCE = 2**19  # ... fewer large images: a block's maps are 50 times that many numbers
COLLAPSED = 1e-4  # mean squared distance from the mean of unit vectors, 0 .. 1


class TrainingFailedError(ArithmeticError):
    """The loss exploded or the representation collapsed; the message says what to try."""


@dataclass(frozen=True)
class Training:
    """How a network is trained; the defaults' reasons stand in `jule.joint.config`."""

    learning_rate: float = 0.001
    momentum: float = 0.9
    weight_decay: float = 5e-5
    decay: float = 1e-4
    decay_power: float = 0.75
    gamma: float = 1.0
    margin: float = 0.2
    negatives: Negatives = "random"
    n_negatives: int = 20
    batches: Batches = "clusters"
    batch_size: int = 100
    per_cluster: int = 4
    warp: float = 0.0


def learning_rate(settings: Training, step: int) -> float:
    """Give the rate of a step, counted over the whole run: the inverse policy.

    Examples
    --------
    >>> learning_rate(Training(), 0), round(learning_rate(Training(), 10_000), 6)
    (0.001, 0.000595)
    """
    return settings.learning_rate / math.pow(1.0 + settings.decay * step, settings.decay_power)


@freed_memory_kept()
def train(
    embedder: Embedder,
    samples: NDArray,
    labels: NDArray[np.integer],
    *,
    n_steps: int,
    first_step: int = 0,
    settings: Training | None = None,
    seed: int | list[int] = 0,
    progress: Callable[[float], None] | None = None,
) -> list[float]:
    """Train a network in place on clusters, for a number of batches; gives every batch's loss.

    Parameters
    ----------
    embedder
        Changed in place.
    samples
        Images or vectors as they are kept; a batch at a time becomes float32.
    labels
        The cluster of every sample.
    n_steps, first_step
        How many batches, and how many came before in this run (for the learning rate).
    settings
        Rates, loss, batches, augmentation.
    seed
        Of batches, negatives and augmentation.
    progress
        Called after every batch with the share that is done.

    Examples
    --------
    >>> from jule.backward.embedder import build_embedder
    >>> images = np.random.default_rng(0).integers(0, 255, (40, 8, 8), np.uint8)
    >>> len(train(build_embedder(images), images, np.arange(40) % 4, n_steps=2))
    2
    """
    settings = settings or Training()
    device = embedder.mean.device
    optimizer = torch.optim.SGD(
        embedder.parameters(),
        lr=settings.learning_rate,
        momentum=settings.momentum,
        weight_decay=settings.weight_decay,
    )
    rng = np.random.default_rng(seed)
    generator = torch.Generator().manual_seed(int(rng.integers(2**62)))
    batches = _batches(settings, labels, rng)
    clusters = torch.from_numpy(labels.astype(np.int64))
    losses = []
    embedder.train()
    for step in range(n_steps):
        batch = next(batches)
        optimizer.param_groups[0]["lr"] = learning_rate(settings, first_step + step)
        x = embedder.scaled(as_images(samples[batch]).to(device))
        if settings.warp and x.ndim == 4:
            x = small_warps(x, settings.warp, generator)
        loss = weighted_triplet_loss(
            embedder.of_scaled(x),
            clusters[batch].to(device),
            gamma=settings.gamma,
            margin=settings.margin,
            negatives=settings.negatives,
            n_negatives=settings.n_negatives,
            generator=generator,
        )
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        losses.append(loss.item())
        if not math.isfinite(losses[-1]):
            raise TrainingFailedError(
                f"the loss became {losses[-1]} at step {first_step + step}: try a learning rate "
                f"below {settings.learning_rate:g}, and look for extreme values in the data"
            )
        if progress is not None:
            progress((step + 1) / n_steps)
    return losses


def _batches(
    settings: Training, labels: NDArray[np.integer], rng: np.random.Generator
) -> Iterator[NDArray[np.int64]]:
    if len(labels) < 2:
        raise ValueError(f"training needs 2 samples at least, got {len(labels)}")
    if settings.batches == "clusters":
        dealt = cluster_batches(labels, settings.batch_size, settings.per_cluster, rng)
    else:
        dealt = random_batches(len(labels), settings.batch_size, rng)
    # A sample alone has no statistics for batch norm, and nothing to be compared with.
    return (batch for batch in dealt if len(batch) > 1)


@freed_memory_kept()
@torch.no_grad()
def embed(
    embedder: Embedder,
    samples: NDArray,
    *,
    tap: str = "top",
    progress: Callable[[float], None] | None = None,
) -> NDArray[np.float32]:
    """Give the representation of every sample, (n, 160) unit vectors unless another tap is asked.

    Examples
    --------
    >>> from jule.backward.embedder import build_embedder
    >>> images = np.zeros((3, 16, 16), np.uint8)
    >>> embed(build_embedder(images), images, tap="top-1").shape
    (3, 1800)
    """
    embedder.eval()
    device = embedder.mean.device
    if samples.ndim == 2 and device.type == "cpu":
        # Cheap for vectors, and the last digit then does not depend on who else is in the batch.
        embedder = copy.deepcopy(embedder).double()
    at_once = EMBED_AT_ONCE
    if embedder.size is not None:
        at_once = max(1, min(at_once, PIXELS_AT_ONCE // math.prod(embedder.size)))
    # One array from the first batch on: small pieces kept between the batches' large blocks would
    # keep those from being used again.
    embedding: NDArray[np.float32] | None = None
    for start in range(0, len(samples), at_once):
        x = as_images(samples[start : start + at_once]).to(device, embedder.mean.dtype)
        part = embedder.tap(x, tap).cpu().numpy()
        if embedding is None:
            embedding = np.empty((len(samples), part.shape[1]), np.float32)
        embedding[start : start + len(part)] = part
        if progress is not None:
            progress(min(1.0, (start + at_once) / len(samples)))
    if embedding is None:
        raise ValueError("there are no samples to embed")
    return embedding


def refuse_collapsed(embedding: NDArray[np.floating]) -> None:
    """Raise where a representation says the same of every sample, or is not a number.

    Examples
    --------
    >>> refuse_collapsed(np.eye(3))
    """
    if not np.isfinite(embedding).all():
        raise TrainingFailedError(
            "the network's outputs are not numbers any more: try a smaller learning rate"
        )
    spread = float(embedding.var(axis=0, dtype=np.float64).sum())
    if spread < COLLAPSED:
        raise TrainingFailedError(
            f"the representation collapsed: all samples look alike to the network (spread "
            f"{spread:.1e}). Try a smaller learning rate, random negatives, or gamma=1"
        )
