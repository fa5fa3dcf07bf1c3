"""`jule plot`: draw figures of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from jule.cli.errors import friendly


@friendly
def plot(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A finished run folder.")],
    kind: Annotated[str, typer.Option(help="pca3d, map, gallery or history.")] = "map",
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help=".png, .pdf or .svg file. Default: in the run folder."),
    ] = None,
    source: Annotated[
        str | None, typer.Option(help="Where the images are, if they have been moved.")
    ] = None,
) -> None:
    r"""Draw a figure of a run. Needs matplotlib: pip install "jule\[plot]".

    Example: jule plot photos-run --kind pca3d --out stages.png
    """
    path = out or run / f"{kind}.png"
    with Console(stderr=True).status("drawing"):
        from jule.report.plots import plot_run
        from jule.runs.folder import RunFolder

        plot_run(RunFolder(run), kind, path, source=source)
    typer.echo(f"{kind}: {path}")
