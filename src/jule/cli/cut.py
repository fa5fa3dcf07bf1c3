"""`jule cut`: a different number of clusters, without training."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from jule.cli.errors import friendly

MOST_SIZES = 12


@friendly
def cut(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A finished run folder.")],
    n_clusters: Annotated[int, typer.Option("-k", "--clusters", min=1, help="Number of clusters.")],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="CSV file. Default: in the run folder.")
    ] = None,
) -> None:
    """Cut the merge tree of a run at a different number of clusters, without training.

    Example: jule cut photos-run -k 7
    """
    import numpy as np

    from jule.cli.reading import counted
    from jule.runs.folder import FILES, RunFolder
    from jule.runs.results import read_results
    from jule.runs.tables import write_labels

    folder = RunFolder(run)
    columns = read_results(folder).columns(n_clusters)
    path = out or run / f"labels-{n_clusters}.csv"
    if path.resolve() in {folder.path(name).resolve() for name in FILES}:
        raise ValueError(f"{path} is a file of the run itself: choose another name")
    write_labels(path, columns)
    sizes = sorted(np.bincount(columns["cluster"]).tolist(), reverse=True)
    listed = ", ".join(f"{size:,}" for size in sizes[:MOST_SIZES])
    more = ", ..." if len(sizes) > MOST_SIZES else ""
    typer.echo(f"{counted(len(sizes), 'cluster')} with {listed}{more} images: {path}")
