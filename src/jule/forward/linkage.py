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
from jule.forward.first import components

Update = Literal["exact", "ratio", "alpha"]
UPDATES: tuple[Update, ...] = ("exact", "ratio", "alpha")
EXACT, RATIO = 0, 1  # as numbers, for the kernels

MERGES_AT_ONCE = 20_000  # between two looks at progress and the keyboard
LEVELS = 3  # of neighbouring groups that are laid out together: some thousand samples
SPARE = 4  # neighbour clusters remembered beyond K_c, so that few changes need a full look
NO_KEY = -1
NEVER = 2**62

# Division by zero does not happen here; without its error path the kernels are smaller.
kernel = njit(cache=True, error_model="numpy")
inner_kernel = njit(cache=True, error_model="numpy", forceinline=True)
parallel_kernel = njit(cache=True, error_model="numpy", parallel=True)

# The state of merging is a few arrays of records, so that what is used together lies together.
# A row of a sparse table is a small hash map of entries, in one array that all rows share; the
# record that owns the row says where it starts, how many places it has and how many are used.
ENTRY = np.dtype([("key", "i4"), ("first", "f8"), ("second", "f8")], align=True)
SAMPLE = np.dtype(
    [
        ("start", "i8"),  # its row of `weights`: {cluster: (in, out)}
        ("places", "i4"),
        ("used", "i4"),
        ("in_start", "i8"),  # its incoming edges
        ("in_stop", "i8"),
        ("next", "i4"),  # the next sample of its cluster, or -1
        ("next_outward", "i4"),  # and the next that may have edges out of the cluster
        ("mark", "i4"),  # the last merge that looked at it
    ],
    align=True,
)
CLUSTER = np.dtype(
    [
        ("start", "i8"),  # its row of `links`: {j: (S(i -> j), S(j -> i))}
        ("places", "i4"),
        ("used", "i4"),
        ("size", "i8"),  # samples; 0 once merged away
        ("divisor", "f8"),  # of S(j -> i) in A(j -> i): |C_i|^2 unless approximated
        ("node", "i8"),  # its age: its number in the order in which clusters were made
        ("head", "i4"),  # its first and last sample
        ("last", "i4"),
        ("outward", "i4"),  # its first and last sample that may have edges out of it, or -1
        ("last_outward", "i4"),
        ("sum", "f8"),  # for sums by cluster; empty between any two uses
        ("touched", "b1"),
        ("near", "i4"),  # how many of its nearest neighbour clusters are remembered
        ("limit", "f8"),  # no neighbour left out is better than this affinity and age
        ("limit_node", "i8"),
        ("score", "f8"),  # the merging criterion
    ],
    align=True,
)
NEAR = np.dtype([("cluster", "i4"), ("affinity", "f8")], align=True)


class State(NamedTuple):
    """Everything that merging changes, but for the links, which may move to a larger array."""

    samples: NDArray[np.void]  # (n,) SAMPLE
    owner: NDArray[np.int32]  # (n,) the cluster that a sample is in
    clusters: NDArray[np.void]  # (c,) CLUSTER; a merged pair keeps the place of the larger
    weights: NDArray[np.void]  # ENTRY, the rows of the samples
    near: NDArray[np.void]  # (c, K_c + SPARE) NEAR, best first
    winners: NDArray[np.int32]  # a tournament over the scores; place 1 is the cluster to merge
    touched: NDArray[np.int32]  # the clusters with a sum
    to: NDArray[np.int32]  # (n, K_s) outgoing edges, and where the incoming ones come from
    in_from: NDArray[np.int32]
    counts: NDArray[np.int64]  # (2,) merges made; end of the last row of links
    nodes: NDArray[np.int64]  # (t, 2) the merges
    affinities: NDArray[np.float64]


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
    graph, owner, old_number = _close_together(graph, first, n_first)
    state, links = _first_state(graph, owner, old_number, budget, n_near)
    links = _merge_isolated(state, links, graph.weights, np.argsort(old_number), kind, alpha)
    _open_contest(state, links, n_near, lam)
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


def _close_together(
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
    indices, weights = _reordered(graph.indices, graph.weights, order, place)
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
def _reordered(to, weight, order, place):
    indices = np.empty_like(to)
    weights = np.empty_like(weight)
    for x in prange(to.shape[0]):
        for edge in range(to.shape[1]):
            indices[x, edge] = place[to[order[x], edge]]
            weights[x, edge] = weight[order[x], edge]
    return indices, weights


def _first_state(
    graph: Digraph,
    owner: NDArray[np.int32],
    old_number: NDArray[np.int64],
    budget: int,
    n_near: int,
) -> tuple[State, NDArray[np.void]]:
    n_first = len(old_number)
    samples = np.zeros(len(owner), SAMPLE)
    clusters = np.zeros(n_first, CLUSTER)
    clusters["node"] = old_number
    _fill_clusters(samples, owner, clusters)
    in_from, in_weight = _turn_edges(samples, graph.indices, graph.weights)
    weights = np.empty(_rows_of_weights(samples, owner, graph.indices, in_from, n_first), ENTRY)
    _fill_weights(samples, owner, weights, graph.indices, graph.weights, in_from, in_weight)
    touched = np.empty(n_first, np.int32)
    end = _rows_of_links(samples, clusters, weights, touched)
    links = np.empty(end + end // 2, ENTRY)  # with room for rows that grow
    _fill_links(samples, clusters, weights, links, touched)
    state = State(
        samples,
        owner,
        clusters,
        weights,
        np.zeros((n_first, n_near + SPARE), NEAR),
        np.full(2 << (n_first - 1).bit_length(), -1, np.int32),
        touched,
        graph.indices,
        in_from,
        np.array([0, end]),
        np.empty((budget, 2), np.int64),
        np.empty(budget),
    )
    return state, links


# ------------------------------------------------------------------------------- sparse tables


@inner_kernel
def _home(key, places):
    """Say where the search for a key begins: the high bits of a multiplicative hash."""
    return (np.int64(key) * 2654435769 & 0xFFFFFFFF) * np.int64(places) >> 32


@inner_kernel
def _find(entries, row, key):
    """Give the place of a key in a row, or -1."""
    start, places = row.start, np.int64(row.places)
    if places == 0:
        return np.int64(-1)
    at = _home(key, places)
    while True:
        found = entries[start + at].key
        if found == key:
            return start + at
        if found == NO_KEY:
            return np.int64(-1)
        at = _after(at, places)


@inner_kernel
def _add(entries, row, key, first, second):
    """Add two numbers to those of a key in a row that has room for it."""
    start, places = row.start, np.int64(row.places)
    at = _home(key, places)
    while True:
        entry = entries[start + at]
        if entry.key == key:
            entry.first += first
            entry.second += second
            return
        if entry.key == NO_KEY:
            entry.key = key
            entry.first = first
            entry.second = second
            row.used += 1
            return
        at = _after(at, places)


@inner_kernel
def _remove_at(entries, row, place):
    """Empty a place and pull the keys behind it forward, so that every search still ends right."""
    start, places = row.start, np.int64(row.places)
    row.used -= 1
    gap = place - start
    at = gap
    entries[place].key = NO_KEY
    while True:
        at = _after(at, places)
        entry = entries[start + at]
        if entry.key == NO_KEY:
            return
        # It may stay where it is if its home lies, going round, behind the gap.
        if _steps(_home(entry.key, places), at, places) >= _steps(gap, at, places):
            hole = entries[start + gap]
            hole.key = entry.key
            hole.first = entry.first
            hole.second = entry.second
            entry.key = NO_KEY
            gap = at


@inner_kernel
def _after(at, places):
    return at + 1 if at + 1 < places else np.int64(0)


@inner_kernel
def _steps(start, stop, places):
    """Count the steps from one place of a row to another, going round."""
    return stop - start if stop >= start else stop - start + places


@inner_kernel
def _places_for(keys):
    """Give the number of places for so many keys: two in five of them empty, and one at least."""
    return np.int64(keys) * 5 // 3 + 1


@inner_kernel
def _places_with_spare(keys):
    """Give the number of places for a row that has outgrown its own, so that it seldom does."""
    return _places_for(keys + keys // 2 + 1)


@kernel
def _clear(entries, start, stop):
    for place in range(start, stop):
        entries[place].key = NO_KEY


@kernel
def _make_room(entries, row, counts, more):
    """Make room for more keys in a row, at the end of an array that is long enough."""
    if _places_for(row.used + more) <= row.places:
        return
    wanted = _places_with_spare(row.used + more)
    old_start, old_stop = row.start, row.start + row.places
    row.start = counts[1]
    row.places = wanted
    row.used = 0
    counts[1] += wanted
    _clear(entries, row.start, counts[1])
    for place in range(old_start, old_stop):
        entry = entries[place]
        if entry.key != NO_KEY:
            _add(entries, row, entry.key, entry.first, entry.second)


@kernel
def _moved(entries, larger, rows, counts):
    """Copy the rows in use into a larger array."""
    end = np.int64(0)
    for r in range(rows.shape[0]):
        row = rows[r]
        for offset in range(row.places):
            larger[end + offset] = entries[row.start + offset]
        row.start = end
        end += row.places
    counts[1] = end


# ------------------------------------------------------------------------------ the first state


@kernel
def _fill_clusters(samples, owner, clusters):
    for x in range(owner.shape[0]):
        cluster = clusters[owner[x]]
        if cluster.size == 0:
            cluster.head = cluster.outward = x
        else:
            samples[cluster.last].next = samples[cluster.last].next_outward = x
        cluster.last = cluster.last_outward = x
        cluster.size += 1
        samples[x].next = samples[x].next_outward = -1
        samples[x].mark = -1
    for c in range(clusters.shape[0]):
        clusters[c].divisor = np.float64(clusters[c].size) ** 2


@kernel
def _turn_edges(samples, to, weight):
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
    in_from = np.empty(end, np.int32)
    in_weight = np.empty(end, np.float64)
    for x in range(n):
        for edge in range(k):
            target = samples[to[x, edge]]
            in_from[target.in_stop] = x
            in_weight[target.in_stop] = weight[x, edge]
            target.in_stop += 1
    return in_from, in_weight


@kernel
def _lay_out_rows(rows, keys_by_row):
    """Give every row the places for its keys, one behind the other; gives their end."""
    end = np.int64(0)
    for r in range(rows.shape[0]):
        rows[r].start = end
        rows[r].places = _places_for(keys_by_row[r]) if keys_by_row[r] > 0 else 0
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
        _clear(weights, sample.start, sample.start + sample.places)
        for edge in range(k):
            cluster = owner[to[x, edge]]
            if cluster != owner[x]:
                _add(weights, sample, cluster, 0.0, weight[x, edge])
        for edge in range(sample.in_start, sample.in_stop):
            cluster = owner[in_from[edge]]
            if cluster != owner[x]:
                _add(weights, sample, cluster, in_weight[edge], 0.0)


@kernel
def _rows_of_links(samples, clusters, weights, touched):
    """Lay out a row for every cluster, with a place for each cluster it has affinity with."""
    keys = np.zeros(clusters.shape[0], np.int64)
    for c in range(clusters.shape[0]):
        count = _sum_products(samples, clusters, weights, touched, c)
        keys[c] += count
        for t in range(count):
            keys[touched[t]] += 1
        _forget_sums(clusters, touched, count)
    return _lay_out_rows(clusters, keys)


@kernel
def _fill_links(samples, clusters, weights, links, touched):
    _clear(links, 0, links.shape[0])
    for c in range(clusters.shape[0]):
        count = _sum_products(samples, clusters, weights, touched, c)
        for t in range(count):
            other = touched[t]
            _add(links, clusters[c], other, clusters[other].sum, 0.0)
            _add(links, clusters[other], c, 0.0, clusters[other].sum)
        _forget_sums(clusters, touched, count)


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
                count = _add_to_sum(clusters, touched, count, entry.key, entry.first * entry.second)
        x = sample.next
    return count


@inner_kernel
def _add_to_sum(clusters, touched, count, c, value):
    cluster = clusters[c]
    cluster.sum += value
    if not cluster.touched:
        cluster.touched = True
        touched[count] = c
        count += 1
    return count


@inner_kernel
def _forget_sums(clusters, touched, count):
    for t in range(count):
        clusters[touched[t]].sum = 0.0
        clusters[touched[t]].touched = False


# ---------------------------------------------------------------------------------- one merge


@kernel
def _merge_pair(state, links, a, b, affinity, kind, alpha):
    """Merge two clusters into the place of the larger; gives the links to go on with, and it."""
    clusters, counts = state.clusters, state.counts
    t = counts[0]
    state.nodes[t, 0] = min(clusters[a].node, clusters[b].node)
    state.nodes[t, 1] = max(clusters[a].node, clusters[b].node)
    state.affinities[t] = affinity
    counts[0] += 1
    m, n = (a, b) if clusters[a].size >= clusters[b].size else (b, a)
    touched = 0
    if kind == EXACT:
        touched = _sum_cross_terms(state, m, n, t)
    room = _most_room(clusters, state.touched, touched, m, n)
    if counts[1] + room > links.shape[0]:
        larger = np.empty(links.shape[0] + links.shape[0] // 2 + room, links.dtype)
        _moved(links, larger, clusters, counts)
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
    owner, touched, to, in_from = state.owner, state.touched, state.to, state.in_from
    gone = clusters[n]
    count = 0
    member = gone.outward
    gone.outward = gone.last_outward = -1
    while member >= 0:
        outward = False
        for edge in range(to.shape[1]):
            x = to[member, edge]
            if owner[x] != m and owner[x] != n:
                outward = True
                count = _hand_over(samples, owner, clusters, weights, touched, x, m, n, t, count)
        for edge in range(samples[member].in_start, samples[member].in_stop):
            x = in_from[edge]
            if owner[x] != m and owner[x] != n:
                outward = True
                count = _hand_over(samples, owner, clusters, weights, touched, x, m, n, t, count)
        following = samples[member].next_outward
        if outward:  # the others need never be looked at again
            samples[member].next_outward = -1
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


@inner_kernel
def _hand_over(samples, owner, clusters, weights, touched, x, m, n, t, count):
    """Make the weights between a sample and n weights between it and m, once a merge."""
    row = samples[x]
    if row.mark == t:
        return count
    row.mark = t
    place = _find(weights, row, n)
    in_n, out_n = weights[place].first, weights[place].second
    _remove_at(weights, row, place)
    place = _find(weights, row, m)
    if place < 0:
        _add(weights, row, m, in_n, out_n)
        return count
    entry = weights[place]
    cross = entry.first * out_n + in_n * entry.second
    entry.first += in_n
    entry.second += out_n
    if cross > 0:
        count = _add_to_sum(clusters, touched, count, owner[x], cross)
    return count


@kernel
def _most_room(clusters, touched, count, m, n):
    """Bound the places that a merge can add at the end of the links."""
    room = _places_with_spare(clusters[n].used + count)
    room += _places_with_spare(clusters[m].used + clusters[n].used + count)
    for t in range(count):
        room += _places_with_spare(clusters[touched[t]].used + 1)
    return room


@kernel
def _add_cross_terms(clusters, links, counts, touched, count, n):
    _make_room(links, clusters[n], counts, count)
    for t in range(count):
        _add(links, clusters[n], touched[t], 0.0, clusters[touched[t]].sum)
    _forget_sums(clusters, touched, count)


@kernel
def _approximation(m, n, kind, alpha):
    """Give what S(i -> n) counts beside S(i -> m), and what their sum is then divided by.

    Exact, the sum (with its cross terms) is divided by |m + n|^2. The approximations weigh
    A(i -> m) and A(i -> n) instead: by |m| / |m + n| and |n| / |m + n| (Eq. 18), or by
    (1 + alpha) times the squares of these (Eq. 21).
    """
    size_m, size_n = np.float64(m.size), np.float64(n.size)
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
    _make_room(links, merged, counts, gone.used)
    for place in range(gone.start, gone.start + gone.places):
        entry = links[place]
        if entry.key == NO_KEY or entry.key == m:
            continue
        from_n, to_n = entry.first, entry.second * share
        other = clusters[entry.key]
        old = _find(links, other, n)
        if old >= 0:
            _remove_at(links, other, old)
        else:
            _make_room(links, other, counts, 1)
        _add(links, merged, entry.key, from_n, to_n)
        _add(links, other, m, to_n, from_n)
    old = _find(links, merged, n)
    if old >= 0:
        _remove_at(links, merged, old)
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
    merged.size += gone.size
    gone.size = 0


@kernel
def _merge_isolated(state, links, weight, by_age, kind, alpha):
    """Merge every first cluster without affinity with the cluster its samples point to most."""
    for age in range(by_age.shape[0]):
        c = by_age[age]
        cluster = state.clusters[c]
        if state.counts[0] == state.nodes.shape[0]:
            break
        if cluster.node != age or cluster.size == 0 or cluster.used > 0:
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
                count = _add_to_sum(clusters, touched, count, other, weight[x, edge])
        x = samples[x].next
    best = np.int64(-1)
    for t in range(count):
        other = np.int64(touched[t])
        if best < 0 or _better(
            clusters[other].sum, clusters[other].node, clusters[best].sum, clusters[best].node
        ):
            best = other
    _forget_sums(clusters, touched, count)
    return best


# ---------------------------------------------------------------------- the merging criterion


@inner_kernel
def _better(value_a, node_a, value_b, node_b):
    """Larger is better; among equals, the older cluster."""
    return value_a > value_b or (value_a == value_b and node_a < node_b)


@inner_kernel
def _affinity(clusters, cluster, entry):
    """Give A(C_i, C_j) of Eq. 12 from an entry in the row of cluster i."""
    return entry.first / clusters[entry.key].divisor + entry.second / cluster.divisor


@kernel
def _look_around(clusters, links, near, c):
    """Fill a cluster's nearest neighbour clusters from all its links."""
    cluster = clusters[c]
    cluster.near = 0
    cluster.limit = -np.inf
    cluster.limit_node = NEVER
    for place in range(cluster.start, cluster.start + cluster.places):
        entry = links[place]
        if entry.key != NO_KEY:
            _remember(clusters, near, c, entry.key, _affinity(clusters, cluster, entry))


@inner_kernel
def _remember(clusters, near, c, other, affinity):
    """Put a neighbour in its place among the nearest, unless it falls behind the limit."""
    cluster, node = clusters[c], clusters[other].node
    if not _better(affinity, node, cluster.limit, cluster.limit_node):
        return
    place = np.int64(cluster.near)
    if place < near.shape[1]:
        cluster.near += 1
    else:
        place -= 1
        last = near[c, place]
        last_node = clusters[last.cluster].node
        if not _better(affinity, node, last.affinity, last_node):
            cluster.limit = affinity
            cluster.limit_node = node
            return
        cluster.limit = last.affinity
        cluster.limit_node = last_node
    while place > 0:
        before = near[c, place - 1]
        if not _better(affinity, node, before.affinity, clusters[before.cluster].node):
            break
        near[c, place].cluster = before.cluster
        near[c, place].affinity = before.affinity
        place -= 1
    near[c, place].cluster = other
    near[c, place].affinity = affinity


@inner_kernel
def _forget_near(cluster, near, c, m, n):
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
def _open_contest(state, links, n_near, lam):
    clusters, near, winners = state.clusters, state.near, state.winners
    width = winners.shape[0] // 2
    for c in range(clusters.shape[0]):
        _look_around(clusters, links, near, c)
        clusters[c].score = _criterion(clusters[c], near, c, n_near, lam)
        winners[width + c] = c
    for place in range(width - 1, 0, -1):
        winners[place] = _match(clusters, winners, place)


@inner_kernel
def _match(clusters, winners, place):
    a, b = winners[2 * place], winners[2 * place + 1]
    if b < 0:
        return a
    if _better(clusters[b].score, clusters[b].node, clusters[a].score, clusters[a].node):
        return b
    return a


@kernel
def _rescore(clusters, near, winners, c, n_near, lam):
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
        _rescore(clusters, near, winners, n, n_near, lam)
        _look_around(clusters, links, near, m)
        _rescore(clusters, near, winners, m, n_near, lam)
        merged = clusters[m]
        for place in range(merged.start, merged.start + merged.places):
            entry = links[place]
            if entry.key == NO_KEY:
                continue
            other = clusters[entry.key]
            _forget_near(other, near, entry.key, m, n)
            _remember(clusters, near, entry.key, m, _affinity(clusters, merged, entry))
            if other.near < min(n_near, other.used):
                _look_around(clusters, links, near, entry.key)
            _rescore(clusters, near, winners, entry.key, n_near, lam)
    return links
