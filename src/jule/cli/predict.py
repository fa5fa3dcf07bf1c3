"""`jule predict`: new images, sorted by a finished run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from jule.cli.errors import friendly
from jule.cli.reading import CacheOption, Source, Strict, reading_bar, tell_left_out


@friendly
def predict(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A finished run folder.")],
    source: Source,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="The CSV to write; left out: shown.")
    ] = None,
    to: Annotated[
        Path | None, typer.Option(help="Also put the pictures here, into a folder a cluster.")
    ] = None,
    how: Annotated[str | None, typer.Option(help="With --to: link or copy.")] = None,
    strict: Strict = False,
    cache: CacheOption = None,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or mps.")] = "auto",
) -> None:
    """Sort new pictures into the clusters of a run: path, cluster, confidence, rank.

    Examples:

      jule predict photos-run new-photos --out new.csv

      jule predict photos-run new-photos --to sorted --how copy
    """
    from rich.console import Console

    from jule.images import open_source
    from jule.runs import Run, read_results
    from jule.sheets import csv_of_labels, write_labels
    from jule.sorting import predict_labels, read_for

    folder = Run(run)
    finished = read_results(folder, device=device)
    opened = open_source(source)
    with reading_bar(source) as show:
        data = read_for(
            folder, opened, strict=strict, cache=Path(cache) if cache else None, progress=show
        )
    labels, confidence = predict_labels(finished, data.samples)
    tell_left_out(Console(stderr=True), data)
    if out is not None:
        write_labels(out, data.names, labels, confidence)
    if to is not None:
        from jule.cli.export import put_into_folders

        n_clusters = int(finished.result.labels.max()) + 1
        put_into_folders(folder, opened, data.numbers, data.names, labels, n_clusters, to, how)
    if out is not None:
        typer.echo(f"sorted {len(data)} images into {len(set(labels.tolist()))} clusters: {out}")
    elif to is None:
        typer.echo(csv_of_labels(data.names, labels, confidence).replace("\r", ""), nl=False)
