"""The result of joint learning: SF, RC, the final labels, and the merge tree through them."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from jule.forward import Digraph, MergeTree, Neighbors
from jule.forward.affinity import weigh_neighbors
from jule.forward.assign import cluster_affinities, label_confidence, modularity
from jule.forward.branches import branch_numbers
from jule.forward.constraints import Constraints
from jule.forward.restrict import join_copies_first, tree_through_labels
from jule.forward.tree import clusters_as_nodes
from jule.joint.choose import MOST_CLUSTERS, Choice, choose_n_clusters
from jule.joint.clustering import (
    Inputs,
    Representation,
    count_neighbors,
    cut_tree,
    examine_appearance,
    examine_inputs,
    initial_clusters,
    merge_tree,
    min_size,
    represent,
)
from jule.joint.config import Config
from jule.joint.ensemble import cluster_members, member_votes
from jule.joint.quality import Space
from jule.joint.state import State
from jule.progress import Progress

LEAST_KEPT = 0.5  # of the modularity before learning; a network that keeps less forgot the samples


@dataclass(frozen=True, eq=False)
class Result:
    """The result of joint learning.

    Attributes
    ----------
    labels
        (n,) cluster of every sample: SF, RC or linkage, chosen as `finish` says, or labels that
        were edited by hand.
    labels_sf
        (n,) SF: the clusters when the recurrent process ends; if there are more than K, merged into
        K clusters without further training. For an ensemble: samples that are together in the
        clusterings of all networks, merged into K clusters in their joint representation.
    labels_rc
        (n,) RC: the final representation clustered again.
    chosen
        The origin of `labels`: ``"sf"``, ``"rc"``, ``"linkage"`` (the clustering without learning)
        or ``"edited"``.
    confidence
        (n,) how likely each sample is to be with its class, from 0 to 1. It follows from the
        fraction of its affinity that lies within its own cluster, in the graph of the final
        representation and in that of the inputs; see `jule.forward.assign.label_confidence`. For an
        ensemble, the fraction of its networks that agree counts one third; see
        `jule.joint.ensemble.member_votes`.
    tree
        The merge tree of the final representation, arranged so that its cut into K clusters is
        `labels`; see `jule.forward.restrict`.
    embedding
        (n, d) final representation of the samples, as unit vectors.
    neighbors
        The nearest neighbours in the final representation.
    sigma2
        sigma^2 of its graph (Eq. 4).
    suggestions
        The numbers of clusters that the tree suggests, the suggestion first, with their scores.
    choice
        The suggestion that was used; None if K was given.
    evidence
        Silhouette and modularity of the cuts of the tree that were considered.
    input_neighbors, input_sigma2
        The nearest neighbours of the samples before learning, and sigma^2 of their graph; None if
        they are not known. Pictures in colour have neighbours by colours, edges and textures; see
        `jule.joint.clustering.examine_appearance`.
    member_trees
        The merge trees of the networks of an ensemble, each from its own representation.
    """

    labels: NDArray[np.int32]
    labels_sf: NDArray[np.int32]
    labels_rc: NDArray[np.int32]
    chosen: str
    confidence: NDArray[np.float64]
    tree: MergeTree
    embedding: NDArray[np.float32]
    neighbors: Neighbors
    sigma2: float
    suggestions: tuple[tuple[int, float], ...]
    choice: Choice | None
    evidence: tuple[tuple[int, float, float], ...] = ()
    input_neighbors: Neighbors | None = None
    input_sigma2: float = 0.0
    member_trees: tuple[MergeTree, ...] = ()

    @property
    def n_clusters(self) -> int:
        """The number of clusters."""
        return int(self.labels.max()) + 1

    @cached_property
    def graph(self) -> Digraph:
        """The digraph W of the final representation."""
        return weigh_neighbors(self.neighbors, self.sigma2)

    @cached_property
    def graphs(self) -> tuple[Digraph, ...]:
        """The digraph of the final representation, and that of the inputs if it is known."""
        if self.input_neighbors is None:
            return (self.graph,)
        return self.graph, weigh_neighbors(self.input_neighbors, self.input_sigma2)

    @cached_property
    def votes(self) -> NDArray[np.int64] | None:
        """(E, n) cluster in which each network of an ensemble would put each sample."""
        return member_votes(self.member_trees, self.labels) if self.member_trees else None

    def confidence_in(
        self, labels: NDArray[np.int32], by_hand: NDArray[np.bool_] | None = None
    ) -> NDArray[np.float64]:
        """Return the confidence in other labels of the same samples; 1 for those moved by hand."""
        votes = member_votes(self.member_trees, labels) if self.member_trees else None
        confidence = label_confidence(self.graphs, labels, votes)
        if by_hand is not None:
            confidence[by_hand] = 1.0
        return confidence


def finish(
    state: State,
    config: Config,
    *,
    embedding: NDArray[np.float32] | None = None,
    samples: NDArray | None = None,
    first_copies: NDArray[np.int64] | None = None,
    progress: Progress | None = None,
) -> Result:
    """Cluster the final representation again, and choose between the clusterings without labels.

    Of SF, RC and linkage, which is the clustering of the samples without learning, the one with the
    largest modularity in the graph of the final representation is taken. If that one has less than
    half of the modularity of linkage in the graph of the samples before learning, linkage is taken
    instead: the network has then forgotten what it was shown.

    If K was not given, it is the number that the final tree suggests. The recurrent process may
    have ended with more clusters; SF is then what they merge into without further training. Exact
    copies share a cluster, so there are at most as many clusters as different samples; a warning
    says if that is fewer than were asked for.

    Parameters
    ----------
    state
        The state after the last period.
    config
        The settings.
    embedding
        The representation of the samples; needed for a state that was read from a file.
    samples
        The samples; a state that was read from a file needs them to cluster the inputs again, and
        the confidence in pictures in colour needs them to compare how these look. Without them, the
        inputs are left out of account, or pictures are compared by their pixels.
    first_copies
        (n,) index of the original of each sample; exact copies get the same label.
    progress
        Called with the name of a stage and the fraction of it that is done.

    Examples
    --------
    >>> points = np.random.default_rng(0).normal(size=(60, 2)).astype(np.float32)
    >>> state = State(labels=np.repeat(np.arange(3, dtype=np.int32), 20))
    >>> finish(state, Config(n_clusters=3), embedding=points).n_clusters
    3
    """
    representation = state.representation
    if representation is None:
        if embedding is None:
            raise ValueError("a state read from a file has no representation: pass the embedding")
        representation = represent(embedding, config, progress, state.constraints)
    inputs = state.inputs
    if inputs is None and samples is not None:
        inputs = examine_inputs(samples, config, progress, state.constraints)
    graph = representation.graph
    space = Space.of(representation.vectors, graph)
    tree = merge_tree(representation, initial_clusters(representation, config), config)
    copies = np.arange(len(state.labels)) if first_copies is None else first_copies
    if state.constraints is not None:
        copies = state.constraints.units  # must-links join pictures like exact copies
    n_different = len(np.unique(copies))
    suggested = choose_n_clusters(
        tree,
        space,
        min(MOST_CLUSTERS, n_different),
        min_cluster_size=config.min_cluster_size,
    )
    choice = None if config.n_clusters else suggested
    wanted = choice.k if choice else min(config.n_clusters or 1, state.n_clusters)
    k = min(wanted, n_different)
    ended_with = state.labels
    if choice is not None or state.n_clusters > wanted:
        ended_with = cut_tree(merge_tree(representation, state.labels, config), k, config)
    sf = join_copies(ended_with, copies)
    rc = _cut_with_copies(tree, k, copies, config)
    if config.n_clusters:
        warn_of_fewer_clusters(min(n_different, config.n_clusters), config.n_clusters)
        warn_of_more_clusters(tree.fewest, config.n_clusters)
    candidates = {"rc": rc}
    if sf.max() == rc.max():  # exact copies can join clusters of SF
        candidates["sf"] = sf
    if inputs is not None:
        candidates["linkage"] = _cut_with_copies(inputs.tree, k, copies, config)
    # Constraints can leave one of them with more clusters than another.
    fewest = min(labels.max() for labels in candidates.values())
    candidates = {name: found for name, found in candidates.items() if found.max() == fewest}
    chosen = _choose(candidates, graph, inputs)
    labels = candidates[chosen]
    given: Inputs | Representation | None = inputs
    if samples is not None:
        given = examine_appearance(samples, config, progress) or inputs
    graphs = (graph,) if given is None else (graph, given.graph)
    trees = state.member_trees or ()
    if config.ensemble > 1 and not trees:
        trees = cluster_members(representation.vectors, config, progress, state.constraints)
    votes = member_votes(trees, labels) if trees else None
    return Result(
        labels=labels,
        labels_sf=sf,
        labels_rc=rc,
        chosen=chosen,
        confidence=label_confidence(graphs, labels, votes),
        tree=_tree_through(
            tree,
            labels,
            representation,
            config,
            copies,
        ),
        embedding=representation.vectors,
        neighbors=representation.neighbors,
        sigma2=graph.sigma2,
        suggestions=suggested.candidates,
        choice=choice,
        evidence=suggested.evidence,
        input_neighbors=None if given is None else given.neighbors,
        input_sigma2=0.0 if given is None else given.graph.sigma2,
        member_trees=trees,
    )


def _choose(candidates: dict[str, NDArray[np.int32]], graph: Digraph, inputs: Inputs | None) -> str:
    """Return which of several clusterings to take: RC, SF or linkage; of equal ones, the first."""
    fits = {name: modularity(graph, labels) for name, labels in candidates.items()}
    chosen = max(fits, key=fits.__getitem__)
    if inputs is None:
        return chosen
    if "linkage" not in candidates:
        return chosen
    kept, possible = (modularity(inputs.graph, candidates[name]) for name in (chosen, "linkage"))
    return "linkage" if kept < LEAST_KEPT * possible else chosen


def _cut_with_copies(
    tree: MergeTree, k: int, copies: NDArray[np.int64], config: Config
) -> NDArray[np.int32]:
    """Cut a tree into k clusters that keep exact copies together."""
    labels = join_copies(cut_tree(tree, k, config), copies)
    if labels.max() + 1 < k:  # copies had clusters of their own
        labels = cut_tree(join_copies_first(tree, copies), k, config)
    return labels


def _tree_through(
    tree: MergeTree,
    labels: NDArray[np.int32],
    representation: Representation,
    config: Config,
    copies: NDArray[np.int64],
) -> MergeTree:
    return tree_through_labels(
        tree,
        labels,
        representation.graph,
        representation.vectors,
        first_copies=copies,
        n_near=config.n_near,
        lam=config.lam,
        apart=representation.apart,
    )


def with_labels(
    result: Result,
    labels: NDArray[np.int32],
    config: Config,
    *,
    by_hand: NDArray[np.bool_] | None = None,
    first_copies: NDArray[np.int64] | None = None,
    constraints: Constraints | None = None,
) -> Result:
    """Return a result with edited labels, and with confidence and tree updated accordingly.

    Parameters
    ----------
    result
        The result as it was found.
    labels
        (n,) edited clusters, 0 .. K-1.
    config
        The settings.
    by_hand
        (n,) whether each sample was moved by hand; the confidence of these is 1.
    first_copies
        (n,) index of the original of each sample, for exact copies.
    constraints
        What cuts of the tree must obey, as far as the labels do.

    Examples
    --------
    >>> points = np.random.default_rng(0).normal(size=(60, 2)).astype(np.float32)
    >>> state = State(labels=np.repeat(np.arange(3, dtype=np.int32), 20))
    >>> result = finish(state, Config(n_clusters=3), embedding=points)
    >>> with_labels(result, state.labels, Config()).chosen
    'edited'
    """
    copies = np.arange(len(labels)) if first_copies is None else first_copies
    representation = Representation(result.embedding, result.neighbors, result.graph, constraints)
    edited = replace(
        result,
        labels=labels,
        chosen="edited",
        confidence=result.confidence_in(labels, by_hand),
        tree=_tree_through(result.tree, labels, representation, config, copies),
    )
    vars(edited).update(graph=result.graph, graphs=result.graphs)  # they do not depend on labels
    return edited


def join_copies(labels: NDArray[np.int32], first_copies: NDArray[np.int64]) -> NDArray[np.int32]:
    """Return labels in which exact copies have the label of their original, without gaps.

    Examples
    --------
    >>> join_copies(np.array([0, 1, 2], np.int32), np.array([0, 0, 2])).tolist()
    [0, 0, 1]
    """
    joined = np.unique(labels[first_copies], return_inverse=True)[1].astype(np.int32)
    return joined.reshape(-1)


def recut(result: Result, k: int, config: Config, shelf: int | None = None) -> NDArray[np.int32]:
    """Return labels for a different number of clusters, without training.

    Exact copies share a cluster, so there are at most as many clusters as different samples; a
    warning says if that is fewer than k.

    Parameters
    ----------
    result
        The result.
    k
        Number of clusters.
    config
        The settings.
    shelf
        The last of its clusters, if it has what fits nowhere. It is not one of the k: its samples
        stay together, as the cluster after the others.

    Examples
    --------
    >>> points = np.random.default_rng(0).normal(size=(60, 2)).astype(np.float32)
    >>> state = State(labels=np.repeat(np.arange(3, dtype=np.int32), 20))
    >>> result = finish(state, Config(n_clusters=3), embedding=points)
    >>> recut(result, 2, Config()).max().item(), (recut(result, 3, Config()) == result.labels).all()
    (1, np.True_)
    """
    if shelf is not None:
        return _recut_beside(result, k, config, shelf)
    m = _reachable(result.tree, k)
    warn_of_fewer_clusters(m, k)
    warn_of_more_clusters(m, k)
    return result.labels if m == result.n_clusters else cut_tree(result.tree, m, config)


def _recut_beside(result: Result, k: int, config: Config, shelf: int) -> NDArray[np.int32]:
    if k == shelf:
        return result.labels
    is_shelved = result.labels == shelf
    cut = cut_tree(result.tree, _clusters_beside(result, k, config, shelf), config)
    kept, places = np.unique(cut[~is_shelved], return_inverse=True)
    warn_of_fewer_clusters(len(kept), k)
    warn_of_more_clusters(len(kept), k)
    labels = np.full(len(cut), len(kept), np.int32)
    labels[~is_shelved] = places.reshape(-1)
    return labels


def _clusters_beside(result: Result, k: int, config: Config, shelf: int) -> int:
    """Return the number of clusters of the tree of which k have samples that are not shelved."""
    tree, others = result.tree, result.labels != shelf
    m = _reachable(tree, k)
    while m < tree.n_different:
        missing = k - len(np.unique(cut_tree(tree, m, config)[others]))
        if missing <= 0:
            break
        m = min(m + missing, tree.n_different)
    return m


def _reachable(tree: MergeTree, k: int) -> int:
    """Return k, or the nearest number that copies and constraints allow."""
    k = tree.n_different if tree.n_different < k <= tree.n_samples else k
    return max(k, tree.fewest) if k >= tree.n_clusters else k


def warn_of_fewer_clusters(n_clusters: int, asked: int) -> None:
    """Warn that there are fewer clusters than were asked for, because of exact copies.

    Examples
    --------
    >>> warn_of_fewer_clusters(3, 3)
    """
    if n_clusters < asked:
        warnings.warn(
            f"{n_clusters} clusters instead of {asked}: there are only {n_clusters} different "
            "samples",
            UserWarning,
            stacklevel=3,
        )


def warn_of_more_clusters(n_clusters: int, asked: int) -> None:
    """Warn that there are more clusters than were asked for, because of constraints.

    Examples
    --------
    >>> warn_of_more_clusters(3, 3)
    """
    if n_clusters > asked:
        warnings.warn(
            f"{n_clusters} clusters instead of {asked}: corrections keep this many apart",
            UserWarning,
            stacklevel=3,
        )


def recut_numbers(
    result: Result, k: int, config: Config, shelf: int | None = None
) -> NDArray[np.int32]:
    """Return the number of every cluster after `recut`, which stays with its branch of the tree.

    Parts that a finer cut makes of the clusters have numbers from `n_clusters` on; see
    `jule.forward.branches.branch_numbers`. Parameters are those of `recut`.

    Examples
    --------
    >>> points = np.random.default_rng(0).normal(size=(60, 2)).astype(np.float32)
    >>> state = State(labels=np.repeat(np.arange(3, dtype=np.int32), 20))
    >>> result = finish(state, Config(n_clusters=3), embedding=points)
    >>> sorted(recut_numbers(result, 4, Config()).tolist())
    [0, 1, 2, 3]
    """
    m = _reachable(result.tree, k)
    if (m == result.n_clusters) if shelf is None else (k == shelf):  # as `recut` decides it
        return np.arange(result.n_clusters, dtype=np.int32)
    if shelf is not None:
        m = _clusters_beside(result, k, config, shelf)
    nodes = clusters_as_nodes(result.tree, m, min_size(result.tree, m, config))
    numbers = branch_numbers(result.tree, result.labels, shelf)[nodes]
    if shelf is None:
        return numbers
    cut = cut_tree(result.tree, m, config)
    numbers = numbers[np.unique(cut[result.labels != shelf])]
    # A cut can put small clusters with a part of the shelf: together they are a new cluster.
    lost = numbers == shelf
    numbers[lost] = numbers.max(initial=shelf) + 1 + np.arange(lost.sum())
    return np.append(numbers, np.int32(shelf))


def recut_names(
    result: Result, names: dict[int, str], k: int, config: Config, shelf: int | None = None
) -> dict[int, str]:
    """Return the cluster names after `recut`; a name stays with its branch of the tree.

    Examples
    --------
    >>> points = np.random.default_rng(0).normal(size=(60, 2)).astype(np.float32)
    >>> state = State(labels=np.repeat(np.arange(3, dtype=np.int32), 20))
    >>> result = finish(state, Config(n_clusters=3), embedding=points)
    >>> recut_names(result, {0: "cats"}, 3, Config())
    {0: 'cats'}
    """
    if not names:
        return {}
    numbers = recut_numbers(result, k, config, shelf).tolist()
    return {cluster: names[number] for cluster, number in enumerate(numbers) if number in names}


def cluster_shares(
    result: Result, config: Config, embedding: NDArray[np.floating]
) -> NDArray[np.float64]:
    """Return the fraction of each new, embedded sample's affinity per cluster.

    Examples
    --------
    >>> points = np.random.default_rng(0).normal(size=(60, 2)).astype(np.float32)
    >>> state = State(labels=np.repeat(np.arange(3, dtype=np.int32), 20))
    >>> result = finish(state, Config(n_clusters=3), embedding=points)
    >>> cluster_shares(result, Config(), points[:5]).shape
    (5, 3)
    """
    return cluster_affinities(
        embedding,
        result.embedding,
        result.labels,
        sigma2=result.sigma2,
        n_neighbors=count_neighbors(len(result.labels), config),
    )
