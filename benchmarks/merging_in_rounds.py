"""A prototype of merging in rounds: all best pairs within a factor of the best one, at once.

Every cluster proposes to merge with its nearest neighbour cluster, and the criterion (Eq. 7) is the
value of the proposal. In a round, a proposal is accepted if its value is at least the largest one
divided by 1 + eps, and if both clusters know no better proposal. No two accepted pairs share a
cluster, so they are merged at once. The threshold of the next round starts from the new largest
value, which may be larger than before. With eps = 0, and without ties, this is the exact order.

A round has phases. In each of them every worker walks over all pairs of the round, and changes
only the rows of its own samples or clusters: no two workers write to the same row.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jule.forward.affinity import Digraph
from jule.forward.apart import keep_apart
from jule.forward.criterion import _criterion, find_near, insert_near, is_better, link_affinity
from jule.forward.linkage import (
    EXACT,
    _append_boundary,
    _merge_isolated,
    _move_weights,
    _prefetch_rows,
)
from jule.forward.linkage_state import LinkageState, init_state, sort_by_cluster
from jule.forward.tables import (
    NO_KEY,
    add,
    capacity_for,
    capacity_with_spare,
    find,
    kernel,
    parallel_kernel,
    record,
    remove_at,
    reserve,
)
from jule.jit import prange

CROSS = record(("source", "i4"), ("target", "i4"), ("value", "f8"))


class Round(NamedTuple):
    """What the phases of a round share."""

    scores: NDArray[np.float64]  # (c,) the criterion; -inf for clusters that are gone
    offer: NDArray[np.int32]  # (c,) which cluster makes the best proposal to this one
    into: NDArray[np.int32]  # (c,) itself, or the cluster it was merged into
    stamp: NDArray[np.int32]  # (c,) last round in which the cluster was merged
    listed: NDArray[np.int32]  # (c,) last round in which the row was listed as touched
    more: NDArray[np.int32]  # (c,) how many keys the round may add to the row
    touched: NDArray[np.int32]  # (c,) rows that the round changes, listed by worker
    pairs: NDArray[np.int32]  # (c, 2) the pairs of the round, larger cluster first
    affinity: NDArray[np.float64]  # (c,) their affinities
    outside: NDArray[np.bool_]  # (n,) whether a sample has edges to other clusters
    cross: NDArray[np.void]  # CROSS terms of Eq. 14, listed by worker
    samples_of: NDArray[np.int64]  # (workers + 1,) first sample of every worker
    clusters_of: NDArray[np.int64]  # (workers + 1,) first cluster of every worker
    counts: NDArray[np.int64]  # (workers, 6) as listed below


CROSS_TERMS, END, LIMIT, TOUCHED, NEEDED, PREFETCHED = range(6)  # columns of counts


def merge_in_rounds(
    graph: Digraph,
    initial: NDArray[np.integer],
    eps: float,
    *,
    n_near: int = 5,
    lam: float = 1.0,
    workers: int = 1,
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.int64]]:
    """Merge clusters in rounds.

    Returns the pairs and affinities, as `merge_clusters` does, and the number of merges of every
    round.
    """
    n_initial = int(initial.max()) + 1
    graph, owner, old_number = sort_by_cluster(graph, initial, n_initial)
    state, links = init_state(graph, owner, old_number, n_initial - 1, n_near)
    by_age = np.argsort(old_number)
    kept = keep_apart(state, links, None)
    links = _merge_isolated(state, links, kept, graph.weights, by_age, EXACT, 0.0)
    step = _init_round(state, workers)
    links = _with_arenas(state, links, step)
    _score_all(state, links, step, n_near, lam)
    sizes: list[int] = []
    while (count := _choose_pairs(state, step, 1.0 + eps, len(sizes))) > 0:
        links = _merge_pairs(state, links, step, count, len(sizes), n_near, lam)
        sizes.append(count)
    done = int(state.counts[0])
    return state.nodes[:done], state.affinities[:done], np.array(sizes, np.int64)


def _init_round(state: LinkageState, workers: int) -> Round:
    n, c = len(state.samples), len(state.clusters)
    return Round(
        np.full(c, -np.inf),
        np.full(c, -1, np.int32),
        np.arange(c, dtype=np.int32),
        np.full(c, -1, np.int32),
        np.full(c, -1, np.int32),
        np.zeros(c, np.int32),
        np.empty(c, np.int32),
        np.empty((c, 2), np.int32),
        np.empty(c),
        np.zeros(n, np.bool_),
        np.empty(len(state.weights), CROSS),
        np.arange(workers + 1) * n // workers,
        np.arange(workers + 1) * c // workers,
        np.zeros((workers, 6), np.int64),
    )


def _with_arenas(state: LinkageState, links: NDArray[np.void], step: Round) -> NDArray[np.void]:
    """Copy the links so that every worker has memory of its own for rows that grow."""
    used = np.add.reduceat(state.clusters["capacity"].astype(np.int64), step.clusters_of[:-1])
    starts = np.concatenate([[0], np.cumsum(3 * (used + step.counts[:, NEEDED]))])
    step.counts[:, LIMIT] = starts[1:]
    larger = np.empty(starts[-1], links.dtype)
    _copy_by_worker(state.clusters, links, larger, starts, step.clusters_of, step.counts)
    return larger


@kernel
def _copy_by_worker(clusters, links, larger, starts, bounds, counts):
    for worker in range(counts.shape[0]):
        end = starts[worker]
        for c in range(bounds[worker], bounds[worker + 1]):
            row = clusters[c]
            for offset in range(row.capacity):
                larger[end + offset] = links[row.start + offset]
            row.start = end
            end += row.capacity
        counts[worker, END] = end


@parallel_kernel
def _score_all(state, links, step, n_near, lam):
    for worker in prange(step.counts.shape[0]):
        _score_own(state, links, step, n_near, lam, worker)


@kernel
def _score_own(state, links, step, n_near, lam, worker):
    for c in range(step.clusters_of[worker], step.clusters_of[worker + 1]):
        if state.clusters[c].members > 0:
            find_near(state.clusters, links, state.near, c)
            step.scores[c] = _criterion(state.clusters[c], state.near, c, n_near, lam)


@kernel
def _choose_pairs(state, step, ratio, number):
    """List the accepted proposals, best first; returns how many there are."""
    clusters, near, scores, offer = state.clusters, state.near, step.scores, step.offer
    best = scores.max()
    if best == -np.inf:
        return 0
    active = np.nonzero(scores >= best / ratio)[0]
    for c in active:
        offer[c] = offer[near[c, 0].cluster] = -1
    for c in active:
        for end in (c, np.int64(near[c, 0].cluster)):
            rival = offer[end]
            if rival < 0 or is_better(
                scores[c], clusters[c].node, scores[rival], clusters[rival].node
            ):
                offer[end] = c
    chosen = np.array([c for c in active if offer[c] == c and offer[near[c, 0].cluster] == c])
    order = np.argsort(-scores[chosen], kind="mergesort")
    for k in range(chosen.shape[0]):
        a = chosen[order[k]]
        b = np.int64(near[a, 0].cluster)
        m, n = (a, b) if clusters[a].members >= clusters[b].members else (b, a)
        step.pairs[k, 0], step.pairs[k, 1] = m, n
        step.affinity[k] = near[a, 0].affinity
        step.into[n] = m
        step.scores[n] = -np.inf
        step.stamp[m] = step.stamp[n] = number
    return chosen.shape[0]


def _merge_pairs(
    state: LinkageState,
    links: NDArray[np.void],
    step: Round,
    count: int,
    number: int,
    n_near: int,
    lam: float,
) -> NDArray[np.void]:
    """Merge the pairs of a round; returns the links, which may have moved."""
    _sum_cross_terms(state, step, count)
    _list_touched(state, links, step, count, number)
    if (step.counts[:, END] + step.counts[:, NEEDED] > step.counts[:, LIMIT]).any():
        links = _with_arenas(state, links, step)
    _move_links(state, links, step, count)
    _move_samples(state, step, count)
    _score_touched(state, links, step, number, n_near, lam)
    state.counts[0] += count
    return links


@parallel_kernel
def _sum_cross_terms(state, step, count):
    for worker in prange(step.counts.shape[0]):
        _sum_own_cross_terms(state, step, count, worker)


@kernel
def _sum_own_cross_terms(state, step, count, worker):
    """List the cross terms of a worker's samples, and move their weights to the merged clusters."""
    low, high = step.samples_of[worker], step.samples_of[worker + 1]
    adjacent = state.adjacent[low:high]
    at = state.samples[low].start
    prefetched = np.int64(0)
    for k in range(count):
        m, n = np.int64(step.pairs[k, 0]), np.int64(step.pairs[k, 1])
        is_judge = k % step.counts.shape[0] == worker
        found = _find_own_adjacent(state, step, m, n, state.counts[0] + k, low, high, is_judge)
        prefetched += _prefetch_rows(state.samples, state.weights, adjacent, found, m, n)
        for which in range(found):
            x = adjacent[which]
            value = _move_weights(state.weights, state.samples[x], m, n)
            source = step.into[state.owner[x]]
            if value > 0 and source != m:
                term = step.cross[at]
                term.source, term.target, term.value = source, m, value
                at += 1
    step.counts[worker, CROSS_TERMS] = at
    step.counts[worker, PREFETCHED] = prefetched


@kernel
def _find_own_adjacent(state, step, m, n, t, low, high, is_judge):
    """List the samples of a worker, outside m and n, that have edges with n.

    One of the workers, the judge, also notes which samples of n have edges to others.
    """
    samples, owner, mark, to = state.samples, state.owner, state.mark, state.to
    found = 0
    member = state.clusters[n].boundary
    while member >= 0:
        sample = samples[member]
        is_boundary = False
        for edge in range(to.shape[1] + sample.in_stop - sample.in_start):
            if edge < to.shape[1]:
                x = to[member, edge]
            else:
                x = state.in_from[sample.in_start + edge - to.shape[1]]
            is_own = low <= x < high
            if (is_own or (is_judge and not is_boundary)) and owner[x] != m and owner[x] != n:
                is_boundary = True
                if is_own and mark[x] != t:
                    mark[x] = t
                    state.adjacent[low + found] = x
                    found += 1
        if is_judge:
            step.outside[member] = is_boundary
        member = sample.next_boundary
    return found


@parallel_kernel
def _list_touched(state, links, step, count, number):
    for worker in prange(step.counts.shape[0]):
        _list_own_touched(state, links, step, count, number, worker)


@kernel
def _list_own_touched(state, links, step, count, number, worker):
    """List the rows of a worker that the round changes, and the slots that they may need."""
    low, high = step.clusters_of[worker], step.clusters_of[worker + 1]
    clusters, counts = state.clusters, step.counts
    end = low
    for k in range(count):
        m, n = np.int64(step.pairs[k, 0]), np.int64(step.pairs[k, 1])
        if low <= m < high:
            end = _touch(step, m, clusters[n].used, number, end)
        for c in (m, n):
            for slot in range(clusters[c].start, clusters[c].start + clusters[c].capacity):
                key = links[slot].key
                if key != NO_KEY and low <= step.into[key] < high:
                    end = _touch(step, step.into[key], 1, number, end)
    for source in range(counts.shape[0]):
        first = state.samples[step.samples_of[source]].start
        for at in range(first, counts[source, CROSS_TERMS]):
            term = step.cross[at]
            if low <= term.source < high:
                end = _touch(step, term.source, 1, number, end)
            if low <= term.target < high:
                end = _touch(step, term.target, 1, number, end)
    needed = np.int64(0)
    for which in range(low, end):
        r = step.touched[which]
        if capacity_for(clusters[r].used + step.more[r]) > clusters[r].capacity:
            needed += capacity_with_spare(clusters[r].used + step.more[r])
    counts[worker, TOUCHED] = end
    counts[worker, NEEDED] = needed


@kernel
def _touch(step, r, more, number, end):
    """List a row, unless it is listed; returns the end of the list."""
    if step.listed[r] != number:
        step.listed[r] = number
        step.more[r] = 0
        step.touched[end] = r
        end += 1
    step.more[r] += more
    return end


@parallel_kernel
def _move_links(state, links, step, count):
    for worker in prange(step.counts.shape[0]):
        _move_own_links(state, links, step, count, worker)


@kernel
def _move_own_links(state, links, step, count, worker):
    """Change the links in the rows of a worker: Eq. 13 and 14."""
    low, high = step.clusters_of[worker], step.clusters_of[worker + 1]
    clusters, counts = state.clusters, step.counts
    # `reserve` appends at the second number that it gets.
    arena = counts[worker, CROSS_TERMS : LIMIT + 1]
    for which in range(low, counts[worker, TOUCHED]):
        r = step.touched[which]
        reserve(links, clusters[r], arena, step.more[r])
    for k in range(count):
        m, n = np.int64(step.pairs[k, 0]), np.int64(step.pairs[k, 1])
        for slot in range(clusters[n].start, clusters[n].start + clusters[n].capacity):
            key = np.int64(links[slot].key)
            if key != NO_KEY and key != m and low <= key < high and step.into[key] == key:
                row = clusters[key]
                old = find(links, row, n)
                first, second = links[old].first, links[old].second
                remove_at(links, row, old)
                add(links, row, m, first, second)
        if low <= m < high:
            _absorb_row(links, clusters, step.into, m, n)
    for source in range(counts.shape[0]):
        for at in range(state.samples[step.samples_of[source]].start, counts[source, CROSS_TERMS]):
            term = step.cross[at]
            if low <= term.source < high:
                add(links, clusters[term.source], term.target, term.value, 0.0)
            if low <= term.target < high:
                add(links, clusters[term.target], term.source, 0.0, term.value)


@kernel
def _absorb_row(links, clusters, into, m, n):
    """Add the links of n to those of m."""
    merged, absorbed = clusters[m], clusters[n]
    for slot in range(absorbed.start, absorbed.start + absorbed.capacity):
        entry = links[slot]
        if entry.key != NO_KEY and into[entry.key] != m:
            add(links, merged, into[entry.key], entry.first, entry.second)
    old = find(links, merged, n)
    if old >= 0:
        remove_at(links, merged, old)


@parallel_kernel
def _move_samples(state, step, count):
    workers = step.counts.shape[0]
    for worker in prange(workers):
        for k in range(worker, count, workers):
            _move_samples_of_pair(state, step, k)


@kernel
def _move_samples_of_pair(state, step, k):
    """Record a merge, and give the samples of the smaller cluster to the larger one."""
    samples, clusters = state.samples, state.clusters
    m, n = np.int64(step.pairs[k, 0]), np.int64(step.pairs[k, 1])
    merged, absorbed = clusters[m], clusters[n]
    t = state.counts[0] + k
    state.nodes[t, 0] = min(merged.node, absorbed.node)
    state.nodes[t, 1] = max(merged.node, absorbed.node)
    state.affinities[t] = step.affinity[k]
    member = absorbed.boundary
    while member >= 0:
        after = samples[member].next_boundary
        if step.outside[member]:
            samples[member].next_boundary = -1
            _append_boundary(samples, merged, member, member)
        member = after
    x = absorbed.head
    while x >= 0:
        state.owner[x] = m
        x = samples[x].next
    samples[merged.last].next = absorbed.head
    merged.last = absorbed.last
    merged.members += absorbed.members
    merged.divisor = np.float64(merged.members) ** 2
    merged.node = clusters.shape[0] + t
    absorbed.members = 0
    absorbed.capacity = 0
    absorbed.used = 0


@parallel_kernel
def _score_touched(state, links, step, number, n_near, lam):
    for worker in prange(step.counts.shape[0]):
        _score_own_touched(state, links, step, number, n_near, lam, worker)


@kernel
def _score_own_touched(state, links, step, number, n_near, lam, worker):
    for which in range(step.clusters_of[worker], step.counts[worker, TOUCHED]):
        r = np.int64(step.touched[which])
        _update_near(state, links, step.stamp, r, number, n_near)
        step.scores[r] = _criterion(state.clusters[r], state.near, r, n_near, lam)


@kernel
def _update_near(state, links, stamp, r, number, n_near):
    """Replace the clusters that were merged in this round among the nearest ones of another."""
    clusters, near = state.clusters, state.near
    row = clusters[r]
    kept = 0
    for rank in range(row.near):
        entry = near[r, rank]
        if stamp[entry.cluster] != number:
            near[r, kept].cluster = entry.cluster
            near[r, kept].affinity = entry.affinity
            kept += 1
    row.near = kept
    if stamp[r] != number:
        for slot in range(row.start, row.start + row.capacity):
            entry = links[slot]
            if entry.key != NO_KEY and stamp[entry.key] == number:
                insert_near(clusters, near, r, entry.key, link_affinity(clusters, row, entry))
    if stamp[r] == number or row.near < min(n_near, row.used):
        find_near(clusters, links, near, r)
