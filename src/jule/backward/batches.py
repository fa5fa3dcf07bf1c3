"""Choose the samples of each batch: a training step learns from the triplets within it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

SAMPLES_PER_PAIR = 8  # of a batch: for so many samples, one pair is added to it


@dataclass(frozen=True, eq=False)
class Pairs:
    """Pairs of samples that belong together, and pairs that are kept apart.

    Attributes
    ----------
    together
        (m, 2) samples of one cluster: positives.
    apart
        (p, 2) samples of different clusters: negatives.
    """

    together: NDArray[np.int64]
    apart: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.together) + len(self.apart)

    def apart_in(self, batch: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return which pairs of a batch are kept apart: (b, b).

        Examples
        --------
        >>> Pairs(np.empty((0, 2), int), np.array([[7, 5]])).apart_in(np.array([5, 6, 7])).tolist()
        [[False, False, True], [False, False, False], [True, False, False]]
        """
        order = np.argsort(batch)
        places = order[np.searchsorted(batch, self.apart, sorter=order).clip(max=len(batch) - 1)]
        one, other = places[(batch[places] == self.apart).all(axis=1)].T
        found = np.zeros((len(batch), len(batch)), bool)
        found[one, other] = found[other, one] = True
        return found


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


def with_pairs(
    batches: Iterator[NDArray[np.int64]],
    labels: NDArray[np.integer],
    pairs: Pairs,
    rng: np.random.Generator,
) -> Iterator[NDArray[np.int64]]:
    """Yield batches with some pairs added to each, drawn at random.

    Each sample of a pair that is kept apart comes with another one of its cluster: a triplet needs
    a positive pair, too.

    Examples
    --------
    >>> labels, rng = np.array([0, 0, 1, 1, 2, 2, 2, 2]), np.random.default_rng(0)
    >>> pairs = Pairs(np.array([[4, 7]]), np.empty((0, 2), int))
    >>> next(with_pairs(iter([np.array([0, 1, 2, 3])]), labels, pairs, rng)).tolist()
    [0, 1, 2, 3, 4, 7]
    """
    by_cluster = np.argsort(labels, kind="stable")
    ends = np.cumsum(np.bincount(labels))
    m = len(pairs.together)
    for batch in batches:
        drawn = rng.permutation(len(pairs))[: -(-len(batch) // SAMPLES_PER_PAIR)]
        apart = pairs.apart[drawn[drawn >= m] - m].ravel()
        stops = ends[labels[apart]]
        starts = stops - np.bincount(labels)[labels[apart]]
        mates = by_cluster[rng.integers(starts, stops)]
        more = np.concatenate([batch, pairs.together[drawn[drawn < m]].ravel(), apart, mates])
        _, first = np.unique(more, return_index=True)
        yield more[np.sort(first)]
