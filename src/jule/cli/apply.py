"""`jule apply`: apply edits made on the page to a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from jule.cli.output import say, warn


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
) -> None:
    """Add names, moves and other corrections to a run; write labels.csv and the page again.

    The labels as they were found are kept in labels_auto.csv, and all corrections in edits.json.

    Examples:

      jule apply photos-run edits.json

      jule apply photos-run
    """
    from jule.cli.reading import agreed_source, counted
    from jule.cli.report import write_report
    from jule.locks import hold
    from jule.report import Report
    from jule.runs.edits import apply_edits, read_edits
    from jule.runs.folder import RunFolder
    from jule.runs.results import check_finished

    folder = RunFolder(run)
    check_finished(folder)
    asked = None if edits is None else read_edits(edits)
    source = agreed_source(folder)
    with hold(run):
        results, n_moved = apply_edits(folder, asked)
        say(
            f"{counted(results.result.n_clusters, 'cluster')}, "
            f"{counted(n_moved, 'image')} moved, "
            f"{counted(len(results.cluster_names), 'cluster')} named: {folder.path('labels.csv')}"
        )
        try:
            write_report(
                folder,
                lambda show: Report.of_run(folder, results=results, source=source, progress=show),
            )
        except OSError as error:  # the labels are changed, even if the page is not
            warn(f"the page was not made: {error}")
