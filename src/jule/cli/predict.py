"""`jule predict`: predict the clusters of new pictures with a finished run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from jule.cli.cluster import LOADING, DeviceOption
from jule.cli.errors import friendly
from jule.cli.reading import (
    CacheOption,
    Source,
    Strict,
    counted,
    open_not_empty,
    print_skipped,
    reading_bar,
)


@friendly
def predict(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A finished run folder.")],
    source: Source,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="CSV file. Default: standard output.")
    ] = None,
    to: Annotated[
        Path | None, typer.Option(help="Also sort the pictures here, one folder per cluster.")
    ] = None,
    how: Annotated[str | None, typer.Option(help="With --to: link or copy.")] = None,
    strict: Strict = False,
    cache: CacheOption = None,
    device: DeviceOption = "auto",
) -> None:
    """Predict the clusters of new pictures: path, cluster, confidence, rank, name.

    Examples:

      jule predict photos-run new-photos --out new.csv

      jule predict photos-run new-photos --to sorted --how copy
    """
    from jule.runs.folder import RunFolder
    from jule.runs.results import check_finished

    check_finished(RunFolder(run))
    opened = open_not_empty(source)
    with Console(stderr=True).status(LOADING):
        from jule.run import Run
    from jule.progress import progress_bars
    from jule.runs.tables import csv_text, write_labels

    trained = Run(run, device=device)
    with reading_bar(source) as show:
        data = trained.read_new(
            opened, strict=strict, cache=Path(cache) if cache else None, progress=show
        )
    with progress_bars(run.name) as bars:
        found = trained.predict_read(data, bars)
    print_skipped(Console(stderr=True), data)
    if out is not None:
        write_labels(out, found.columns())
        n_used = len(set(found.labels.tolist()))
        typer.echo(f"{counted(len(data), 'image')} in {counted(n_used, 'cluster')}: {out}")
    if to is not None:
        from jule.cli.export import print_exported
        from jule.export.pictures import export_new_pictures

        k = trained.results.result.n_clusters
        with progress_bars(run.name) as bars:
            exported = export_new_pictures(
                opened, data, found, k, to, how=how, progress=lambda done: bars("sorting", done)
            )
        print_exported(exported, to)
    if out is None and to is None:
        # In colour mode echo leaves escape codes in file names as they are.
        typer.echo(csv_text(found.columns()).replace("\r", ""), nl=False, color=True)
