"""The state of merging: records of samples and clusters with their tables, and its setup."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jule.forward.affinity import Digraph
from jule.forward.init import components
from jule.forward.tables import (
    ENTRY,
    NO_KEY,
    add,
    capacity_for,
    clear,
    inner_kernel,
    kernel,
    parallel_kernel,
    record,
)
from jule.jit import prange

N_SPARE = 4  # nearest clusters kept beyond K_c, so that few merges need a full search
N_LEVELS = 3  # of grouping when samples are sorted; a group then has some thousand samples
LEAST_WEIGHT = 2.0**-500  # of an edge: products of smaller weights, as in S, would round to 0

# The state consists of arrays of records, so that values used together are close in memory. A
# record owns a row of a sparse table (see `tables`): `start`, `capacity` and `used` describe it.
SAMPLE = record(
    ("start", "i8"),  # row of `weights`: {cluster: (in, out)}
    ("capacity", "i4"),
    ("used", "i4"),
    ("in_start", "i8"),  # range of its incoming edges
    ("in_stop", "i8"),
    ("next", "i4"),  # next sample of its cluster, or -1
    ("next_boundary", "i4"),  # next one that may have edges to other clusters, or -1
)
CLUSTER = record(
    ("start", "i8"),  # row of `links`: {j: (S(i -> j), S(j -> i))}
    ("capacity", "i4"),
    ("used", "i4"),
    ("members", "i8"),  # number of samples; 0 after it was merged into another
    ("divisor", "f8"),  # of S(j -> i) in A(j -> i): |C_i|^2 unless approximated or additive
    ("node", "i8"),  # number in the order of creation; a smaller one is older
    ("head", "i4"),  # first and last sample
    ("last", "i4"),
    ("boundary", "i4"),  # first and last sample that may have edges to others, or -1
    ("last_boundary", "i4"),
    ("total", "f8"),  # for sums by cluster; 0 when not in use
    ("touched", "b1"),
    ("near", "i4"),  # how many of its nearest clusters are stored
    ("limit", "f8"),  # upper bound on affinity and age of the clusters not stored
    ("limit_node", "i8"),
    ("score", "f8"),  # the merging criterion
)
NEAR = record(("cluster", "i4"), ("affinity", "f8"))


class LinkageState(NamedTuple):
    """Everything that merging changes, except the links, which may move to a larger array."""

    samples: NDArray[np.void]  # (n,) SAMPLE
    owner: NDArray[np.int32]  # (n,) cluster of each sample
    mark: NDArray[np.int32]  # (n,) last merge that visited the sample
    adjacent: NDArray[np.int32]  # (n,) buffer: samples adjacent to the current merge
    clusters: NDArray[np.void]  # (c,) CLUSTER; a merged pair keeps the index of the larger
    weights: NDArray[np.void]  # ENTRY, rows of the samples
    near: NDArray[np.void]  # (c, K_c + N_SPARE) NEAR, best first
    winners: NDArray[np.int32]  # tournament tree of the scores; its root is at index 1
    touched: NDArray[np.int32]  # buffer: clusters with a sum
    to: NDArray[np.int32]  # (n, K_s) targets of the outgoing edges
    in_from: NDArray[np.int32]  # (n K_s,) sources of the incoming edges, by target
    counts: NDArray[np.int64]  # (3,) merges made; end of the last row of links; prefetched keys
    nodes: NDArray[np.int64]  # (t, 2) pairs merged
    affinities: NDArray[np.float64]  # (t,) their affinities


def sort_by_cluster(
    graph: Digraph, initial: NDArray[np.integer], n_initial: int
) -> tuple[Digraph, NDArray[np.int32], NDArray[np.int64]]:
    """Renumber samples and clusters so that those likely to merge are close in memory.

    Initial clusters with the strongest edges between them are placed side by side, then the groups
    they form, and so on. Weights that are too small for an edge become 0. Returns the renumbered
    graph, its labels, and the old number of each cluster.
    """
    level = np.arange(n_initial)
    levels = [level]
    for _ in range(N_LEVELS):
        groups = components(_strongest_neighbor(graph.indices, graph.weights, level[initial]))
        level = groups[level]
        levels.append(level)
    old_number = np.lexsort(levels)
    new_number = np.empty(n_initial, np.int32)
    new_number[old_number] = np.arange(n_initial, dtype=np.int32)
    labels = new_number[initial]
    order = np.argsort(labels, kind="stable")
    new_index = np.empty(len(order), np.int32)
    new_index[order] = np.arange(len(order), dtype=np.int32)
    # Allocated by numpy rather than in the kernels, because numpy requests huge pages.
    indices, weights = np.empty_like(graph.indices), np.empty_like(graph.weights)
    _reorder(graph.indices, graph.weights, order, new_index, indices, weights)
    return Digraph(indices, weights, graph.sigma2), labels[order], old_number


@kernel
def _strongest_neighbor(to, weight, labels):
    """Return, for every cluster, the other cluster that its strongest edge points to, or itself."""
    count = labels.max() + 1
    strongest = np.zeros(count)
    target = np.arange(count).astype(np.int32)
    for x in range(to.shape[0]):
        own = labels[x]
        for edge in range(to.shape[1]):
            if weight[x, edge] > strongest[own] and labels[to[x, edge]] != own:
                strongest[own] = weight[x, edge]
                target[own] = labels[to[x, edge]]
    return target


@parallel_kernel
def _reorder(to, weight, order, new_index, indices, weights):
    for x in prange(to.shape[0]):
        for edge in range(to.shape[1]):
            indices[x, edge] = new_index[to[order[x], edge]]
            value = weight[order[x], edge]
            weights[x, edge] = value if value >= LEAST_WEIGHT else 0.0


def init_state(
    graph: Digraph,
    owner: NDArray[np.int32],
    old_number: NDArray[np.int64],
    budget: int,
    n_near: int,
    additive: bool = False,
) -> tuple[LinkageState, NDArray[np.void]]:
    """Build the tables for the initial clusters; returns the state and the links."""
    n_initial = len(old_number)
    samples = np.zeros(len(owner), SAMPLE)
    clusters = np.zeros(n_initial, CLUSTER)
    clusters["node"] = old_number
    _fill_clusters(samples, owner, clusters)
    touched = np.empty(n_initial, np.int32)
    if additive:  # no merge needs the weights or the incoming edges
        clusters["divisor"] = clusters["members"]
        in_from, weights = np.empty(0, np.int32), np.empty(0, ENTRY)
        products = np.empty_like(graph.weights)
        _multiply_mutual(graph.indices, graph.weights, products)
        end = _allocate_mutual_links(clusters, owner, graph.indices, products)
        links = _spare_links(end)
        _fill_mutual_links(clusters, owner, graph.indices, products, links)
    else:
        in_from, in_weight = np.empty(graph.indices.size, np.int32), np.empty(graph.indices.size)
        _group_by_target(samples, graph.indices, graph.weights, in_from, in_weight)
        n_slots = _allocate_weights(samples, owner, graph.indices, in_from, n_initial)
        weights = np.empty(n_slots, ENTRY)
        _fill_weights(samples, owner, weights, graph.indices, graph.weights, in_from, in_weight)
        end = _allocate_links(samples, clusters, weights, touched)
        links = _spare_links(end)
        _fill_links(samples, clusters, weights, links, touched)
    state = LinkageState(
        samples,
        owner,
        np.full(len(owner), -1, np.int32),
        np.empty(len(owner), np.int32),
        clusters,
        weights,
        np.zeros((n_initial, min(n_near, n_initial) + N_SPARE), NEAR),
        np.full(2 << (n_initial - 1).bit_length(), -1, np.int32),
        touched,
        graph.indices,
        in_from,
        np.array([0, end, 0]),
        np.empty((budget, 2), np.int64),
        np.empty(budget),
    )
    return state, links


def _spare_links(end: int) -> NDArray[np.void]:
    """Allocate the links, with spare memory for growing rows, which costs nothing until used."""
    return np.empty(3 * end, ENTRY)


@kernel
def _fill_clusters(samples, owner, clusters):
    for x in range(owner.shape[0]):
        cluster = clusters[owner[x]]
        if cluster.members == 0:
            cluster.head = cluster.boundary = x
        else:
            samples[cluster.last].next = samples[cluster.last].next_boundary = x
        cluster.last = cluster.last_boundary = x
        cluster.members += 1
        samples[x].next = samples[x].next_boundary = -1
    for c in range(clusters.shape[0]):
        clusters[c].divisor = np.float64(clusters[c].members) ** 2


@kernel
def _group_by_target(samples, to, weight, in_from, in_weight):
    """Group the edges by target: their sources and weights."""
    n, k = to.shape
    for x in range(n):
        for edge in range(k):
            samples[to[x, edge]].in_stop += 1
    end = np.int64(0)
    for x in range(n):
        count = samples[x].in_stop
        samples[x].in_start = samples[x].in_stop = end
        end += count
    for x in range(n):
        for edge in range(k):
            target = samples[to[x, edge]]
            in_from[target.in_stop] = x
            in_weight[target.in_stop] = weight[x, edge]
            target.in_stop += 1


@kernel
def _allocate_rows(rows, n_keys):
    """Assign slots to all rows, one after the other; returns the end of the last row."""
    end = np.int64(0)
    for r in range(rows.shape[0]):
        rows[r].start = end
        rows[r].capacity = capacity_for(n_keys[r]) if n_keys[r] > 0 else 0
        end += rows[r].capacity
    return end


@parallel_kernel
def _allocate_weights(samples, owner, to, in_from, n_initial):
    """Assign a row to every sample, with a slot for each other cluster it has edges with."""
    n, k = to.shape
    n_keys = np.zeros(n, np.int64)
    chunks = 16  # each has its own marks
    for chunk in prange(chunks):
        mark = np.full(n_initial, -1, np.int32)
        for x in range(chunk * n // chunks, (chunk + 1) * n // chunks):
            mark[owner[x]] = x
            for edge in range(k):
                cluster = owner[to[x, edge]]
                n_keys[x] += mark[cluster] != x
                mark[cluster] = x
            for edge in range(samples[x].in_start, samples[x].in_stop):
                cluster = owner[in_from[edge]]
                n_keys[x] += mark[cluster] != x
                mark[cluster] = x
    return _allocate_rows(samples, n_keys)


@parallel_kernel
def _fill_weights(samples, owner, weights, to, weight, in_from, in_weight):
    """Sum the edge weights of every sample by cluster, (in, out), except its own cluster."""
    n, k = to.shape
    for x in prange(n):
        sample = samples[x]
        clear(weights, sample.start, sample.start + sample.capacity)
        for edge in range(k):
            cluster = owner[to[x, edge]]
            if cluster != owner[x]:
                add(weights, sample, cluster, 0.0, weight[x, edge])
        for edge in range(sample.in_start, sample.in_stop):
            cluster = owner[in_from[edge]]
            if cluster != owner[x]:
                add(weights, sample, cluster, in_weight[edge], 0.0)


@kernel
def _allocate_links(samples, clusters, weights, touched):
    """Assign a row to every cluster, with a slot for each cluster it has affinity with."""
    n_keys = np.zeros(clusters.shape[0], np.int64)
    for c in range(clusters.shape[0]):
        count = _sum_products(samples, clusters, weights, touched, c)
        n_keys[c] += count
        for t in range(count):
            n_keys[touched[t]] += 1
        reset_sums(clusters, touched, count)
    return _allocate_rows(clusters, n_keys)


@kernel
def _fill_links(samples, clusters, weights, links, touched):
    clear(links, 0, links.shape[0])
    for c in range(clusters.shape[0]):
        count = _sum_products(samples, clusters, weights, touched, c)
        for t in range(count):
            other = touched[t]
            add(links, clusters[c], other, clusters[other].total, 0.0)
            add(links, clusters[other], c, 0.0, clusters[other].total)
        reset_sums(clusters, touched, count)


@kernel
def _sum_products(samples, clusters, weights, touched, c):
    """Sum in_i(x) * out_i(x) over the samples x of a cluster, for all adjacent clusters i."""
    count = 0
    x = clusters[c].head
    while x >= 0:
        sample = samples[x]
        for slot in range(sample.start, sample.start + sample.capacity):
            entry = weights[slot]
            if entry.key != NO_KEY and entry.first * entry.second > 0:
                count = add_to_sum(clusters, touched, count, entry.key, entry.first * entry.second)
        x = sample.next
    return count


@parallel_kernel
def _multiply_mutual(to, weight, products):
    """Compute W(x, y) W(y, x) for every edge x -> y with x < y; the others get 0."""
    n, k = to.shape
    for x in prange(n):
        for edge in range(k):
            y = to[x, edge]
            back_weight = 0.0
            if y > x:
                for back in range(k):
                    if to[y, back] == x:
                        back_weight += weight[y, back]
            products[x, edge] = weight[x, edge] * back_weight


@kernel
def _allocate_mutual_links(clusters, owner, to, products):
    """Assign a row to every cluster, with a slot for each mutual edge to another cluster."""
    n_keys = np.zeros(clusters.shape[0], np.int64)
    for x in range(to.shape[0]):
        for edge in range(to.shape[1]):
            other = owner[to[x, edge]]
            if products[x, edge] > 0 and other != owner[x]:
                n_keys[owner[x]] += 1
                n_keys[other] += 1
    return _allocate_rows(clusters, n_keys)


@kernel
def _fill_mutual_links(clusters, owner, to, products, links):
    """Sum the products of mutual edges by pair of clusters: M(i, j), in both directions."""
    clear(links, 0, links.shape[0])
    for x in range(to.shape[0]):
        for edge in range(to.shape[1]):
            c, other, product = owner[x], owner[to[x, edge]], products[x, edge]
            if product > 0 and other != c:
                add(links, clusters[c], other, product, product)
                add(links, clusters[other], c, product, product)


@inner_kernel
def add_to_sum(clusters, touched, count, c, value):
    """Add to the sum of a cluster; returns the number of clusters with a sum."""
    cluster = clusters[c]
    cluster.total += value
    if not cluster.touched:
        cluster.touched = True
        touched[count] = c
        count += 1
    return count


@inner_kernel
def reset_sums(clusters, touched, count):
    for t in range(count):
        clusters[touched[t]].total = 0.0
        clusters[touched[t]].touched = False
