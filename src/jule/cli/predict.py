"""`jule predict`: predict the clusters of new pictures with a finished run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from jule.cli.cluster import LOADING, DeviceOption, check_device
from jule.cli.output import counted, say, status, write_csv
from jule.cli.reading import (
    CacheOption,
    MovedEncoder,
    Source,
    Strict,
    check_not_own,
    open_not_empty,
    print_skipped,
)
from jule.progress import progress_bars, reading_bar


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
    features: MovedEncoder = None,
    cache: CacheOption = None,
    device: DeviceOption = "auto",
) -> None:
    """Predict the clusters of new pictures: path, cluster, confidence, rank, name, index.

    If the run has a map (see jule map), x and y are their positions on it.

    Examples:

      jule predict photos-run new-photos --out new.csv

      jule predict photos-run new-photos --to sorted --how copy
    """
    from jule.runs.folder import RunFolder
    from jule.runs.results import check_finished

    check_finished(RunFolder(run))
    check_not_own(out, run)
    opened = open_not_empty(source)
    check_device(device)
    with status(LOADING):
        from jule.run import Run
    from jule.files import write_atomic
    from jule.runs.tables import csv_text, labels_csv

    trained = Run(run, features=features, device=device)
    with reading_bar(source) as show:
        data = trained.read_new(
            opened, strict=strict, cache=Path(cache) if cache else None, progress=show
        )
    with progress_bars(run.name) as bars:
        found = trained.predict_read(data, bars, cache=Path(cache) if cache else None)
    print_skipped(data, err=True)
    if out is not None:
        write_atomic(out, labels_csv(found.columns()), private=False)
        n_used = len(set(found.labels.tolist()))
        say(f"{counted(len(data), 'image')} in {counted(n_used, 'cluster')}: {out}")
    if to is not None:
        from jule.cli.export import print_exported
        from jule.export.pictures import export_new_pictures

        with progress_bars(run.name) as bars:
            exported = export_new_pictures(
                opened,
                data,
                found,
                trained.results.numbers,
                to,
                how=how,
                progress=lambda done: bars("sorting", done),
            )
        print_exported(exported, to)
    if out is None and to is None:
        write_csv(csv_text(found.columns()))
