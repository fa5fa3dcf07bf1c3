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
