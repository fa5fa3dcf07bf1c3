"""Cuts of a tree of merges: sets of samples, joined one after the other."""

from __future__ import annotations


def clusters_after(n, merges, steps):
    """The clusters after so many merges: {node: its samples}."""
    clusters = {sample: {sample} for sample in range(n)}
    for t in range(steps):
        a, b = merges[t]
        clusters[n + t] = clusters.pop(a) | clusters.pop(b)
    return clusters


def labels_of(clusters):
    """Every sample's cluster, clusters numbered by their first sample."""
    labels = {}
    for number, samples in enumerate(sorted(clusters, key=min)):
        for sample in samples:
            labels[sample] = number
    return [labels[sample] for sample in sorted(labels)]


def cut(n, merges, k):
    return labels_of(clusters_after(n, merges, n - k).values())


def last_moment(n, merges, k, size):
    """How many merges are made when k clusters of that size exist for the last time, or None."""
    for steps in range(len(merges), -1, -1):
        samples = clusters_after(n, merges, steps).values()
        if sum(len(cluster) >= size for cluster in samples) >= k:
            return steps
    return None


def cut_without_small(n, merges, k, size):
    """The cut at the last moment with k clusters of that size; what is smaller is absorbed.

    Size is measured at the cut; among clusters of the same size, the one in the older branch (that
    of the smaller node number) takes what joins the two.
    """
    while (steps := last_moment(n, merges, k, size)) is None:
        size -= 1
    clusters = clusters_after(n, merges, steps)
    kept = {node: samples for node, samples in clusters.items() if len(samples) >= size}
    final = {node: set(samples) for node, samples in kept.items()}
    # Every branch knows the largest cluster in it, or else the samples that still wait for one.
    largest = {node: node if node in kept else None for node in clusters}
    waiting = {node: set() if node in kept else samples for node, samples in clusters.items()}
    for t in range(steps, len(merges)):
        a, b = sorted(merges[t])
        both = [branch for branch in (largest[a], largest[b]) if branch is not None]
        largest[n + t] = max(both, key=lambda node: len(kept[node])) if both else None
        waiting[n + t] = waiting[a] | waiting[b]
        if both:
            final[largest[n + t]] |= waiting[n + t]
            waiting[n + t] = set()
    return labels_of(final.values())
