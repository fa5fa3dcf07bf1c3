"""The weighted triplet loss, one triplet at a time."""

import math


def squared_distance(x, y):
    return sum((a - b) ** 2 for a, b in zip(x, y, strict=True))


def triplet_loss(vectors, labels, gamma, margin, n_nearest=None):
    """Eq. 11 as a hinge on squared distances, averaged over all triplets (i, j, k).

    i and j are two samples of one cluster, k is one of another cluster: all of them, or the
    `n_nearest` nearest to i.
    """
    samples = range(len(vectors))
    hinges = []
    for i in samples:
        others = [k for k in samples if labels[k] != labels[i]]
        others.sort(key=lambda k: squared_distance(vectors[i], vectors[k]))
        for j in samples:
            if j == i or labels[j] != labels[i]:
                continue
            positive = squared_distance(vectors[i], vectors[j])
            for k in others[:n_nearest]:
                negative = squared_distance(vectors[i], vectors[k])
                hinges.append(max(0.0, gamma * positive - negative + margin))
    return sum(hinges) / len(hinges) if hinges else 0.0


def neighbor_loss(positions, samples):
    """How badly samples are told from others by their neighbours, one sample at a time.

    The neighbour of a sample is half the list away from it.
    """
    total = 0.0
    for i in range(len(samples)):
        j = (i + len(samples) // 2) % len(samples)
        others = [k for k in range(len(samples)) if samples[k] != samples[i]]
        similar = [1 / (1 + squared_distance(positions[i], positions[k])) for k in others]
        own = 1 / (1 + squared_distance(positions[i], positions[j]))
        total -= math.log(own / sum(similar))
    return total / len(samples)
