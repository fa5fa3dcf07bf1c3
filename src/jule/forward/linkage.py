"""Graph degree linkage: merge clusters and update their affinities.

The affinity of two clusters (Eq. 12) is a sum over the samples of one of them,

    A(C_j -> C_i) = S(j -> i) / |C_i|^2,    S(j -> i) = sum over x in C_j of in_i(x) * out_i(x),

where in_i(x) is the weight of the edges from C_i to x and out_i(x) of those from x to C_i. When m
and n merge,

    S((m + n) -> i) = S(m -> i) + S(n -> i)                                              (Eq. 13)
    S(i -> (m + n)) = S(i -> m) + S(i -> n)
                      + sum over x in C_i of in_m(x) * out_n(x) + in_n(x) * out_m(x)     (Eq. 14)

and the last sum has terms only for samples x that have edges with both m and n. Two sparse tables
therefore suffice: `weights`, whose row x maps a cluster to (in, out), and `links`, whose row i maps
a neighbouring cluster j to (S(i -> j), S(j -> i)). A merge visits the samples of the smaller
cluster, so each sample is visited at most log2(n) times. Apart from rounding, the affinities are
those of the dense equations.

Additive linkage has the affinity

    A(C_i, C_j) = M(i, j) / |C_i| + M(i, j) / |C_j|,    M(i, j) = sum of W(x, y) W(y, x)

over the pairs of x in C_i and y in C_j; only mutual edges count. M is additive,
M((m + n), i) = M(m, i) + M(n, i), so it takes the place of both S in `links`, divided by the size
of a cluster instead of its square, and the weights are not needed.

An edge of weight 0 is no edge: clusters connected by nothing else have no affinity and are not
merged. This includes weights below 2^-500, whose products would round to 0.

Ties go to the older cluster: initial clusters are ordered by their first sample, and every merged
cluster is younger than all before it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from jule.forward.affinity import Digraph
from jule.forward.apart import is_kept_apart, keep_apart, move_ends, separate
from jule.forward.constraints import check_pairs
from jule.forward.criterion import (
    build_tournament,
    find_near,
    insert_near,
    is_better,
    link_affinity,
    remove_near,
    update_score,
)
from jule.forward.linkage_state import (
    LEAST_WEIGHT,
    add_to_sum,
    init_state,
    reset_sums,
    sort_by_cluster,
)
from jule.forward.neighbors import check_indices
from jule.forward.tables import (
    NO_KEY,
    add,
    capacity_with_spare,
    copy_rows,
    find,
    home_slot,
    inner_kernel,
    kernel,
    remove_at,
    reserve,
)

Update = Literal["exact", "ratio", "alpha"]
UPDATES: tuple[Update, ...] = ("exact", "ratio", "alpha")
EXACT, RATIO = 0, 1  # as numbers, for the kernels
ADDITIVE = len(UPDATES)  # an update that only additive linkage has

Linkage = Literal["degree", "additive"]
LINKAGES: tuple[Linkage, ...] = ("degree", "additive")

MERGES_AT_ONCE = 20_000  # between progress reports, when Ctrl-C is noticed as well


def merge_clusters(
    graph: Digraph,
    initial: NDArray[np.integer],
    *,
    n_clusters: int = 1,
    max_merges: int | None = None,
    n_near: int = 5,
    lam: float = 1.0,
    update: Update = "exact",
    alpha: float = 0.0,
    linkage: Linkage = "degree",
    apart: NDArray[np.integer] | None = None,
    progress: Callable[[float], None] | None = None,
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Merge clusters by graph degree linkage, or by additive linkage.

    At every step the cluster i with the largest

        A(i, N_i[1]) + lam / (K_c - 1) * sum for k = 2 .. K_c of (A(i, N_i[1]) - A(i, N_i[k]))

    (the negative of Eq. 7) is merged with its nearest neighbour cluster N_i[1]. If a cluster has
    fewer than K_c neighbours, the missing ones count as affinity 0. Initial clusters without
    affinity to any other are merged first, each with the cluster that receives the largest total
    weight of its edges.

    An edge of weight 0 (or below 2^-500) is no edge. A cluster without any other edge to the rest
    is not merged.

    Parameters
    ----------
    graph
        The digraph W. Its weights are 0 or more, and an edge of weight 0 is no edge.
    initial
        (n,) initial cluster of every sample, 0 .. c-1.
    n_clusters
        Number of clusters at which to stop.
    max_merges
        Maximum number of merges.
    n_near
        K_c of Eq. 7; 1 merges the pair with the largest affinity.
    lam
        lambda of Eq. 7.
    update
        ``"exact"`` (Eq. 14), or an approximation of the appendix: ``"ratio"`` (Eq. 18) or
        ``"alpha"`` (Eq. 21).
    alpha
        Constant of ``"alpha"``.
    linkage
        The affinity A: ``"degree"`` (graph degree linkage, Eq. 12) or ``"additive"`` (mutual edges
        alone), which is always exact and takes no other `update`.
    apart
        (m, 2) pairs of samples whose clusters are never merged: clusters with such a pair between
        them have no affinity.
    progress
        Called from time to time with the fraction of merges done.

    Returns
    -------
    nodes, affinities
        (t, 2) and (t,): the pairs merged, older cluster first, and their affinities. Initial
        clusters are numbered 0 .. c-1, and merge t creates cluster c+t. Merging stops early if no
        two clusters have affinity.

    Examples
    --------
    >>> from jule.forward import affinity_graph, nearest_neighbors
    >>> graph = affinity_graph(nearest_neighbors([[0.0], [1.0], [8.0], [9.0]], k=1))
    >>> merge_clusters(graph, np.arange(4))[0].tolist()
    [[0, 1], [2, 3]]
    """
    n_initial = _check(graph, initial, n_clusters, max_merges, n_near, lam)
    _check_linkage(linkage, update, alpha)
    if apart is not None:
        _check_apart(apart, initial)
    budget = n_initial - n_clusters
    if max_merges is not None:
        budget = min(budget, max_merges)
    if budget <= 0:
        return np.empty((0, 2), np.int64), np.empty(0)
    additive = linkage == "additive"
    kind = ADDITIVE if additive else UPDATES.index(update)
    graph, owner, old_number = sort_by_cluster(graph, initial, n_initial)
    state, links = init_state(graph, owner, old_number, budget, n_near, additive)
    by_age = np.argsort(old_number)
    kept = keep_apart(state, links, None if apart is None else by_age[initial[apart]])
    links = _merge_isolated(state, links, kept, graph.weights, by_age, kind, alpha)
    build_tournament(state, links, n_near, lam)
    while True:
        before = int(state.counts[0])
        links = _merge_best(state, links, kept, n_near, lam, kind, alpha, MERGES_AT_ONCE)
        done = int(state.counts[0])
        if progress is not None:
            progress(done / budget)
        if done - before < MERGES_AT_ONCE:
            return state.nodes[:done], state.affinities[:done]


def _check(
    graph: Digraph,
    initial: NDArray[np.integer],
    n_clusters: int,
    max_merges: int | None,
    n_near: int,
    lam: float,
) -> int:
    """Check the parameters and return the number of initial clusters."""
    _check_graph(graph)
    if initial.shape != (len(graph),):
        raise ValueError(
            f"initial must hold one label for each of {len(graph)} samples, got shape "
            f"{initial.shape}"
        )
    n_initial = int(initial.max()) + 1
    if initial.min() < 0 or len(np.unique(initial)) != n_initial:
        raise ValueError("initial clusters must be numbered 0, 1, ... without a gap")
    if n_clusters < 1:
        raise ValueError(f"n_clusters must be 1 or more, got {n_clusters}")
    if max_merges is not None and max_merges < 0:
        raise ValueError(f"max_merges must be 0 or more, got {max_merges}")
    if n_near < 1:
        raise ValueError(f"n_near (K_c) must be 1 or more, got {n_near}")
    if not lam >= 0:
        raise ValueError(f"lam (lambda) must be 0 or more, got {lam}")
    return n_initial


def _check_apart(apart: NDArray[np.integer], initial: NDArray[np.integer]) -> None:
    """Raise unless pairs of samples that are kept apart are in different initial clusters."""
    check_pairs(apart, len(initial))
    if (initial[apart[:, 0]] == initial[apart[:, 1]]).any():
        raise ValueError("an initial cluster has samples that are kept apart")


def _check_linkage(linkage: str, update: str, alpha: float) -> None:
    if linkage not in LINKAGES:
        raise ValueError(f"unknown linkage {linkage!r}: choose one of {', '.join(LINKAGES)}")
    if update not in UPDATES:
        raise ValueError(f"unknown update {update!r}: choose one of {', '.join(UPDATES)}")
    if linkage == "additive" and update != "exact":
        raise ValueError(
            f"update={update!r} approximates graph degree linkage: additive linkage needs "
            "update='exact'"
        )
    if not alpha > -1:
        raise ValueError(f"alpha must be above -1, got {alpha}: affinities would become negative")


def _check_graph(graph: Digraph) -> None:
    """Raise for edges that lead nowhere or have no weight; the kernels would not notice them."""
    check_indices(graph.indices)
    if graph.weights.shape != graph.indices.shape:
        raise ValueError(
            f"weights must have the shape of indices, {graph.indices.shape}, got "
            f"{graph.weights.shape}"
        )
    # Not the other way round, so that NaN is noticed.
    if graph.weights.size and not (
        graph.weights.min() >= 0 and graph.weights.max() <= 1 / LEAST_WEIGHT
    ):
        raise ValueError("weights of edges must be finite and 0 or more, as Eq. 4 gives them")


@kernel
def _merge_pair(state, links, a, b, affinity, kind, alpha):
    """Merge two clusters; returns the links, which may have moved, and the cluster that remains."""
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
    new_slots = _max_new_slots(clusters, state.touched, touched, m, n)
    if counts[1] + new_slots > links.shape[0]:
        larger = np.empty(links.shape[0] + links.shape[0] // 2 + new_slots, links.dtype)
        copy_rows(links, larger, clusters, counts)
        links = larger
    _add_cross_terms(clusters, links, counts, state.touched, touched, n)
    factor, divisor = _update_coefficients(clusters[m], clusters[n], kind, alpha)
    _move_links(clusters, links, counts, m, n, factor)
    clusters[m].divisor = divisor
    _move_samples(state.samples, state.owner, clusters, m, n)
    clusters[m].node = clusters.shape[0] + t
    return links, m


@kernel
def _sum_cross_terms(state, m, n, t):
    """Sum the cross terms of Eq. 14 by cluster, and move the weights of n to m."""
    samples, clusters, weights = state.samples, state.clusters, state.weights
    n_adjacent = _find_adjacent(state, m, n, t)
    state.counts[2] = _prefetch_rows(samples, weights, state.adjacent, n_adjacent, m, n)
    count = 0
    for which in range(n_adjacent):
        x = state.adjacent[which]
        cross = _move_weights(weights, samples[x], m, n)
        if cross > 0:
            count = add_to_sum(clusters, state.touched, count, state.owner[x], cross)
    return count


@kernel
def _find_adjacent(state, m, n, t):
    """List the samples outside m and n that have edges with n, in either direction."""
    samples, owner, mark, to = state.samples, state.owner, state.mark, state.to
    absorbed = state.clusters[n]
    count = 0
    member = absorbed.boundary
    absorbed.boundary = absorbed.last_boundary = -1
    while member >= 0:
        sample = samples[member]
        is_boundary = False
        for edge in range(to.shape[1] + sample.in_stop - sample.in_start):
            if edge < to.shape[1]:
                x = to[member, edge]
            else:
                x = state.in_from[sample.in_start + edge - to.shape[1]]
            if owner[x] != m and owner[x] != n:
                is_boundary = True
                if mark[x] != t:
                    mark[x] = t
                    state.adjacent[count] = x
                    count += 1
        next_member = sample.next_boundary
        if is_boundary:  # the other samples need not be visited again
            sample.next_boundary = -1
            _append_boundary(samples, absorbed, member, member)
        member = next_member
    return count


@inner_kernel
def _append_boundary(samples, cluster, first, last):
    """Append a chain of samples to the boundary samples of a cluster."""
    if cluster.boundary < 0:
        cluster.boundary = first
    else:
        samples[cluster.last_boundary].next_boundary = first
    cluster.last_boundary = last


@kernel
def _prefetch_rows(samples, weights, adjacent, count, m, n):
    """Read the slots where the rows will be searched for m and n, to have them in cache.

    These reads are independent, so the processor overlaps them; the searches would wait for memory
    one after the other.
    """
    keys = np.int64(0)  # returned, because the compiler would remove unused reads
    for which in range(count):
        row = samples[adjacent[which]]
        keys += weights[row.start + home_slot(n, row.capacity)].key
        keys += weights[row.start + home_slot(m, row.capacity)].key
    return keys


@inner_kernel
def _move_weights(weights, row, m, n):
    """Add the weights between a sample and n to those with m; returns the cross term."""
    slot = find(weights, row, n)
    in_n, out_n = weights[slot].first, weights[slot].second
    remove_at(weights, row, slot)
    slot = find(weights, row, m)
    if slot < 0:
        add(weights, row, m, in_n, out_n)
        return 0.0
    entry = weights[slot]
    cross = entry.first * out_n + in_n * entry.second
    entry.first += in_n
    entry.second += out_n
    return cross


@kernel
def _max_new_slots(clusters, touched, count, m, n):
    """Return an upper bound on the slots that a merge appends to the links."""
    total = capacity_with_spare(clusters[n].used + count)
    total += capacity_with_spare(clusters[m].used + clusters[n].used + count)
    for t in range(count):
        total += capacity_with_spare(clusters[touched[t]].used + 1)
    return total


@kernel
def _add_cross_terms(clusters, links, counts, touched, count, n):
    reserve(links, clusters[n], counts, count)
    for t in range(count):
        add(links, clusters[n], touched[t], 0.0, clusters[touched[t]].total)
    reset_sums(clusters, touched, count)


@kernel
def _update_coefficients(m, n, kind, alpha):
    """Return the factor of S(i -> n) when it is added to S(i -> m), and the divisor of the sum.

    The exact sum (with its cross terms) is divided by |m + n|^2, or by |m + n| if the linkage is
    additive. The approximations weight
    A(i -> m) and A(i -> n) by |m| / |m + n| and |n| / |m + n| (Eq. 18), or by (1 + alpha) times
    their squares (Eq. 21).
    """
    size_m, size_n = np.float64(m.members), np.float64(n.members)
    both = size_m + size_n
    if kind == EXACT:
        return 1.0, both * both
    if kind == ADDITIVE:
        return 1.0, both
    if kind == RATIO:
        return size_n / size_m * (m.divisor / n.divisor), m.divisor * both / size_m
    return (
        (size_n / size_m) ** 2 * (m.divisor / n.divisor),
        m.divisor * (both / size_m) ** 2 / (1.0 + alpha),
    )


@kernel
def _move_links(clusters, links, counts, m, n, factor):
    """Add the links of n to those of m (Eq. 13 and the sums of Eq. 14)."""
    merged, absorbed = clusters[m], clusters[n]
    reserve(links, merged, counts, absorbed.used)
    for slot in range(absorbed.start, absorbed.start + absorbed.capacity):
        entry = links[slot]
        if entry.key == NO_KEY or entry.key == m:
            continue
        from_n, to_n = entry.first, entry.second * factor
        other = clusters[entry.key]
        old = find(links, other, n)
        if old >= 0:
            remove_at(links, other, old)
        else:
            reserve(links, other, counts, 1)
        add(links, merged, entry.key, from_n, to_n)
        add(links, other, m, to_n, from_n)
    old = find(links, merged, n)
    if old >= 0:
        remove_at(links, merged, old)
    absorbed.capacity = 0
    absorbed.used = 0


@kernel
def _move_samples(samples, owner, clusters, m, n):
    merged, absorbed = clusters[m], clusters[n]
    x = absorbed.head
    while x >= 0:
        owner[x] = m
        x = samples[x].next
    samples[merged.last].next = absorbed.head
    merged.last = absorbed.last
    if absorbed.boundary >= 0:
        _append_boundary(samples, merged, absorbed.boundary, absorbed.last_boundary)
    merged.members += absorbed.members
    absorbed.members = 0


@kernel
def _merge_isolated(state, links, kept, weight, by_age, kind, alpha):
    """Merge every initial cluster without affinity with the target of most of its edge weight."""
    for age in range(by_age.shape[0]):
        c = by_age[age]
        cluster = state.clusters[c]
        if state.counts[0] == state.nodes.shape[0]:
            break
        if cluster.node != age or cluster.members == 0 or cluster.used > 0:
            continue  # already merged, or not isolated
        target = _strongest_target(state, kept, weight, c)
        if target >= 0:
            links, m = _merge_pair(state, links, c, target, 0.0, kind, alpha)
            if kept is not None:
                move_ends(kept, m, target if m == c else c)
                separate(state, links, kept, m)
    return links


@kernel
def _strongest_target(state, kept, weight, c):
    """Return the other cluster with the largest weight of edges from this one, or -1."""
    samples, clusters, touched = state.samples, state.clusters, state.touched
    count = 0
    x = clusters[c].head
    while x >= 0:
        for edge in range(state.to.shape[1]):
            other = state.owner[state.to[x, edge]]
            if other != c and weight[x, edge] > 0:
                count = add_to_sum(clusters, touched, count, other, weight[x, edge])
        x = samples[x].next
    best = np.int64(-1)
    for t in range(count):
        other = np.int64(touched[t])
        if kept is not None and is_kept_apart(state, kept, c, other):
            continue
        if best < 0 or is_better(
            clusters[other].total, clusters[other].node, clusters[best].total, clusters[best].node
        ):
            best = other
    reset_sums(clusters, touched, count)
    return best


@kernel
def _merge_best(state, links, kept, n_near, lam, kind, alpha, max_merges):
    """Repeatedly merge the cluster with the best criterion with its nearest neighbour."""
    clusters, near, winners = state.clusters, state.near, state.winners
    for _ in range(min(max_merges, state.nodes.shape[0] - state.counts[0])):
        a = np.int64(winners[1])
        if clusters[a].score == -np.inf:
            break
        b = np.int64(near[a, 0].cluster)
        links, m = _merge_pair(state, links, a, b, near[a, 0].affinity, kind, alpha)
        n = b if m == a else a
        clusters[n].near = 0
        update_score(clusters, near, winners, n, n_near, lam)
        if kept is not None:
            move_ends(kept, m, n)
            for t in range(separate(state, links, kept, m)):
                other = clusters[state.touched[t]]
                remove_near(other, near, state.touched[t], m, n)
                if other.near < min(n_near, other.used):
                    find_near(clusters, links, near, state.touched[t])
                update_score(clusters, near, winners, state.touched[t], n_near, lam)
        find_near(clusters, links, near, m)
        update_score(clusters, near, winners, m, n_near, lam)
        merged = clusters[m]
        for slot in range(merged.start, merged.start + merged.capacity):
            entry = links[slot]
            if entry.key == NO_KEY:
                continue
            other = clusters[entry.key]
            remove_near(other, near, entry.key, m, n)
            insert_near(clusters, near, entry.key, m, link_affinity(clusters, merged, entry))
            if other.near < min(n_near, other.used):
                find_near(clusters, links, near, entry.key)
            update_score(clusters, near, winners, entry.key, n_near, lam)
    return links
