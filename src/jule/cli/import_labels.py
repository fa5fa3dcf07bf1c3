"""`jule import-labels`: corrections from a spreadsheet."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from jule.cli.output import counted, counted_clusters, say


def import_labels(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A finished run folder.")],
    table: Annotated[
        Path,
        typer.Argument(
            metavar="LABELS",
            help="A CSV file with the columns path, and name or cluster: labels.csv of the run, "
            "edited in a spreadsheet, or a table of your own.",
        ),
    ],
) -> None:
    """Take corrections from a spreadsheet: names, and pictures in other clusters.

    Only rows that differ from the run change anything. If a row cannot be understood, nothing is
    changed. Commas, semicolons and tabs are understood.

    Example: jule import-labels photos-run labels.csv
    """
    from jule.cli.pages import report_edits
    from jule.files import read_regular
    from jule.locks import hold
    from jule.runs.edits import MOST_BYTES, import_table
    from jule.runs.folder import RunFolder
    from jule.runs.import_labels import parse_corrections
    from jule.runs.results import check_finished

    folder = RunFolder(run)
    check_finished(folder)
    rows = parse_corrections(read_regular(table.resolve(), MOST_BYTES), str(table))
    with hold(run):
        session, n_edits = import_table(folder, rows, str(table))
        state = session.state
        say(
            f"{counted(len(rows), 'row')}, {counted(n_edits, 'edit')}, "
            f"{counted_clusters(len(state.numbers), state.n_shelved)}: {folder.path('labels.csv')}"
        )
        if n_edits:
            report_edits(folder, session)
