"""`jule similar`: the pictures of a run that look most like one picture."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from jule.cli.errors import friendly


@friendly
def similar(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A finished run folder.")],
    picture: Annotated[
        Path, typer.Argument(metavar="PICTURE", help="A picture, of the run or a new one.")
    ],
    count: Annotated[int, typer.Option("-n", "--count", help="How many to list.")] = 10,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or mps.")] = "auto",
) -> None:
    """List the pictures of a run that its network finds nearest to one picture.

    Example: jule similar photos-run cat.jpg -n 5
    """
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from jule.images.read import read_one
    from jule.runs import Run, read_results
    from jule.sorting import most_similar

    folder = Run(run)
    finished = read_results(folder, device=device)
    look = folder.look()
    if look is None:
        raise ValueError(f"{run} was not made with pictures, so none can be compared with it")
    nearest, cosines = most_similar(finished, read_one(picture, look), count)
    table = Table("similarity", "cluster", "path")
    for number, cosine in zip(nearest, cosines, strict=True):
        cluster = finished.result.labels[number]
        table.add_row(f"{cosine:.3f}", str(cluster), Text(finished.names[number]))
    Console().print(table)
