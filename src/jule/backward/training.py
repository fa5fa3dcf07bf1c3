"""Train a network for one period, and embed a whole data set."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator

import numpy as np
import torch
from numpy.typing import NDArray

from jule.backward.augment import small_warps
from jule.backward.batches import Pairs, cluster_batches, random_batches, with_pairs
from jule.backward.embedder import Embedder, as_images
from jule.backward.loss import weighted_triplet_loss
from jule.backward.memory import keep_freed_memory
from jule.backward.settings import Training
from jule.backward.synced import gather_vectors, part_of_batch, sum_gradients, synced_batch_norm
from jule.ranks import ALONE, Ranks
from jule.scratch import scratch_array

EMBED_AT_ONCE = 500  # samples per batch, or ...
PIXELS_AT_ONCE = 2**19  # ... fewer large images: a convolution outputs 50 numbers per pixel
COLLAPSED = 1e-4  # smallest total variance of sound unit vectors, of at most 1


class TrainingFailedError(ArithmeticError):
    """The loss diverged or the representation collapsed; the message suggests what to try."""


def learning_rate(settings: Training, step: int) -> float:
    """Return the learning rate of a step, counted over the whole run (inverse policy).

    Examples
    --------
    >>> learning_rate(Training(), 0), round(learning_rate(Training(), 10_000), 6)
    (0.001, 0.000595)
    """
    return settings.learning_rate / math.pow(1.0 + settings.decay * step, settings.decay_power)


@keep_freed_memory()
def train(
    embedder: Embedder,
    samples: NDArray,
    labels: NDArray[np.integer],
    *,
    n_steps: int,
    first_step: int = 0,
    settings: Training | None = None,
    seed: int | list[int] = 0,
    pairs: Pairs | None = None,
    progress: Callable[[float], None] | None = None,
    ranks: Ranks = ALONE,
) -> list[float]:
    """Train a network in place on cluster labels and return the loss of every batch.

    Parameters
    ----------
    embedder
        Network to train, changed in place.
    samples
        Images or vectors of any dtype; each batch is converted to float32.
    labels
        Cluster of every sample.
    n_steps, first_step
        Number of batches, and number of earlier batches in this run (for the learning rate).
    settings
        Learning rate, loss, batches and augmentation.
    seed
        Random seed of batches, negatives and augmentation.
    pairs
        Pairs of one cluster and of different clusters of which some are added to every batch.
    progress
        Called after every batch with the fraction done.
    ranks
        The processes that train together: all of them call this with the same arguments, and a
        part of every batch is computed by each. The result is that of one process, up to rounding.

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
    if pairs is not None and len(pairs):
        batches = with_pairs(batches, labels, pairs, rng)
    clusters = torch.from_numpy(labels.astype(np.int64))
    losses = []
    embedder.train()
    for step in range(n_steps):
        batch = next(batches)
        part = part_of_batch(labels[batch], ranks.rank, ranks.size)
        optimizer.param_groups[0]["lr"] = learning_rate(settings, first_step + step)
        x = embedder.scaled(as_images(samples[batch[part]]).to(device))
        if settings.warp and x.ndim == 4:
            x = small_warps(x, settings.warp, generator, (part, len(batch)))
        with synced_batch_norm(embedder, ranks):
            vectors = embedder.of_scaled(x)
        loss = weighted_triplet_loss(
            gather_vectors(vectors, part, len(batch), ranks),
            clusters[batch].to(device),
            gamma=settings.gamma,
            margin=settings.margin,
            negatives=settings.negatives,
            n_negatives=settings.n_negatives,
            generator=generator,
            apart=None if pairs is None else torch.from_numpy(pairs.apart_in(batch)).to(device),
        )
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        sum_gradients(embedder, ranks)
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
        raise ValueError(f"training needs at least 2 samples, got {len(labels)}")
    if settings.batches == "clusters":
        batches = cluster_batches(labels, settings.batch_size, settings.per_cluster, rng)
    else:
        batches = random_batches(len(labels), settings.batch_size, rng)
    # A single sample has no batch statistics and no pair to learn from.
    return (batch for batch in batches if len(batch) > 1)


@keep_freed_memory()
@torch.no_grad()
def embed(
    embedder: Embedder,
    samples: NDArray,
    *,
    tap: str = "top",
    progress: Callable[[float], None] | None = None,
) -> NDArray[np.float32]:
    """Return the representation of every sample: (n, 160) unit vectors.

    Parameters
    ----------
    embedder
        Network, which is left in evaluation mode.
    samples
        Images or vectors of any dtype; each batch is converted to float32.
    tap
        Layer to read instead of ``"top"``: see `Embedder.tap`.
    progress
        Called after every batch with the fraction done.

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
        # Cheap for vectors, and makes the result independent of the rest of the batch.
        embedder = copy.deepcopy(embedder).double()
    at_once = EMBED_AT_ONCE
    if embedder.size is not None:
        at_once = max(1, min(at_once, PIXELS_AT_ONCE // math.prod(embedder.size)))
    # Allocated at the first batch: small arrays kept between the large blocks of the batches would
    # fragment the memory.
    embedding: NDArray[np.float32] | None = None
    for start in range(0, len(samples), at_once):
        x = as_images(samples[start : start + at_once]).to(device, embedder.mean.dtype)
        part = embedder.tap(x, tap).cpu().numpy()
        if embedding is None:
            embedding = scratch_array((len(samples), part.shape[1]), np.float32)
        embedding[start : start + len(part)] = part
        if progress is not None:
            progress(min(1.0, (start + at_once) / len(samples)))
    if embedding is None:
        raise ValueError("there are no samples to embed")
    return embedding


def check_not_collapsed(embedding: NDArray[np.floating]) -> None:
    """Raise an error if a representation is constant or not finite.

    Examples
    --------
    >>> check_not_collapsed(np.eye(3))
    """
    if not np.isfinite(embedding).all():
        raise TrainingFailedError(
            "the network's outputs are not finite: try a smaller learning rate"
        )
    spread = float(embedding.var(axis=0, dtype=np.float64).sum())
    if spread < COLLAPSED:
        raise TrainingFailedError(
            "the representation collapsed: the network maps all samples to nearly the same vector "
            f"(variance {spread:.1e}). Try a smaller learning rate, random negatives, or gamma=1"
        )
