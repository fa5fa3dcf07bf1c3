"""Which samples meet in a batch: the triplets of a batch are all that a step can learn from."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Batches = Literal["clusters", "random"]
BATCHES: tuple[Batches, ...] = ("clusters", "random")


def cluster_batches(
    labels: NDArray[np.integer], batch_size: int, per_cluster: int, rng: np.random.Generator
) -> Iterator[NDArray[np.int64]]:
    """Deal out batches for ever, each with a few samples of each of many clusters.

    An epoch shuffles every cluster, cuts it into groups of `per_cluster` samples (what is left
    over, if it is one sample alone, joins another group), and deals the groups out in random
    order. So each sample comes once an epoch, and always with others of its cluster; samples that
    are alone in their cluster come too, as negatives.

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
        held = 0
        for group in groups:
            batch.append(group)
            held += len(group)
            if held >= batch_size:
                yield np.concatenate(batch)
                batch, held = [], 0
        if held:
            yield np.concatenate(batch)


def _shuffled_groups(
    labels: NDArray[np.integer], size: int, rng: np.random.Generator
) -> list[NDArray[np.int64]]:
    """Cut every cluster into groups of `size` in random order, and shuffle the groups."""
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
    """Deal out batches for ever, every sample once an epoch in random order.

    Examples
    --------
    >>> deal = random_batches(5, 3, np.random.default_rng(0))
    >>> sorted(np.concatenate([next(deal), next(deal)]).tolist())
    [0, 1, 2, 3, 4]
    """
    while True:
        order = rng.permutation(n_samples)
        yield from np.split(order, np.arange(batch_size, n_samples, batch_size))
