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
from typing import Literal, NamedTuple

import numpy as np
from numba import njit, prange
from numpy.typing import NDArray

from jule.forward.affinity import Digraph

Update = Literal["exact", "ratio", "alpha"]
UPDATES: tuple[Update, ...] = ("exact", "ratio", "alpha")

MERGES_AT_ONCE = 20_000  # between two looks at progress and the keyboard
SPARE = 4  # neighbour clusters remembered beyond K_c, so that few changes need a full look
NO_KEY = -1
NEVER = 2**62


class RowMaps(NamedTuple):
    """A sparse table: every row is a small hash map from a key to two numbers, in one arena."""

    start: NDArray[np.int64]  # where a row's places begin
    places: NDArray[np.int64]  # how many it has: a power of two, or 0
    used: NDArray[np.int64]  # how many of them hold a key
    tail: NDArray[np.int64]  # (1,) the end of the last row
    keys: NDArray[np.int32]
    first: NDArray[np.float64]
    second: NDArray[np.float64]


class Clusters(NamedTuple):
    """All clusters as they stand; one slot each, a merged pair keeps the slot of the larger."""

    size: NDArray[np.int64]  # samples, 0 once merged away
    divisor: NDArray[np.float64]  # of S(i -> c) in A(i -> c): |C|^2 unless approximated
    node: NDArray[np.int64]  # age: the number of the cluster in the order of their making
    owner: NDArray[np.int32]  # (n,) the slot that a sample is in
    head: NDArray[np.int32]  # first and last sample of a cluster, and the sample after a sample
    last: NDArray[np.int32]
    next: NDArray[np.int32]


class Nearest(NamedTuple):
    """The nearest neighbour clusters of every cluster, best first, as far as remembered."""

    slot: NDArray[np.int32]  # (clusters, K_c + SPARE)
    affinity: NDArray[np.float64]
    count: NDArray[np.int64]
    # No neighbour left out is better than this one was:
    limit_affinity: NDArray[np.float64]
    limit_node: NDArray[np.int64]


class Contest(NamedTuple):
    """A tournament over the merging criterion: place 1 holds the cluster to merge next."""

    score: NDArray[np.float64]
    winner: NDArray[np.int32]


class Edges(NamedTuple):
    """The digraph W by both ends."""

    to: NDArray[np.int32]  # (n, K_s)
    weight: NDArray[np.float64]
    in_start: NDArray[np.int64]  # (n + 1,) where a sample's incoming edges begin
    in_from: NDArray[np.int32]
    in_weight: NDArray[np.float64]


class Scratch(NamedTuple):
    """Sums by cluster that are empty between any two uses, and marks by sample."""

    total: NDArray[np.float64]
    seen: NDArray[np.bool_]
    touched: NDArray[np.int32]
    mark: NDArray[np.int64]


class Merges(NamedTuple):
    """What was merged so far."""

    count: NDArray[np.int64]  # (1,)
    nodes: NDArray[np.int64]  # (t, 2)
    affinity: NDArray[np.float64]


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
    merges = Merges(
        np.zeros(1, np.int64),
        np.empty((max(budget, 0), 2), np.int64),
        np.empty(max(budget, 0), np.float64),
    )
    if budget > 0:
        _run(graph, first.astype(np.int32), n_first, merges, n_near, lam, update, alpha, progress)
    done = int(merges.count[0])
    return merges.nodes[:done], merges.affinity[:done]


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


def _run(
    graph: Digraph,
    first: NDArray[np.int32],
    n_first: int,
    merges: Merges,
    n_near: int,
    lam: float,
    update: Update,
    alpha: float,
    progress: Callable[[float], None] | None,
) -> None:
    edges = Edges(graph.indices, graph.weights, *_incoming(graph.indices, graph.weights))
    clusters = _first_clusters(first, n_first)
    scratch = Scratch(
        np.zeros(n_first),
        np.zeros(n_first, np.bool_),
        np.empty(n_first, np.int32),
        np.full(len(first), -1, np.int64),
    )
    weights = _sample_weights(edges, clusters.owner, n_first)
    links = _cluster_links(weights, clusters, scratch)
    kind = UPDATES.index(update)
    links = _merge_isolated(edges, clusters, weights, links, scratch, merges, kind, alpha)
    nearest = _no_nearest(n_first, n_near + SPARE)
    contest = _open_contest(clusters, links, nearest, n_near, lam)
    while True:
        before = int(merges.count[0])
        links = _merge_best(
            edges, clusters, weights, links, nearest, contest, scratch, merges,
            n_near, lam, kind, alpha, MERGES_AT_ONCE,
        )  # fmt: skip
        done = int(merges.count[0])
        if progress is not None:
            progress(done / len(merges.nodes))
        if done - before < MERGES_AT_ONCE:
            return


# ------------------------------------------------------------------------------- sparse tables


@njit(cache=True, inline="always")
def _home(key, places):
    """Say where the search for a key begins: the high bits of a multiplicative hash."""
    return (np.int64(key) * np.int64(2654435769) & np.int64(0xFFFFFFFF)) * places >> np.int64(32)


@njit(cache=True)
def _find(maps, row, key):
    """Give the place of a key in a row, or -1."""
    places = maps.places[row]
    if places == 0:
        return np.int64(-1)
    start = maps.start[row]
    at = _home(key, places)
    while maps.keys[start + at] != key:
        if maps.keys[start + at] == NO_KEY:
            return np.int64(-1)
        at = (at + 1) & (places - 1)
    return start + at


@njit(cache=True)
def _add(maps, row, key, first, second):
    """Add two numbers to those of a key in a row that has room for it."""
    places = maps.places[row]
    start = maps.start[row]
    at = _home(key, places)
    while maps.keys[start + at] != key:
        if maps.keys[start + at] == NO_KEY:
            maps.keys[start + at] = key
            maps.first[start + at] = first
            maps.second[start + at] = second
            maps.used[row] += 1
            return
        at = (at + 1) & (places - 1)
    maps.first[start + at] += first
    maps.second[start + at] += second


@njit(cache=True)
def _remove_at(maps, row, place):
    """Empty a place and pull the keys behind it forward, so that every search still ends right."""
    places = maps.places[row]
    start = maps.start[row]
    maps.used[row] -= 1
    gap = place - start
    at = gap
    while True:
        maps.keys[start + gap] = NO_KEY
        while True:
            at = (at + 1) & (places - 1)
            key = maps.keys[start + at]
            if key == NO_KEY:
                return
            home = _home(key, places)
            # Move it unless its home lies cyclically in (gap, at].
            if (gap < at and (home <= gap or home > at)) or (at < gap and at < home <= gap):
                break
        maps.keys[start + gap] = maps.keys[start + at]
        maps.first[start + gap] = maps.first[start + at]
        maps.second[start + gap] = maps.second[start + at]
        gap = at


@njit(cache=True, inline="always")
def _places_for(keys):
    """Give the number of places for so many keys: a power of two, a quarter of them empty."""
    places = np.int64(2)
    while 3 * places < 4 * keys + 1:
        places *= 2
    return places


@njit(cache=True)
def _empty_maps(keys_by_row):
    rows = keys_by_row.shape[0]
    start = np.empty(rows, np.int64)
    places = np.zeros(rows, np.int64)
    tail = np.zeros(1, np.int64)
    for row in range(rows):
        start[row] = tail[0]
        if keys_by_row[row] > 0:
            places[row] = _places_for(keys_by_row[row])
        tail[0] += places[row]
    return RowMaps(
        start,
        places,
        np.zeros(rows, np.int64),
        tail,
        np.full(tail[0], NO_KEY, np.int32),
        np.empty(tail[0], np.float64),
        np.empty(tail[0], np.float64),
    )


@njit(cache=True)
def _with_room(maps, row, more):
    """Make room for more keys in a row; gives the table to go on with."""
    wanted = _places_for(maps.used[row] + more)
    if wanted <= maps.places[row]:
        return maps
    if maps.tail[0] + wanted > maps.keys.shape[0]:
        maps = _larger(maps, wanted)
    old_start, old_places = maps.start[row], maps.places[row]
    maps.start[row] = maps.tail[0]
    maps.places[row] = wanted
    maps.used[row] = 0
    maps.tail[0] += wanted
    maps.keys[maps.start[row] : maps.tail[0]] = NO_KEY
    for place in range(old_start, old_start + old_places):
        if maps.keys[place] != NO_KEY:
            _add(maps, row, maps.keys[place], maps.first[place], maps.second[place])
    return maps


@njit(cache=True)
def _larger(maps, wanted):
    """Copy the living rows into a new arena with half as much room again."""
    living = maps.places.sum()
    room = living + max(living // 2, wanted)
    keys = np.empty(room, np.int32)
    first = np.empty(room, np.float64)
    second = np.empty(room, np.float64)
    tail = np.int64(0)
    for row in range(maps.start.shape[0]):
        start, places = maps.start[row], maps.places[row]
        keys[tail : tail + places] = maps.keys[start : start + places]
        first[tail : tail + places] = maps.first[start : start + places]
        second[tail : tail + places] = maps.second[start : start + places]
        maps.start[row] = tail
        tail += places
    maps.tail[0] = tail
    return RowMaps(maps.start, maps.places, maps.used, maps.tail, keys, first, second)


# ------------------------------------------------------------------------------ the first state


@njit(cache=True)
def _incoming(to, weight):
    """Turn the edges around: by target, who points to it and how strongly."""
    n, k = to.shape
    start = np.zeros(n + 1, np.int64)
    for sample in range(n):
        for edge in range(k):
            start[to[sample, edge] + 1] += 1
    for sample in range(n):
        start[sample + 1] += start[sample]
    at = start[:-1].copy()
    sources = np.empty(start[n], np.int32)
    weights = np.empty(start[n], np.float64)
    for sample in range(n):
        for edge in range(k):
            target = to[sample, edge]
            sources[at[target]] = sample
            weights[at[target]] = weight[sample, edge]
            at[target] += 1
    return start, sources, weights


@njit(cache=True)
def _first_clusters(first, n_first):
    n = first.shape[0]
    size = np.zeros(n_first, np.int64)
    head = np.full(n_first, -1, np.int32)
    last = np.full(n_first, -1, np.int32)
    following = np.full(n, -1, np.int32)
    for sample in range(n):
        cluster = first[sample]
        if size[cluster] == 0:
            head[cluster] = sample
        else:
            following[last[cluster]] = sample
        last[cluster] = sample
        size[cluster] += 1
    divisor = size.astype(np.float64) ** 2
    return Clusters(size, divisor, np.arange(n_first), first.copy(), head, last, following)


def _sample_weights(edges: Edges, owner: NDArray[np.int32], n_first: int) -> RowMaps:
    """Make the table x -> {cluster: (in, out)} for all clusters but the sample's own."""
    weights: RowMaps = _empty_maps(_clusters_around(edges, owner, n_first))
    _fill_weights(edges, owner, weights)
    return weights


@njit(cache=True, parallel=True)
def _clusters_around(edges, owner, n_first):
    """Count the other clusters that every sample has edges with, either way."""
    n, k = edges.to.shape
    around = np.zeros(n, np.int64)
    chunks = 16  # each with marks of its own
    for chunk in prange(chunks):
        mark = np.full(n_first, -1, np.int32)
        for x in range(chunk * n // chunks, (chunk + 1) * n // chunks):
            mark[owner[x]] = x
            for edge in range(k):
                cluster = owner[edges.to[x, edge]]
                around[x] += mark[cluster] != x
                mark[cluster] = x
            for edge in range(edges.in_start[x], edges.in_start[x + 1]):
                cluster = owner[edges.in_from[edge]]
                around[x] += mark[cluster] != x
                mark[cluster] = x
    return around


@njit(cache=True, parallel=True)
def _fill_weights(edges, owner, weights):
    n, k = edges.to.shape
    for x in prange(n):
        for edge in range(k):
            cluster = owner[edges.to[x, edge]]
            if cluster != owner[x]:
                _add(weights, x, cluster, 0.0, edges.weight[x, edge])
        for edge in range(edges.in_start[x], edges.in_start[x + 1]):
            source = edges.in_from[edge]
            cluster = owner[source]
            if cluster != owner[x]:
                _add(weights, x, cluster, edges.in_weight[edge], 0.0)


@njit(cache=True)
def _cluster_links(weights, clusters, scratch):
    """Fill the table i -> {j: (S(i -> j), S(j -> i))} from the samples' weights."""
    n_first = clusters.size.shape[0]
    both_ways = np.zeros(n_first, np.int64)
    for cluster in range(n_first):
        touched = _sum_products(weights, clusters, cluster, scratch)
        both_ways[cluster] += touched
        for t in range(touched):
            both_ways[scratch.touched[t]] += 1
        _forget(scratch, touched)
    links = _empty_maps(both_ways)
    for cluster in range(n_first):
        touched = _sum_products(weights, clusters, cluster, scratch)
        for t in range(touched):
            other = scratch.touched[t]
            _add(links, cluster, other, scratch.total[other], 0.0)
            _add(links, other, cluster, 0.0, scratch.total[other])
        _forget(scratch, touched)
    return links


@njit(cache=True)
def _sum_products(weights, clusters, cluster, scratch):
    """Sum in_i(x) * out_i(x) over the samples x of a cluster, for all clusters i around it."""
    touched = 0
    x = clusters.head[cluster]
    while x >= 0:
        start = weights.start[x]
        for place in range(start, start + weights.places[x]):
            if weights.keys[place] == NO_KEY:
                continue
            product = weights.first[place] * weights.second[place]
            if product > 0:
                touched = _note(scratch, touched, weights.keys[place], product)
        x = clusters.next[x]
    return touched


@njit(cache=True, inline="always")
def _note(scratch, touched, cluster, value):
    if not scratch.seen[cluster]:
        scratch.seen[cluster] = True
        scratch.touched[touched] = cluster
        touched += 1
    scratch.total[cluster] += value
    return touched


@njit(cache=True, inline="always")
def _forget(scratch, touched):
    for t in range(touched):
        scratch.total[scratch.touched[t]] = 0.0
        scratch.seen[scratch.touched[t]] = False


# ---------------------------------------------------------------------------------- one merge


@njit(cache=True)
def _merge_pair(edges, clusters, weights, links, scratch, merges, a, b, affinity, kind, alpha):
    """Merge two clusters into the slot of the larger; gives the links to go on with, and it."""
    t = merges.count[0]
    older, younger = clusters.node[a], clusters.node[b]
    merges.nodes[t, 0] = min(older, younger)
    merges.nodes[t, 1] = max(older, younger)
    merges.affinity[t] = affinity
    merges.count[0] += 1
    m, n = (a, b) if clusters.size[a] >= clusters.size[b] else (b, a)
    if kind == 0:
        links = _add_cross_terms(edges, clusters, weights, links, scratch, m, n, t)
    size_m, size_n = float(clusters.size[m]), float(clusters.size[n])
    both = size_m + size_n
    if kind == 0:  # Eq. 14; the cross terms are in the links already
        share, divisor = 1.0, both * both
    elif kind == 1:  # Eq. 18
        share = (size_n / size_m) * (clusters.divisor[m] / clusters.divisor[n])
        divisor = clusters.divisor[m] * both / size_m
    else:  # Eq. 21
        share = (size_n / size_m) ** 2 * (clusters.divisor[m] / clusters.divisor[n])
        divisor = clusters.divisor[m] * (both / size_m) ** 2 / (1.0 + alpha)
    links = _move_links(links, m, n, share)
    clusters.divisor[m] = divisor
    _move_samples(clusters, m, n)
    clusters.node[m] = clusters.size.shape[0] + t
    return links, m


@njit(cache=True)
def _add_cross_terms(edges, clusters, weights, links, scratch, m, n, t):
    """Add to S(i -> n) what Eq. 14 has beyond a sum, and hand n's weights over to m."""
    touched = 0
    member = clusters.head[n]
    while member >= 0:
        for edge in range(edges.to.shape[1]):
            x = edges.to[member, edge]
            touched = _hand_over(clusters, weights, scratch, x, m, n, t, touched)
        for edge in range(edges.in_start[member], edges.in_start[member + 1]):
            x = edges.in_from[edge]
            touched = _hand_over(clusters, weights, scratch, x, m, n, t, touched)
        member = clusters.next[member]
    links = _with_room(links, n, touched)
    for which in range(touched):
        cluster = scratch.touched[which]
        _add(links, n, cluster, 0.0, scratch.total[cluster])
    _forget(scratch, touched)
    return links


@njit(cache=True, inline="always")
def _hand_over(clusters, weights, scratch, x, m, n, t, touched):
    owner = clusters.owner[x]
    if owner == m or owner == n or scratch.mark[x] == t:
        return touched
    scratch.mark[x] = t
    place = _find(weights, x, n)
    in_n, out_n = weights.first[place], weights.second[place]
    _remove_at(weights, x, place)
    place = _find(weights, x, m)
    if place >= 0:
        cross = weights.first[place] * out_n + in_n * weights.second[place]
        weights.first[place] += in_n
        weights.second[place] += out_n
        if cross > 0:
            touched = _note(scratch, touched, owner, cross)
    else:
        _add(weights, x, m, in_n, out_n)
    return touched


@njit(cache=True)
def _move_links(links, m, n, share):
    """Turn the links of n into links of m (Eq. 13, and the sums of Eq. 14)."""
    links = _with_room(links, m, links.used[n])
    for offset in range(links.places[n]):
        place = links.start[n] + offset  # asked anew: making room may move every row
        other = links.keys[place]
        if other == NO_KEY or other == m:
            continue
        from_n = links.first[place]
        to_n = links.second[place] * share
        old = _find(links, other, n)
        if old >= 0:
            _remove_at(links, other, old)
        else:
            links = _with_room(links, other, 1)
        _add(links, m, other, from_n, to_n)
        _add(links, other, m, to_n, from_n)
    old = _find(links, m, n)
    if old >= 0:
        _remove_at(links, m, old)
    links.places[n] = 0
    links.used[n] = 0
    return links


@njit(cache=True)
def _move_samples(clusters, m, n):
    sample = clusters.head[n]
    while sample >= 0:
        clusters.owner[sample] = m
        sample = clusters.next[sample]
    clusters.next[clusters.last[m]] = clusters.head[n]
    clusters.last[m] = clusters.last[n]
    clusters.size[m] += clusters.size[n]
    clusters.size[n] = 0


@njit(cache=True)
def _merge_isolated(edges, clusters, weights, links, scratch, merges, kind, alpha):
    """Merge every first cluster without affinity with the cluster its samples point to most."""
    for cluster in range(clusters.size.shape[0]):
        if merges.count[0] == merges.nodes.shape[0]:
            break
        if clusters.size[cluster] == 0 or links.used[cluster] > 0:
            continue
        target = _points_to_most(edges, clusters, scratch, cluster)
        if target >= 0:
            links, _ = _merge_pair(
                edges, clusters, weights, links, scratch, merges, cluster, target, 0.0, kind, alpha
            )
    return links


@njit(cache=True)
def _points_to_most(edges, clusters, scratch, cluster):
    """Find the other cluster with the largest weight of edges from this one; -1 if none."""
    touched = 0
    x = clusters.head[cluster]
    while x >= 0:
        for edge in range(edges.to.shape[1]):
            other = clusters.owner[edges.to[x, edge]]
            if other != cluster:
                touched = _note(scratch, touched, other, edges.weight[x, edge])
        x = clusters.next[x]
    best = np.int64(-1)
    for t in range(touched):
        other = np.int64(scratch.touched[t])
        if best < 0 or _better(
            scratch.total[other], clusters.node[other], scratch.total[best], clusters.node[best]
        ):
            best = other
    _forget(scratch, touched)
    return best


# ---------------------------------------------------------------------- the merging criterion


@njit(cache=True, inline="always")
def _better(value_a, node_a, value_b, node_b):
    """Larger is better; among equals, the older cluster."""
    return value_a > value_b or (value_a == value_b and node_a < node_b)


@njit(cache=True, inline="always")
def _affinity_at(links, clusters, cluster, place):
    """Give A(C_i, C_j) of Eq. 12 for the link of cluster i that lies at a place."""
    other = links.keys[place]
    return (
        links.first[place] / clusters.divisor[other]
        + links.second[place] / clusters.divisor[cluster]
    )


@njit(cache=True)
def _no_nearest(n_first, remembered):
    return Nearest(
        np.empty((n_first, remembered), np.int32),
        np.empty((n_first, remembered), np.float64),
        np.zeros(n_first, np.int64),
        np.full(n_first, -np.inf),
        np.full(n_first, NEVER, np.int64),
    )


@njit(cache=True)
def _look_around(links, clusters, nearest, cluster):
    """Fill a cluster's nearest neighbour clusters from all its links."""
    nearest.count[cluster] = 0
    nearest.limit_affinity[cluster] = -np.inf
    nearest.limit_node[cluster] = NEVER
    start = links.start[cluster]
    for place in range(start, start + links.places[cluster]):
        if links.keys[place] != NO_KEY:
            affinity = _affinity_at(links, clusters, cluster, place)
            _remember(clusters, nearest, cluster, links.keys[place], affinity)


@njit(cache=True)
def _remember(clusters, nearest, cluster, other, affinity):
    """Put a neighbour in its place among the nearest, unless it falls behind the limit."""
    node = clusters.node[other]
    if not _better(affinity, node, nearest.limit_affinity[cluster], nearest.limit_node[cluster]):
        return
    slots, affinities = nearest.slot[cluster], nearest.affinity[cluster]
    place = nearest.count[cluster]
    if place == slots.shape[0]:
        place -= 1
        last, last_node = affinities[place], clusters.node[slots[place]]
        if not _better(affinity, node, last, last_node):
            nearest.limit_affinity[cluster] = affinity
            nearest.limit_node[cluster] = node
            return
        nearest.limit_affinity[cluster] = last
        nearest.limit_node[cluster] = last_node
    else:
        nearest.count[cluster] += 1
    while place > 0 and _better(
        affinity, node, affinities[place - 1], clusters.node[slots[place - 1]]
    ):
        slots[place] = slots[place - 1]
        affinities[place] = affinities[place - 1]
        place -= 1
    slots[place] = other
    affinities[place] = affinity


@njit(cache=True)
def _forget_neighbor(nearest, cluster, other):
    slots, affinities = nearest.slot[cluster], nearest.affinity[cluster]
    count = nearest.count[cluster]
    for place in range(count):
        if slots[place] == other:
            for behind in range(place, count - 1):
                slots[behind] = slots[behind + 1]
                affinities[behind] = affinities[behind + 1]
            nearest.count[cluster] = count - 1
            return


@njit(cache=True)
def _criterion(nearest, cluster, n_near, lam):
    """Give the negative of the loss of Eq. 7 for merging a cluster with its nearest neighbour."""
    count = min(nearest.count[cluster], n_near)
    if count == 0:
        return -np.inf
    best = nearest.affinity[cluster, 0]
    if n_near == 1:
        return best
    others = 0.0
    for k in range(1, count):
        others += nearest.affinity[cluster, k]
    return best + lam / (n_near - 1) * ((n_near - 1) * best - others)


@njit(cache=True)
def _open_contest(clusters, links, nearest, n_near, lam):
    n_first = clusters.size.shape[0]
    width = 1
    while width < n_first:
        width *= 2
    contest = Contest(np.full(n_first, -np.inf), np.full(2 * width, -1, np.int32))
    for cluster in range(n_first):
        _look_around(links, clusters, nearest, cluster)
        contest.score[cluster] = _criterion(nearest, cluster, n_near, lam)
        contest.winner[width + cluster] = cluster
    for place in range(width - 1, 0, -1):
        contest.winner[place] = _match(contest, clusters, place)
    return contest


@njit(cache=True, inline="always")
def _match(contest, clusters, place):
    a, b = contest.winner[2 * place], contest.winner[2 * place + 1]
    if b < 0:
        return a
    if a < 0 or _better(
        contest.score[b], clusters.node[b], contest.score[a], clusters.node[a]
    ):
        return b
    return a


@njit(cache=True)
def _rescore(contest, clusters, nearest, cluster, n_near, lam):
    """Take a cluster's criterion anew and play its matches again."""
    contest.score[cluster] = _criterion(nearest, cluster, n_near, lam)
    place = (contest.winner.shape[0] // 2 + cluster) // 2
    while place > 0:
        before = contest.winner[place]
        now = _match(contest, clusters, place)
        contest.winner[place] = now
        if now == before and now != cluster:
            return  # neither it nor what it displaced shows any further up
        place //= 2


@njit(cache=True)
def _merge_best(
    edges, clusters, weights, links, nearest, contest, scratch, merges,
    n_near, lam, kind, alpha, at_most,
):  # fmt: skip
    """Merge the cluster of best criterion with its nearest neighbour, again and again."""
    for _ in range(min(at_most, merges.nodes.shape[0] - merges.count[0])):
        a = np.int64(contest.winner[1])
        if contest.score[a] == -np.inf:
            break
        b = np.int64(nearest.slot[a, 0])
        links, m = _merge_pair(
            edges, clusters, weights, links, scratch, merges, a, b,
            nearest.affinity[a, 0], kind, alpha,
        )  # fmt: skip
        n = b if m == a else a
        nearest.count[n] = 0
        _rescore(contest, clusters, nearest, n, n_near, lam)
        _look_around(links, clusters, nearest, m)
        _rescore(contest, clusters, nearest, m, n_near, lam)
        start = links.start[m]
        for place in range(start, start + links.places[m]):
            other = links.keys[place]
            if other == NO_KEY:
                continue
            _forget_neighbor(nearest, other, n)
            _forget_neighbor(nearest, other, m)
            affinity = _affinity_at(links, clusters, m, place)
            _remember(clusters, nearest, other, m, affinity)
            if nearest.count[other] < min(n_near, links.used[other]):
                _look_around(links, clusters, nearest, other)
            _rescore(contest, clusters, nearest, other, n_near, lam)
    return links
