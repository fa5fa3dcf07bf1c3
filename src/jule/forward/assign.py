"""Affinities between samples and clusters: assignment, confidence and modularity."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from jule.forward.affinity import Digraph
from jule.forward.init import cluster_means
from jule.forward.tree import default_min_cluster_size

BLOCK_CELLS = 2**23  # products per block: 64 MiB
GAP_CELLS = 2**17  # differences per block: 1 MiB, which stays in the cache of a core
SAMPLES_PER_NEIGHBOR = 3  # in a cluster, for each neighbour that counts for the confidence
DISTRUST = 4  # how steeply the weight of a learned graph falls with what the inputs do not show


def neighbor_votes(
    new: NDArray[np.floating],
    samples: NDArray[np.floating],
    *,
    sigma2: float,
    n_neighbors: int = 20,
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the nearest clustered samples of each new sample, and the weights of their votes.

    The weights are the affinities of Eq. 4, exp(-|x - y|^2 / sigma^2), divided by their sum. They
    are computed relative to that of the nearest, so that they do not vanish far from all samples.

    Parameters
    ----------
    new
        (m, d) samples to assign.
    samples
        (n, d) clustered samples.
    sigma2
        sigma^2 of Eq. 4.
    n_neighbors
        K_s.

    Returns
    -------
    nearest
        (m, K_s) clustered samples, in no particular order.
    weights
        (m, K_s) weights; every row sums to 1.

    Examples
    --------
    >>> old = np.array([[0.0], [1.0], [9.0]])
    >>> nearest, weights = neighbor_votes(np.array([[0.5]]), old, sigma2=1.0, n_neighbors=2)
    >>> sorted(nearest[0].tolist()), weights.tolist()
    ([0, 1], [[0.5, 0.5]])
    """
    k = min(n_neighbors, len(samples))
    # In float64 the result does not depend on the other samples of the block.
    new, samples = new.astype(np.float64), samples.astype(np.float64)
    half_norms = 0.5 * np.einsum("ij,ij->i", samples, samples)
    nearest, weights = np.empty((len(new), k), np.int64), np.empty((len(new), k))
    rows = max(1, BLOCK_CELLS // len(samples))
    for start in range(0, len(new), rows):
        block = new[start : start + rows]
        scores = half_norms - block @ samples.T  # half the squared distance, without |x|^2 / 2
        found = np.argpartition(scores, k - 1, axis=1)[:, :k]
        distances = 2.0 * np.take_along_axis(scores, found, axis=1)
        distances -= distances.min(axis=1, keepdims=True)
        nearest[start : start + rows] = found
        weights[start : start + rows] = (
            np.exp(-distances / sigma2) if sigma2 > 0 else (distances == 0.0) * 1.0
        )
    return nearest, weights / weights.sum(axis=1, keepdims=True)


def cluster_affinities(
    new: NDArray[np.floating],
    samples: NDArray[np.floating],
    labels: NDArray[np.integer],
    *,
    sigma2: float,
    n_neighbors: int = 20,
) -> NDArray[np.float64]:
    """Return the fraction of each new sample's affinity that belongs to each cluster.

    Parameters
    ----------
    new
        (m, d) samples to assign.
    samples, labels
        (n, d) clustered samples and their clusters.
    sigma2, n_neighbors
        See `neighbor_votes`.

    Returns
    -------
    NDArray
        (m, k) fractions; every row sums to 1.

    Examples
    --------
    >>> old, labels = np.array([[0.0], [1.0], [9.0]]), np.array([0, 0, 1])
    >>> cluster_affinities(np.array([[8.5]]), old, labels, sigma2=1.0).round(3).tolist()
    [[0.0, 1.0]]
    """
    nearest, weights = neighbor_votes(new, samples, sigma2=sigma2, n_neighbors=n_neighbors)
    return count_votes(nearest, weights, labels)


def count_votes(
    nearest: NDArray[np.integer], weights: NDArray[np.float64], labels: NDArray[np.integer]
) -> NDArray[np.float64]:
    """Return the sum of the votes of `neighbor_votes` for each cluster, (m, k).

    Examples
    --------
    >>> count_votes(np.array([[0, 1]]), np.array([[0.7, 0.3]]), np.array([1, 0])).tolist()
    [[0.3, 0.7]]
    """
    m, k = len(nearest), int(labels.max()) + 1
    votes = np.arange(m)[:, None] * k + labels[nearest]
    total: NDArray[np.float64] = np.zeros(m * k)
    np.add.at(total, votes.ravel(), weights.ravel())
    return total.reshape(m, k)


def label_confidence(
    graphs: Sequence[Digraph],
    labels: NDArray[np.integer],
    votes: NDArray[np.integer] | None = None,
) -> NDArray[np.float64]:
    """Return how likely it is that each sample is with its class, from 0 to 1.

    It follows from the fraction of its affinity within its own cluster, f (`own_fractions`), and
    from the size of the cluster: by chance, neighbours are in a large cluster more often than in a
    small one. With t = s^(1 - q), where s is the mean cluster size divided by the size of its own
    cluster, it is f t in clusters larger than the mean, and f t / (f t + 1 - f) in smaller ones:
    their odds are t times those of f. How much sizes count thus depends on how far the inputs bear
    the clusters out: q is 1 if they show them as clearly as the learned graph does (`borne_out`),
    and the sizes of the clusters are then taken for those of the classes. The mean size is n / K,
    where clusters that are tiny (`default_min_cluster_size`), or of one sample, do not count.

    Parameters
    ----------
    graphs
        Digraphs over the same samples: the learned one, and that of the inputs if it is known.
    labels
        (n,) clusters.
    votes
        (m, n) clusters by other methods, -1 for none of these; the fraction of them that agrees
        counts one half as much as the graphs.

    Examples
    --------
    >>> from jule.forward import affinity_graph, nearest_neighbors
    >>> graph = affinity_graph(nearest_neighbors([[0.0], [1.0], [8.0], [9.0]], k=1))
    >>> label_confidence([graph], np.array([0, 0, 0, 1])).tolist()
    [1.0, 1.0, 0.0, 0.0]
    """
    q = borne_out(graphs, labels)
    found = _weighted_fractions(graphs, labels, q)
    return _with_votes(_relative_to_size(found, labels, q), labels, votes)


def own_fractions(
    graphs: Sequence[Digraph],
    labels: NDArray[np.integer],
    votes: NDArray[np.integer] | None = None,
) -> NDArray[np.float64]:
    """Return the fraction of each sample's affinity, to and from others, within its own cluster.

    At most a third as many neighbours count for a sample as its cluster has samples: in a cluster
    of a dozen, most of 20 neighbours have to be elsewhere, however sound the cluster is. The
    fractions of two graphs are weighted by `graph_weights`. Parameters are those of
    `label_confidence`.

    Examples
    --------
    >>> from jule.forward import affinity_graph, nearest_neighbors
    >>> graph = affinity_graph(nearest_neighbors([[0.0], [1.0], [8.0], [9.0]], k=1))
    >>> own_fractions([graph], np.array([0, 0, 0, 1])).tolist()
    [1.0, 1.0, 0.0, 0.0]
    """
    found = _weighted_fractions(graphs, labels, borne_out(graphs, labels))
    return _with_votes(found, labels, votes)


def _weighted_fractions(
    graphs: Sequence[Digraph], labels: NDArray[np.integer], q: float
) -> NDArray[np.float64]:
    mean: NDArray[np.float64] = np.zeros(len(labels))
    for graph, weight in zip(graphs, graph_weights(graphs, q), strict=True):
        mean += weight * _own_fraction(graph, labels)
    return mean


def _relative_to_size(
    fractions: NDArray[np.float64], labels: NDArray[np.integer], q: float
) -> NDArray[np.float64]:
    sizes = np.bincount(labels)
    least = max(2, default_min_cluster_size(len(labels), int(np.count_nonzero(sizes))))
    mean = len(labels) / max(1, int(np.count_nonzero(sizes >= least)))
    scaled = fractions * (mean / sizes[labels]) ** (1.0 - q)
    is_large = sizes[labels] > mean
    relative: NDArray[np.float64] = np.where(
        is_large, scaled, scaled / np.where(is_large, 1.0, scaled + (1.0 - fractions))
    )
    return relative


def _with_votes(
    found: NDArray[np.float64], labels: NDArray[np.integer], votes: NDArray[np.integer] | None
) -> NDArray[np.float64]:
    if votes is None:
        return found
    agreed: NDArray[np.float64] = (2.0 * found + (votes == labels).mean(axis=0)) / 3.0
    return agreed


def graph_weights(graphs: Sequence[Digraph], q: float) -> tuple[float, ...]:
    """Return how much each graph counts for the confidence in labels.

    The graph of a representation that was trained on such labels is sure of them, whatever they
    are. It counts q^4, as far as the inputs bear it out, and the graph of the inputs 1 - q^4.

    Parameters
    ----------
    graphs
        The learned graph, and that of the inputs if it is known.
    q
        See `borne_out`.

    Examples
    --------
    >>> from jule.forward import affinity_graph, nearest_neighbors
    >>> graph = affinity_graph(nearest_neighbors([[0.0], [1.0], [9.0]], k=1))
    >>> graph_weights([graph, graph], 0.5), graph_weights([graph], 1.0)
    ((0.0625, 0.9375), (1.0,))
    """
    if len(graphs) == 1:
        return (1.0,)
    weight = q**DISTRUST
    return (weight, 1.0 - weight)


def borne_out(graphs: Sequence[Digraph], labels: NDArray[np.integer]) -> float:
    """Return how far the inputs bear out what the learned graph shows of clusters, from 0 to 1.

    It is q, the modularity of the labels in the graph of the inputs, divided by that in the learned
    graph. It is 0 where one of them does not show the clusters, and 1 if the inputs are not known.

    Parameters
    ----------
    graphs
        The learned graph, and that of the inputs if it is known.
    labels
        (n,) clusters.

    Examples
    --------
    >>> from jule.forward import affinity_graph, nearest_neighbors
    >>> clear = affinity_graph(nearest_neighbors([[0.0], [0.1], [0.2], [9.0], [9.1], [9.2]], k=2))
    >>> blurred = affinity_graph(nearest_neighbors([[0.0], [1.0], [3.0], [4.0], [5.0], [6.0]], k=2))
    >>> round(borne_out([clear, blurred], np.array([0, 0, 0, 1, 1, 1])), 2)
    0.52
    """
    if len(graphs) == 1:
        return 1.0
    learned, given = (modularity(graph, labels) for graph in graphs)
    return min(max(given / learned, 0.0), 1.0) if learned > 0.0 else 0.0


def _own_fraction(graph: Digraph, labels: NDArray[np.integer]) -> NDArray[np.float64]:
    weights, is_own = _counting(graph, labels), labels[graph.indices] == labels[:, None]
    total, own = _both_ways(graph, weights), _both_ways(graph, weights * is_own)
    # Without any affinity, neighbours count alike.
    fraction: NDArray[np.float64] = is_own.mean(axis=1)
    np.divide(own, total, out=fraction, where=total > 0)
    return np.minimum(fraction, 1.0, out=fraction)  # rounding can push it just above 1


def _counting(graph: Digraph, labels: NDArray[np.integer]) -> NDArray[np.floating]:
    """Return the weights of a graph, and 0 for neighbours that are too far down to count."""
    limits = np.maximum(1, np.bincount(labels)[labels] // SAMPLES_PER_NEIGHBOR)
    if limits.min() >= graph.indices.shape[1]:
        return graph.weights
    counts = np.arange(graph.indices.shape[1]) < limits[:, None]  # the nearest come first
    return np.where(counts, graph.weights, 0.0)


def _both_ways(graph: Digraph, weights: NDArray[np.floating]) -> NDArray[np.float64]:
    """Return the sum of the weights of edges from and to each sample."""
    into = np.bincount(graph.indices.ravel(), weights.ravel(), len(graph))
    total: NDArray[np.float64] = weights.sum(axis=1, dtype=np.float64) + into
    return total


def cluster_fractions(
    graphs: Sequence[Digraph],
    labels: NDArray[np.integer],
    samples: NDArray[np.integer],
    votes: NDArray[np.integer] | None = None,
) -> NDArray[np.float64]:
    """Return the fraction of some samples' affinity, to and from others, within each cluster.

    Parameters
    ----------
    graphs
        As for `label_confidence`.
    labels
        (n,) clusters.
    samples
        (m,) the samples in question.
    votes
        As for `label_confidence`.

    Returns
    -------
    NDArray
        (m, k) fractions; those of a sample's own cluster are its `own_fractions`.

    Examples
    --------
    >>> from jule.forward import affinity_graph, nearest_neighbors
    >>> graph = affinity_graph(nearest_neighbors([[0.0], [1.0], [2.0], [9.0]], k=1))
    >>> cluster_fractions([graph], np.array([0, 0, 0, 1]), np.array([3])).tolist()
    [[1.0, 0.0]]
    """
    m, k = len(samples), int(labels.max()) + 1
    place = np.full(len(labels), -1)
    place[samples] = np.arange(m)
    found = np.zeros((m, k))
    shares = graph_weights(graphs, borne_out(graphs, labels))
    for graph, share in zip(graphs, shares, strict=True):
        counting = _counting(graph, labels)
        # Without any affinity, neighbours count alike.
        has_none = _both_ways(graph, counting)[samples] == 0
        weights = np.where(has_none[:, None], 1.0, counting[samples])
        to = np.arange(m)[:, None] * k + labels[graph.indices[samples]]
        sums = np.bincount(to.ravel(), weights.ravel(), m * k)
        source, column = np.nonzero(place[graph.indices] >= 0)
        back = place[graph.indices[source, column]] * k + labels[source]
        sums += np.bincount(back, counting[source, column], m * k)
        fractions = sums.reshape(m, k)
        found += share * fractions / fractions.sum(axis=1, keepdims=True)
    if votes is None:
        return found
    found *= 2.0
    for vote in votes:
        row = np.flatnonzero(vote[samples] >= 0)
        found[row, vote[samples[row]]] += 1.0 / len(votes)
    return found / 3.0


def modularity(graph: Digraph, labels: NDArray[np.integer]) -> float:
    """Compute the directed modularity of a clustering in the graph W (Leicht and Newman, 2008).

    It compares the affinity inside the clusters with its expectation for random edges.

    Examples
    --------
    >>> from jule.forward import affinity_graph, nearest_neighbors
    >>> graph = affinity_graph(nearest_neighbors([[0.0], [1.0], [8.0], [9.0]], k=1))
    >>> modularity(graph, np.array([0, 0, 1, 1])), modularity(graph, np.array([0, 0, 0, 0]))
    (0.5, 0.0)
    """
    k = int(labels.max()) + 1
    total = float(graph.weights.sum())
    if total == 0:
        return 0.0
    inside = float((graph.weights * (labels[graph.indices] == labels[:, None])).sum())
    out_mass = np.bincount(labels, graph.weights.sum(axis=1), k)
    in_mass = np.bincount(labels[graph.indices].ravel(), graph.weights.ravel(), k)
    return inside / total - float(out_mass @ in_mass) / total**2


def centre_distances(
    vectors: NDArray[np.floating],
    labels: NDArray[np.integer],
    means: NDArray[np.floating] | None = None,
) -> NDArray[np.float64]:
    """Return the squared distance of every sample from the mean of its cluster.

    The smaller the distance, the more typical the sample is of its cluster. `means` are those of
    `cluster_means`, if they are known.

    Examples
    --------
    >>> centre_distances(np.array([[0.0], [2.0], [7.0]]), np.array([0, 0, 1])).tolist()
    [1.0, 1.0, 0.0]
    """
    centres = (cluster_means(vectors, labels) if means is None else means).astype(np.float64)
    distances = np.empty(len(vectors))
    rows = max(1, GAP_CELLS // max(1, vectors.shape[1]))
    for start in range(0, len(vectors), rows):
        gap = vectors[start : start + rows] - centres[labels[start : start + rows]]
        distances[start : start + rows] = np.einsum("ij,ij->i", gap, gap)
    return distances
