"""What merging works on: samples, clusters and their tables, and how all of it begins."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import prange
from numpy.typing import NDArray

from jule.forward.affinity import Digraph
from jule.forward.first import components
from jule.forward.tables import (
    ENTRY,
    NO_KEY,
    add,
    clear,
    inner_kernel,
    kernel,
    parallel_kernel,
    places_for,
    record,
)

SPARE = 4  # neighbour clusters remembered beyond K_c, so that few changes need a full look
LEVELS = 3  # of neighbouring groups that are laid out together: some thousand samples

# The state of merging is a few arrays of records, so that what is used together lies together.
# A row of a sparse table is a small hash map of entries, in one array that all rows share; the
# record that owns the row says where it starts, how many places it has and how many are used.
SAMPLE = record(
    ("start", "i8"),  # its row of `weights`: {cluster: (in, out)}
    ("places", "i4"),
    ("used", "i4"),
    ("in_start", "i8"),  # its incoming edges
    ("in_stop", "i8"),
    ("next", "i4"),  # the next sample of its cluster, or -1
    ("next_outward", "i4"),  # and the next that may have edges out of the cluster
)
CLUSTER = record(
    ("start", "i8"),  # its row of `links`: {j: (S(i -> j), S(j -> i))}
    ("places", "i4"),
    ("used", "i4"),
    ("members", "i8"),  # samples; 0 once merged away
    ("divisor", "f8"),  # of S(j -> i) in A(j -> i): |C_i|^2 unless approximated
    ("node", "i8"),  # its age: its number in the order in which clusters were made
    ("head", "i4"),  # its first and last sample
    ("last", "i4"),
    ("outward", "i4"),  # its first and last sample that may have edges out of it, or -1
    ("last_outward", "i4"),
    ("total", "f8"),  # for sums by cluster; empty between any two uses
    ("touched", "b1"),
    ("near", "i4"),  # how many of its nearest neighbour clusters are remembered
    ("limit", "f8"),  # no neighbour left out is better than this affinity and age
    ("limit_node", "i8"),
    ("score", "f8"),  # the merging criterion
)
NEAR = record(("cluster", "i4"), ("affinity", "f8"))


class State(NamedTuple):
    """Everything that merging changes, but for the links, which may move to a larger array."""

    samples: NDArray[np.void]  # (n,) SAMPLE
    owner: NDArray[np.int32]  # (n,) the cluster that a sample is in
    mark: NDArray[np.int32]  # (n,) the last merge that looked at a sample
    around: NDArray[np.int32]  # (n,) the samples around the merge in hand
    clusters: NDArray[np.void]  # (c,) CLUSTER; a merged pair keeps the place of the larger
    weights: NDArray[np.void]  # ENTRY, the rows of the samples
    near: NDArray[np.void]  # (c, K_c + SPARE) NEAR, best first
    winners: NDArray[np.int32]  # a tournament over the scores; place 1 is the cluster to merge
    touched: NDArray[np.int32]  # the clusters with a sum
    to: NDArray[np.int32]  # (n, K_s) outgoing edges, and where the incoming ones come from
    in_from: NDArray[np.int32]
    counts: NDArray[np.int64]  # (3,) merges made; end of the last row of links; reads made ahead
    nodes: NDArray[np.int64]  # (t, 2) the merges
    affinities: NDArray[np.float64]


def close_together(
    graph: Digraph, first: NDArray[np.integer], n_first: int
) -> tuple[Digraph, NDArray[np.int32], NDArray[np.int64]]:
    """Renumber samples and clusters so that what will meet in a merge lies close in memory.

    First clusters that point to each other most strongly come side by side, then the groups they
    form, and so on. Gives the renumbered graph, its labels, and the old number of each cluster.
    """
    level = np.arange(n_first)
    levels = [level]
    for _ in range(LEVELS):
        groups = components(_strongest_other(graph.indices, graph.weights, level[first]))
        level = groups[level]
        levels.append(level)
    old_number = np.lexsort(levels)
    new_number = np.empty(n_first, np.int32)
    new_number[old_number] = np.arange(n_first, dtype=np.int32)
    labels = new_number[first]
    order = np.argsort(labels, kind="stable")
    place = np.empty(len(order), np.int32)
    place[order] = np.arange(len(order), dtype=np.int32)
    # Arrays are made by numpy, not by the kernels: numpy asks the system for large pages.
    indices, weights = np.empty_like(graph.indices), np.empty_like(graph.weights)
    _reorder(graph.indices, graph.weights, order, place, indices, weights)
    return Digraph(indices, weights, graph.sigma2), labels[order], old_number


@kernel
def _strongest_other(to, weight, labels):
    """Give, for every cluster, the cluster that its strongest edge outwards goes to, or itself."""
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
def _reorder(to, weight, order, place, indices, weights):
    for x in prange(to.shape[0]):
        for edge in range(to.shape[1]):
            indices[x, edge] = place[to[order[x], edge]]
            weights[x, edge] = weight[order[x], edge]


def first_state(
    graph: Digraph,
    owner: NDArray[np.int32],
    old_number: NDArray[np.int64],
    budget: int,
    n_near: int,
) -> tuple[State, NDArray[np.void]]:
    """Fill the tables for first clusters; gives the state and the links."""
    n_first = len(old_number)
    samples = np.zeros(len(owner), SAMPLE)
    clusters = np.zeros(n_first, CLUSTER)
    clusters["node"] = old_number
    _fill_clusters(samples, owner, clusters)
    in_from, in_weight = np.empty(graph.indices.size, np.int32), np.empty(graph.indices.size)
    _turn_edges(samples, graph.indices, graph.weights, in_from, in_weight)
    weights = np.empty(_rows_of_weights(samples, owner, graph.indices, in_from, n_first), ENTRY)
    _fill_weights(samples, owner, weights, graph.indices, graph.weights, in_from, in_weight)
    touched = np.empty(n_first, np.int32)
    end = _rows_of_links(samples, clusters, weights, touched)
    links = np.empty(3 * end, ENTRY)  # room for rows that grow costs nothing until it is used
    _fill_links(samples, clusters, weights, links, touched)
    state = State(
        samples,
        owner,
        np.full(len(owner), -1, np.int32),
        np.empty(len(owner), np.int32),
        clusters,
        weights,
        np.zeros((n_first, n_near + SPARE), NEAR),
        np.full(2 << (n_first - 1).bit_length(), -1, np.int32),
        touched,
        graph.indices,
        in_from,
        np.array([0, end, 0]),
        np.empty((budget, 2), np.int64),
        np.empty(budget),
    )
    return state, links


@kernel
def _fill_clusters(samples, owner, clusters):
    for x in range(owner.shape[0]):
        cluster = clusters[owner[x]]
        if cluster.members == 0:
            cluster.head = cluster.outward = x
        else:
            samples[cluster.last].next = samples[cluster.last].next_outward = x
        cluster.last = cluster.last_outward = x
        cluster.members += 1
        samples[x].next = samples[x].next_outward = -1
    for c in range(clusters.shape[0]):
        clusters[c].divisor = np.float64(clusters[c].members) ** 2


@kernel
def _turn_edges(samples, to, weight, in_from, in_weight):
    """Sort the edges by target: who points to a sample, and how strongly."""
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
def _lay_out_rows(rows, keys_by_row):
    """Give every row the places for its keys, one behind the other; gives their end."""
    end = np.int64(0)
    for r in range(rows.shape[0]):
        rows[r].start = end
        rows[r].places = places_for(keys_by_row[r]) if keys_by_row[r] > 0 else 0
        end += rows[r].places
    return end


@parallel_kernel
def _rows_of_weights(samples, owner, to, in_from, n_first):
    """Lay out a row for every sample, with a place for each other cluster it has edges with."""
    n, k = to.shape
    around = np.zeros(n, np.int64)
    chunks = 16  # each with marks of its own
    for chunk in prange(chunks):
        mark = np.full(n_first, -1, np.int32)
        for x in range(chunk * n // chunks, (chunk + 1) * n // chunks):
            mark[owner[x]] = x
            for edge in range(k):
                cluster = owner[to[x, edge]]
                around[x] += mark[cluster] != x
                mark[cluster] = x
            for edge in range(samples[x].in_start, samples[x].in_stop):
                cluster = owner[in_from[edge]]
                around[x] += mark[cluster] != x
                mark[cluster] = x
    return _lay_out_rows(samples, around)


@parallel_kernel
def _fill_weights(samples, owner, weights, to, weight, in_from, in_weight):
    """Sum the edges of every sample by cluster: (in, out), its own cluster left out."""
    n, k = to.shape
    for x in prange(n):
        sample = samples[x]
        clear(weights, sample.start, sample.start + sample.places)
        for edge in range(k):
            cluster = owner[to[x, edge]]
            if cluster != owner[x]:
                add(weights, sample, cluster, 0.0, weight[x, edge])
        for edge in range(sample.in_start, sample.in_stop):
            cluster = owner[in_from[edge]]
            if cluster != owner[x]:
                add(weights, sample, cluster, in_weight[edge], 0.0)


@kernel
def _rows_of_links(samples, clusters, weights, touched):
    """Lay out a row for every cluster, with a place for each cluster it has affinity with."""
    keys = np.zeros(clusters.shape[0], np.int64)
    for c in range(clusters.shape[0]):
        count = _sum_products(samples, clusters, weights, touched, c)
        keys[c] += count
        for t in range(count):
            keys[touched[t]] += 1
        forget_sums(clusters, touched, count)
    return _lay_out_rows(clusters, keys)


@kernel
def _fill_links(samples, clusters, weights, links, touched):
    clear(links, 0, links.shape[0])
    for c in range(clusters.shape[0]):
        count = _sum_products(samples, clusters, weights, touched, c)
        for t in range(count):
            other = touched[t]
            add(links, clusters[c], other, clusters[other].total, 0.0)
            add(links, clusters[other], c, 0.0, clusters[other].total)
        forget_sums(clusters, touched, count)


@kernel
def _sum_products(samples, clusters, weights, touched, c):
    """Sum in_i(x) * out_i(x) over the samples x of a cluster, for all clusters i around it."""
    count = 0
    x = clusters[c].head
    while x >= 0:
        sample = samples[x]
        for place in range(sample.start, sample.start + sample.places):
            entry = weights[place]
            if entry.key != NO_KEY and entry.first * entry.second > 0:
                count = add_to_sum(clusters, touched, count, entry.key, entry.first * entry.second)
        x = sample.next
    return count


@inner_kernel
def add_to_sum(clusters, touched, count, c, value):
    cluster = clusters[c]
    cluster.total += value
    if not cluster.touched:
        cluster.touched = True
        touched[count] = c
        count += 1
    return count


@inner_kernel
def forget_sums(clusters, touched, count):
    for t in range(count):
        clusters[touched[t]].total = 0.0
        clusters[touched[t]].touched = False
