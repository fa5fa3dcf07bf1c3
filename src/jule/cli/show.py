"""What was found, in a few lines of text."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from jule.evaluation import accuracy, nmi
from jule.joint import Result

MOST_ROWS = 30


def show_clusters(console: Console, result: Result, labels: NDArray | None = None) -> None:
    """Print the clusters with their sizes and how sure they are, and scores where possible.

    Examples
    --------
    >>> show_clusters(Console(), result)  # doctest: +SKIP
    """
    if result.choice is not None:
        others = ", ".join(str(k) for k, _ in result.choice.candidates[1:4])
        console.print(
            f"{result.choice.k} clusters are suggested (sureness {result.choice.sureness:.2f}); "
            f"next best: {others}"
        )
    holds = Table("cluster", "images", "confidence")
    if labels is not None:
        holds.add_column("classes in it")
    sizes = np.bincount(result.labels)
    for cluster in range(min(len(sizes), MOST_ROWS)):
        inside = result.labels == cluster
        row = [str(cluster), f"{sizes[cluster]:,}", f"{result.confidence[inside].mean():.2f}"]
        if labels is not None:
            row.append(contents(labels[inside]))
        holds.add_row(*row)
    console.print(holds)
    if len(sizes) > MOST_ROWS:
        console.print(f"... and {len(sizes) - MOST_ROWS} more")
    if labels is not None:
        found = {"SF": result.labels_sf, "RC": result.labels_rc}
        console.print(
            ", ".join(
                f"{name}: NMI {nmi(labels, which):.3f} AC {accuracy(labels, which):.3f}"
                for name, which in found.items()
            )
            + f"; {result.chosen.upper()} was chosen, without the labels",
            highlight=False,
        )


def contents(labels: NDArray) -> str:
    """Say which classes a cluster holds, the most frequent first.

    Examples
    --------
    >>> contents(np.array([3, 3, 8]))
    '2 x 3, 1 x 8'
    """
    classes, counts = np.unique(labels, return_counts=True)
    order = np.argsort(-counts, kind="stable")
    shown = ", ".join(f"{counts[i]} x {classes[i]}" for i in order[:4])
    return shown + (", ..." if len(order) > 4 else "")
