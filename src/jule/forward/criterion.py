"""The merging criterion (Eq. 7): the nearest clusters of each cluster, and the next merge."""

from __future__ import annotations

import numpy as np

from jule.forward.tables import NO_KEY, inner_kernel, kernel

NO_NODE = 2**62  # larger than the number of any cluster


@inner_kernel
def is_better(value_a, node_a, value_b, node_b):
    """Return whether a is larger than b; between equal values the older cluster wins."""
    return value_a > value_b or (value_a == value_b and node_a < node_b)


@inner_kernel
def link_affinity(clusters, cluster, entry):
    """Return A(C_i, C_j) of Eq. 12 from an entry in the row of cluster i."""
    return entry.first / clusters[entry.key].divisor + entry.second / cluster.divisor


@kernel
def find_near(clusters, links, near, c):
    """Find the nearest neighbour clusters of a cluster among all its links."""
    cluster = clusters[c]
    cluster.near = 0
    cluster.limit = -np.inf
    cluster.limit_node = NO_NODE
    for slot in range(cluster.start, cluster.start + cluster.capacity):
        entry = links[slot]
        if entry.key != NO_KEY:
            insert_near(clusters, near, c, entry.key, link_affinity(clusters, cluster, entry))


@inner_kernel
def insert_near(clusters, near, c, other, affinity):
    """Insert a neighbour into the sorted list of the nearest, unless it is beyond the limit."""
    cluster, node = clusters[c], clusters[other].node
    if not is_better(affinity, node, cluster.limit, cluster.limit_node):
        return
    rank = np.int64(cluster.near)
    if rank < near.shape[1]:
        cluster.near += 1
    else:
        rank -= 1
        last = near[c, rank]
        last_node = clusters[last.cluster].node
        if not is_better(affinity, node, last.affinity, last_node):
            cluster.limit = affinity
            cluster.limit_node = node
            return
        cluster.limit = last.affinity
        cluster.limit_node = last_node
    while rank > 0:
        before = near[c, rank - 1]
        if not is_better(affinity, node, before.affinity, clusters[before.cluster].node):
            break
        near[c, rank].cluster = before.cluster
        near[c, rank].affinity = before.affinity
        rank -= 1
    near[c, rank].cluster = other
    near[c, rank].affinity = affinity


@inner_kernel
def remove_near(cluster, near, c, m, n):
    """Remove two clusters from the nearest ones of another cluster, if they are there."""
    kept = 0
    for rank in range(cluster.near):
        entry = near[c, rank]
        if entry.cluster != m and entry.cluster != n:
            near[c, kept].cluster = entry.cluster
            near[c, kept].affinity = entry.affinity
            kept += 1
    cluster.near = kept


@inner_kernel
def _criterion(cluster, near, c, n_near, lam):
    """Return the negative loss of Eq. 7 for merging a cluster with its nearest neighbour."""
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
def build_tournament(state, links, n_near, lam):
    """Score all clusters and build the tournament tree, whose root is the next cluster to merge."""
    clusters, near, winners = state.clusters, state.near, state.winners
    width = winners.shape[0] // 2
    for c in range(clusters.shape[0]):
        find_near(clusters, links, near, c)
        clusters[c].score = _criterion(clusters[c], near, c, n_near, lam)
        winners[width + c] = c
    for position in range(width - 1, 0, -1):
        winners[position] = _play_match(clusters, winners, position)


@inner_kernel
def _play_match(clusters, winners, position):
    a, b = winners[2 * position], winners[2 * position + 1]
    if b < 0:
        return a
    if is_better(clusters[b].score, clusters[b].node, clusters[a].score, clusters[a].node):
        return b
    return a


@kernel
def update_score(clusters, near, winners, c, n_near, lam):
    """Recompute the score of a cluster and replay its matches in the tournament."""
    clusters[c].score = _criterion(clusters[c], near, c, n_near, lam)
    position = (winners.shape[0] // 2 + c) // 2
    while position > 0:
        before = winners[position]
        now = _play_match(clusters, winners, position)
        winners[position] = now
        if now == before and now != c:
            return  # nothing changes further up
        position //= 2
