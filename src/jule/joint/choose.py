"""How many clusters, when nobody says."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jule.forward import MergeTree
from jule.forward.tree import counting_affinities

MOST_CLUSTERS = 100


@dataclass(frozen=True)
class Choice:
    """A suggested number of clusters.

    Attributes
    ----------
    k
        The suggestion.
    sureness
        0 .. 1: how far the gap at k stands out from the next largest; 0 is a tie.
    candidates
        The best few numbers, best first, each with its relative gap.
    """

    k: int
    sureness: float
    candidates: tuple[tuple[int, float], ...]


def choose_n_clusters(tree: MergeTree, most: int = MOST_CLUSTERS) -> Choice:
    """Suggest the number of clusters after which merging costs most.

    Let b_k be the affinity of the merge that ends k clusters (clusters of fewer than n / (20 k)
    samples do not count). Where b_{k+1} is much larger than b_k, the last merge joined what
    belongs together and the next would join what does not: the k of the largest relative gap
    b_{k+1} / b_k is suggested.

    Examples
    --------
    >>> from jule.forward import agglomerate
    >>> rng = np.random.default_rng(0)
    >>> samples = np.concatenate([rng.normal(c, 0.3, (40, 2)) for c in (0, 3, 6)])
    >>> choose_n_clusters(agglomerate(samples)).k
    3
    """
    most = max(2, min(most, tree.n_first // 2, tree.n_samples - 1))
    gaps = _relative_gaps(counting_affinities(tree, most + 1))
    order = np.argsort(-gaps, kind="stable")
    ranked = tuple((int(place) + 2, float(gaps[place])) for place in order[:5])
    first = ranked[0][1]
    second = ranked[1][1] if len(ranked) > 1 else 1.0
    return Choice(ranked[0][0], float(np.clip(1.0 - second / first, 0.0, 1.0)), ranked)


def _relative_gaps(ending: NDArray[np.float64]) -> NDArray[np.float64]:
    """Give b_{k+1} / b_k for k = 2, 3, ...; `ending` holds b_2, b_3, ..."""
    if len(ending) < 2:
        return np.ones(1)
    known = ending[np.isfinite(ending) & (ending > 0)]
    least, largest = (known.min(), known.max()) if len(known) else (1.0, 1.0)
    # Joining without any affinity is far worse than any merge; inside first clusters, as the best.
    ending = np.clip(ending, 1e-3 * least, largest)
    gaps: NDArray[np.float64] = ending[1:] / ending[:-1]
    return gaps
