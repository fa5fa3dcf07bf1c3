"""`jule cut`: a different number of clusters, without training."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from jule.cli.numbers import check_clusters, whole
from jule.cli.output import counted, say

if TYPE_CHECKING:
    from jule.runs.folder import RunFolder

MOST_SIZES = 12


def cut(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A finished run folder.")],
    n_clusters: Annotated[
        int,
        typer.Option(
            "-k", "--clusters", parser=whole(1), metavar="INTEGER", help="Number of clusters."
        ),
    ],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="CSV file. Default: in the run folder.")
    ] = None,
) -> None:
    """Cut the merge tree of a run at a different number of clusters, without training.

    Example: jule cut photos-run -k 7
    """
    import numpy as np

    from jule.corrections.apply import SHELF
    from jule.runs.folder import RunFolder
    from jule.runs.results import read_results
    from jule.runs.tables import labels_csv

    folder = RunFolder(run)
    results = read_results(folder)
    check_clusters(n_clusters, results.result.tree, run)
    if results.n_clusters == 0:
        raise ValueError("all images of this run are unsure, so there is nothing to cut")
    columns = results.columns(n_clusters)
    numbers, counts = np.unique(columns["cluster"], return_counts=True)
    n_shelved = int(counts[numbers == SHELF].sum())
    sizes = sorted(counts[numbers != SHELF].tolist(), reverse=True)
    path = out or run / f"labels-{len(sizes)}.csv"
    _save(folder, path, labels_csv(columns))
    listed = ", ".join(f"{size:,}" for size in sizes[:MOST_SIZES])
    more = ", ..." if len(sizes) > MOST_SIZES else ""
    # A warning has said why.
    fewer = f" ({n_clusters:,} were asked for)" if len(sizes) < n_clusters else ""
    unsure = f", and {counted(n_shelved, 'unsure image')}" if n_shelved else ""
    say(f"{counted(len(sizes), 'cluster')}{fewer} with {listed}{more} images{unsure}: {path}")


def _save(run: RunFolder, path: Path, content: bytes) -> None:
    """Write a table to a file of the user's choice; in the run, it becomes a file of the run."""
    from jule.cli.reading import check_not_own
    from jule.files import write_atomic
    from jule.runs.names import is_own_name

    check_not_own(path, run.folder)
    if path.parent.resolve() == run.folder.resolve() and is_own_name(path.name):
        run.update({path.name: content})
    else:
        write_atomic(path, content, private=False)
