"""`jule apply`: apply edits made on the page to a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from jule.cli.output import say


def apply(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A finished run folder.")],
    edits: Annotated[
        Path | None,
        typer.Argument(
            metavar="[EDITS]",
            help="The JSON file downloaded from the page, or edits.json of another run. "
            "Default: the edits that the run has.",
            show_default=False,
        ),
    ] = None,
    page: Annotated[bool, typer.Option(help="Make the page again, too.")] = True,
) -> None:
    """Add names, moves and other corrections to a run; write labels.csv and the page again.

    The labels as they were found are kept in labels_auto.csv, and all corrections in edits.json.

    Examples:

      jule apply photos-run edits.json

      jule apply photos-run --no-page
    """
    from jule.cli.reading import counted, counted_clusters
    from jule.cli.report import report_edits
    from jule.locks import hold
    from jule.runs.edits import read_edits, write_edits
    from jule.runs.folder import RunFolder
    from jule.runs.results import check_finished

    folder = RunFolder(run)
    check_finished(folder)
    asked = None if edits is None else read_edits(edits)
    with hold(run):
        session, n_moved = write_edits(folder, asked)
        state = session.state
        say(
            f"{counted_clusters(len(state.numbers), state.n_shelved)}, "
            f"{counted(n_moved, 'image')} moved, "
            f"{counted(len(state.names), 'cluster')} named: {folder.path('labels.csv')}"
        )
        if page:
            report_edits(folder, session)
