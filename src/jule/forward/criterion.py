"""The merging criterion (Eq. 7): the nearest clusters of every cluster, and who merges next."""

from __future__ import annotations

import numpy as np

from jule.forward.tables import NO_KEY, inner_kernel, kernel

NEVER = 2**62


@inner_kernel
def better(value_a, node_a, value_b, node_b):
    """Larger is better; among equals, the older cluster."""
    return value_a > value_b or (value_a == value_b and node_a < node_b)


@inner_kernel
def link_affinity(clusters, cluster, entry):
    """Give A(C_i, C_j) of Eq. 12 from an entry in the row of cluster i."""
    return entry.first / clusters[entry.key].divisor + entry.second / cluster.divisor


@kernel
def look_around(clusters, links, near, c):
    """Fill a cluster's nearest neighbour clusters from all its links."""
    cluster = clusters[c]
    cluster.near = 0
    cluster.limit = -np.inf
    cluster.limit_node = NEVER
    for place in range(cluster.start, cluster.start + cluster.places):
        entry = links[place]
        if entry.key != NO_KEY:
            remember(clusters, near, c, entry.key, link_affinity(clusters, cluster, entry))


@inner_kernel
def remember(clusters, near, c, other, affinity):
    """Put a neighbour in its place among the nearest, unless it falls behind the limit."""
    cluster, node = clusters[c], clusters[other].node
    if not better(affinity, node, cluster.limit, cluster.limit_node):
        return
    place = np.int64(cluster.near)
    if place < near.shape[1]:
        cluster.near += 1
    else:
        place -= 1
        last = near[c, place]
        last_node = clusters[last.cluster].node
        if not better(affinity, node, last.affinity, last_node):
            cluster.limit = affinity
            cluster.limit_node = node
            return
        cluster.limit = last.affinity
        cluster.limit_node = last_node
    while place > 0:
        before = near[c, place - 1]
        if not better(affinity, node, before.affinity, clusters[before.cluster].node):
            break
        near[c, place].cluster = before.cluster
        near[c, place].affinity = before.affinity
        place -= 1
    near[c, place].cluster = other
    near[c, place].affinity = affinity


@inner_kernel
def forget_near(cluster, near, c, m, n):
    """Take two clusters out of the nearest of another, where they are."""
    kept = 0
    for place in range(cluster.near):
        entry = near[c, place]
        if entry.cluster != m and entry.cluster != n:
            near[c, kept].cluster = entry.cluster
            near[c, kept].affinity = entry.affinity
            kept += 1
    cluster.near = kept


@inner_kernel
def _criterion(cluster, near, c, n_near, lam):
    """Give the negative of the loss of Eq. 7 for merging a cluster with its nearest neighbour."""
    if cluster.near == 0:
        return -np.inf
    best = near[c, 0].affinity
    if n_near == 1:
        return best
    others = 0.0
    for k in range(1, min(n_near, cluster.near)):
        others += near[c, k].affinity
    return best + lam / (n_near - 1) * ((n_near - 1) * best - others)


@kernel
def open_contest(state, links, n_near, lam):
    clusters, near, winners = state.clusters, state.near, state.winners
    width = winners.shape[0] // 2
    for c in range(clusters.shape[0]):
        look_around(clusters, links, near, c)
        clusters[c].score = _criterion(clusters[c], near, c, n_near, lam)
        winners[width + c] = c
    for place in range(width - 1, 0, -1):
        winners[place] = _match(clusters, winners, place)


@inner_kernel
def _match(clusters, winners, place):
    a, b = winners[2 * place], winners[2 * place + 1]
    if b < 0:
        return a
    if better(clusters[b].score, clusters[b].node, clusters[a].score, clusters[a].node):
        return b
    return a


@kernel
def rescore(clusters, near, winners, c, n_near, lam):
    """Take a cluster's criterion anew and play its matches again."""
    clusters[c].score = _criterion(clusters[c], near, c, n_near, lam)
    place = (winners.shape[0] // 2 + c) // 2
    while place > 0:
        before = winners[place]
        now = _match(clusters, winners, place)
        winners[place] = now
        if now == before and now != c:
            return  # nothing changes any further up
        place //= 2
