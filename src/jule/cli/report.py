"""`jule report`: make the page of a finished run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from jule.cli.pages import write_report

if TYPE_CHECKING:
    from jule.progress import Progress
    from jule.report import Report
    from jule.runs.folder import RunFolder


def report(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A finished run folder.")],
    source: Annotated[
        str | None, typer.Option(help="Where the images are, if moved or if the run is not yours.")
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

    from jule.cli.reading import agreed_source
    from jule.locks import hold
    from jule.runs.folder import RunFolder
    from jule.runs.results import check_finished

    folder = RunFolder(run)
    check_finished(folder)
    where = agreed_source(folder, source)
    with hold(run):
        path = remake_report(folder, where, umap=umap)
    if show:
        webbrowser.open(path.resolve().as_uri())


def remake_report(run: RunFolder, source: str | None, *, umap: bool = True) -> Path:
    """Make the page of a run again, unless it would lose its pictures; return its path."""
    from jule.report import Report

    def make(bars: Progress) -> Report:
        made = Report.of_run(run, source=source, umap=umap, progress=bars)
        if made.sheets is None and _shows_pictures(run):
            raise ValueError(
                f"{run.path('report.html')} is kept: a new one would have no pictures, because "
                f"{made.summary['no_pictures']}"
            )
        return made

    return write_report(run, make)


def _shows_pictures(run: RunFolder) -> bool:
    """Return whether a run has a page with pictures already."""
    from jule.files import parse_json
    from jule.runs.names import PAGE, SUMMARY

    try:
        run.read(PAGE)
        return bool(parse_json(run.read(SUMMARY))["pictures"])
    except (ValueError, KeyError, TypeError):  # it has none, or it is damaged
        return False
