"""`jule report`: make the page of a finished run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from jule.cli.errors import friendly

if TYPE_CHECKING:
    from jule.progress import Progress
    from jule.report import Report
    from jule.runs.folder import RunFolder


@friendly
def report(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A finished run folder.")],
    source: Annotated[
        str | None, typer.Option(help="Where the images are, if they have been moved.")
    ] = None,
    umap: Annotated[
        bool, typer.Option(help="Add a UMAP map if umap-learn is installed, which takes longer.")
    ] = True,
    show: Annotated[bool, typer.Option("--open", help="Open it in the browser.")] = False,
) -> None:
    """Make the page of a run: one HTML file that opens offline.

    Example: jule report photos-run --open
    """
    import webbrowser

    from jule.report import Report
    from jule.runs.folder import RunFolder

    folder = RunFolder(run)
    path = write_report(
        folder, lambda bars: Report.of_run(folder, source=source, umap=umap, progress=bars)
    )
    if show:
        webbrowser.open(path.resolve().as_uri())


def write_report(run: RunFolder, make: Callable[[Progress], Report]) -> Path:
    """Make a report with progress bars, write it into a run, and print a link to it."""
    from rich.console import Console
    from rich.text import Text

    from jule.progress import progress_bars

    with progress_bars(run.folder.name) as show:
        made = make(show)
        path = made.write(run)
    if made.sheets is None:
        typer.secho(f"jule: no pictures: {made.summary['no_pictures']}", err=True, fg="yellow")
    link = path.resolve().as_uri()
    # Terminals with hyperlinks open it on a click; others show the address.
    Console().print(Text("page: ").append(link, style=f"link {link}"), soft_wrap=True)
    return path
