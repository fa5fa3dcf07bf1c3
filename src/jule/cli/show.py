"""Show the clusters of a run as a table in the terminal."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from jule.cli.output import counted_clusters, say, say_table
from jule.corrections.apply import SHELF
from jule.runs.results import RunResults

MOST_ROWS = 30
MOST_CLASSES = 4


def print_clusters(results: RunResults, labels: NDArray | None = None) -> None:
    """Print name, size and confidence of each cluster, and its true classes if they are known."""
    result = results.result
    if result.choice is not None:
        others = ", ".join(str(k) for k, _ in result.choice.candidates[1:])
        next_best = f"; next best: {others} (see jule cut)" if others else ""
        say(f"suggested number of clusters: {result.n_clusters}{next_best}")
    names = results.cluster_names
    columns = ["cluster", *(["name"] if names else []), "images", "confidence"]
    if labels is not None:
        columns.append("true classes")
    sizes = np.bincount(result.labels)
    rows = []
    for cluster in range(min(len(sizes), MOST_ROWS)):
        inside = result.labels == cluster
        row = [str(results.numbers[cluster]), *([names.get(cluster, "")] if names else [])]
        row += [f"{sizes[cluster]:,}", f"{result.confidence[inside].mean():.2f}"]
        if labels is not None:
            row.append(list_classes(labels[inside]))
        rows.append(row)
    say_table(columns, rows)
    if len(sizes) > MOST_ROWS:
        say(f"... and {len(sizes) - MOST_ROWS} more")
    if results.shelf is not None:
        counted = counted_clusters(results.shelf, int(sizes[results.shelf]))
        say(f"{counted} (unsure images have the number {SHELF})")
    if results.scores is not None:
        titles = {"sf": "SF", "rc": "RC"}
        if result.chosen == "linkage":
            titles["labels"] = "without learning"
        parts = [
            f"{title}: NMI {results.scores[which]['nmi']:.3f} AC {results.scores[which]['ac']:.3f}"
            for which, title in titles.items()
        ]
        chosen = titles.get(result.chosen)
        say(", ".join(parts) + (f"; {chosen} was chosen without labels" if chosen else ""))
    if result.chosen == "linkage":
        say("the clusters without learning scored higher than those with it, and were kept")


def list_classes(labels: NDArray) -> str:
    """List the classes in a cluster, the most frequent first.

    Examples
    --------
    >>> list_classes(np.array([3, 3, 8]))
    '2 x 3, 1 x 8'
    """
    classes, counts = np.unique(labels, return_counts=True)
    order = np.argsort(-counts, kind="stable")
    shown = ", ".join(f"{counts[i]} x {classes[i]}" for i in order[:MOST_CLASSES])
    return shown + (", ..." if len(order) > MOST_CLASSES else "")
