"""`jule apply`: apply edits made on the page to a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from jule.cli.errors import friendly


@friendly
def apply(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A finished run folder.")],
    edits: Annotated[
        Path, typer.Argument(metavar="EDITS", help="The JSON file downloaded from the page.")
    ],
) -> None:
    """Apply names and moves made on the page to labels.csv, and make the page again.

    The labels as they were found are kept in labels_auto.csv.

    Example: jule apply photos-run edits.json
    """
    from jule.cli.reading import counted
    from jule.cli.report import write_report
    from jule.report import Report
    from jule.runs.edits import apply_edits, read_edits
    from jule.runs.folder import RunFolder
    from jule.runs.results import check_finished

    folder = RunFolder(run)
    check_finished(folder)
    results, n_moved = apply_edits(folder, read_edits(edits))
    typer.echo(
        f"{counted(results.result.n_clusters, 'cluster')}, "
        f"{counted(n_moved, 'image')} moved, "
        f"{counted(len(results.cluster_names), 'cluster')} named: {folder.path('labels.csv')}"
    )
    write_report(folder, lambda show: Report.of_run(folder, results=results, progress=show))
