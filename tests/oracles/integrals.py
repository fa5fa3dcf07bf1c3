"""AC-Zell and AC-PIC as their authors state them: dense inverses, computed anew for every pair."""

from __future__ import annotations

import numpy as np

from tests.oracles import neighbors


def transition_matrix(indices, distances, a):
    """P with its diagonal: the probability of a step to a neighbour, and of staying."""
    rows, _ = neighbors.transitions(distances, a)
    p = np.zeros((len(indices), len(indices)))
    for i, (others, row) in enumerate(zip(indices, rows, strict=True)):
        for j, probability in zip(others, row, strict=True):
            p[i, j] = probability
        p[i, i] = 1.0 - sum(row)
    return p


def zeta(p, inside, part, z):
    """The mean over a part of a cluster of log (I - z P_C)^-1 on the diagonal."""
    inverse = np.linalg.inv(np.eye(len(inside)) - z * p[np.ix_(inside, inside)])
    return float(np.mean([np.log(inverse[inside.index(x), inside.index(x)]) for x in part]))


def path_integral(p, inside, part, z):
    """The sum of (I - z P_C)^-1 over all pairs of a part of a cluster, per pair."""
    inverse = np.linalg.inv(np.eye(len(inside)) - z * p[np.ix_(inside, inside)])
    at = [inside.index(x) for x in part]
    return float(inverse[np.ix_(at, at)].sum()) / len(part) ** 2


def gain(measure, p, i, j, z=0.01):
    """A(i, j): how much the measure of both clusters grows when they are joined."""
    both = i + j
    of_i = measure(p, both, i, z) - measure(p, i, i, z)
    of_j = measure(p, both, j, z) - measure(p, j, j, z)
    return of_i + of_j


def cluster(measure, p, initial, k):
    """Merge the pair with the largest gain until k clusters are left; lists of their samples."""
    clusters = [[x for x, c in enumerate(initial) if c == own] for own in range(max(initial) + 1)]
    gains = {}
    while len(clusters) > k:
        pairs = [(i, j) for j in range(len(clusters)) for i in range(j)]
        keys = {(i, j): (tuple(clusters[i]), tuple(clusters[j])) for i, j in pairs}
        for i, j in pairs:
            if keys[i, j] not in gains:
                gains[keys[i, j]] = gain(measure, p, clusters[i], clusters[j])
        i, j = max(pairs, key=lambda pair: gains[keys[pair]])
        clusters[i] = clusters[i] + clusters.pop(j)
    return clusters
