"""Choose the samples of each batch: a training step learns from the triplets within it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray


def cluster_batches(
    labels: NDArray[np.integer], batch_size: int, per_cluster: int, rng: np.random.Generator
) -> Iterator[NDArray[np.int64]]:
    """Yield batches indefinitely, each with a few samples from each of many clusters.

    Each epoch shuffles every cluster, cuts it into groups of `per_cluster` samples (a single
    sample left over joins another group), and yields the groups in random order. Each sample
    therefore occurs once per epoch, together with others of its cluster. Samples that are alone
    in their cluster serve as negatives.

    Examples
    --------
    >>> labels = np.repeat(np.arange(50), 4)
    >>> batch = next(cluster_batches(labels, 8, 4, np.random.default_rng(0)))
    >>> np.unique(labels[batch], return_counts=True)[1].tolist()
    [4, 4]
    """
    while True:
        groups = _shuffled_groups(labels, per_cluster, rng)
        batch: list[NDArray[np.int64]] = []
        n_samples = 0
        for group in groups:
            batch.append(group)
            n_samples += len(group)
            if n_samples >= batch_size:
                yield np.concatenate(batch)
                batch, n_samples = [], 0
        if n_samples:
            yield np.concatenate(batch)


def _shuffled_groups(
    labels: NDArray[np.integer], size: int, rng: np.random.Generator
) -> list[NDArray[np.int64]]:
    """Split every cluster at random into groups of `size`, and shuffle the groups."""
    shuffled = rng.permutation(len(labels))
    by_cluster = shuffled[np.argsort(labels[shuffled], kind="stable")]
    counts = np.bincount(labels)
    ends = np.cumsum(counts)
    cuts = [
        np.arange(end - count, end - (count % size == 1 and count > 1), size)
        for count, end in zip(counts, ends, strict=True)
        if count
    ]
    groups = np.split(by_cluster, np.concatenate(cuts)[1:])
    return [groups[which] for which in rng.permutation(len(groups))]


def random_batches(
    n_samples: int, batch_size: int, rng: np.random.Generator
) -> Iterator[NDArray[np.int64]]:
    """Yield batches indefinitely, with every sample once per epoch in random order.

    Examples
    --------
    >>> batches = random_batches(5, 3, np.random.default_rng(0))
    >>> sorted(np.concatenate([next(batches), next(batches)]).tolist())
    [0, 1, 2, 3, 4]
    """
    while True:
        order = rng.permutation(n_samples)
        yield from np.split(order, np.arange(batch_size, n_samples, batch_size))
