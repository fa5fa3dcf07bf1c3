"""Nearest neighbours and their weights, by a comparison of all pairs."""

import math


def nearest_neighbors(samples, k):
    """Lists of (squared distance, index) for every sample, ties by index, never itself."""
    found = []
    for i, x in enumerate(samples):
        others = [
            (sum((float(a) - float(b)) ** 2 for a, b in zip(x, y, strict=True)), j)
            for j, y in enumerate(samples)
            if j != i
        ]
        found.append(sorted(others)[:k])
    return found


def weights(distances, a):
    """W of Eq. 4 on every edge, from the squared distances to the K_s neighbours."""
    flat = [d for row in distances for d in row]
    sigma2 = a * sum(flat) / len(flat)
    return [[math.exp(-d / sigma2) for d in row] for row in distances], sigma2


def local_weights(distances, a):
    """The weights with a bandwidth per sample, but for a factor that all of them share."""
    found = []
    for row in distances:
        s = math.sqrt(row[max(len(row) // 2, 1) - 1])
        found.append([math.exp(-d / (2 * a * s * s)) / s for d in row])
    return found


def transitions(distances, a):
    """The probabilities of the steps of a random walk to the neighbours, and sigma^2."""
    _, sigma2 = weights(distances, a)
    while any(math.exp(-row[0] / sigma2) < 1e-5 for row in distances):
        sigma2 = 2 * sigma2
    found = []
    for row in distances:
        edges = [math.exp(-d / sigma2) for d in row]
        found.append([w / (1.0 + sum(edges)) for w in edges])  # 1: to stay where it is
    return found, sigma2


def components(nearest):
    """Connected components of the pairs (i, nearest[i]), numbered by their first member."""
    groups = [{i} for i in range(len(nearest))]
    for i, j in enumerate(nearest):
        if groups[i] is not groups[j]:
            union = groups[i] | groups[j]
            for member in union:
                groups[member] = union
    numbers = {}
    return [numbers.setdefault(min(group), len(numbers)) for group in groups]
