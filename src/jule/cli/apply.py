"""`jule apply`: apply edits made on the page to a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from jule.cli.quick import Applied, apply_to_run


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
    apply_to_run(Applied(run, edits, page))
