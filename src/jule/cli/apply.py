"""`jule apply`: changes made on the page, taken back into the run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from jule.cli.errors import friendly


@friendly
def apply(
    run: Annotated[Path, typer.Argument(help="A finished run folder.")],
    edits: Annotated[Path, typer.Argument(help="The JSON file that its page downloads.")],
) -> None:
    """Take names and moves made on a run's page into its labels.csv; then make the page anew.

    What the machine had found stays in labels_auto.csv.

    Example: jule apply pictures-run edits.json
    """
    import numpy as np

    from jule.cli.report import make_report
    from jule.report.edits import apply_edits, read_edits
    from jule.runs import Run

    folder = Run(run)
    folder.about()
    applied = apply_edits(folder, read_edits(edits))
    typer.echo(
        f"{len(np.unique(applied.labels))} clusters, {applied.n_moved} images moved, "
        f"{len(applied.names)} clusters named: {folder.path('labels.csv')}"
    )
    make_report(folder)
