"""Linkage on a digraph straight from the equations: dense matrices and plain loops."""

from __future__ import annotations

import numpy as np


def dense_graph(indices, weights):
    """W of Eq. 4 as a full matrix; an edge of weight 0, or below 2^-500, is no edge."""
    n = len(indices)
    w = np.zeros((n, n))
    for i in range(n):
        for j, weight in zip(indices[i], weights[i], strict=True):
            w[i, j] = weight if weight >= 2.0**-500 else 0.0
    return w


def flow(w, source, target):
    """S(source -> target): |target|^2 times A(source -> target) of Eq. 12."""
    inner = w[np.ix_(target, source)] @ w[np.ix_(source, target)]
    return float(np.ones(len(target)) @ inner @ np.ones(len(target)))


class Affinities:
    """A(a -> b) between all clusters, kept up to date by one of the appendix' three rules."""

    def __init__(self, w, members, update, alpha):
        self.w, self.members, self.update, self.alpha = w, members, update, alpha
        self.directed = {
            (a, b): flow(w, members[a], members[b]) / len(members[b]) ** 2
            for a in members
            for b in members
            if a != b
        }

    def __call__(self, a, b):
        """A(C_a, C_b) of Eq. 12."""
        return self.directed[a, b] + self.directed[b, a]

    def merge(self, m, n, new):
        size_m, size_n = len(self.members[m]), len(self.members[n])
        both = size_m + size_n
        self.members[new] = self.members[m] + self.members[n]
        for i in self.members:
            if i in (m, n, new):
                continue
            self.directed[new, i] = self.directed[m, i] + self.directed[n, i]  # Eq. 13
            if self.update == "exact":  # Eq. 14
                to_new = flow(self.w, self.members[i], self.members[new]) / both**2
            elif self.update == "ratio":  # Eq. 18
                to_new = size_m / both * self.directed[i, m] + size_n / both * self.directed[i, n]
            else:  # Eq. 21
                to_new = (1 + self.alpha) * (
                    size_m**2 / both**2 * self.directed[i, m]
                    + size_n**2 / both**2 * self.directed[i, n]
                )
            self.directed[i, new] = to_new
        if self.update == "exact":
            for i in self.members:
                if i not in (m, n, new):
                    exact = flow(self.w, self.members[new], self.members[i])
                    self.directed[new, i] = exact / len(self.members[i]) ** 2
        del self.members[m], self.members[n]


class AdditiveAffinities:
    """A(a, b) of additive linkage: a sum over all pairs of samples, anew for every pair."""

    def __init__(self, w, members):
        self.w, self.members = w, members

    def __call__(self, a, b):
        pairs = [(x, y) for x in self.members[a] for y in self.members[b]]
        mutual = sum(float(self.w[x, y] * self.w[y, x]) for x, y in pairs)
        return mutual / len(self.members[a]) + mutual / len(self.members[b])

    def merge(self, m, n, new):
        self.members[new] = self.members.pop(m) + self.members.pop(n)


class Apart:
    """Affinities that are 0 between clusters with a pair of samples that is kept apart."""

    def __init__(self, affinity, pairs):
        self.affinity, self.pairs = affinity, [set(pair) for pair in pairs]
        self.members = affinity.members

    def forbids(self, a, b):
        return any({x, y} in self.pairs for x in self.members[a] for y in self.members[b])

    def __call__(self, a, b):
        return 0.0 if self.forbids(a, b) else self.affinity(a, b)

    def merge(self, m, n, new):
        self.affinity.merge(m, n, new)


def criterion(affinity, i, n_near, lam):
    """The negative loss of Eq. 7 for cluster i, and its nearest neighbour cluster."""
    near = sorted((-affinity(i, j), j) for j in affinity.members if j != i)
    values = [-value for value, _ in near]
    best = values[0]
    if best <= 0:
        return None
    if n_near == 1:
        return best, near[0][1]
    others = sum(values[1:n_near])
    return best + lam / (n_near - 1) * ((n_near - 1) * best - others), near[0][1]


def points_to_most(w, members, i, forbids):
    """The cluster with the largest weight of edges from cluster i, oldest first among equals."""
    weights = {
        j: w[np.ix_(members[i], members[j])].sum()
        for j in sorted(members)
        if j != i and (w[np.ix_(members[i], members[j])] > 0).any() and not forbids(i, j)
    }
    return max(weights, key=lambda j: (weights[j], -j)) if weights else None


def merge_clusters(
    indices,
    weights,
    initial,
    n_near,
    lam,
    update="exact",
    alpha=0.0,
    n_clusters=1,
    max_merges=None,
    linkage="degree",
    apart=(),
):
    """All merges, as pairs of cluster numbers with their affinity."""
    w = dense_graph(indices, weights)
    n_initial = max(initial) + 1
    members = {c: [x for x in range(len(initial)) if initial[x] == c] for c in range(n_initial)}
    if linkage == "additive":
        affinity = AdditiveAffinities(w, members)
    else:
        affinity = Affinities(w, members, update, alpha)
    affinity = Apart(affinity, apart)
    merges = []

    def enough():
        return len(members) <= n_clusters or len(merges) == max_merges

    def merge(i, j, value):
        affinity.merge(i, j, n_initial + len(merges))
        merges.append((min(i, j), max(i, j), value))

    for i in range(n_initial):
        if not enough() and i in members and not any(affinity(i, j) > 0 for j in members if j != i):
            target = points_to_most(w, members, i, affinity.forbids)
            if target is not None:
                merge(i, target, 0.0)
    while not enough():
        scored = {i: criterion(affinity, i, n_near, lam) for i in sorted(members)}
        scored = {i: found for i, found in scored.items() if found is not None}
        if not scored:
            break
        i = max(scored, key=lambda c: (scored[c][0], -c))
        j = scored[i][1]
        merge(i, j, affinity(i, j))
    return merges
