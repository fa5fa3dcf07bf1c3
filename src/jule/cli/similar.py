"""`jule similar`: list the pictures of a run that are most similar to a picture."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from jule.cli.cluster import LOADING, DeviceOption
from jule.cli.numbers import whole
from jule.cli.output import say_table, status
from jule.cli.reading import MovedEncoder


def similar(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A finished run folder.")],
    picture: Annotated[
        Path, typer.Argument(metavar="PICTURE", help="A picture, which may be new or in the run.")
    ],
    count: Annotated[
        int,
        typer.Option("-n", "--count", parser=whole(1), metavar="INTEGER", help="How many to list."),
    ] = 10,
    features: MovedEncoder = None,
    device: DeviceOption = "auto",
) -> None:
    """List the pictures of a run that are most similar to a picture.

    Example: jule similar photos-run cat.jpg -n 5
    """
    from jule.runs.folder import RunFolder
    from jule.runs.results import check_finished

    check_finished(RunFolder(run))
    if not picture.exists():
        raise FileNotFoundError(f"{picture} does not exist")
    with status(LOADING):
        from jule.run import Run

        trained = Run(run, features=features, device=device)
        found = trained.similar(picture, count)
    names = trained.cluster_names
    say_table(
        ["similarity", "cluster", "path"],
        [
            (
                f"{one.similarity:.3f}",
                f"{one.cluster} {names.get(one.cluster, '')}".strip(),
                one.path,
            )
            for one in found
        ],
    )
