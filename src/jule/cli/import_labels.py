"""`jule import-labels`: corrections from a spreadsheet."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from jule.cli.output import say, warn


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
    from jule.cli.reading import agreed_source, counted
    from jule.cli.report import write_report
    from jule.files import read_regular
    from jule.locks import hold
    from jule.report import Report
    from jule.runs.edits import MOST_BYTES, import_table
    from jule.runs.folder import RunFolder
    from jule.runs.import_labels import parse_corrections
    from jule.runs.results import check_finished

    folder = RunFolder(run)
    check_finished(folder)
    rows = parse_corrections(read_regular(table.resolve(), MOST_BYTES), str(table))
    source = agreed_source(folder)
    with hold(run):
        results, n_edits = import_table(folder, rows, str(table))
        say(
            f"{counted(len(rows), 'row')}, {counted(n_edits, 'edit')}, "
            f"{counted(results.result.n_clusters, 'cluster')}: {folder.path('labels.csv')}"
        )
        if not n_edits:
            return
        try:
            write_report(
                folder,
                lambda show: Report.of_run(folder, results=results, source=source, progress=show),
            )
        except OSError as error:  # the labels are changed, even if the page is not
            warn(f"the page was not made: {error}")
