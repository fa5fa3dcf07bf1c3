"""The end of a run: SF, RC, the one that a user gets, and the tree of the final representation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jule.forward import Digraph, MergeTree
from jule.forward.assign import cluster_affinities, label_confidence, modularity
from jule.joint.choose import Choice, choose_n_clusters
from jule.joint.clustering import cut, first_clusters, merge_tree, view
from jule.joint.config import Config
from jule.joint.stages import Progress
from jule.joint.state import State


@dataclass(frozen=True, eq=False)
class Result:
    """What a run ends with.

    Attributes
    ----------
    labels
        The robust choice: `labels_rc` or `labels_sf`, whichever has the larger modularity in the
        graph of the final representation.
    labels_sf
        SF: the clusters when the recurrent process ends.
    labels_rc
        RC: the final representation clustered anew.
    chosen
        ``"sf"`` or ``"rc"``: which one `labels` is.
    confidence
        (n,) the share of a sample's affinity that stays inside its cluster, 0 .. 1.
    tree
        The whole merge tree of the final representation.
    embedding
        (n, d) unit vectors, the final representation.
    sigma2
        Of the final graph (Eq. 4).
    choice
        The suggested number of clusters; None where K was given.
    """

    labels: NDArray[np.int32]
    labels_sf: NDArray[np.int32]
    labels_rc: NDArray[np.int32]
    chosen: str
    confidence: NDArray[np.float64]
    tree: MergeTree
    embedding: NDArray[np.float32]
    sigma2: float
    choice: Choice | None


def finish(
    embedding: NDArray[np.float32],
    state: State,
    config: Config,
    progress: Progress | None = None,
) -> Result:
    """Cluster the final representation anew, and choose between both results without labels.

    Where K was left open, both results have the number of clusters that the final tree suggests
    or that the process ended with, respectively.

    Examples
    --------
    >>> finish(embedding, state, config).labels  # doctest: +SKIP
    """
    seen = view(embedding, config, progress)
    tree = merge_tree(seen, first_clusters(seen, config), config)
    choice = None if config.n_clusters else choose_n_clusters(tree, seen.graph)
    anew = cut(tree, choice.k if choice else state.n_clusters, config)
    chosen = "rc" if _prefers(seen.graph, anew, state.labels) else "sf"
    labels = anew if chosen == "rc" else state.labels
    return Result(
        labels=labels,
        labels_sf=state.labels,
        labels_rc=anew,
        chosen=chosen,
        confidence=label_confidence(seen.graph, labels),
        tree=tree,
        embedding=embedding,
        sigma2=seen.graph.sigma2,
        choice=choice,
    )


def _prefers(graph: Digraph, one: NDArray[np.int32], other: NDArray[np.int32]) -> bool:
    return modularity(graph, one) >= modularity(graph, other)


def cluster_shares(
    result: Result, config: Config, embedding: NDArray[np.floating]
) -> NDArray[np.float64]:
    """Give, for embedded new samples, the share of affinity that each cluster has around them.

    Examples
    --------
    >>> cluster_shares(result, config, embed(embedder, more)).argmax(axis=1)  # doctest: +SKIP
    """
    return cluster_affinities(
        embedding,
        result.embedding,
        result.labels,
        sigma2=result.sigma2,
        n_neighbors=config.n_neighbors,
    )
