"""Sets of samples, joined in turn: a merge tree restricted to labels, and its branch numbers."""

from __future__ import annotations

from tests.oracles.tree import clusters_after


def node_samples(n, merges):
    """The samples below every node, in the order of the nodes."""
    samples = [{sample} for sample in range(n)]
    for a, b in merges:
        samples.append(samples[a] | samples[b])
    return samples


def merges_below(n, merges, labels, first_copies):
    """What is merged inside the clusters, in order: (samples, merge of the tree, None for copies).

    First each copy joins its original. Then, merge by merge of the tree, each cluster joins what
    it has on both sides; clusters take turns by number.
    """
    copies_of = {sample: {sample} for sample in range(n)}
    found = []
    for copy in range(n):
        if first_copies[copy] != copy:
            copies_of[first_copies[copy]].add(copy)
            found.append((set(copies_of[first_copies[copy]]), None))
    samples = node_samples(n, merges)
    for t, (a, b) in enumerate(merges):
        for cluster in range(max(labels) + 1):
            sides = [
                {x for x in side if labels[x] == cluster and first_copies[x] == x}
                for side in (samples[a], samples[b])
            ]
            if all(sides):
                joined = set().union(*(copies_of[x] for x in sides[0] | sides[1]))
                found.append((joined, t))
    return found


def branch_numbers(n, merges, labels):
    """The number of every node: see `jule.forward.branches.branch_numbers`."""
    k = max(labels) + 1
    samples = node_samples(n, merges)
    numbers = {}
    for node, inside in clusters_after(n, merges, n - k).items():
        (numbers[node],) = {labels[sample] for sample in inside}
    for t in range(n - k, len(merges)):
        parts = merges[t]
        larger = min(parts, key=lambda node: (-len(samples[node]), numbers[node]))
        numbers[n + t] = numbers[larger]
    for t in range(n - k - 1, -1, -1):
        larger, other = sorted(merges[t], key=lambda node: (-len(samples[node]), node))
        numbers[larger] = numbers[n + t]
        numbers[other] = n - 1 - t
    return [numbers[node] for node in range(n + len(merges))]
