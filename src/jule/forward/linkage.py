"""Graph degree linkage: which clusters merge, and what their affinities become.

The affinity of two clusters (Eq. 12) is a sum over the samples of one of them,

    A(C_j -> C_i) = S(j -> i) / |C_i|^2,    S(j -> i) = sum over x in C_j of in_i(x) * out_i(x),

where in_i(x) is the weight of the edges from C_i to x and out_i(x) of those from x to C_i. When m
and n merge,

    S((m + n) -> i) = S(m -> i) + S(n -> i)                                              (Eq. 13)
    S(i -> (m + n)) = S(i -> m) + S(i -> n)
                      + sum over x in C_i of in_m(x) * out_n(x) + in_n(x) * out_m(x)     (Eq. 14)

and the last sum has terms only for samples x that know both m and n. So two sparse tables are all
that is kept: `weights`, whose row x maps a cluster to (in, out), and `links`, whose row i maps a
neighbouring cluster j to (S(i -> j), S(j -> i)). A merge walks the smaller of the two clusters, so
a sample is walked at most log2(n) times, and the merges are exactly those of the dense equations.

Ties go to the older cluster: first clusters are numbered by their first sample, and every merged
cluster is younger than all before it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from jule.forward.affinity import Digraph
from jule.forward.criterion import (
    better,
    forget_near,
    link_affinity,
    look_around,
    open_contest,
    remember,
    rescore,
)
from jule.forward.state import add_to_sum, close_together, first_state, forget_sums
from jule.forward.tables import (
    NO_KEY,
    add,
    find,
    home,
    inner_kernel,
    kernel,
    make_room,
    move_rows,
    places_with_spare,
    remove_at,
)

Update = Literal["exact", "ratio", "alpha"]
UPDATES: tuple[Update, ...] = ("exact", "ratio", "alpha")
EXACT, RATIO = 0, 1  # as numbers, for the kernels

MERGES_AT_ONCE = 20_000  # between two looks at progress and the keyboard


def merge_clusters(
    graph: Digraph,
    first: NDArray[np.integer],
    *,
    n_clusters: int = 1,
    max_merges: int | None = None,
    n_near: int = 5,
    lam: float = 1.0,
    update: Update = "exact",
    alpha: float = 0.0,
    progress: Callable[[float], None] | None = None,
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Merge clusters by graph degree linkage until one of the three ends is reached.

    At every step the cluster i of largest

        A(i, N_i[1]) + lam / (K_c - 1) * sum for k = 2 .. K_c of (A(i, N_i[1]) - A(i, N_i[k]))

    (the negative of Eq. 7) is merged with its nearest neighbour cluster N_i[1]; clusters beyond the
    last neighbour have affinity 0. First clusters without affinity to any other are merged before
    all else, each with the cluster that its samples point to most.

    Parameters
    ----------
    graph
        The digraph W.
    first
        (n,) the first clusters, 0 .. c-1.
    n_clusters
        Stop when so many are left.
    max_merges
        Stop after so many merges.
    n_near
        K_c of Eq. 7; 1 is the plain criterion, the largest affinity.
    lam
        lambda of Eq. 7.
    update
        ``"exact"`` (Eq. 14), or the appendix' approximations ``"ratio"`` (Eq. 18) and ``"alpha"``
        (Eq. 21).
    alpha
        The constant of ``"alpha"``.
    progress
        Called now and then with the share of the merges that are done.

    Returns
    -------
    nodes, affinities
        (t, 2) and (t,): the pairs merged, oldest cluster first (first clusters are 0 .. c-1, merge
        t makes c+t), and their affinity. Merging ends early when no two clusters have affinity.

    Examples
    --------
    >>> from jule.forward import affinity_graph, nearest_neighbors
    >>> graph = affinity_graph(nearest_neighbors([[0.0], [1.0], [8.0], [9.0]], k=1))
    >>> merge_clusters(graph, np.arange(4))[0].tolist()
    [[0, 1], [2, 3]]
    """
    n_first = _check(graph, first, n_clusters, max_merges, n_near, lam, update, alpha)
    budget = n_first - n_clusters if max_merges is None else min(max_merges, n_first - n_clusters)
    if budget <= 0:
        return np.empty((0, 2), np.int64), np.empty(0)
    kind = UPDATES.index(update)
    graph, owner, old_number = close_together(graph, first, n_first)
    state, links = first_state(graph, owner, old_number, budget, n_near)
    links = _merge_isolated(state, links, graph.weights, np.argsort(old_number), kind, alpha)
    open_contest(state, links, n_near, lam)
    while True:
        before = int(state.counts[0])
        links = _merge_best(state, links, n_near, lam, kind, alpha, MERGES_AT_ONCE)
        done = int(state.counts[0])
        if progress is not None:
            progress(done / budget)
        if done - before < MERGES_AT_ONCE:
            return state.nodes[:done], state.affinities[:done]


def _check(
    graph: Digraph,
    first: NDArray[np.integer],
    n_clusters: int,
    max_merges: int | None,
    n_near: int,
    lam: float,
    update: str,
    alpha: float,
) -> int:
    """Refuse what cannot be merged, and count the first clusters."""
    if first.shape != (len(graph),):
        raise ValueError(f"{len(graph)} samples need as many first labels, got {first.shape}")
    n_first = int(first.max()) + 1
    if first.min() < 0 or len(np.unique(first)) != n_first:
        raise ValueError("first clusters must be numbered 0, 1, ... without a gap")
    if n_clusters < 1:
        raise ValueError(f"n_clusters must be 1 or more, got {n_clusters}")
    if max_merges is not None and max_merges < 0:
        raise ValueError(f"max_merges must be 0 or more, got {max_merges}")
    if n_near < 1:
        raise ValueError(f"n_near (K_c) must be 1 or more, got {n_near}")
    if not lam >= 0:
        raise ValueError(f"lam (lambda) must be 0 or more, got {lam}")
    if update not in UPDATES:
        raise ValueError(f"unknown update {update!r}: choose one of {', '.join(UPDATES)}")
    if not alpha > -1:
        raise ValueError(f"alpha must be above -1, got {alpha}: affinities would turn negative")
    return n_first


@kernel
def _merge_pair(state, links, a, b, affinity, kind, alpha):
    """Merge two clusters into the place of the larger; gives the links to go on with, and it."""
    clusters, counts = state.clusters, state.counts
    t = counts[0]
    state.nodes[t, 0] = min(clusters[a].node, clusters[b].node)
    state.nodes[t, 1] = max(clusters[a].node, clusters[b].node)
    state.affinities[t] = affinity
    counts[0] += 1
    m, n = (a, b) if clusters[a].members >= clusters[b].members else (b, a)
    touched = 0
    if kind == EXACT:
        touched = _sum_cross_terms(state, m, n, t)
    room = _most_room(clusters, state.touched, touched, m, n)
    if counts[1] + room > links.shape[0]:
        larger = np.empty(links.shape[0] + links.shape[0] // 2 + room, links.dtype)
        move_rows(links, larger, clusters, counts)
        links = larger
    _add_cross_terms(clusters, links, counts, state.touched, touched, n)
    share, divisor = _approximation(clusters[m], clusters[n], kind, alpha)
    _move_links(clusters, links, counts, m, n, share)
    clusters[m].divisor = divisor
    _move_samples(state.samples, state.owner, clusters, m, n)
    clusters[m].node = clusters.shape[0] + t
    return links, m


@kernel
def _sum_cross_terms(state, m, n, t):
    """Sum by cluster what Eq. 14 has beyond S(i -> m) + S(i -> n), and hand n's weights to m."""
    samples, clusters, weights = state.samples, state.clusters, state.weights
    around = _samples_around(state, m, n, t)
    state.counts[2] = _fetch_rows(samples, weights, state.around, around, m, n)
    count = 0
    for which in range(around):
        x = state.around[which]
        cross = _hand_over(weights, samples[x], m, n)
        if cross > 0:
            count = add_to_sum(clusters, state.touched, count, state.owner[x], cross)
    return count


@kernel
def _samples_around(state, m, n, t):
    """List, once each, the samples outside m and n that have edges with n, either way."""
    samples, owner, mark, to = state.samples, state.owner, state.mark, state.to
    gone = state.clusters[n]
    count = 0
    member = gone.outward
    gone.outward = gone.last_outward = -1
    while member >= 0:
        sample = samples[member]
        outward = False
        for edge in range(to.shape[1] + sample.in_stop - sample.in_start):
            if edge < to.shape[1]:
                x = to[member, edge]
            else:
                x = state.in_from[sample.in_start + edge - to.shape[1]]
            if owner[x] != m and owner[x] != n:
                outward = True
                if mark[x] != t:
                    mark[x] = t
                    state.around[count] = x
                    count += 1
        following = sample.next_outward
        if outward:  # the others need never be looked at again
            sample.next_outward = -1
            _link_outward(samples, gone, member, member)
        member = following
    return count


@inner_kernel
def _link_outward(samples, cluster, first, last):
    """Put a chain of samples at the end of a cluster's outward ones."""
    if cluster.outward < 0:
        cluster.outward = first
    else:
        samples[cluster.last_outward].next_outward = first
    cluster.last_outward = last


@kernel
def _fetch_rows(samples, weights, around, count, m, n):
    """Read where m and n will be searched in many rows: one wait for memory instead of many.

    These reads do not depend on each other, so the processor has a dozen of them under way at once;
    the searches themselves would each wait for their own.
    """
    keys = np.int64(0)  # kept by the caller, or the compiler would leave the reads out
    for which in range(count):
        row = samples[around[which]]
        keys += weights[row.start + home(n, row.places)].key
        keys += weights[row.start + home(m, row.places)].key
    return keys


@inner_kernel
def _hand_over(weights, row, m, n):
    """Make the weights between a sample and n weights between it and m; gives the cross term."""
    place = find(weights, row, n)
    in_n, out_n = weights[place].first, weights[place].second
    remove_at(weights, row, place)
    place = find(weights, row, m)
    if place < 0:
        add(weights, row, m, in_n, out_n)
        return 0.0
    entry = weights[place]
    cross = entry.first * out_n + in_n * entry.second
    entry.first += in_n
    entry.second += out_n
    return cross


@kernel
def _most_room(clusters, touched, count, m, n):
    """Bound the places that a merge can add at the end of the links."""
    room = places_with_spare(clusters[n].used + count)
    room += places_with_spare(clusters[m].used + clusters[n].used + count)
    for t in range(count):
        room += places_with_spare(clusters[touched[t]].used + 1)
    return room


@kernel
def _add_cross_terms(clusters, links, counts, touched, count, n):
    make_room(links, clusters[n], counts, count)
    for t in range(count):
        add(links, clusters[n], touched[t], 0.0, clusters[touched[t]].total)
    forget_sums(clusters, touched, count)


@kernel
def _approximation(m, n, kind, alpha):
    """Give what S(i -> n) counts beside S(i -> m), and what their sum is then divided by.

    Exact, the sum (with its cross terms) is divided by |m + n|^2. The approximations weigh
    A(i -> m) and A(i -> n) instead: by |m| / |m + n| and |n| / |m + n| (Eq. 18), or by
    (1 + alpha) times the squares of these (Eq. 21).
    """
    size_m, size_n = np.float64(m.members), np.float64(n.members)
    both = size_m + size_n
    if kind == EXACT:
        return 1.0, both * both
    if kind == RATIO:
        return size_n / size_m * (m.divisor / n.divisor), m.divisor * both / size_m
    return (
        (size_n / size_m) ** 2 * (m.divisor / n.divisor),
        m.divisor * (both / size_m) ** 2 / (1.0 + alpha),
    )


@kernel
def _move_links(clusters, links, counts, m, n, share):
    """Turn the links of n into links of m (Eq. 13, and the sums of Eq. 14)."""
    merged, gone = clusters[m], clusters[n]
    make_room(links, merged, counts, gone.used)
    for place in range(gone.start, gone.start + gone.places):
        entry = links[place]
        if entry.key == NO_KEY or entry.key == m:
            continue
        from_n, to_n = entry.first, entry.second * share
        other = clusters[entry.key]
        old = find(links, other, n)
        if old >= 0:
            remove_at(links, other, old)
        else:
            make_room(links, other, counts, 1)
        add(links, merged, entry.key, from_n, to_n)
        add(links, other, m, to_n, from_n)
    old = find(links, merged, n)
    if old >= 0:
        remove_at(links, merged, old)
    gone.places = 0
    gone.used = 0


@kernel
def _move_samples(samples, owner, clusters, m, n):
    merged, gone = clusters[m], clusters[n]
    x = gone.head
    while x >= 0:
        owner[x] = m
        x = samples[x].next
    samples[merged.last].next = gone.head
    merged.last = gone.last
    if gone.outward >= 0:
        _link_outward(samples, merged, gone.outward, gone.last_outward)
    merged.members += gone.members
    gone.members = 0


@kernel
def _merge_isolated(state, links, weight, by_age, kind, alpha):
    """Merge every first cluster without affinity with the cluster its samples point to most."""
    for age in range(by_age.shape[0]):
        c = by_age[age]
        cluster = state.clusters[c]
        if state.counts[0] == state.nodes.shape[0]:
            break
        if cluster.node != age or cluster.members == 0 or cluster.used > 0:
            continue  # merged by now, or not isolated
        target = _points_to_most(state, weight, c)
        if target >= 0:
            links, _ = _merge_pair(state, links, c, target, 0.0, kind, alpha)
    return links


@kernel
def _points_to_most(state, weight, c):
    """Find the other cluster with the largest weight of edges from this one; -1 if none."""
    samples, clusters, touched = state.samples, state.clusters, state.touched
    count = 0
    x = clusters[c].head
    while x >= 0:
        for edge in range(state.to.shape[1]):
            other = state.owner[state.to[x, edge]]
            if other != c:
                count = add_to_sum(clusters, touched, count, other, weight[x, edge])
        x = samples[x].next
    best = np.int64(-1)
    for t in range(count):
        other = np.int64(touched[t])
        if best < 0 or better(
            clusters[other].total, clusters[other].node, clusters[best].total, clusters[best].node
        ):
            best = other
    forget_sums(clusters, touched, count)
    return best


@kernel
def _merge_best(state, links, n_near, lam, kind, alpha, at_most):
    """Merge the cluster of best criterion with its nearest neighbour, again and again."""
    clusters, near, winners = state.clusters, state.near, state.winners
    for _ in range(min(at_most, state.nodes.shape[0] - state.counts[0])):
        a = np.int64(winners[1])
        if clusters[a].score == -np.inf:
            break
        b = np.int64(near[a, 0].cluster)
        links, m = _merge_pair(state, links, a, b, near[a, 0].affinity, kind, alpha)
        n = b if m == a else a
        clusters[n].near = 0
        rescore(clusters, near, winners, n, n_near, lam)
        look_around(clusters, links, near, m)
        rescore(clusters, near, winners, m, n_near, lam)
        merged = clusters[m]
        for place in range(merged.start, merged.start + merged.places):
            entry = links[place]
            if entry.key == NO_KEY:
                continue
            other = clusters[entry.key]
            forget_near(other, near, entry.key, m, n)
            remember(clusters, near, entry.key, m, link_affinity(clusters, merged, entry))
            if other.near < min(n_near, other.used):
                look_around(clusters, links, near, entry.key)
            rescore(clusters, near, winners, entry.key, n_near, lam)
    return links
