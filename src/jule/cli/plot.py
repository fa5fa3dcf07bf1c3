"""`jule plot`: figures of a run for a paper, as image files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from jule.cli.errors import friendly


@friendly
def plot(
    run: Annotated[Path, typer.Argument(help="A finished run folder.")],
    kind: Annotated[str, typer.Option(help="pca3d, map, gallery or history.")] = "map",
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="A .png, .pdf or .svg; left out: in the run.")
    ] = None,
    source: Annotated[
        str | None, typer.Option(help="Where the images are now, if they were moved.")
    ] = None,
) -> None:
    """Draw a figure of a run in the style of the paper (needs matplotlib: pip install jule[plot]).

    Example: jule plot pictures-run --kind pca3d --out stages.png
    """
    from jule.report.plots import plot_run
    from jule.runs import Run

    path = out or run / f"{kind}.png"
    plot_run(Run(run), kind, path, source=source)
    typer.echo(f"{kind}: {path}")
