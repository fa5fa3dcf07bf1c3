"""Clusters that merging keeps apart: they have no link, and never get one.

Once two clusters are kept apart, so is everything that is merged with them. Their links can
therefore be removed as they appear, and the rest of merging does not know of constraints.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jule.forward.linkage_state import LinkageState
from jule.forward.tables import find, inner_kernel, kernel, remove_at


class KeptApart(NamedTuple):
    """Pairs of clusters that are kept apart, as ends 2 p and 2 p + 1 of pair p."""

    end: NDArray[np.int32]  # (2 m,) a sample of the initial cluster at each end
    next: NDArray[np.int32]  # (2 m,) next end in the same cluster, or -1
    first: NDArray[np.int32]  # (c,) first and last end in each cluster, or -1
    last: NDArray[np.int32]


def keep_apart(
    state: LinkageState, links: NDArray[np.void], pairs: NDArray[np.integer] | None
) -> KeptApart | None:
    """Remove the links between pairs of initial clusters; returns what is needed to keep on so.

    Without pairs, it returns None, for which kernels are compiled without a trace of constraints.
    """
    if pairs is None or len(pairs) == 0:
        return None
    pairs = np.unique(np.sort(pairs, axis=1), axis=0).astype(np.int32)
    n_initial = len(state.clusters)
    kept = KeptApart(
        state.clusters["head"][pairs.ravel()],
        np.full(pairs.size, -1, np.int32),
        np.full(n_initial, -1, np.int32),
        np.full(n_initial, -1, np.int32),
    )
    _fill_ends(kept, pairs.ravel())
    for cluster in np.unique(pairs).tolist():
        separate(state, links, kept, cluster)
    return kept


@kernel
def _fill_ends(kept, clusters):
    for end in range(clusters.shape[0]):
        c = clusters[end]
        if kept.first[c] < 0:
            kept.first[c] = end
        else:
            kept.next[kept.last[c]] = end
        kept.last[c] = end


@inner_kernel
def move_ends(kept, m, n):
    """Append the ends in cluster n, which was merged into m, to those in m."""
    if kept.first[n] < 0:
        return
    if kept.first[m] < 0:
        kept.first[m] = kept.first[n]
    else:
        kept.next[kept.last[m]] = kept.first[n]
    kept.last[m] = kept.last[n]
    kept.first[n] = -1


@kernel
def separate(state, links, kept, m):
    """Remove the links between m and all that it is kept apart from.

    Returns the number of clusters that had one; they are listed in `state.touched`.
    """
    clusters = state.clusters
    count = 0
    end = kept.first[m]
    while end >= 0:
        other = state.owner[kept.end[end ^ 1]]
        slot = find(links, clusters[m], other)
        if slot >= 0:
            remove_at(links, clusters[m], slot)
            remove_at(links, clusters[other], find(links, clusters[other], m))
            state.touched[count] = other
            count += 1
        end = kept.next[end]
    return count


@inner_kernel
def is_kept_apart(state, kept, a, b):
    """Return whether two clusters are kept apart."""
    end = kept.first[a]
    while end >= 0:
        if state.owner[kept.end[end ^ 1]] == b:
            return True
        end = kept.next[end]
    return False
