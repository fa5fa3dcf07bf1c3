"""`jule cut`: another number of clusters, without training again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from jule.cli.errors import friendly


@friendly
def cut(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A finished run folder.")],
    n_clusters: Annotated[int, typer.Option("-k", "--clusters", help="How many clusters.")],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="The CSV to write; left out: in the run.")
    ] = None,
) -> None:
    """Cut a run's merge tree at another number of clusters, at once.

    Example: jule cut pictures-run -k 7
    """
    import numpy as np

    from jule.copies import labels_together
    from jule.forward import affinity_graph, nearest_neighbors
    from jule.forward.assign import label_confidence
    from jule.joint.clustering import cut as cut_tree
    from jule.runs import Run, first_copies_of, read_results
    from jule.sheets import write_labels

    folder = Run(run)
    finished = read_results(folder)
    result, config = finished.result, finished.config
    labels = cut_tree(result.tree, n_clusters, config)
    labels = labels_together(labels, first_copies_of(folder, finished.names))
    neighbors = nearest_neighbors(
        result.embedding, min(config.n_neighbors, len(result.embedding) - 1)
    )
    confidence = label_confidence(affinity_graph(neighbors, config.a), labels)
    path = out or run / f"labels-{n_clusters}.csv"
    write_labels(path, finished.names, labels, confidence)
    sizes = ", ".join(f"{size:,}" for size in sorted(np.bincount(labels), reverse=True)[:12])
    typer.echo(f"{n_clusters} clusters of {sizes}{', ...' if n_clusters > 12 else ''}: {path}")
