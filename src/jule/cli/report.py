"""`jule report`: the page of a finished run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from jule.cli.errors import friendly

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from jule.runs import Run


@friendly
def report(
    run: Annotated[Path, typer.Argument(help="A finished run folder.")],
    source: Annotated[
        str | None, typer.Option(help="Where the images are now, if they were moved.")
    ] = None,
    umap: Annotated[
        bool, typer.Option(help="A better map, which takes longer, if umap-learn is installed.")
    ] = True,
    show: Annotated[bool, typer.Option("--open", help="Show it in the browser.")] = False,
) -> None:
    """Make the page of a run: one HTML file that opens offline.

    Example: jule report pictures-run --open
    """
    from jule.runs import Run

    make_report(Run(run), source=source, umap=umap, show=show)


def make_report(
    run: Run,
    *,
    images: NDArray | None = None,
    source: str | None = None,
    umap: bool = True,
    show: bool = False,
) -> None:
    """Write report.html and report.json into a run, with progress, and say where they are.

    Examples
    --------
    >>> make_report(run)  # doctest: +SKIP
    """
    import webbrowser

    from jule.cli.progress import progress_bars
    from jule.report import Report

    with progress_bars(run.folder.name) as tell:
        made = Report.of_run(run, images=images, source=source, umap=umap, progress=tell)
        path = made.write(run)
    if made.sheets is None:
        typer.secho(f"jule: no pictures: {made.summary['no_pictures']}", err=True, fg="yellow")
    typer.echo(f"the page of the run: {path}")
    if show:
        webbrowser.open(path.resolve().as_uri())
