"""`jule plot`: draw figures of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from jule.cli.output import say, status


def plot(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A finished run folder.")],
    kind: Annotated[str, typer.Option(help="pca3d, map, gallery or history.")] = "map",
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help=".png, .pdf or .svg file. Default: in the run folder."),
    ] = None,
    source: Annotated[
        str | None, typer.Option(help="Where the images are, if moved or if the run is not yours.")
    ] = None,
) -> None:
    r"""Draw a figure of a run. Needs matplotlib: pip install "jule\[plot]".

    Example: jule plot photos-run --kind pca3d --out stages.png
    """
    from jule.cli.reading import agreed_source
    from jule.runs.folder import RunFolder
    from jule.runs.results import check_finished

    folder = RunFolder(run)
    check_finished(folder)
    path = out or run / f"{kind}.png"
    where = agreed_source(folder, source)
    with status("drawing"):
        from jule.report.plots import plot_run

        plot_run(folder, kind, path, source=where)
    say(f"{kind}: {path}")
